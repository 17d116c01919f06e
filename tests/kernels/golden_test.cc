// Goldens: the PTX of a kernel, line by line. Each is also assembled for its target, and run.

#include "tests/support/golden.h"

#include <cstring>
#include <optional>

#include "tests/kernels/harness.h"
#include "tests/kernels/products.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

template <class Kernel>
struct Golden {
  std::string_view file;
  Kernel kernel;
  Target target;
};

constexpr Target kSm75 = {75, false};
constexpr Target kSm90 = {90, false};
constexpr Target kSm90a = {90, true};  // as sm_90, with a PTX ISA that has fences of mbarriers

// Three rows of three super-blocks, or of 24 blocks: the last CTA is partly idle.
constexpr Dequant small(Format format, ElementType out_type) {
  return {.format = format, .k = 768, .n = 3, .out_type = out_type};
}
// Every CTA is full, so that no thread asks whether it has work.
constexpr Dequant full(Format format, ElementType out_type) {
  return {.format = format, .k = 4096, .n = 4, .out_type = out_type};
}

constexpr Golden<Dequant> kGoldens[] = {
    {"q4_0_dequant.ptx", small(Format::kQ4_0, ElementType::kF32), kSm75},
    {"q4_1_dequant.ptx", small(Format::kQ4_1, ElementType::kF32), kSm75},
    {"q5_0_dequant.ptx", small(Format::kQ5_0, ElementType::kF32), kSm75},
    {"q5_1_dequant.ptx", small(Format::kQ5_1, ElementType::kF32), kSm75},
    {"q8_0_dequant.ptx", small(Format::kQ8_0, ElementType::kF32), kSm75},
    {"q2k_dequant.ptx", small(Format::kQ2_K, ElementType::kF32), kSm75},
    {"q3k_dequant.ptx", small(Format::kQ3_K, ElementType::kF32), kSm75},
    {"q4k_dequant.ptx", small(Format::kQ4_K, ElementType::kF32), kSm75},
    {"q5k_dequant.ptx", small(Format::kQ5_K, ElementType::kF32), kSm75},
    {"q6k_dequant.ptx", small(Format::kQ6_K, ElementType::kF32), kSm75},
    {"q4k_dequant_f16_sm_90.ptx", full(Format::kQ4_K, ElementType::kF16), kSm90},
    {"q6k_dequant_bf16_sm_90.ptx", full(Format::kQ6_K, ElementType::kBf16), kSm90},
    {"q8_0_dequant_f16_sm_75.ptx", full(Format::kQ8_0, ElementType::kF16), kSm75},
    {"q5_1_dequant_bf16_sm_75.ptx", small(Format::kQ5_1, ElementType::kBf16), kSm75},
};

// A part of a warp's last span has no block, and a CTA's last tile not all of its rows. The plan is given, so
// that a better default one changes no golden.
const Golden<KernelType> kProductGoldens[] = {
    {"q4k_gemv_multi_warp_dp4a_sm_75.ptx",
     Gemv{.format = Format::kQ4_K, .k = 1280, .n = 3, .schedule = Schedule::kMultiWarpDp4a}, kSm75},
    {"q4k_gemv_stream_sm_90.ptx",
     Gemv{.format = Format::kQ4_K,
          .k = 1280,
          .n = 37,
          .plan = {.ctas = 3, .row_lanes = 8, .groups = 2, .rows = 2, .stages = 2}},
     kSm90a},
    {"quantize_q8_1_sm_75.ptx", QuantizeQ8_1{.k = 96}, kSm75},
};

// Checks the text, and that it assembles for its target.
void check_text(std::string_view file, const GeneratedKernel& text, Target target) {
  CHECK(matches_golden(file, text.ptx));
  const PtxasReport report = assemble(text.ptx, target);
  CAPTURE(report.log);
  REQUIRE(report.ok);
  const PtxasEntry* entry = report.find(text.entry);
  REQUIRE(entry != nullptr);
  CHECK_FALSE(entry->spills());
  CHECK(entry->stack_bytes == 0);
}

TEST_CASE("goldens are what kernels print and assemble without spills and give the values of ggml",
          "[kernels][golden]") {
  for (const auto& [file, kernel, target] : kGoldens) {
    CAPTURE(std::string(file));
    const GeneratedKernel text = generated_for(kernel, target);
    check_text(file, text, target);
    const auto blocks = random_input(kernel, 41);
    check_values(kernel, blocks, run_text(text, kernel, blocks));
  }
}

// Runs the text between guards, and checks every output against the reference.
void check_run(const GeneratedKernel& text, const LaunchData& launch) {
  const Device& device = test_device();
  const ArgInfos arguments = launch.kernel->arguments(launch.values);
  std::vector<u64> values = launch.values;
  std::vector<std::optional<TightInput>> inputs(arguments.size());
  std::vector<std::optional<GuardedOutput>> outputs(arguments.size());
  std::vector<KernelArg> args;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ArgInfo& argument = arguments[i];
    if (argument.direction == Direction::kIn) {
      inputs[i].emplace(device, launch.inputs[i], argument.alignment, argument.name);
      values[i] = inputs[i]->address();
    } else if (argument.direction == Direction::kOut) {
      outputs[i].emplace(device, argument.bytes, argument.alignment, argument.name);
      values[i] = outputs[i]->address();
    }
    args.push_back({&values[i], argument.direction == Direction::kScalar ? sizeof(u32) : sizeof(u64)});
  }
  const auto module = device.load_module(text.ptx);
  REQUIRE(module.ok());
  const auto function = module->function(text.entry);
  REQUIRE(function.ok());
  const absl::Status launched =
      function->launch(device.default_stream(), launch.kernel->launch_shape(values), args);
  INFO(launched.ToString());
  REQUIRE(launched.ok());
  REQUIRE(device.synchronize().ok());

  const auto operation = reference::operation_of(launch.kernel, launch.values);
  REQUIRE(operation.ok());
  const auto read = [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
    std::memcpy(piece.data(), launch.inputs[argument].data() + offset, piece.size());
    return absl::OkStatus();
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!outputs[i]) continue;
    const auto found = outputs[i]->read();
    REQUIRE(found.ok());
    const auto comparison = (*operation)->check(i, 0, read, *found);
    REQUIRE(comparison.ok());
    INFO(comparison->to_string());
    CHECK(comparison->values > 0);
    CHECK(comparison->equal());
  }
}

TEST_CASE("goldens of products assemble without spills and give the values of the reference",
          "[kernels][golden]") {
  for (const auto& [file, kernel, target] : kProductGoldens) {
    CAPTURE(std::string(file));
    const GeneratedKernel text = generated_for(kernel, target);
    check_text(file, text, target);
    check_run(text, random_launch(kernel, kernel->default_arguments(), 43));
  }
}

}  // namespace
}  // namespace ptxgen::testing
