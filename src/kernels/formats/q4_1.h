// Q4_1: 32 values q * d + m. Source: ggml-quants.c, dequantize_row_q4_1; ggml-common.h, block_q4_1.
//
//   byte 0   d, m, f16
//   byte 4   qs[16]: as in Q4_0
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q4_1 {
  static constexpr Format kFormat = Format::kQ4_1;
  static constexpr u32 kRuns = 2;
  static constexpr u32 kBias = 0;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const auto [d, m] = load_two_f16<0>(block);
    const auto qs = load_bytes<W, 4>(block, part);
    return nibble_part<W>(part * W, qs, d, m);
  }
};

}  // namespace ptxgen::formats
