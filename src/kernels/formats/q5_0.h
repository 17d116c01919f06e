// Q5_0: 32 values (q - 16) * d. Source: ggml-quants.c, dequantize_row_q5_0; ggml-common.h, block_q5_0.
//
//   byte 0   d, f16
//   byte 2   qh, 32 bits: bit j is the fifth bit of value j
//   byte 6   qs[16]: as in Q4_0
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q5_0 {
  static constexpr Format kFormat = Format::kQ5_0;
  static constexpr u32 kRuns = 2;
  static constexpr u32 kBias = 16;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<f32> d = load_f16<0>(block);
    const auto [qh] = parts::load_words<1>(at<std::byte, 2>(block));
    const auto qs = load_bytes<W, 6>(block, part);
    return nibble_part<W>(part * W, qs, d, {}, qh);
  }
};

}  // namespace ptxgen::formats
