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
  static constexpr u32 kRunStride = 32;
  static constexpr u32 kFieldBits = 0;
  static constexpr u32 kBias = 0;
  static constexpr bool kSigned = true;
  static constexpr f32 kMostScale = 1;
  static constexpr f32 kMostMin = 1;
  static constexpr std::array<ByteRange, 1> kHeader = {{{0, 2}}};
  static constexpr ByteRange kFixed = kHeader[0];

  struct Place {
    Base base;
    Reg<u32> part;
  };
  template <u32 W>
  static Place place(const Reg<u32>& part) {
    return {{{*part.kernel(), 0}, part * W}, part};
  }

  template <u32 W>
  struct Raw {
    Reg<f16> d;
    Words<W> qs;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    const Reg<f16> d = header_f16<0>(block);
    return {d, load_bytes<W, 2>(quants_of(block), at.part)};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place&, Packing) {
    return {cvt<f32>(raw.d), {}, {{raw.qs}}};
  }
};

}  // namespace ptxgen::formats
