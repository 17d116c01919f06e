// Floating-point formats and roundings, all in one place: f16, bf16, tf32, e4m3, e5m2 and the directed
// roundings of f32.
//
// Every result that is not the host's own round-to-nearest f32/f64 goes through one path: the exact value is
// formed as a double rounded to odd (sticky bit in the last place), then rounded once into the format. With
// 53 bits against at most 24 this is the correctly rounded result (Boldo and Melquiond, "Emulation of a FMA
// and correctly rounded sums").
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxgen::emulator {

enum class Rounding : std::uint8_t { kNearestEven, kNearestAway, kZero, kDown, kUp };

// Register contents of the 16-bit formats.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};

// A binary format below f64: exponent and mantissa widths, IEEE bias. The 8-bit formats are those of the PTX
// ISA
// ("Alternate floating point data formats"): e4m3 has no infinity and one NaN pattern, 0x7f.
struct Format {
  int exponent_bits, mantissa_bits;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr std::uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
};
inline constexpr Format kF16{5, 10}, kBf16{8, 7}, kF32{8, 23}, kTf32{8, 10}, kE4m3{4, 3}, kE5m2{5, 2};

// The magnitude bits of |x| rounded into `format`; at or above the overflow pattern when it is too large.
// `negative` is x's sign, which directed roundings look at. x is not NaN.
std::uint64_t round_magnitude(double x, Format format, Rounding rounding);

// IEEE encode with infinities: overflow gives infinity or the largest finite number, as the rounding says.
// NaN gives the canonical pattern of the GPU, all exponent and mantissa bits set and sign clear.
std::uint32_t encode(double x, Format format, Rounding rounding);
double decode(std::uint32_t bits, Format format);

// cvt.rn.satfinite to e4m3/e5m2: overflow and infinity give the largest finite number, NaN gives 0x7f.
std::uint8_t encode_fp8(double x, Format format);
double decode_fp8(std::uint8_t bits, Format format);

// a op b rounded to odd; exact operands of at most 24 bits (see above).
double add_odd(double a, double b);
double fma_odd(double a, double b, double c);  // a * b must be exact in f64, as it is for f32 operands
double div_odd(double a, double b);
double sqrt_odd(double a);

// An f64 result under a directed rounding, by the host's rounding mode.
double add_directed(double a, double b, Rounding rounding);
double mul_directed(double a, double b, Rounding rounding);
double fma_directed(double a, double b, double c, Rounding rounding);
double div_directed(double a, double b, Rounding rounding);
double sqrt_directed(double a, Rounding rounding);

// x rounded to an integral value.
double round_integral(double x, Rounding rounding);

inline constexpr std::uint32_t kNanF32 = 0x7fffffffu;
inline constexpr std::uint16_t kNan16 = 0x7fffu;

inline bool is_nan(f16 x) {
  return (x.bits & 0x7fffu) > 0x7c00u;
}
inline bool is_nan(bf16 x) {
  return (x.bits & 0x7fffu) > 0x7f80u;
}
inline bool is_nan(float x) {
  return x != x;
}
inline bool is_nan(double x) {
  return x != x;
}

inline double to_double(float x) {
  return x;
}
inline double to_double(double x) {
  return x;
}
inline double to_double(bf16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
double to_double(f16 x);

// x, at most 53 significant bits with sticky last place, rounded into T.
template <class T>
T from_double(double x, Rounding rounding);

// Of every type but f64, which keeps payloads.
template <class T>
T canonical_nan() {
  if constexpr (sizeof(T) == 2) {
    return T{kNan16};
  } else {
    return std::bit_cast<T>(kNanF32);
  }
}

// Quiet: the top mantissa bit set, the rest kept.
inline double quiet(double nan) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | std::uint64_t{1} << 51);
}

// The NaN that an operation on these operands gives: in f64 the first of them that is one, quiet, or
// 0xfff8000000000000 where none is; otherwise the canonical one. Which operand comes first differs from
// instruction to instruction.
template <class T, class... Rest>
T nan_result(T first, Rest... rest) {
  if constexpr (std::is_same_v<T, double>) {
    if (is_nan(first)) return quiet(first);
    if constexpr (sizeof...(rest) != 0) {
      return nan_result(rest...);
    } else {
      return -std::numeric_limits<double>::quiet_NaN();
    }
  } else {
    return canonical_nan<T>();
  }
}

template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
constexpr BitsOf<T> to_bits(T x) {
  return std::bit_cast<BitsOf<T>>(x);
}

template <class T>
inline constexpr BitsOf<T> kSignBit = BitsOf<T>(BitsOf<T>{1} << (8 * sizeof(T) - 1));

template <class T>
T negate(T x) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(to_bits(x) ^ kSignBit<T>));
}
template <class T>
T magnitude(T x) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(to_bits(x) & ~kSignBit<T>));
}

// Exponent field of T in place.
template <class T>
inline constexpr BitsOf<T> kExponentMask = 0;
template <>
inline constexpr std::uint16_t kExponentMask<f16> = 0x7c00;
template <>
inline constexpr std::uint16_t kExponentMask<bf16> = 0x7f80;
template <>
inline constexpr std::uint32_t kExponentMask<float> = 0x7f800000;
template <>
inline constexpr std::uint64_t kExponentMask<double> = 0x7ff0000000000000;

// .ftz: a subnormal becomes a zero of its sign.
template <class T>
T flush(T x) {
  return (to_bits(x) & kExponentMask<T>) == 0
             ? std::bit_cast<T>(static_cast<BitsOf<T>>(to_bits(x) & kSignBit<T>))
             : x;
}

// .sat: clamped to [0, 1]; NaN gives +0.
template <class T>
T saturate(T x) {
  const double v = to_double(x);
  if (!(v > 0)) return std::bit_cast<T>(BitsOf<T>{0});
  return v > 1 ? from_double<T>(1.0, Rounding::kNearestEven) : x;
}

}  // namespace ptxgen::emulator
