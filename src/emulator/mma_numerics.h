// The arithmetic of the tensor cores on floating-point numbers, in one function.
#pragma once

#include <cstdint>

#include "src/emulator/numerics.h"
#include "src/emulator/types.h"

namespace ptxgen::emulator {

// A number as it enters a product: value = significand * 2^(exponent - mantissa bits of its format).
// Subnormals keep the exponent of the smallest normal number; the significand of a zero, an infinity and a
// NaN is 0.
struct Factor {
  std::int32_t significand = 0;
  std::int32_t exponent = 0;
  double special = 0;  // an infinity or NaN
};

// The formats of the instruction's operands.
struct MmaFormats {
  Format factor_a, factor_b;
  Format accumulator;  // kF32 or kF16
  // How many products are added at once, and the fraction bits that a term keeps, relative to the largest
  // exponent.
  unsigned block = 16;
  int fraction_bits = 25;
};

Factor factor(std::uint32_t bits, Format format);

// The format of a matrix's elements, and one of them.
Format mma_format(Type type);
Factor mma_factor(std::uint32_t bits, Type type);
// The same of whole numbers, and c + sum, which wraps around or is clamped.
std::int32_t mma_integer(std::uint32_t bits, Type type);
std::uint32_t add_integer(std::uint32_t c, std::int32_t sum, bool satfinite);

// c + a[0] * b[0] + ... + a[k-1] * b[k-1], as bits of the accumulator's format.
//
// PTX leaves the order of summation and the rounding of intermediate results open. Tensor cores form exact
// products, shift the products of a block and the accumulator to the largest exponent among them, cut off
// what lies below a fixed number of fraction bits, add exactly, and round once (Fasi, Higham, Mikaitis,
// Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021). So does this
// function, with the numbers that an H200 has: tests/conformance finds no result of mma.sync or wgmma that
// differs. An f32 result has no more mantissa bits than terms have fraction bits.
std::uint32_t fused_dot(const Factor* a, const Factor* b, unsigned k, std::uint32_t c,
                        const MmaFormats& formats);

}  // namespace ptxgen::emulator
