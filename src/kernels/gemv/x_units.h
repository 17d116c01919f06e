// Activations in units of 8 values, as a thread takes them from global memory.
#pragma once

#include "src/kernels/parts/stage.h"

namespace ptxgen::gemv {

inline constexpr u32 kUnit = 8;
using Eight = std::array<Reg<f32>, kUnit>;

// Unit `unit` of blocks of q8_1, four units each; above d there is the sum of the block.
inline parts::Quantized load_quantized(const GlobalPtr<const std::byte, 4>& x, const Reg<u32>& unit) {
  const auto block = at<parts::Bytes<sizeof(BlockQ8_1)>>(x) + (unit >> 2);
  const auto q = at<u32, 4>(block) + (unit & 3u) * 2u;
  const Reg<u32> header = ld_global(at<u32>(block));
  const Reg<u32> low = ld_global(q);
  const Reg<u32> high = ld_global(q + 1);
  return {{low, high}, header};
}

}  // namespace ptxgen::gemv
