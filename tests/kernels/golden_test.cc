// Goldens: the PTX of a kernel, line by line. Each is also assembled for its target, and run.

#include "tests/support/golden.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

struct Golden {
  std::string_view file;
  Dequant kernel;
  Target target;
};

constexpr Target kSm75 = {75, false};
constexpr Target kSm90 = {90, false};

// Three rows of three super-blocks, or of 24 blocks: the last CTA is partly idle.
constexpr Dequant small(Format format, OutType out_type) {
  return {.format = format, .k = 768, .n = 3, .out_type = out_type};
}
// Every CTA is full, so that no thread asks whether it has work.
constexpr Dequant full(Format format, OutType out_type) {
  return {.format = format, .k = 4096, .n = 4, .out_type = out_type};
}

constexpr Golden kGoldens[] = {
    {"q4_0_dequant.ptx", small(Format::kQ4_0, OutType::kF32), kSm75},
    {"q4_1_dequant.ptx", small(Format::kQ4_1, OutType::kF32), kSm75},
    {"q5_0_dequant.ptx", small(Format::kQ5_0, OutType::kF32), kSm75},
    {"q5_1_dequant.ptx", small(Format::kQ5_1, OutType::kF32), kSm75},
    {"q8_0_dequant.ptx", small(Format::kQ8_0, OutType::kF32), kSm75},
    {"q2k_dequant.ptx", small(Format::kQ2_K, OutType::kF32), kSm75},
    {"q3k_dequant.ptx", small(Format::kQ3_K, OutType::kF32), kSm75},
    {"q4k_dequant.ptx", small(Format::kQ4_K, OutType::kF32), kSm75},
    {"q5k_dequant.ptx", small(Format::kQ5_K, OutType::kF32), kSm75},
    {"q6k_dequant.ptx", small(Format::kQ6_K, OutType::kF32), kSm75},
    {"q4k_dequant_f16_sm_90.ptx", full(Format::kQ4_K, OutType::kF16), kSm90},
    {"q6k_dequant_bf16_sm_90.ptx", full(Format::kQ6_K, OutType::kBf16), kSm90},
    {"q8_0_dequant_f16_sm_75.ptx", full(Format::kQ8_0, OutType::kF16), kSm75},
    {"q5_1_dequant_bf16_sm_75.ptx", small(Format::kQ5_1, OutType::kBf16), kSm75},
};

TEST_CASE("goldens are what kernels print and assemble without spills and give the values of ggml",
          "[kernels][golden]") {
  for (const Golden& golden : kGoldens) {
    CAPTURE(std::string(golden.file));
    const GeneratedKernel text = generated_for(golden.kernel, golden.target);
    CHECK(matches_golden(golden.file, text.ptx));

    const PtxasReport report = assemble(text.ptx, golden.target);
    CAPTURE(report.log);
    REQUIRE(report.ok);
    const PtxasEntry* entry = report.find(text.entry);
    REQUIRE(entry != nullptr);
    CHECK_FALSE(entry->spills());
    CHECK(entry->stack_bytes == 0);

    const auto blocks = random_input(golden.kernel, 41);
    check_values(golden.kernel, blocks, run_text(text, golden.kernel, blocks));
  }
}

}  // namespace
}  // namespace ptxgen::testing
