#include "src/emulator/numerics.h"

#include <cfenv>

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;

// `s`, an f64 result with error of sign `error`, moved to the neighbour with an odd last bit.
double to_odd(double s, double error) {
  if (error == 0 || !std::isfinite(s)) return s;
  const auto bits = std::bit_cast<std::uint64_t>(s);
  if (bits & 1) return s;
  return std::bit_cast<double>((error > 0) == (s > 0) ? bits + 1 : bits - 1);
}

bool rounds_up(bool odd, bool above_half, bool half, bool inexact, bool negative, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearestEven: return above_half || (half && odd);
    case Rounding::kNearestAway: return above_half || half;
    case Rounding::kZero: return false;
    case Rounding::kDown: return inexact && negative;
    case Rounding::kUp: return inexact && !negative;
  }
  return false;
}

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero: return FE_TOWARDZERO;
    case Rounding::kDown: return FE_DOWNWARD;
    case Rounding::kUp: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

// Runs `f` under another rounding mode. The volatile operands and result keep the compiler from moving the
// arithmetic out of the bracket.
template <class F>
double directed(Rounding rounding, F f) {
  std::fesetround(host_mode(rounding));
  volatile double result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}

}  // namespace

std::uint64_t round_magnitude(double x, Format format, Rounding rounding) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const bool negative = bits >> 63;
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  if (biased == 0x7ff) return format.infinity();
  const int exponent = (biased == 0 ? 1 : biased) - 1023;
  const std::uint64_t mantissa = (bits & (kHidden - 1)) | (biased == 0 ? 0 : kHidden);
  const int lowest = 1 - format.bias();
  const int unit = exponent < lowest ? lowest : exponent;
  // `mantissa` counts units of 2^(exponent - 52); the result counts units of 2^(unit - mantissa_bits).
  int drop = (unit - format.mantissa_bits) - (exponent - 52);
  if (drop > 62) drop = 62;
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  std::uint64_t kept = mantissa >> drop;
  kept += rounds_up(kept & 1, rest > half, rest == half, rest != 0, negative, rounding);
  // A carry out of the mantissa lands in the exponent field, where it belongs.
  return (static_cast<std::uint64_t>(unit - lowest) << format.mantissa_bits) + kept;
}

std::uint32_t encode(double x, Format format, Rounding rounding) {
  if (x != x) return format.sign() - 1;
  const bool negative = std::signbit(x);
  const std::uint32_t sign = negative ? format.sign() : 0;
  std::uint64_t magnitude = round_magnitude(x, format, rounding);
  if (magnitude > format.infinity()) magnitude = format.infinity();
  if (magnitude == format.infinity() && std::isfinite(x)) {
    const bool stays_finite = rounding == Rounding::kZero || (rounding == Rounding::kDown && !negative) ||
                              (rounding == Rounding::kUp && negative);
    if (stays_finite) --magnitude;
  }
  return sign | static_cast<std::uint32_t>(magnitude);
}

double decode(std::uint32_t bits, Format format) {
  const std::uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int biased = static_cast<int>((bits & format.infinity()) >> format.mantissa_bits);
  const double sign = bits & format.sign() ? -1.0 : 1.0;
  if ((bits & format.infinity()) == format.infinity()) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  const double scaled = biased == 0 ? mantissa : mantissa + (1u << format.mantissa_bits);
  return sign * std::ldexp(scaled, (biased == 0 ? 1 : biased) - format.bias() - format.mantissa_bits);
}

std::uint8_t encode_fp8(double x, Format format) {
  if (x != x) return 0x7f;
  const std::uint64_t largest = format.exponent_bits == 4 ? 0x7e : 0x7b;
  const std::uint64_t magnitude = round_magnitude(x, format, Rounding::kNearestEven);
  const bool overflow = !std::isfinite(x) || magnitude > largest;
  return static_cast<std::uint8_t>((std::signbit(x) ? 0x80u : 0u) | (overflow ? largest : magnitude));
}

double decode_fp8(std::uint8_t bits, Format format) {
  if (format.exponent_bits == 5) return decode(bits, format);
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  const int biased = (bits >> 3) & 15, mantissa = bits & 7;
  const double value = std::ldexp(biased ? mantissa + 8 : mantissa, (biased ? biased : 1) - 10);
  return bits & 0x80 ? -value : value;
}

double to_double(f16 x) {
  // The value bits moved to an f32 whose exponent is 112 too small; the product is exact, subnormals
  // included.
  const std::uint32_t magnitude = std::uint32_t{x.bits} & 0x7fffu;
  const std::uint32_t sign = (std::uint32_t{x.bits} & 0x8000u) << 16;
  if (magnitude >= 0x7c00u) {
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

template <>
f16 from_double<f16>(double x, Rounding rounding) {
  return {static_cast<std::uint16_t>(encode(x, kF16, rounding))};
}
template <>
bf16 from_double<bf16>(double x, Rounding rounding) {
  return {static_cast<std::uint16_t>(encode(x, kBf16, rounding))};
}
template <>
float from_double<float>(double x, Rounding rounding) {
  return std::bit_cast<float>(encode(x, kF32, rounding));
}
template <>
double from_double<double>(double x, Rounding) {
  return is_nan(x) ? quiet(x) : x;
}

double add_odd(double a, double b) {
  const double s = a + b;
  const double b_part = s - a;
  return to_odd(s, (a - (s - b_part)) + (b - b_part));
}

double fma_odd(double a, double b, double c) {
  return add_odd(a * b, c);
}

double div_odd(double a, double b) {
  const double q = a / b;
  if (!std::isfinite(q) || q == 0 || !std::isfinite(b)) return q;
  const double rest = std::fma(-q, b, a);  // exact
  return to_odd(q, b > 0 ? rest : -rest);
}

double sqrt_odd(double a) {
  const double s = std::sqrt(a);
  if (!std::isfinite(s) || s == 0) return s;
  return to_odd(s, std::fma(-s, s, a));
}

double add_directed(double a, double b, Rounding rounding) {
  volatile double x = a, y = b;
  return directed(rounding, [&] { return x + y; });
}
double mul_directed(double a, double b, Rounding rounding) {
  volatile double x = a, y = b;
  return directed(rounding, [&] { return x * y; });
}
double fma_directed(double a, double b, double c, Rounding rounding) {
  volatile double x = a, y = b, z = c;
  return directed(rounding, [&] { return std::fma(x, y, z); });
}
double div_directed(double a, double b, Rounding rounding) {
  volatile double x = a, y = b;
  return directed(rounding, [&] { return x / y; });
}
double sqrt_directed(double a, Rounding rounding) {
  volatile double x = a;
  return directed(rounding, [&] { return std::sqrt(x); });
}

double round_integral(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearestEven: return std::nearbyint(x);
    case Rounding::kNearestAway: return std::round(x);
    case Rounding::kZero: return std::trunc(x);
    case Rounding::kDown: return std::floor(x);
    case Rounding::kUp: return std::ceil(x);
  }
  return x;
}

}  // namespace ptxgen::emulator
