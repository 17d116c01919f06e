// The eight six-bit scales and mins that q4_K and q5_K pack into 12 bytes. Source: ggml-quants.c,
// get_scale_min_k4.
//
//   bytes 0..3    low six bits: scale of sub-blocks 0..3; top two bits: the high bits of scales 4..7
//   bytes 4..7    low six bits: min of sub-blocks 0..3; top two bits: the high bits of mins 4..7
//   bytes 8..11   low nibble: the low bits of scales 4..7; high nibble: of mins 4..7
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

// Where the scales of the sub-blocks 2 * chunk and 2 * chunk + 1 lie: shifts and masks, so that both halves
// of a block take the same instructions.
struct KScalesPlace {
  Pred upper;  // sub-blocks 4..7
  Reg<u32> shift, min_shift, high_shift;
  Reg<u32> low_mask, high_mask;
};
inline KScalesPlace place_k_scales(const Reg<u32>& chunk) {
  KernelBuilder& k = *chunk.kernel();
  const Pred upper = chunk >= 2u;
  const Reg<u32> shift = (chunk & 1u) * 16u;
  const auto choose = [&](u32 if_upper, u32 otherwise) {
    return selp(k.constant<u32>(if_upper), k.constant<u32>(otherwise), upper);
  };
  return {upper, shift, shift + choose(4, 0), shift + 2u, choose(0x0f0f, 0x3f3f), choose(0x3030, 0)};
}

// The scales and mins of both sub-blocks, from the three words.
struct KScales {
  std::array<Small, 2> scale, min;
};
inline KScales decode_k_scales(const Reg<u32>& s0, const Reg<u32>& s1, const Reg<u32>& s2,
                               const KScalesPlace& at) {
  const auto both = [&](const Reg<u32>& low, const Reg<u32>& shift) {
    return ((selp(s2, low, at.upper) >> shift) & at.low_mask) | ((low >> at.high_shift) & at.high_mask);
  };
  const Reg<u32> scales = both(s0, at.shift);
  const Reg<u32> mins = both(s1, at.min_shift);
  return {{small_byte(scales, 0), small_byte(scales, 1)}, {small_byte(mins, 0), small_byte(mins, 1)}};
}

}  // namespace ptxgen::formats
