#include "tests/kernels/products.h"

#include <cstring>
#include <optional>

#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

void require_ok(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

template <class T>
T require_value(absl::StatusOr<T> value) {
  require_ok(value.status());
  return *std::move(value);
}

bool is_output(const ArgInfo& argument) {
  return argument.direction == Direction::kOut || argument.direction == Direction::kInOut;
}

}  // namespace

LaunchData random_launch(const KernelType& kernel, std::vector<u64> values, std::uint64_t seed) {
  const auto operation = require_value(reference::operation_of(kernel, values));
  LaunchData launch{kernel, std::move(values), {}};
  for (std::size_t i = 0; i < operation->arguments().size(); ++i) {
    launch.inputs.emplace_back();
    if (!operation->reads(i)) continue;
    launch.inputs[i].resize(operation->arguments()[i].bytes);
    require_ok(operation->make_input(i, seed + i, 0, absl::MakeSpan(launch.inputs[i])));
  }
  return launch;
}

namespace {

// Runs what launch_on(values) launches.
template <class Launch>
absl::StatusOr<Results> run_between_guards(const LaunchData& launch, const Device& device,
                                           Launch&& launch_on) {
  const ArgInfos arguments = launch.kernel->arguments(launch.values);
  std::vector<u64> values = launch.values;
  std::vector<std::optional<TightInput>> inputs(arguments.size());
  std::vector<std::optional<GuardedOutput>> outputs(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ArgInfo& argument = arguments[i];
    if (argument.direction == Direction::kScalar) continue;
    if (is_output(argument)) {
      outputs[i].emplace(device, argument.bytes, argument.alignment, argument.name);
      values[i] = outputs[i]->address();
      if (argument.direction == Direction::kInOut) outputs[i]->write(launch.inputs[i]);
    } else {
      inputs[i].emplace(device, launch.inputs[i], argument.alignment, argument.name);
      values[i] = inputs[i]->address();
    }
  }
  if (const absl::Status s = launch_on(values); !s.ok()) return s;
  if (const absl::Status s = device.synchronize(); !s.ok()) return s;
  Results results(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (outputs[i]) results[i] = require_value(outputs[i]->read());
  }
  return results;
}

void compare(const LaunchData& launch, const Results& results) {
  const auto operation = require_value(reference::operation_of(launch.kernel, launch.values));
  const auto read = [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
    std::memcpy(piece.data(), launch.inputs[argument].data() + offset, piece.size());
    return absl::OkStatus();
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!operation->writes(i)) continue;
    const reference::Comparison comparison = require_value(operation->check(i, 0, read, results[i]));
    INFO(comparison.to_string());
    CHECK(comparison.equal());
    CHECK((comparison.values > 0 || results[i].empty()));
  }
}

}  // namespace

Results run(const LaunchData& launch, KernelCache& kernels) {
  return require_value(run_between_guards(launch, kernels.device(), [&](const std::vector<u64>& values) {
    return require_value(kernels.get(launch.kernel)).launch(kernels.device().default_stream(), values);
  }));
}

absl::StatusOr<Results> run_text(const GeneratedKernel& text, const LaunchData& launch,
                                 const Device& device) {
  const Module module = require_value(device.load_module(text.ptx));
  const Function function = require_value(module.function(text.entry));
  return run_between_guards(launch, device, [&](const std::vector<u64>& values) {
    const ArgInfos arguments = launch.kernel->arguments(values);
    std::vector<KernelArg> args;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      args.push_back({&values[i], info(arguments[i].type).bytes});
    TensorMap map;
    if (const std::optional<TiledTensor> tensor = launch.kernel->tensor(values)) {
      map = require_value(device.encode_tensor_map(*tensor));
      args.push_back(KernelArg::of(map));
    }
    return function.launch(device.default_stream(), launch.kernel->launch_shape(values), args);
  });
}

void check(const LaunchData& launch) {
  CAPTURE(launch.kernel->text());
  compare(launch, run(launch));
}

void check_text(const GeneratedKernel& text, const LaunchData& launch) {
  compare(launch, require_value(run_text(text, launch, test_device())));
}

}  // namespace ptxgen::testing
