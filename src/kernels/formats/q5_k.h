// Q5_K: 256 values in 8 sub-blocks of 32; value = q * (d * scale) - dmin * min.
// Source: ggml-quants.c, dequantize_row_q5_K; ggml-common.h, block_q5_K.
//
//   byte 0    d, dmin, f16, and the packed scales (k_scales.h)
//   byte 16   qh[32]: bit s of byte l is the fifth bit of value l of sub-block s
//   byte 48   qs[128]: as in Q4_K
#pragma once

#include "src/kernels/formats/k_scales.h"

namespace ptxgen::formats {

struct Q5_K {
  static constexpr Format kFormat = Format::kQ5_K;
  static constexpr u32 kRuns = 2;
  static constexpr u32 kBias = 0;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<u32> byte = part * W;
    const Reg<u32> chunk = byte >> 5;
    const Reg<u32> in_chunk = byte & 31u;
    const auto scales = load_k_scales(block, chunk);
    const auto qh = load_bytes<W, 16>(block, in_chunk / W);
    const auto qs = load_bytes<W, 48>(block, part);
    Part<W> result{chunk * 64u + in_chunk, {}};
    for (u32 half = 0; half < kRuns; ++half) {
      const Reg<u32> sub_block = chunk * 2u + half;
      const auto q = map(qs, [&](const Reg<u32>& word, u32 i) {
        return bits_of_bytes(word, 4 * half, 4) | bits_of_bytes(qh[i], sub_block, 1) << 4;
      });
      result.runs.push_back({32 * half, q, scales[half].scale, -scales[half].min});
    }
    return result;
  }
};

}  // namespace ptxgen::formats
