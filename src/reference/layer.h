// What stands between the products of a transformer layer, in f64, with what f32 may make of it.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "src/reference/bounded.h"

namespace ptxgen::reference {

// y[i] = x[i] * gamma[i] / sqrt(mean(x^2) + eps), for a row of n values.
//
// The squares are summed by at least 32 threads: with u = 2^-24 the sum of these positive terms is off by at
// most (n / 32 + 16) u of itself, and the root by half of that; 8 u are for the division by n, the root and
// reciprocal (within 2 u each, PTX ISA 9.7.3 rsqrt.approx) and the two products. So
//
//   |error| <= (n / 64 + 16) u |y|  +  2^-126 max(1, |gamma[i]|)
//
// for eps of at least 2^-100, beside which squares below the normal range are nothing. Where the sum of
// squares does not fit in f32 the bound is infinite.
std::vector<Bounded> rms_norm(absl::Span<const float> x, absl::Span<const float> gamma, float eps);

// silu(gate) * up, silu(g) = g / (1 + exp(-g)). With inputs that are only known within bounds, |silu'| <= 1.1
// carries the gate's over. exp's argument is rounded, so its relative error grows with it; the rest is
// approximate exponential, addition, division and products:
//
//   |error| <= (16 + 2 |g|) u |silu(g) up|  +  1.1 bound(g) (|up| + bound(up))  +  |silu(g)| bound(up)
//              + 2^-126 (1 + |up|)
Bounded swiglu(const Bounded& gate, const Bounded& up);

// a + b: one rounding beside what the two are off by.
Bounded add(const Bounded& a, const Bounded& b);

}  // namespace ptxgen::reference
