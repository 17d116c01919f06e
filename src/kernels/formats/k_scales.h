// The eight six-bit scales and mins that q4_K and q5_K pack into 12 bytes. Source: ggml-quants.c,
// get_scale_min_k4.
//
//   bytes 0..3    low six bits: scale of sub-blocks 0..3; top two bits: the high bits of scales 4..7
//   bytes 4..7    low six bits: min of sub-blocks 0..3; top two bits: the high bits of mins 4..7
//   bytes 8..11   low nibble: the low bits of scales 4..7; high nibble: of mins 4..7
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct ScaleMin {
  Reg<f32> scale, min;
};

// d * scale and dmin * min of the sub-blocks 2 * chunk and 2 * chunk + 1. The 16 bytes at the block's start
// are d, dmin and the packed scales.
template <class Ptr>
std::array<ScaleMin, 2> load_k_scales(const Ptr& block, const Reg<u32>& chunk) {
  const auto [dm, s0, s1, s2] = parts::load_words<4>(at<std::byte>(block));
  const auto [d_half, dmin_half] = unpack(bitcast<f16x2>(dm));
  const Reg<f32> d = cvt<f32>(d_half);
  const Reg<f32> dmin = cvt<f32>(dmin_half);
  // Four scales (mins) a word: sub-blocks 0..3, or 4..7 for the upper chunks.
  const Pred upper = chunk >= 2u;
  const Reg<u32> scales = selp((s2 & 0x0f0f0f0fu) | ((s0 >> 2) & 0x30303030u), s0 & 0x3f3f3f3fu, upper);
  const Reg<u32> mins = selp(((s2 >> 4) & 0x0f0f0f0fu) | ((s1 >> 2) & 0x30303030u), s1 & 0x3f3f3f3fu, upper);
  const Reg<u32> bit = (chunk & 1u) * 16u;
  const auto sub_block = [&](u32 half) {
    const Reg<u32> first = half ? bit + 8u : bit;
    return ScaleMin{cvt_rn<f32>(bfe(scales, first, 8)) * d, cvt_rn<f32>(bfe(mins, first, 8)) * dmin};
  };
  return {sub_block(0), sub_block(1)};
}

}  // namespace ptxgen::formats
