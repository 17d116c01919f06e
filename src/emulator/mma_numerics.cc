#include "src/emulator/mma_numerics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptxgen::emulator {
namespace {

constexpr unsigned kMostBlock = 32;   // products that are added at once
constexpr int kZeroExponent = -1000;  // of a term that is zero: below every other

// significand * 2^(exponent - fraction bits of the term), exactly.
struct Term {
  std::int64_t significand = 0;
  int exponent = kZeroExponent;
};

// The term's multiple of 2^(largest - fraction_bits), cut off towards zero. `bits`: its own fraction bits,
// below 32.
std::int64_t aligned(const Term& term, int largest, int bits, int fraction_bits) {
  constexpr int kRoom = 30;  // a product has at most 2 + 2 * 10 significant bits, an accumulator 24
  const std::int64_t magnitude = (term.significand < 0 ? -term.significand : term.significand)
                                 << (kRoom - bits);
  const int shift = std::min(63, largest - term.exponent + kRoom - fraction_bits);
  return term.significand < 0 ? -(magnitude >> shift) : magnitude >> shift;
}

// Towards zero to f32, but beyond its largest number infinity; to nearest to f16. No zero is negative.
std::uint32_t rounded(double sum, Format format) {
  const bool wide = format.mantissa_bits == kF32.mantissa_bits;
  if (wide && std::fabs(sum) >= 0x1p128) sum *= std::numeric_limits<double>::infinity();
  const std::uint32_t bits = encode(sum, format, wide ? Rounding::kZero : Rounding::kNearestEven);
  return bits == format.sign() ? 0 : bits;
}

std::uint32_t add_block(const Factor* a, const Factor* b, unsigned count, std::uint32_t c,
                        const MmaFormats& f) {
  const Factor accumulator = factor(c, f.accumulator);
  Term terms[kMostBlock];
  int largest = accumulator.significand ? accumulator.exponent : kZeroExponent;
  for (unsigned i = 0; i < count; ++i) {
    terms[i].significand = std::int64_t{a[i].significand} * b[i].significand;
    if (terms[i].significand == 0) continue;
    terms[i].exponent = a[i].exponent + b[i].exponent;
    largest = std::max(largest, terms[i].exponent);
  }
  std::int64_t sum = aligned({accumulator.significand, accumulator.exponent}, largest,
                             f.accumulator.mantissa_bits, f.fraction_bits);
  const int bits = f.factor_a.mantissa_bits + f.factor_b.mantissa_bits;
  for (unsigned i = 0; i < count; ++i) sum += aligned(terms[i], largest, bits, f.fraction_bits);
  const std::uint32_t result =
      rounded(std::ldexp(static_cast<double>(sum), largest - f.fraction_bits), f.accumulator);
  const int dropped = static_cast<int>(f.accumulator.mantissa_bits) - f.fraction_bits;
  return dropped > 0 ? result >> dropped << dropped : result;
}

}  // namespace

Format mma_format(Type type) {
  switch (type) {
    case Type::kF16: return kF16;
    case Type::kBf16: return kBf16;
    case Type::kTf32: return kTf32;
    case Type::kE4m3: return kE4m3;
    case Type::kE5m2: return kE5m2;
    default: return kF32;
  }
}

// A tf32 is the upper 19 bits of its register; the hardware does not look at the others.
Factor mma_factor(std::uint32_t bits, Type type) {
  return factor(type == Type::kTf32 ? bits >> (kF32.mantissa_bits - kTf32.mantissa_bits) : bits,
                mma_format(type));
}

std::int32_t mma_integer(std::uint32_t bits, Type type) {
  return type == Type::kS8 ? static_cast<std::int8_t>(bits) : static_cast<std::int32_t>(bits);
}

std::uint32_t add_integer(std::uint32_t c, std::int32_t sum, bool satfinite) {
  if (!satfinite) return c + static_cast<std::uint32_t>(sum);
  using Limits = std::numeric_limits<std::int32_t>;
  const std::int64_t exact = std::int64_t{static_cast<std::int32_t>(c)} + sum;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(exact, Limits::min(), Limits::max()));
}

Factor factor(std::uint32_t bits, Format format) {
  const std::uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int field = static_cast<int>((bits & (format.sign() - 1)) >> format.mantissa_bits);
  const int top = (1 << format.exponent_bits) - 1;
  const bool negative = (bits & format.sign()) != 0;
  const bool e4m3 = format.mantissa_bits == kE4m3.mantissa_bits;  // no infinity, one NaN
  Factor result;
  if (e4m3 ? (bits & 0x7f) == 0x7f : field == top) {
    const double infinity = std::numeric_limits<double>::infinity();
    result.special = e4m3 || mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : negative       ? -infinity
                                      : infinity;
    return result;
  }
  result.exponent = std::max(field, 1) - format.bias();
  const auto significand = static_cast<std::int32_t>(mantissa | (field ? 1u << format.mantissa_bits : 0));
  result.significand = negative ? -significand : significand;
  return result;
}

namespace {

// c + a . b of at most kMostBlock products.
std::uint32_t dot_block(const Factor* a, const Factor* b, unsigned count, std::uint32_t c,
                        const MmaFormats& formats) {
  double special = factor(c, formats.accumulator).special;
  bool any = special != 0;  // true for a NaN
  for (unsigned i = 0; i < count; ++i) {
    if (a[i].special == 0 && b[i].special == 0) continue;
    any = true;
    const double x = a[i].special != 0 ? a[i].special : a[i].significand;
    const double y = b[i].special != 0 ? b[i].special : b[i].significand;
    special += x * y;
  }
  if (any) return encode(special, formats.accumulator, Rounding::kNearestEven);
  return add_block(a, b, count, c, formats);
}

// mma.sync multiplies 8-bit floats as f16 numbers on Hopper, in two instructions: of each four values of k
// that share a register the first two, then the other two. c is added at the end, by an ordinary addition.
std::uint32_t dot_in_halves(const Factor* a, const Factor* b, unsigned k, std::uint32_t c,
                            const MmaFormats& formats) {
  std::uint32_t sum = 0;
  for (unsigned half = 0; half < 2; ++half) {
    Factor x[kMostBlock], y[kMostBlock];
    for (unsigned i = 0; i < k / 2; ++i) {
      const unsigned from = i / 2 * 4 + half * 2 + i % 2;
      x[i] = a[from];
      y[i] = b[from];
    }
    sum = dot_block(x, y, k / 2, sum, formats);
  }
  return encode(decode(sum, formats.accumulator) + decode(c, formats.accumulator), formats.accumulator,
                Rounding::kNearestEven);
}

}  // namespace

std::uint32_t fused_dot(const Factor* a, const Factor* b, unsigned k, std::uint32_t c,
                        const MmaFormats& formats) {
  return k > formats.block ? dot_in_halves(a, b, k, c, formats) : dot_block(a, b, k, c, formats);
}

}  // namespace ptxgen::emulator
