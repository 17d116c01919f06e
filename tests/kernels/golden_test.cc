// Goldens: the PTX of a kernel, line by line. Each is also assembled for its target, and run.

#include "tests/support/golden.h"

#include "ptxgen/convert.h"
#include "ptxgen/gemm.h"
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
constexpr Target kSm80 = {80, false};
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
    {"q4k_gemm_tiled_sm_75.ptx", Gemm{.k = 1024, .n = 131, .schedule = GemmSchedule::kTiled, .tile_m = 2},
     kSm75},
    {"q8_0_gemm_dp4a_sm_75.ptx",
     Gemm{.format = Format::kQ8_0, .k = 96, .n = 5, .schedule = GemmSchedule::kDp4a, .tile_m = 2}, kSm75},
    {"q6k_gemm_wmma_sm_75.ptx",
     Gemm{.format = Format::kQ6_K, .k = 512, .n = 17, .schedule = GemmSchedule::kWmma}, kSm75},
    {"q4k_gemm_wmma_multi_warp_sm_90a.ptx", Gemm{.k = 512, .n = 32, .schedule = GemmSchedule::kWmmaMultiWarp},
     kSm90a},
    {"q4k_gemm_mma_sm_80.ptx",
     Gemm{.k = 1024, .n = 35, .a_type = Activations::kF16, .tile_m = 16, .tile_n = 32}, kSm80},
    {"q4_0_gemm_mma_f32_sm_90a.ptx",
     Gemm{.format = Format::kQ4_0, .k = 96, .n = 64, .tile_m = 16, .tile_n = 32}, kSm90a},
    {"q4k_gemm_wgmma_sm_90a.ptx",
     Gemm{.k = 1024, .n = 130, .schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16, .tile_m = 16},
     kSm90a},
    {"q4k_gemm_wgmma_in_turn_sm_90a.ptx",
     Gemm{.k = 1024,
          .n = 130,
          .schedule = GemmSchedule::kWgmma,
          .a_type = Activations::kF16,
          .tile_m = 72,
          .ctas = 2},
     kSm90a},
    {"q8_0_gemm_wgmma_split_sm_90a.ptx",
     Gemm{.format = Format::kQ8_0,
          .k = 288,
          .n = 5,
          .schedule = GemmSchedule::kWgmma,
          .a_type = Activations::kF16,
          .tile_m = 8,
          .split_k = 2},
     kSm90a},
    {"stage_f16_sm_90a.ptx", StageF16{.k = 4096}, kSm90a},
    {"quantize_q8_1_sm_75.ptx", QuantizeQ8_1{.k = 96}, kSm75},
    {"f32_to_e4m3_device_scaled_sm_90a.ptx",
     Convert{.to = ElementType::kE4m3, .scale = ConvertScale::kDevice}, kSm90a},
    {"f16_to_e4m3_sm_75.ptx", Convert{.from = ElementType::kF16, .to = ElementType::kE4m3}, kSm75},
    {"absmax_sm_90a.ptx", Absmax{}, kSm90a},
};

// Checks the text, and that it assembles for its target.
void check_golden(std::string_view file, const GeneratedKernel& text, Target target) {
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
    check_golden(file, text, target);
    const auto blocks = random_input(kernel, 41);
    check_values(kernel, blocks, run_text(text, kernel, blocks));
  }
}

TEST_CASE("goldens of products assemble without spills and give the values of the reference",
          "[kernels][golden]") {
  for (const auto& [file, kernel, target] : kProductGoldens) {
    CAPTURE(std::string(file));
    const GeneratedKernel text = generated_for(kernel, target);
    check_golden(file, text, target);
    check_text(text, random_launch(kernel, kernel->default_arguments(), 43));
  }
}

}  // namespace
}  // namespace ptxgen::testing
