#include "tests/kernels/harness.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "src/reference/generate.h"
#include "src/reference/operation.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr std::byte kPattern{0xa5};
constexpr std::uint64_t kGuardBytes = 256;

void require_ok(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

template <class T>
T require_value(absl::StatusOr<T> value) {
  require_ok(value.status());
  return *std::move(value);
}

Device open_test_device() {
  const char* choice = std::getenv("PTXGEN_TEST_DEVICE");
  return require_value(
      Device::open(require_value(DeviceOptions::parse(choice && *choice ? choice : "emulator"))));
}

using Launch = std::function<absl::Status(ArgValues)>;

std::vector<std::byte> run(const KernelType& kernel, absl::Span<const std::byte> input,
                           const Launch& launch) {
  const ArgInfos arguments = kernel->arguments(kernel->default_arguments());
  REQUIRE(arguments.size() == 2);
  REQUIRE(arguments[0].bytes == input.size());
  const Device& device = test_device();
  const TightInput in(device, input, arguments[0].alignment, arguments[0].name);
  const GuardedOutput out(device, arguments[1].bytes, arguments[1].alignment, arguments[1].name);
  require_ok(launch(std::array<u64, 2>{in.address(), out.address()}));
  require_ok(device.synchronize());
  return require_value(out.read());
}

std::unique_ptr<reference::Operation> operation_of(const KernelType& kernel) {
  auto operation = require_value(reference::operation_of(kernel, kernel->default_arguments()));
  REQUIRE(operation->arguments().size() == 2);
  return operation;
}

// A reference's input that is held as a whole.
struct InputOf {
  absl::Span<const std::byte> input;
  absl::Status operator()(std::size_t argument, u64 offset, absl::Span<std::byte> piece) const {
    REQUIRE(argument == 0);
    REQUIRE(offset + piece.size() <= input.size());
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(offset), piece.size(), piece.begin());
    return absl::OkStatus();
  }
};

}  // namespace

const Device& test_device() {
  static const Device device = open_test_device();
  return device;
}

KernelCache& test_kernels() {
  static KernelCache kernels(test_device());
  return kernels;
}

std::vector<std::byte> random_input(const KernelType& kernel, std::uint64_t seed) {
  const auto operation = operation_of(kernel);
  std::vector<std::byte> input(operation->arguments()[0].bytes);
  require_ok(operation->make_input(0, seed, 0, absl::MakeSpan(input)));
  return input;
}

std::vector<std::byte> arbitrary_input(const Dequant& kernel, std::uint64_t seed) {
  return reference::random_bytes(kernel.format, kernel.num_blocks(), seed);
}

std::vector<std::byte> halfway_input(const Dequant& kernel, std::uint64_t seed) {
  REQUIRE(kernel.format == Format::kQ8_0);
  std::vector<std::byte> blocks = random_input(kernel, seed);
  const std::size_t size = info(kernel.format).block_bytes;
  for (std::size_t i = 0; i < kernel.num_blocks(); ++i) {
    // f16 scales from 1.5 = 1 + 2^-1 to 1 + 2^-6, whose products with 8-bit quants take 8 to 14 bits.
    const std::uint32_t scale = 0x3c00 + (0x200 >> i % 6);
    blocks[i * size] = static_cast<std::byte>(scale);
    blocks[i * size + 1] = static_cast<std::byte>(scale >> 8);
  }
  return blocks;
}

std::vector<std::byte> expected_output(const KernelType& kernel, absl::Span<const std::byte> input) {
  const auto operation = operation_of(kernel);
  std::vector<std::byte> out(operation->arguments()[1].bytes);
  require_ok(operation->expect(1, 0, InputOf{input}, absl::MakeSpan(out)));
  return out;
}

TightInput::TightInput(const Device& device, absl::Span<const std::byte> data, std::size_t alignment,
                       std::string_view name)
    : buffer_(require_value(device.allocate(alignment + data.size(), name))), offset_(alignment) {
  require_ok(buffer_.copy_from_host(data.data(), data.size(), offset_));
}

