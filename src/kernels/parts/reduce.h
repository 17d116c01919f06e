// Sums over the lanes of a warp and the warps of a CTA, in an order that depends on nothing but their number.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

inline constexpr u32 kAllLanes = 0xffffffff;

// The sum over `lanes` neighbouring lanes (a power of two), in all of them. The whole warp takes part.
inline Reg<f32> lane_sum(Reg<f32> value, u32 lanes = 32) {
  for (u32 distance = lanes / 2; distance > 0; distance /= 2)
    value = value + shfl_sync_bfly(value, distance, 0x1fu, kAllLanes);
  return value;
}

}  // namespace ptxgen::parts
