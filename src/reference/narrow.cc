#include "src/reference/narrow.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"

namespace ptxgen::reference {
namespace {

constexpr std::uint32_t kF32Inf = 0x7f800000;

// An IEEE 754 style float of fewer bits than f32.
struct Layout {
  int mantissa_bits;
  int bias;
  std::uint32_t largest;  // magnitude that overflow gives: Inf where there is one
  std::uint32_t nan;      // what narrowing a NaN gives
  int width;
};

constexpr Layout kF16 = {10, 15, 0x7c00, 0x7fff, 16};
constexpr Layout kBf16 = {7, 127, 0x7f80, 0x7fff, 16};
constexpr Layout kE4m3 = {3, 7, 0x7e, 0x7f, 8};

std::uint32_t narrow_to(const Layout& to, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kF32Inf) return to.nan;

  const auto exponent_field = static_cast<int>(magnitude >> 23);
  const int exponent = std::max(exponent_field, 1) - 127;
  const std::uint32_t significand = (magnitude & 0x007fffff) | (exponent_field > 0 ? 0x00800000 : 0);

  // Below the smallest normal exponent the result keeps one bit fewer for each step down. 25 bits dropped
  // leave less than half of a unit of the last place, and so do more.
  const int smallest = 1 - to.bias;
  const int dropped = std::min(23 - to.mantissa_bits + std::max(smallest - exponent, 0), 25);
  const std::uint32_t remainder = significand & ((1u << dropped) - 1);
  const std::uint32_t half = 1u << (dropped - 1);
  std::uint32_t rounded = significand >> dropped;
  if (remainder > half || (remainder == half && rounded % 2 == 1)) ++rounded;

  // A normal number's leading one adds the 1 by which its exponent field exceeds exponent - smallest; a carry
  // out of the mantissa goes on into the exponent.
  const auto exponent_steps = static_cast<std::uint32_t>(std::max(exponent - smallest, 0));
  const std::uint32_t result = std::min((exponent_steps << to.mantissa_bits) + rounded, to.largest);
  return (bits >> 31) << (to.width - 1) | result;
}

// Values of `from` whose exponent field is not the NaN and Inf one of IEEE 754.
float widen_finite(const Layout& from, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & ((1u << (from.width - 1)) - 1);
  const std::uint32_t sign = bits >> (from.width - 1) << 31;
  const auto to_f32_exponent = static_cast<std::uint32_t>(127 - from.bias) << 23;
  if (magnitude >> from.mantissa_bits != 0) {
    return std::bit_cast<float>(sign | ((magnitude << (23 - from.mantissa_bits)) + to_f32_exponent));
  }
  // Subnormal: mantissa * 2^(1 - bias - mantissa_bits), an exact product of normal numbers.
  const float unit =
      std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - from.bias - from.mantissa_bits) << 23);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * unit));
}

}  // namespace

std::uint16_t f32_to_f16(float value) {
  return static_cast<std::uint16_t>(narrow_to(kF16, value));
}
std::uint16_t f32_to_bf16(float value) {
  return static_cast<std::uint16_t>(narrow_to(kBf16, value));
}
std::uint8_t f32_to_e4m3(float value) {
  return static_cast<std::uint8_t>(narrow_to(kE4m3, value));
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t mantissa = bits & 0x03ffu;
  if ((bits & kF16.largest) == kF16.largest) {
    return std::bit_cast<float>(std::uint32_t{bits} >> 15 << 31 | kF32Inf | mantissa << 13);
  }
  return widen_finite(kF16, bits);
}

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

float e4m3_to_f32(std::uint8_t bits) {
  if ((bits & kE4m3.nan) == kE4m3.nan) {
    return std::bit_cast<float>(std::uint32_t{bits} >> 7 << 31 | kF32Inf | 7u << 20);
  }
  return widen_finite(kE4m3, bits);
}

float widen(FloatType type, std::uint32_t bits) {
  switch (type) {
    case FloatType::kF32: break;
    case FloatType::kF16: return f16_to_f32(static_cast<std::uint16_t>(bits));
    case FloatType::kBf16: return bf16_to_f32(static_cast<std::uint16_t>(bits));
    case FloatType::kE4m3: return e4m3_to_f32(static_cast<std::uint8_t>(bits));
  }
  return std::bit_cast<float>(bits);
}

absl::Status narrow(FloatType type, absl::Span<const float> values, absl::Span<std::byte> out) {
  if (out.size() / size_of(type) != values.size() || out.size() % size_of(type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("narrow: %d values of %d bytes do not fill %d bytes exactly", values.size(),
                        size_of(type), out.size()));
  }
  std::byte* to = out.data();
  for (const float value : values) {
    auto bits = std::bit_cast<std::uint32_t>(value);
    if (type == FloatType::kF16) bits = f32_to_f16(value);
    if (type == FloatType::kBf16) bits = f32_to_bf16(value);
    if (type == FloatType::kE4m3) bits = f32_to_e4m3(value);
    for (std::size_t i = 0; i < size_of(type); ++i) *to++ = static_cast<std::byte>(bits >> (8 * i));
  }
  return absl::OkStatus();
}

}  // namespace ptxgen::reference
