// Q4_0: 32 values (q - 8) * d. Source: ggml-quants.c, dequantize_row_q4_0; ggml-common.h, block_q4_0.
//
//   byte 0   d, f16
//   byte 2   qs[16]: byte j has value j in its low nibble, value j + 16 in its high nibble
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q4_0 {
  static constexpr Format kFormat = Format::kQ4_0;
  static constexpr u32 kRuns = 2;
  static constexpr u32 kBias = 8;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<f32> d = load_f16<0>(block);
    const auto qs = load_bytes<W, 2>(block, part);
    return nibble_part<W>(part * W, qs, d, {});
  }
};

}  // namespace ptxgen::formats
