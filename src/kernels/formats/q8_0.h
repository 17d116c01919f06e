// Q8_0: 32 values q * d, q signed. Source: ggml-quants.c, dequantize_row_q8_0; ggml-common.h, block_q8_0.
//
//   byte 0   d, f16
//   byte 2   qs[32], s8
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct Q8_0 {
  static constexpr Format kFormat = Format::kQ8_0;
  static constexpr u32 kRuns = 1;
  static constexpr u32 kBias = 128;

  template <u32 W>
  static Part<W> decode(const BlockPtr<kFormat>& block, const Reg<u32>& part) {
    const Reg<f32> d = load_f16<0>(block);
    // Flipping the sign bit of a signed byte adds 128.
    const auto q =
        map(load_bytes<W, 2>(block, part), [](const Reg<u32>& word, u32) { return word ^ 0x80808080u; });
    return {part * W, {{0, q, d, {}}}};
  }
};

}  // namespace ptxgen::formats
