#include "src/reference/narrow.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.h"

namespace ptxgen::reference {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
std::uint32_t to_bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// A narrow float seen from outside: its conversions, and its positive values in order, `largest` the last
// finite one.
struct Narrow {
  const char* name;
  int mantissa_bits;
  int bias;
  std::uint32_t largest;
  std::uint32_t overflow;  // what everything too large becomes
  std::uint32_t nan;
  std::uint32_t sign;
  std::uint32_t (*from_f32)(float);
  float (*to_f32)(std::uint32_t);
};

const Narrow kF16 = {"f16",
                     10,
                     15,
                     0x7bff,
                     0x7c00,
                     0x7fff,
                     0x8000,
                     [](float v) -> std::uint32_t { return f32_to_f16(v); },
                     [](std::uint32_t b) { return f16_to_f32(static_cast<std::uint16_t>(b)); }};
const Narrow kBf16 = {"bf16",
                      7,
                      127,
                      0x7f7f,
                      0x7f80,
                      0x7fff,
                      0x8000,
                      [](float v) -> std::uint32_t { return f32_to_bf16(v); },
                      [](std::uint32_t b) { return bf16_to_f32(static_cast<std::uint16_t>(b)); }};
const Narrow kE4m3 = {"e4m3",
                      3,
                      7,
                      0x7e,
                      0x7e,
                      0x7f,
                      0x80,
                      [](float v) -> std::uint32_t { return f32_to_e4m3(v); },
                      [](std::uint32_t b) { return e4m3_to_f32(static_cast<std::uint8_t>(b)); }};

// The value that the definition of the format gives, through std::ldexp.
float defined_value(const Narrow& type, std::uint32_t bits) {
  const auto mantissa = static_cast<float>(bits & ((1u << type.mantissa_bits) - 1));
  const auto exponent = static_cast<int>(bits >> type.mantissa_bits);
  const auto one = static_cast<float>(1u << type.mantissa_bits);
  const float significand = exponent == 0 ? mantissa : one + mantissa;
  return std::ldexp(significand, std::max(exponent, 1) - type.bias - type.mantissa_bits);
}

TEST_CASE("every finite narrow float widens to its definition and narrows back", "[reference]") {
  for (const Narrow& type : {kF16, kBf16, kE4m3}) {
    CAPTURE(type.name);
    int wrong = 0;
    for (std::uint32_t bits = 0; bits <= type.largest; ++bits) {
      const float value = type.to_f32(bits);
      wrong += to_bits(value) != to_bits(defined_value(type, bits));
      wrong += to_bits(type.to_f32(bits | type.sign)) != to_bits(-value);
      wrong += type.from_f32(value) != bits;
      wrong += type.from_f32(-value) != (bits | type.sign);
    }
    CHECK(wrong == 0);
  }
}

// Between two neighbours everything below the midpoint goes down, everything above goes up and the midpoint
// to the even one. With the monotony tested below this fixes the result for every f32.
TEST_CASE("narrowing rounds to nearest even around every midpoint", "[reference]") {
  for (const Narrow& type : {kF16, kBf16, kE4m3}) {
    CAPTURE(type.name);
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < type.largest; ++bits) {
      const double sum = double{type.to_f32(bits)} + double{type.to_f32(bits + 1)};
      const auto middle = static_cast<float>(sum / 2);
      REQUIRE(double{middle} * 2 == sum);
      wrong += type.from_f32(middle) != bits + bits % 2;
      wrong += type.from_f32(std::nextafter(middle, 0.0f)) != bits;
      wrong += type.from_f32(std::nextafter(middle, kInf)) != bits + 1;
      wrong += type.from_f32(-middle) != ((bits + bits % 2) | type.sign);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("narrowing is monotonic and odd", "[reference]") {
  for (const Narrow& type : {kF16, kBf16, kE4m3}) {
    CAPTURE(type.name);
    int wrong = 0;
    std::uint32_t previous = 0;
    for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 1021) {
      const std::uint32_t narrowed = type.from_f32(from_bits(bits));
      wrong += narrowed < previous;
      wrong += type.from_f32(from_bits(bits | 0x80000000)) != (narrowed | type.sign);
      previous = narrowed;
    }
    CHECK(wrong == 0);
    CHECK(previous == type.overflow);
  }
}

TEST_CASE("every NaN narrows to the canonical one, and narrow NaNs stay NaN", "[reference]") {
  for (const Narrow& type : {kF16, kBf16, kE4m3}) {
    CAPTURE(type.name);
    for (const std::uint32_t nan :
         {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffc00000u, 0xffffffffu}) {
      CHECK(type.from_f32(from_bits(nan)) == type.nan);
    }
    const std::uint32_t first_nan = type.overflow + 1;
    int not_nan = 0;
    for (std::uint32_t bits = first_nan; bits < type.sign; ++bits) {
      not_nan += !std::isnan(type.to_f32(bits));
      not_nan += !std::isnan(type.to_f32(bits | type.sign));
      not_nan += !std::signbit(type.to_f32(bits | type.sign));
    }
    CHECK(not_nan == 0);
  }
}

TEST_CASE("f16 and bf16 overflow to Inf", "[reference]") {
  CHECK(f32_to_f16(65504.0f) == 0x7bff);
  CHECK(f32_to_f16(65519.996f) == 0x7bff);
  CHECK(f32_to_f16(65520.0f) == 0x7c00);
  CHECK(f32_to_f16(-kInf) == 0xfc00);
  CHECK(f16_to_f32(0xfc00) == -kInf);
  CHECK(f32_to_bf16(from_bits(0x7f7f7fff)) == 0x7f7f);
  CHECK(f32_to_bf16(from_bits(0x7f7f8000)) == 0x7f80);
  CHECK(f32_to_bf16(-kInf) == 0xff80);
  CHECK(f32_to_f16(0x1p-25f) == 0);
  CHECK(f32_to_f16(std::nextafter(0x1p-25f, 1.0f)) == 1);
  CHECK(f32_to_f16(from_bits(1)) == 0);
  CHECK(f32_to_f16(-0.0f) == 0x8000);
}

TEST_CASE("e4m3 saturates", "[reference]") {
  CHECK(f32_to_e4m3(448.0f) == 0x7e);
  CHECK(f32_to_e4m3(464.0f) == 0x7e);  // halfway to 480, which e4m3 lacks
  CHECK(f32_to_e4m3(465.0f) == 0x7e);
  CHECK(f32_to_e4m3(480.0f) == 0x7e);
  CHECK(f32_to_e4m3(std::numeric_limits<float>::max()) == 0x7e);
  CHECK(f32_to_e4m3(kInf) == 0x7e);
  CHECK(f32_to_e4m3(-465.0f) == 0xfe);
  CHECK(f32_to_e4m3(-kInf) == 0xfe);
  CHECK(f32_to_e4m3(0.0f) == 0x00);
  CHECK(f32_to_e4m3(-0.0f) == 0x80);
  CHECK(f32_to_e4m3(0x1p-9f) == 0x01);  // the smallest subnormal
  CHECK(f32_to_e4m3(0x1p-10f) == 0x00);
  CHECK(f32_to_e4m3(0x1.8p-9f) == 0x02);
  CHECK(f32_to_e4m3(-0x1p-126f) == 0x80);
  CHECK(e4m3_to_f32(0x7e) == 448.0f);
  CHECK(e4m3_to_f32(0x78) == 256.0f);
}

TEST_CASE("narrow stores little-endian and refuses other sizes", "[reference]") {
  const std::vector<float> values = {1.0f, -2.5f};
  std::vector<std::byte> out(8);
  const auto stored = [&](FloatType type, std::size_t size) {
    REQUIRE(narrow(type, values, absl::MakeSpan(out).first(size)).ok());
    std::vector<int> bytes;
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(std::to_integer<int>(out[i]));
    return bytes;
  };
  CHECK(stored(FloatType::kF32, 8) == std::vector<int>{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0});
  CHECK(stored(FloatType::kF16, 4) == std::vector<int>{0, 0x3c, 0, 0xc1});
  CHECK(stored(FloatType::kBf16, 4) == std::vector<int>{0x80, 0x3f, 0x20, 0xc0});
  CHECK(narrow(FloatType::kF16, values, absl::MakeSpan(out).first(5)).message() ==
        "narrow: 2 values of 2 bytes do not fill 5 bytes exactly");
  CHECK(!narrow(FloatType::kF32, values, absl::MakeSpan(out).first(4)).ok());
}

}  // namespace
}  // namespace ptxgen::reference
