// Q2_K: 256 values in 16 sub-blocks of 16; value = q * (d * scale) - dmin * min.
// Source: ggml-quants.c, dequantize_row_q2_K; ggml-common.h, block_q2_K.
//
//   byte 0    scales[16]: of sub-block s the scale in the low nibble, the min in the high nibble
//   byte 16   qs[64]: each half of the block takes 32 bytes, whose bit pairs 0..3 are four runs of 32 values
//   byte 80   d, dmin, f16
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct Q2_K {
  static constexpr Format kFormat = Format::kQ2_K;
  static constexpr u32 kRuns = 4;
  static constexpr u32 kBias = 0;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const auto [d, dmin] = load_two_f16<80>(block);
    const Reg<u32> byte = part * W;
    const Reg<u32> half = byte >> 5;                    // of the block
    const Reg<u32> in_half = byte & 31u;                // where in the 32 bytes, so in each run
    const auto scales = load_bytes<8, 0>(block, half);  // of the half's sub-blocks, two a run
    const auto qs = load_bytes<W, 16>(block, part);
    const Reg<u32> second = (in_half >> 4) * 8u;  // bit offset of the sub-block's byte in the run's pair
    Part<W> result{half * 128u + in_half, {}};
    for (u32 run = 0; run < kRuns; ++run) {
      const Reg<u32> scale_min = scales[run / 2] >> (second + 16 * (run % 2));
      const Reg<f32> scale = cvt_rn<f32>(scale_min & 0xfu) * d;
      const Reg<f32> min = cvt_rn<f32>(bfe(scale_min, 4, 4)) * dmin;
      const auto q = map(qs, [&](const Reg<u32>& word, u32) { return bits_of_bytes(word, 2 * run, 2); });
      result.runs.push_back({32 * run, q, scale, -min});
    }
    return result;
  }
};

}  // namespace ptxgen::formats