GuardedOutput::GuardedOutput(const Device& device, std::uint64_t bytes, std::size_t alignment,
                             std::string_view name)
    : buffer_(require_value(device.allocate(kGuardBytes + alignment + bytes + kGuardBytes, name))),
      before_(kGuardBytes + alignment),
      bytes_(bytes) {
  require_ok(buffer_.fill(std::to_integer<std::uint8_t>(kPattern)));
}

void GuardedOutput::write(absl::Span<const std::byte> data) {
  REQUIRE(data.size() == bytes_);
  require_ok(buffer_.copy_from_host(data.data(), data.size(), before_));
}

absl::StatusOr<std::vector<std::byte>> GuardedOutput::read() const {
  std::vector<std::byte> all(buffer_.bytes());
  if (absl::Status s = buffer_.copy_to_host(all.data(), all.size()); !s.ok()) return s;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(before_);
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes_);
  const auto written = [](std::byte b) { return b != kPattern; };
  if (const auto it = std::find_if(all.begin(), begin, written); it != begin) {
    return absl::DataLossError(str_cat("a byte was written ", begin - it, " before the output"));
  }
  if (const auto it = std::find_if(end, all.end(), written); it != all.end()) {
    return absl::DataLossError(str_cat("a byte was written ", it - end, " past the output's end"));
  }
  return std::vector<std::byte>(begin, end);
}

GeneratedKernel generated_for(const KernelType& kernel, Target target) {
  const auto row = std::find_if(kTargets.begin(), kTargets.end(),
                                [&](const TargetInfo& info) { return info.target == target; });
  REQUIRE(row != kTargets.end());
  return require_value(generate(*kernel, {.build = {.target = target, .max_isa = row->since}}));
}

std::vector<std::byte> run_text(const GeneratedKernel& text, const KernelType& kernel,
                                absl::Span<const std::byte> input) {
  const Module module = require_value(test_device().load_module(text.ptx));
  const Function function = require_value(module.function(text.entry));
  return run(kernel, input, [&](ArgValues values) {
    return function.launch(test_device().default_stream(), kernel->launch_shape(values),
                           {KernelArg::of(values[0]), KernelArg::of(values[1])});
  });
}

std::vector<std::byte> run_kernel(const KernelType& kernel, absl::Span<const std::byte> input,
                                  std::optional<Target> target) {
  if (target) return run_text(generated_for(kernel, *target), kernel, input);
  const CompiledKernel compiled = require_value(test_kernels().get(kernel));
  return run(kernel, input,
             [&](ArgValues values) { return compiled.launch(test_device().default_stream(), values); });
}

bool same_values(const Dequant& kernel, absl::Span<const std::byte> expected,
                 absl::Span<const std::byte> actual) {
  if (kernel.out_type != ElementType::kF32) {
    return std::equal(expected.begin(), expected.end(), actual.begin(), actual.end());
  }
  return require_value(reference::compare(reference::FloatType::kF32, expected, actual)).equal();
}

void check_values(const Dequant& kernel, absl::Span<const std::byte> blocks,
                  absl::Span<const std::byte> actual) {
  const auto comparison = require_value(operation_of(kernel)->check(1, 0, InputOf{blocks}, actual));
  INFO(KernelType(kernel)->text());
  INFO(comparison.to_string());
  CHECK(comparison.values == u64{kernel.n} * kernel.k);
  CHECK(comparison.equal());
  CHECK(same_values(kernel, expected_output(kernel, blocks), actual));
}

void check_dequant(const Dequant& kernel, absl::Span<const std::byte> blocks, std::optional<Target> target) {
  INFO(KernelType(kernel)->text());
  check_values(kernel, blocks, run_kernel(kernel, blocks, target));
}

}  // namespace ptxgen::testing
