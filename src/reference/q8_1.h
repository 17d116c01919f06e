// int8 activations, by the definition in ptxgen/gemv.h (BlockQ8_1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/reference/bounded.h"

namespace ptxgen::reference {

inline constexpr std::size_t kQ8_1Values = 32, kQ8_1Bytes = 36;

// x[i] = d * q[i]. In memory: d as bf16, sum as s16, the 32 q; little-endian.
struct Q8_1 {
  std::uint16_t d = 0;  // bf16
  std::int16_t sum = 0;
  std::array<std::int8_t, kQ8_1Values> q = {};

  float scale() const;
  bool is_nan() const;
};

// The block of 32 values. d is the f32 product of the largest |x| and 1 / 127 rounded up to bf16; q is
// x * r rounded to an integer, ties to even, where r is 1 / d rounded to f32 and the product is exact. All is
// zero where the largest |x| is below 2^-118; where a value is infinite or NaN, d is NaN and the rest zero.
Q8_1 quantize_q8_1(absl::Span<const float> values);

// Whole rows: values.size() / 32 blocks into exactly as many bytes, else InvalidArgument.
absl::Status quantize_q8_1(absl::Span<const float> values, absl::Span<std::byte> blocks);
absl::StatusOr<std::vector<Q8_1>> read_q8_1(absl::Span<const std::byte> blocks);

// Blocks of values that are only known within bounds, as a kernel has them that makes x itself: those of
// their middles, and for each value how far the one it stands for may lie from another kernel's. That is 0
// for most: bounds are small beside a step d, so only a value that lies near the middle between two integers
// can round either way (one step), or a whole block whose d could be either of two bf16 values.
struct UncertainQ8_1 {
  std::vector<Q8_1> blocks;
  std::vector<double> slack;
};
UncertainQ8_1 quantize_q8_1(absl::Span<const Bounded> values);

// A NaN block means the same whatever its d's payload and its other bytes are: writes the one form of it, in
// whole blocks.
void canonicalize_q8_1(absl::Span<std::byte> blocks);

}  // namespace ptxgen::reference
