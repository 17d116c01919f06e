// Q3_K: 256 values in 16 sub-blocks of 16; value = (q - 4) * (d * (scale - 32)).
// Source: ggml-quants.c, dequantize_row_q3_K; ggml-common.h, block_q3_K.
//
//   byte 0     hmask[32]: bit r of byte l is the third bit of value l of run r, of the eight runs of 32
//   values byte 32    qs[64]: each half of the block takes 32 bytes, whose bit pairs 0..3 are four runs byte
//   96    scales[12]: six bits a sub-block s: the low four in nibble s / 8 of byte s % 8, the high two in bit
//   pair
//              s / 4 of byte 8 + s % 4
//   byte 108   d, f16
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct Q3_K {
  static constexpr Format kFormat = Format::kQ3_K;
  static constexpr u32 kRuns = 4;
  static constexpr u32 kBias = 4;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<f32> d = load_f16<108>(block);
    const Reg<u32> byte = part * W;
    const Reg<u32> half = byte >> 5;
    const Reg<u32> in_half = byte & 31u;
    const auto packed = parts::load_words<3>(at<std::byte, 96>(block));
    const auto qs = load_bytes<W, 32>(block, part);
    const auto hmask = load_bytes<W, 0>(block, in_half / W);
    const Reg<u32> first_run = half * 4u;
    const Reg<u32> second = (in_half >> 4) * 8u;  // bit offset of the sub-block's byte in the run's pair

    // The scales of runs 2 i and 2 i + 1 of the half, one a byte.
    const auto scales_of = [&](u32 i) {
      return bits_of_bytes(packed[i], first_run, 4) | bits_of_bytes(packed[2], first_run + 2 * i, 2) << 4;
    };
    const std::array<Reg<u32>, 2> scales = {scales_of(0), scales_of(1)};
    Part<W> result{half * 128u + in_half, {}};
    for (u32 run = 0; run < kRuns; ++run) {
      const Reg<u32> biased = bfe(scales[run / 2], second + 16 * (run % 2), 8);
      const Reg<f32> scale = (cvt_rn<f32>(biased) - 32) * d;
      const auto q = map(qs, [&](const Reg<u32>& word, u32 i) {
        return bits_of_bytes(word, 2 * run, 2) | bits_of_bytes(hmask[i], first_run + run, 1) << 2;
      });
      result.runs.push_back({32 * run, q, scale, {}});
    }
    return result;
  }
};

}  // namespace ptxgen::formats
