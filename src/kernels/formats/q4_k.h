// Q4_K: 256 values in 8 sub-blocks of 32; value = q * (d * scale) - dmin * min.
// Source: ggml-quants.c, dequantize_row_q4_K; ggml-common.h, block_q4_K.
//
//   byte 0    d, dmin, f16, and the packed scales (k_scales.h)
//   byte 16   qs[128]: bytes 32 c .. 32 c + 31 have sub-block 2 c in the low nibbles, 2 c + 1 in the high
//   nibbles
#pragma once

#include "src/kernels/formats/k_scales.h"

namespace ptxgen::formats {

struct Q4_K {
  static constexpr Format kFormat = Format::kQ4_K;
  static constexpr u32 kRuns = 2;
  static constexpr u32 kBias = 0;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<u32> byte = part * W;
    const Reg<u32> chunk = byte >> 5;
    const auto scales = load_k_scales(block, chunk);
    const auto qs = load_bytes<W, 16>(block, part);
    Part<W> result{chunk * 64u + (byte & 31u), {}};
    for (u32 half = 0; half < kRuns; ++half) {
      const auto q = map(qs, [&](const Reg<u32>& word, u32) { return bits_of_bytes(word, 4 * half, 4); });
      result.runs.push_back({32 * half, q, scales[half].scale, -scales[half].min});
    }
    return result;
  }
};

}  // namespace ptxgen::formats
