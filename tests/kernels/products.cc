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

std::vector<std::vector<std::byte>> run(const LaunchData& launch, KernelCache& kernels) {
  const ArgInfos arguments = launch.kernel->arguments(launch.values);
  const Device& device = kernels.device();
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
  require_ok(require_value(kernels.get(launch.kernel)).launch(device.default_stream(), values));
  require_ok(device.synchronize());
  std::vector<std::vector<std::byte>> results(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (outputs[i]) results[i] = require_value(outputs[i]->read());
  }
  return results;
}

void check(const LaunchData& launch) {
  CAPTURE(launch.kernel->text());
  const auto operation = require_value(reference::operation_of(launch.kernel, launch.values));
  const auto read = [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
    std::memcpy(piece.data(), launch.inputs[argument].data() + offset, piece.size());
    return absl::OkStatus();
  };
  const auto results = run(launch);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!operation->writes(i)) continue;
    const reference::Comparison comparison = require_value(operation->check(i, 0, read, results[i]));
    INFO(comparison.to_string());
    CHECK(comparison.equal());
    CHECK((comparison.values > 0 || results[i].empty()));
  }
}

}  // namespace ptxgen::testing
