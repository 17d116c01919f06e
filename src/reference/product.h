// What sums of products must be: their value in f64, and how far an f32 result may lie from it.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "ptxgen/format.h"
#include "src/reference/bounded.h"
#include "src/reference/q8_1.h"

namespace ptxgen::reference {

// What rounding in f32 may do to a sum over k terms that at least 32 lanes share and that are of this
// magnitude in all, M = sum |term|. A term passes at most k / 16 additions (k / 32 for its own lane, twice
// because a product and a min may be added one after the other), and 32 further roundings (scales, lanes,
// warps, slices); each is off by at most u = 2^-24 of what it rounds, so the sum by at most
//
//   (k / 16 + 32) * u * M  +  k * 2^-126,
//
// the last for factors and products below the normal range. Infinite where M does not fit in f32, so that a
// partial sum may overflow. (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2.)
double rounding_bound(std::size_t k, double magnitude);

// One row of blocks of `format` times x, which has a value for each of the row's.
//
// f32 activations: the sum of w * x, w being the real number (q * d * scale + m * min). M counts the two
// terms of w separately: |q * d * scale * x| + |m * min * x|.
Bounded dot(Format format, absl::Span<const std::byte> row, absl::Span<const float> x);

// int8 activations: over the sub-blocks of the weights,
//
//   d * scale * dx * sum(q * xq) + m * min * dx * sum(xq),
//
// with the integer sums exact and all else in f64. M counts every product on its own, because kernels cut
// sub-blocks in several ways: (|q * d * scale| + |m * min|) * |dx * xq|.
Bounded dot(Format format, absl::Span<const std::byte> row, absl::Span<const Q8_1> x);

// The same for activations that are only known within bounds: each of these counts times |w|. An infinite one
// makes the result's infinite.
Bounded dot(Format format, absl::Span<const std::byte> row, absl::Span<const Bounded> x);
Bounded dot(Format format, absl::Span<const std::byte> row, const UncertainQ8_1& x);

}  // namespace ptxgen::reference
