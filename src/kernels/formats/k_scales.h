// The eight six-bit scales and mins that q4_K and q5_K pack into 12 bytes. Source: ggml-quants.c,
// get_scale_min_k4.
//
//   bytes 0..3    low six bits: scale of sub-blocks 0..3; top two bits: the high bits of scales 4..7
//   bytes 4..7    low six bits: min of sub-blocks 0..3; top two bits: the high bits of mins 4..7
//   bytes 8..11   low nibble: the low bits of scales 4..7; high nibble: of mins 4..7
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

// Which bytes hold the scales of the sub-blocks 2 * chunk and 2 * chunk + 1, and which of their bits: so that
// both halves of a block take the same instructions.
struct KScalesPlace {
  Pred upper;          // sub-blocks 4..7
  Reg<u32> two_bytes;  // of each of two words, for prmt
  Reg<u32> low_mask, high_mask;
};
inline KScalesPlace place_k_scales(const Reg<u32>& chunk) {
  KernelBuilder& k = *chunk.kernel();
  const Pred upper = chunk >= 2u;
  const auto choose = [&](u32 if_upper, u32 otherwise) {
    return selp(k.constant<u32>(if_upper), k.constant<u32>(otherwise), upper);
  };
  return {upper, 0x5410u + (chunk & 1u) * 0x2222u, choose(0x0f0f0f0f, 0x3f3f3f3f), choose(0x30303030, 0)};
}

// The scales and mins of both sub-blocks, from the three words.
struct KScales {
  std::array<Small, 2> scale, min;
};
inline KScales decode_k_scales(const Reg<u32>& s0, const Reg<u32>& s1, const Reg<u32>& s2,
                               const KScalesPlace& at) {
  // Two scales, then two mins: six bits of sub-blocks 0..3 with the high bits of 4..7 above them, and the low
  // nibbles of 4..7.
  const Reg<u32> sixes = prmt(s0, s1, at.two_bytes);
  const Reg<u32> nibbles = prmt(s2, s2 >> 4, at.two_bytes);
  const Reg<u32> all = (selp(nibbles, sixes, at.upper) & at.low_mask) | ((sixes >> 2) & at.high_mask);
  return {{small_byte(all, 0), small_byte(all, 1)}, {small_byte(all, 2), small_byte(all, 3)}};
}

}  // namespace ptxgen::formats
