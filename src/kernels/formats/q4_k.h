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
  static constexpr u32 kRunStride = 32;
  static constexpr u32 kFieldBits = 4;
  static constexpr u32 kBias = 0;
  static constexpr bool kSigned = false;
  static constexpr f32 kMostScale = 63;
  static constexpr f32 kMostMin = 63;
  static constexpr std::array<ByteRange, 1> kHeader = {{{0, 16}}};
  static constexpr ByteRange kFixed = kHeader[0];

  struct Place {
    Base base;
    Index part;
    KScalesPlace scales;
  };
  template <u32 W, class... Part>
  static Place place(const Part&... at) {
    const ChunkPart part = chunk_part<W>(at...);
    return {{part.chunk * 2, part.in_chunk}, part.part, place_k_scales(part.chunk.value())};
  }

  template <u32 W>
  struct Raw {
    std::array<Reg<u32>, 4> header;
    Words<W> qs;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    const auto header = header_words<4, 0>(block);
    return {header, load_bytes<W, 16>(quants_of(block), at.part)};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place& at, Packing packing) {
    const auto [d, m] = d_and_m(raw.header[0]);
    const KScales scales = decode_k_scales(raw.header[1], raw.header[2], raw.header[3], at.scales);
    Part<W> part{d, m, {}};
    for (u32 half = 0; half < kRuns; ++half) {
      part.runs.push_back(
          {fields_of_bytes<Q4_K, W>(raw.qs, half, packing), scales.scale[half], scales.min[half]});
    }
    return part;
  }
};

}  // namespace ptxgen::formats
