#include "src/emulator/mma_numerics.h"

#include <algorithm>
#include <cmath>

namespace ptxgen::emulator {
namespace {

constexpr unsigned kBlock = 16;       // products that are added at once
constexpr int kFractionBits = 25;     // that a term keeps, relative to the largest exponent
constexpr int kZeroExponent = -1000;  // of a term that is zero: below every other

// significand * 2^(exponent - fraction bits of the term), exactly.
struct Term {
  std::int64_t significand = 0;
  int exponent = kZeroExponent;
};

// The term's multiple of 2^(largest - kFractionBits), cut off towards zero. `bits`: its fraction bits,
// below 32.
std::int64_t aligned(const Term& term, int largest, int bits) {
  constexpr int kRoom = 30;  // a product has at most 2 + 2 * 10 significant bits, an accumulator 24
  const std::int64_t magnitude = (term.significand < 0 ? -term.significand : term.significand)
                                 << (kRoom - bits);
  const int shift = std::min(63, largest - term.exponent + kRoom - kFractionBits);
  return term.significand < 0 ? -(magnitude >> shift) : magnitude >> shift;
}

std::uint32_t rounded(double sum, Format format) {
  return encode(sum, format,
                format.mantissa_bits == kF32.mantissa_bits ? Rounding::kZero : Rounding::kNearestEven);
}

std::uint32_t add_block(const Factor* a, const Factor* b, unsigned count, std::uint32_t c,
                        const MmaFormats& f) {
  const Factor accumulator = factor(c, f.accumulator);
  Term terms[kBlock];
  int largest = accumulator.significand ? accumulator.exponent : kZeroExponent;
  for (unsigned i = 0; i < count; ++i) {
    terms[i].significand = std::int64_t{a[i].significand} * b[i].significand;
    if (terms[i].significand == 0) continue;
    terms[i].exponent = a[i].exponent + b[i].exponent;
    largest = std::max(largest, terms[i].exponent);
  }
  std::int64_t sum =
      aligned({accumulator.significand, accumulator.exponent}, largest, f.accumulator.mantissa_bits);
  const int bits = f.factor_a.mantissa_bits + f.factor_b.mantissa_bits;
  for (unsigned i = 0; i < count; ++i) sum += aligned(terms[i], largest, bits);
  return rounded(std::ldexp(static_cast<double>(sum), largest - kFractionBits), f.accumulator);
}

}  // namespace

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

std::uint32_t fused_dot(const Factor* a, const Factor* b, unsigned k, std::uint32_t c,
                        const MmaFormats& formats) {
  double special = factor(c, formats.accumulator).special;
  bool any = special != 0;  // true for a NaN
  for (unsigned i = 0; i < k; ++i) {
    if (a[i].special == 0 && b[i].special == 0) continue;
    any = true;
    const double x = a[i].special != 0 ? a[i].special : a[i].significand;
    const double y = b[i].special != 0 ? b[i].special : b[i].significand;
    special += x * y;
  }
  if (any) return encode(special, formats.accumulator, Rounding::kNearestEven);
  for (unsigned i = 0; i < k; i += kBlock) c = add_block(a + i, b + i, std::min(k - i, kBlock), c, formats);
  return c;
}

}  // namespace ptxgen::emulator
