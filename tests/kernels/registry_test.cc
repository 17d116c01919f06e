#include <algorithm>
#include <set>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "ptxgen/convert.h"
#include "ptxgen/gemm.h"
#include "ptxgen/kernels.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

const KernelFamily& found(std::string_view name) {
  const auto family = find_kernel(name);
  INFO(family.status().ToString());
  REQUIRE(family.ok());
  return **family;
}

std::string refusal(std::string_view name, const FieldValues& values) {
  const auto kernel = found(name).make(values);
  CHECK(kernel.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(kernel.status().message());
}

// Schedule stream begins with bulk copies and waits that sm_90 has, and mma with asynchronous copies that
// sm_80 has; all else is for every target.
Target expected_lowest(const KernelType& defaults) {
  const auto* gemv = defaults.get_if<Gemv>();
  const bool streams = (gemv && gemv->schedule == Schedule::kStream) || defaults.get_if<BatchedGemv>() ||
                       defaults.get_if<FusedGemv>();
  const auto* gemm = defaults.get_if<Gemm>();
  if (gemm && gemm->schedule == GemmSchedule::kMma) return {80, false};
  return streams ? Target{90, false} : kBaseTarget;
}

TEST_CASE("kernel names are unique and in snake case", "[kernels]") {
  std::set<std::string> names;
  for (const KernelFamily& family : kernel_families()) {
    CAPTURE(family.name);
    CHECK(names.insert(family.name).second);
    CHECK(std::all_of(family.name.begin(), family.name.end(),
                      [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }));
    CHECK_FALSE(family.summary.empty());
    CHECK(family.lowest_target() == expected_lowest(family.defaults));
    CHECK(family.defaults->validate().ok());
    CHECK((!family.fields.empty() || family.defaults->name() != family.name));
    CHECK(&found(family.name) == &family);
  }
  CHECK(names.size() == 89);  // 57, and 32 that are only the original's
}

TEST_CASE("every format has a dequantisation under its name", "[kernels]") {
  for (const FormatInfo& format : kFormats) {
    const KernelFamily& family = found(str_cat(format.name, "_dequant"));
    const auto* kernel = family.defaults.get_if<Dequant>();
    REQUIRE(kernel != nullptr);
    CHECK(kernel->format == format.format);
    CHECK(family.defaults->name() == family.name);
  }
}

TEST_CASE("every format has its products under their names", "[kernels]") {
  for (const FormatInfo& format : kFormats) {
    const auto check = [&](const std::string& name, const KernelType& kernel) {
      CHECK(found(name).defaults == kernel);
      CHECK(found(name).defaults->name() == name);
    };
    check(str_cat(format.name, "_gemv"), Gemv{.format = format.format});
    check(str_cat(format.name, "_batched_gemv"), BatchedGemv{.format = format.format});
    check(str_cat(format.name, "_fused_gemv"),
          FusedGemv{.format = format.format, .format_b = format.format, .format_c = format.format});
    check(str_cat(format.name, "_gemm"), Gemm{.format = format.format});
  }
}

struct Original {
  std::string name;        // in the Rust original
  std::string snake_case;  // here
  KernelType kernel;       // with the defaults
  std::string summary;     // what it begins or ends with
};

const Gemv of_schedule(Format format, Schedule schedule) {
  return {.format = format, .schedule = schedule};
}

std::vector<Original> originals() {
  constexpr Format kQ4K = Format::kQ4_K, kQ6K = Format::kQ6_K;
  constexpr ElementType kF16 = ElementType::kF16, kE4m3 = ElementType::kE4m3;
  const auto own = [](Format f) { return Gemv{.format = f}; };
  const FusedGemv rms = {.norm = Norm::kRms}, swiglu = {.n_b = 4096, .combine = Combine::kSwiglu},
                  pair = {.n_b = 4096};
  return {
      {"Q4KDequant", "q4k_dequant", Dequant{.format = kQ4K}, "dequantises q4_K blocks, row after row"},
      {"Q6KDequant", "q6k_dequant", Dequant{.format = kQ6K}, "dequantises q6_K blocks, row after row"},
      {"Q4KDequantFp16", "q4k_dequant_fp16", Dequant{.format = kQ4K, .out_type = ElementType::kF16},
       "q4k_dequant with out_type=f16"},
      {"Q4KGemv", "q4k_gemv", own(kQ4K), "; Q4KGemv is schedule=warp"},
      {"Q5KGemv", "q5k_gemv", own(Format::kQ5_K), "; Q5KGemv is schedule=warp"},
      {"Q6KGemv", "q6k_gemv", own(kQ6K), "; Q6KGemv is schedule=warp"},
      {"Q8_0Gemv", "q8_0_gemv", own(Format::kQ8_0), "; Q8_0Gemv is schedule=warp"},
      {"Q5_0Gemv", "q5_0_gemv", own(Format::kQ5_0), "; Q5_0Gemv is schedule=warp"},
      {"Q4_0Gemv", "q4_0_gemv", own(Format::kQ4_0), "; Q4_0Gemv is schedule=warp"},
      {"Q4_1Gemv", "q4_1_gemv", own(Format::kQ4_1), "; Q4_1Gemv is schedule=warp"},
      {"TiledQ4KGemv", "tiled_q4k_gemv", of_schedule(kQ4K, Schedule::kTiled), "q4k_gemv with schedule=tiled"},
      {"ChunkedTiledQ4KGemv", "chunked_tiled_q4k_gemv", of_schedule(kQ4K, Schedule::kChunkedTiled),
       "q4k_gemv with schedule=chunked_tiled"},
      {"CoalescedQ4KGemv", "coalesced_q4k_gemv", of_schedule(kQ4K, Schedule::kCoalesced),
       "q4k_gemv with schedule=coalesced"},
      {"CoalescedQ6KGemv", "coalesced_q6k_gemv", of_schedule(kQ6K, Schedule::kCoalesced),
       "q6k_gemv with schedule=coalesced"},
      {"WideQ4KGemv", "wide_q4k_gemv", of_schedule(kQ4K, Schedule::kWide), "q4k_gemv with schedule=wide"},
      {"VectorizedQ4KGemv", "vectorized_q4k_gemv", of_schedule(kQ4K, Schedule::kVectorized),
       "q4k_gemv with schedule=vectorized"},
      {"MwvQ4KGemv", "mwv_q4k_gemv", of_schedule(kQ4K, Schedule::kMultiWarp),
       "q4k_gemv with schedule=multi_warp"},
      {"MwvQ6KGemv", "mwv_q6k_gemv", of_schedule(kQ6K, Schedule::kMultiWarp),
       "q6k_gemv with schedule=multi_warp"},
      {"MwvDp4aQ4KGemv", "mwv_dp4a_q4k_gemv", of_schedule(kQ4K, Schedule::kMultiWarpDp4a),
       "q4k_gemv with schedule=multi_warp_dp4a"},
      {"Dp4aQ6KGemv", "dp4a_q6k_gemv", of_schedule(kQ6K, Schedule::kMultiWarpDp4a),
       "q6k_gemv with schedule=multi_warp_dp4a"},
      {"HwDp4aQ4KGemv", "hw_dp4a_q4k_gemv", of_schedule(kQ4K, Schedule::kHalfWarpDp4a),
       "q4k_gemv with schedule=half_warp_dp4a"},
      {"HwDp4aQ6KGemv", "hw_dp4a_q6k_gemv", of_schedule(kQ6K, Schedule::kHalfWarpDp4a),
       "q6k_gemv with schedule=half_warp_dp4a"},
      {"InlineQ8Dp4aQ4KGemv", "inline_q8_dp4a_q4k_gemv", of_schedule(kQ4K, Schedule::kHalfWarpDp4a),
       "q4k_gemv with schedule=half_warp_dp4a x_type=f32"},
      {"BatchedQ4KGemv", "batched_q4k_gemv", BatchedGemv{}, "another name of q4k_batched_gemv"},
      {"BatchedQ6KGemv", "batched_q6k_gemv", BatchedGemv{.format = kQ6K}, "another name of q6k_batched_gemv"},
      {"BatchedHwDp4aQ4KGemv", "batched_hw_dp4a_q4k_gemv", BatchedGemv{}, "another name of q4k_batched_gemv"},
      {"MultiWarpBatchedQ4KGemv", "multi_warp_batched_q4k_gemv", BatchedGemv{},
       "another name of q4k_batched_gemv"},
      {"FusedRmsNormQ4KGemv", "fused_rms_norm_q4k_gemv", rms, "q4k_fused_gemv with norm=rms"},
      {"FusedGateUpSwigluHwDp4aQ4KGemv", "fused_gate_up_swiglu_hw_dp4a_q4k_gemv", swiglu,
       "q4k_fused_gemv with combine=swiglu n_b=4096"},
      {"FusedKVHwDp4aQ4KGemv", "fused_kv_hw_dp4a_q4k_gemv", pair, "q4k_fused_gemv with n_b=4096"},
      {"QuantizedGemmGgmlTiled", "quantized_gemm_ggml_tiled", Gemm{.schedule = GemmSchedule::kTiled},
       "q4k_gemm with schedule=tiled"},
      {"Dp4aQ4KGemm", "dp4a_q4k_gemm", Gemm{.schedule = GemmSchedule::kDp4a}, "q4k_gemm with schedule=dp4a"},
      {"TensorCoreQ4KGemm", "tensor_core_q4k_gemm", Gemm{.schedule = GemmSchedule::kWmma},
       "q4k_gemm with schedule=wmma"},
      {"MultiWarpTensorCoreQ4KGemm", "multi_warp_tensor_core_q4k_gemm",
       Gemm{.schedule = GemmSchedule::kWmmaMultiWarp}, "q4k_gemm with schedule=wmma_multi_warp"},
      {"Q8Quantize", "q8_quantize", QuantizeQ8_1{}, "another name of quantize_q8_1"},
      {"f32_to_f16", "f32_to_f16", Convert{}, "convert with from=f32 to=f16 scale=none"},
      {"f16_to_f32", "f16_to_f32", Convert{.from = kF16, .to = ElementType::kF32},
       "convert with from=f16 to=f32 scale=none"},
      {"f32_to_e4m3", "f32_to_e4m3", Convert{.to = kE4m3}, "convert with from=f32 to=e4m3 scale=none"},
      {"f32_to_e4m3_scaled", "f32_to_e4m3_scaled", Convert{.to = kE4m3, .scale = ConvertScale::kValue},
       "convert with from=f32 to=e4m3 scale=value"},
      {"f32_to_e4m3_device_scaled", "f32_to_e4m3_device_scaled",
       Convert{.to = kE4m3, .scale = ConvertScale::kDevice}, "convert with from=f32 to=e4m3 scale=device"},
      {"f16_to_f32_act_scaled", "f16_to_f32_act_scaled",
       Convert{.from = kF16, .to = ElementType::kF32, .scale = ConvertScale::kFactor},
       "convert with from=f16 to=f32 scale=factor"},
      {"absmax_reduce", "absmax_reduce", Absmax{}, "absmax with from=f32"},
  };
}

TEST_CASE("the names of the Rust original lead to what they were", "[kernels]") {
  std::set<std::string> names;
  for (const Original& original : originals()) {
    CAPTURE(original.name);
    const KernelFamily& family = found(original.snake_case);
    CHECK(family.original_names == std::vector<std::string>{original.name});
    CHECK(family.defaults == original.kernel);
    const auto made = family.make({});
    REQUIRE(made.ok());
    CHECK(*made == original.kernel);
    const bool alias = family.defaults->name() != family.name;
    CHECK((alias ? family.summary == original.summary : absl::EndsWith(family.summary, original.summary)));
    names.insert(original.name);
  }
  for (const KernelFamily& family : kernel_families()) {
    for (const std::string& name : family.original_names) CHECK(names.count(name) == 1);
  }
}

TEST_CASE("what makes a kernel of the Rust original is fixed, and the rest to choose", "[kernels]") {
  const auto half = found("q4k_dequant_fp16").make({{"k", "512"}, {"n", "9"}});
  REQUIRE(half.ok());
  CHECK(*half == KernelType(Dequant{Format::kQ4_K, 512, 9, ElementType::kF16}));

  const auto mwv = found("mwv_q6k_gemv").make({{"k", "512"}, {"num_warps", "2"}});
  REQUIRE(mwv.ok());
  CHECK(*mwv == KernelType(Gemv{
                    .format = Format::kQ6_K, .k = 512, .schedule = Schedule::kMultiWarp, .num_warps = 2}));
  CHECK(absl::StartsWith(refusal("mwv_q6k_gemv", {{"schedule", "wide"}}),
                         "mwv_q6k_gemv has no constant 'schedule'; it has k, n, x_type, num_warps, "));
  CHECK(absl::StartsWith(refusal("inline_q8_dp4a_q4k_gemv", {{"x_type", "q8_1"}}),
                         "inline_q8_dp4a_q4k_gemv has no constant 'x_type'; it has k, n, num_warps, "));
  CHECK(absl::StartsWith(refusal("fused_rms_norm_q4k_gemv", {{"norm", "none"}}),
                         "fused_rms_norm_q4k_gemv has no constant 'norm'; it has k, n, n_b, "));

  const auto gate_up =
      found("fused_gate_up_swiglu_hw_dp4a_q4k_gemv").make({{"n", "11008"}, {"n_b", "11008"}});
  REQUIRE(gate_up.ok());
  CHECK(*gate_up == KernelType(FusedGemv{.n = 11008, .n_b = 11008, .combine = Combine::kSwiglu}));
  CHECK(absl::StartsWith(refusal("fused_gate_up_swiglu_hw_dp4a_q4k_gemv", {{"n", "11008"}}),
                         "n_b is 4096 and format_b q4k; combine swiglu takes two matrices"));

  const auto warp = found("q4k_gemv").make({{"schedule", "warp"}});
  REQUIRE(warp.ok());
  CHECK(*warp == KernelType(of_schedule(Format::kQ4_K, Schedule::kWarp)));
}

TEST_CASE("every family lists the defaults that it has", "[kernels]") {
  for (const KernelFamily& family : kernel_families()) {
    for (const FieldInfo& field : family.fields) {
      CAPTURE(family.name, field.name);
      const std::string written = str_cat(" ", field.name, "=", field.default_value, " ");
      const bool left_out = field.optional && field.default_value == "0";
      CHECK(absl::StrContains(family.defaults->text() + " ",
                              left_out ? str_cat(" ", field.name, "=") : written) != left_out);
    }
  }
}

TEST_CASE("a kernel is made of the constants given and the defaults", "[kernels]") {
  const auto kernel = found("q6k_dequant").make({{"k", "11008"}, {"n", "32001"}, {"out_type", "bf16"}});
  REQUIRE(kernel.ok());
  CHECK(*kernel == KernelType(Dequant{Format::kQ6_K, 11008, 32001, ElementType::kBf16}));
  CHECK((*kernel)->text() == "q6k_dequant k=11008 n=32001 out_type=bf16");
  CHECK(*found("q6k_dequant").make({}) == found("q6k_dequant").defaults);
  CHECK(*found("copy").make({{"vectors", "77"}}) == KernelType(Copy{.vectors = 77}));
}

TEST_CASE("constants that a kernel does not have or take are refused", "[kernels]") {
  CHECK(refusal("q4k_dequant", {{"m", "4"}}) == "q4k_dequant has no constant 'm'; it has k, n, out_type");
  CHECK(refusal("q4k_dequant", {{"format", "q6k"}}) ==
        "q4k_dequant has no constant 'format'; it has k, n, out_type");
  CHECK(refusal("q4k_dequant_fp16", {{"out_type", "f32"}}) ==
        "q4k_dequant_fp16 has no constant 'out_type'; it has k, n");
  CHECK(refusal("q4k_dequant", {{"out_type", "f64"}}) == "out_type is 'f64'; choose one of f32, f16, bf16");
  for (const std::string text : {"", "-1", "+1", " 1", "1.5", "0x10", "4294967296", "99999999999999999999"}) {
    CHECK(refusal("q4k_dequant", {{"k", text}}) ==
          str_cat("k is '", text, "'; give a whole number from 0 to 4294967295"));
  }
  CHECK(refusal("q4k_dequant", {{"k", "128"}}) ==
        "k is 128; it must be from 256 to 16777216, a multiple of 256 (a block of q4_K)");
  CHECK(refusal("q4_0_dequant", {{"n", "0"}}) == "n is 0; it must be from 1 to 268435456");
  CHECK(refusal("copy", {{"vectors", "0"}}) == "vectors is 0; it must be from 1 to 2147483648");
}

TEST_CASE("an unknown name gets the nearest ones", "[kernels]") {
  const auto suggestion = [](std::string_view name) {
    const auto family = find_kernel(name);
    CHECK(family.status().code() == absl::StatusCode::kNotFound);
    return std::string(family.status().message());
  };
  CHECK(suggestion("q4_k_dequant") ==
        "no kernel is called 'q4_k_dequant'; did you mean 'q4k_dequant' or 'q4k_dequant_fp16'? "
        "`ptxgen list` shows all");
  CHECK(absl::StrContains(suggestion("q6k_dequan"), "did you mean 'q6k_dequant'?"));
  CHECK(absl::StrContains(suggestion("Q8_0_dequant"), "did you mean 'q8_0_dequant'?"));
  CHECK(absl::StrContains(suggestion("q4k_dequant_f16"), "did you mean 'q4k_dequant_fp16'?"));
  CHECK(absl::StrContains(suggestion("cpy"), "did you mean 'copy'?"));
  CHECK(absl::StrContains(suggestion("cp"), "did you mean 'convert', 'copy', '"));
  CHECK_FALSE(suggestion("").empty());
}

TEST_CASE("every field tells descriptors apart, in text, hash and equality", "[kernels]") {
  const Dequant base = {Format::kQ4_K, 512, 7, ElementType::kF16};
  std::vector<Dequant> flipped(4, base);
  flipped[0].format = Format::kQ5_K;
  flipped[1].k = 256;
  flipped[2].n = 8;
  flipped[3].out_type = ElementType::kBf16;
  CHECK(std::tuple_size_v<decltype(Dequant::fields())> == flipped.size());
  const KernelType a(base);
  CHECK(a == KernelType(base));
  CHECK(absl::HashOf(a) == absl::HashOf(KernelType(base)));
  for (const Dequant& other : flipped) {
    const KernelType b(other);
    CAPTURE(b->text());
    CHECK_FALSE(a == b);
    CHECK(a->text() != b->text());
    CHECK(a->hash() != b->hash());
    CHECK(absl::HashOf(a) != absl::HashOf(b));
  }
  CHECK_FALSE(KernelType(Copy{.vectors = 512}) == KernelType(Copy{.vectors = 513}));
  CHECK_FALSE(a == KernelType(Copy{}));
}

TEST_CASE("a kernel type holds its descriptor by value", "[kernels]") {
  Dequant descriptor = {Format::kQ2_K, 256, 7, ElementType::kF32};
  const KernelType kernel(descriptor);
  descriptor.n = 8;
  REQUIRE(kernel.get_if<Dequant>() != nullptr);
  CHECK(kernel.get_if<Dequant>()->n == 7);
  CHECK(kernel.get_if<Copy>() == nullptr);
  CHECK(KernelType(*kernel) == kernel);
}

}  // namespace
}  // namespace ptxgen::testing
