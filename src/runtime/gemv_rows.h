// Of how many rows of x kernels of matrix-vector products are made.
#pragma once

#include <algorithm>
#include <bit>

#include "ptxgen/gemv_variant.h"

namespace ptxgen::internal {

// One m stands for all that one kernel serves: 3, or the next power of two.
constexpr u32 bucket_gemv_rows(u32 m) {
  return m == 3 ? m : std::bit_ceil(std::clamp(m, 1u, kMostGemvRows));
}

}  // namespace ptxgen::internal
