// Q6_K: 256 values in 16 sub-blocks of 16; value = (q - 32) * (d * scale), scale signed.
// Source: ggml-quants.c, dequantize_row_q6_K; ggml-common.h, block_q6_K.
//
//   byte 0     ql[128]: each half of the block takes 64 bytes; bytes l and 32 + l of them hold in their low
//   nibbles the low
//              bits of runs 0 and 1, in their high nibbles those of runs 2 and 3 (runs of 32 values)
//   byte 128   qh[64]: 32 bytes a half; bit pair r of byte l is the high bits of value l of run r
//   byte 192   scales[16], s8, one a sub-block
//   byte 208   d, f16
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct Q6_K {
  static constexpr Format kFormat = Format::kQ6_K;
  static constexpr u32 kRuns = 4;
  static constexpr u32 kBias = 32;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<f32> d = load_f16<208>(block);
    const Reg<u32> byte = part * W;  // of the 64 bytes of qh
    const Reg<u32> half = byte >> 5;
    const Reg<u32> in_half = byte & 31u;
    const Reg<u32> low_part = half * (64 / W) + in_half / W;  // of ql
    const std::array<std::array<Reg<u32>, W / 4>, 2> ql = {load_bytes<W, 0>(block, low_part),
                                                           load_bytes<W, 32>(block, low_part)};
    const auto qh = load_bytes<W, 128>(block, part);
    const auto scales = at<s8, 192>(block) + (half * 8u + (in_half >> 4));
    Part<W> result{half * 128u + in_half, {}};
    for (u32 run = 0; run < kRuns; ++run) {
      const Reg<s8> sub_block = ld_global_nc(scales + 2 * run);
      const auto q = map(ql[run % 2], [&](const Reg<u32>& word, u32 i) {
        return bits_of_bytes(word, 4 * (run / 2), 4) | bits_of_bytes(qh[i], 2 * run, 2) << 4;
      });
      result.runs.push_back({32 * run, q, cvt_rn<f32>(sub_block) * d, {}});
    }
    return result;
  }
};

}  // namespace ptxgen::formats
