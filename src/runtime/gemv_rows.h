// Of how many rows of x kernels of matrix-vector products are made.
#pragma once

#include <algorithm>
#include <bit>

#include "ptxgen/gemv_variant.h"

namespace ptxgen::internal {

// Kernels of every schedule for several rows are made of so many, which serve m: the next power of two.
constexpr u32 whole_gemv_rows(u32 m) {
  return std::bit_ceil(std::clamp(m, 1u, kMostGemvRows));
}
// One m stands for all that one kernel serves: that, or 3, of which schedule stream has its own.
constexpr u32 bucket_gemv_rows(u32 m) {
  return m == 3 ? m : whole_gemv_rows(m);
}

}  // namespace ptxgen::internal
