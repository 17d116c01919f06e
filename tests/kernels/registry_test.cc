#include <algorithm>
#include <set>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
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

TEST_CASE("kernel names are unique and in snake case", "[kernels]") {
  std::set<std::string> names;
  for (const KernelFamily& family : kernel_families()) {
    CAPTURE(family.name);
    CHECK(names.insert(family.name).second);
    CHECK(std::all_of(family.name.begin(), family.name.end(),
                      [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }));
    CHECK_FALSE(family.summary.empty());
    CHECK(family.lowest_target() == kBaseTarget);
    CHECK(family.defaults->validate().ok());
    CHECK_FALSE(family.fields.empty());
    CHECK(&found(family.name) == &family);
  }
  CHECK(names.size() == 13);
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

TEST_CASE("the names of the Rust original lead to what they were", "[kernels]") {
  const std::pair<std::string, std::string> kNames[] = {
      {"Q4KDequant", "q4k_dequant"}, {"Q6KDequant", "q6k_dequant"}, {"Q4KDequantFp16", "q4k_dequant_fp16"}};
  for (const auto& [original, name] : kNames) {
    CHECK(found(name).original_names == std::vector<std::string>{original});
  }
  CHECK(found("q4k_dequant_fp16").summary == "q4k_dequant with out_type=f16");
  const auto half = found("q4k_dequant_fp16").make({{"k", "512"}, {"n", "9"}});
  REQUIRE(half.ok());
  CHECK(*half == KernelType(Dequant{Format::kQ4_K, 512, 9, OutType::kF16}));
}

TEST_CASE("a kernel is made of the constants given and the defaults", "[kernels]") {
  const auto kernel = found("q6k_dequant").make({{"k", "11008"}, {"n", "32001"}, {"out_type", "bf16"}});
  REQUIRE(kernel.ok());
  CHECK(*kernel == KernelType(Dequant{Format::kQ6_K, 11008, 32001, OutType::kBf16}));
  CHECK((*kernel)->text() == "q6k_dequant k=11008 n=32001 out_type=bf16");
  CHECK(*found("q6k_dequant").make({}) == found("q6k_dequant").defaults);
  CHECK(*found("copy").make({{"vectors", "77"}}) == KernelType(Copy{.vectors = 77}));

  // Listed as what they are when nothing is given.
  for (const FieldInfo& field : found("q6k_dequant").fields) {
    CHECK(absl::StrContains(found("q6k_dequant").defaults->text(),
                            str_cat(field.name, "=", field.default_value)));
  }
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
  CHECK(absl::StrContains(suggestion("cp"), "did you mean 'copy'?"));
  CHECK_FALSE(suggestion("").empty());
}

TEST_CASE("every field tells descriptors apart, in text, hash and equality", "[kernels]") {
  const Dequant base = {Format::kQ4_K, 512, 7, OutType::kF16};
  std::vector<Dequant> flipped(4, base);
  flipped[0].format = Format::kQ5_K;
  flipped[1].k = 256;
  flipped[2].n = 8;
  flipped[3].out_type = OutType::kBf16;
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
  Dequant descriptor = {Format::kQ2_K, 256, 7, OutType::kF32};
  const KernelType kernel(descriptor);
  descriptor.n = 8;
  REQUIRE(kernel.get_if<Dequant>() != nullptr);
  CHECK(kernel.get_if<Dequant>()->n == 7);
  CHECK(kernel.get_if<Copy>() == nullptr);
  CHECK(KernelType(*kernel) == kernel);
}

}  // namespace
}  // namespace ptxgen::testing
