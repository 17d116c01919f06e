#include "src/reference/compare.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace ptxgen::reference {
namespace {

template <typename Bits>
absl::Span<const std::byte> bytes_of(const std::vector<Bits>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(Bits)};
}

template <typename Bits>
Comparison compared(FloatType type, const std::vector<Bits>& expected, const std::vector<Bits>& actual,
                    std::size_t keep = 4) {
  auto comparison = compare(type, bytes_of(expected), bytes_of(actual), keep);
  REQUIRE(comparison.ok());
  return *comparison;
}

using F32 = std::vector<std::uint32_t>;
using F16 = std::vector<std::uint16_t>;

TEST_CASE("compare sees one bit, and the sign of zero", "[reference]") {
  const F32 expected = {0x3f800000, 0x00000000, 0x7f800000};
  CHECK(compared(FloatType::kF32, expected, expected).equal());
  const Comparison found = compared(FloatType::kF32, expected, {0x3f800001, 0x80000000, 0x7f7fffff});
  CHECK(found.mismatches == 3);
  CHECK(found.first == std::vector<Mismatch>{{0, 0x3f800000, 0x3f800001},
                                             {1, 0x00000000, 0x80000000},
                                             {2, 0x7f800000, 0x7f7fffff}});
}

TEST_CASE("compare takes a NaN for a NaN and for nothing else", "[reference]") {
  CHECK(compared(FloatType::kF32, F32{0x7fc00000}, F32{0xff800001}).equal());
  CHECK(!compared(FloatType::kF32, F32{0x7fc00000}, F32{0x7f800000}).equal());
  CHECK(compared(FloatType::kF16, F16{0x7e00}, F16{0xfc01}).equal());
  CHECK(!compared(FloatType::kF16, F16{0x7e00}, F16{0x7c00}).equal());
  CHECK(compared(FloatType::kBf16, F16{0x7fc0}, F16{0xff81}).equal());
  // 0x7c01 is a NaN as f16, but 2.7e36 as bf16.
  CHECK(compared(FloatType::kF16, F16{0x7c01}, F16{0x7c02}).equal());
  CHECK(!compared(FloatType::kBf16, F16{0x7c01}, F16{0x7c02}).equal());
}

TEST_CASE("compare counts everything and keeps the first few", "[reference]") {
  const Comparison found = compared(FloatType::kF16, F16(9, 0x3c00), F16(9, 0x4000), 2);
  CHECK(found.values == 9);
  CHECK(found.mismatches == 9);
  CHECK(found.first.size() == 2);
  CHECK(found.to_string() ==
        "9 of 9 values differ: [0] expected 0x3c00 (1), got 0x4000 (2); [1] expected 0x3c00 (1), got 0x4000 "
        "(2); ...");
  CHECK(compared(FloatType::kF32, F32{}, F32{}).to_string() == "0 of 0 values differ");
}

TEST_CASE("compare takes bytes as they are", "[reference]") {
  const std::vector<std::uint8_t> expected = {0x00, 0x7f, 0xff}, actual = {0x80, 0x7f, 0xfe};
  const auto found = compare(std::nullopt, bytes_of(expected), bytes_of(actual));
  REQUIRE(found.ok());
  CHECK(found->values == 3);
  CHECK(found->to_string() ==
        "2 of 3 bytes differ: [0] expected 0x00, got 0x80; [2] expected 0xff, got 0xfe");
}

TEST_CASE("comparisons of pieces add up", "[reference]") {
  Comparison all;
  all.append(compared(FloatType::kF16, F16{1, 2}, F16{1, 2}));
  CHECK(all.equal());
  all.append(compared(FloatType::kF16, F16{0x3c00, 4, 5}, F16{0x4000, 6, 5}, 1));
  all.append(compared(FloatType::kF16, F16{7}, F16{8}));
  CHECK(all.to_string() == "3 of 6 values differ: [0] expected 0x3c00 (1), got 0x4000 (2); ...");
}

TEST_CASE("compare refuses buffers that cannot correspond", "[reference]") {
  const F16 three(3);
  CHECK(compare(FloatType::kF16, bytes_of(three), bytes_of(three)).ok());
  CHECK(compare(FloatType::kF32, bytes_of(three), bytes_of(three)).status().message() ==
        "compare: 6 expected and 6 actual bytes are not the same whole number of 4-byte values");
  CHECK(!compare(FloatType::kF16, bytes_of(three), bytes_of(three).first(4)).ok());
}

TEST_CASE("values are compared within bounds of their own", "[reference]") {
  const double inf = HUGE_VAL, nan = std::nan("");
  const std::vector<Bounded> expected = {{1, 0.5}, {1, 0.5}, {2, 0}, {nan, 0}, {inf, 0}, {-inf, 0}, {3, inf}};
  const auto compared = [&](const std::vector<float>& actual) {
    return *compare(expected, bytes_of(actual));
  };
  const Comparison right = compared({1.5f, 0.5f, 2, -std::nanf(""), HUGE_VALF, std::nanf(""), -HUGE_VALF});
  CHECK(right.equal());
  CHECK(right.bounded);
  CHECK(right.values == 7);
  CHECK(right.worst == 1);
  const Comparison wrong = compared({1.51f, 0.75f, 2.0000002f, 7, 7, 7, 7});
  CHECK(wrong.mismatches == 5);
  CHECK(wrong.first.size() == 4);
  CHECK(std::isinf(wrong.worst));
  CHECK(wrong.to_string() ==
        "5 of 7 values differ: [0] expected 0x3f800000 (1) within 0.5, got 0x3fc147ae (1.50999999); "
        "[2] expected 0x40000000 (2) within 0, got 0x40000001 (2.00000024); "
        "[3] expected 0x7fc00000 (nan) within 0, got 0x40e00000 (7); "
        "[4] expected 0x7f800000 (inf) within 0, got 0x40e00000 (7); ...");
  CHECK_FALSE(compare(expected, bytes_of<float>({1, 2})).ok());

  Comparison all = *compare({{1, 0.5}}, bytes_of<float>({1.25f}));
  CHECK(all.worst == 0.5);
  all.append(right);
  CHECK(all.worst == 1);
  CHECK(all.values == 8);
  CHECK(all.bounded);
}

}  // namespace
}  // namespace ptxgen::reference
