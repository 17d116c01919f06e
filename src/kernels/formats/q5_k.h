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
  static constexpr u32 kRunStride = 32;
  static constexpr u32 kFieldBits = 0;
  static constexpr u32 kBias = 0;
  static constexpr bool kSigned = false;
  static constexpr f32 kMostScale = 63;
  static constexpr f32 kMostMin = 63;
  static constexpr std::array<ByteRange, 1> kHeader = {{{0, 16}}};
  static constexpr ByteRange kFixed = kHeader[0];

  struct Place {
    Base base;
    Index part;
    Reg<u32> qh_part, sub_block;  // where in qh, and which bit of it
    KScalesPlace scales;
  };
  template <u32 W, class... Part>
  static Place place(const Part&... at) {
    const ChunkPart part = chunk_part<W>(at...);
    const Reg<u32> chunk = part.chunk.value();
    return {{part.chunk * 2, part.in_chunk}, part.part, part.in_chunk / W, chunk * 2u, place_k_scales(chunk)};
  }

  template <u32 W>
  struct Raw {
    std::array<Reg<u32>, 4> header;
    Words<W> qh, qs;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    const auto header = header_words<4, 0>(block);
    const auto qh = load_bytes<W, 16>(quants_of(block), at.qh_part);
    const auto qs = load_bytes<W, 48>(quants_of(block), at.part);
    return {header, qh, qs};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place& at, Packing) {
    const auto [d, m] = d_and_m(raw.header[0]);
    const KScales scales = decode_k_scales(raw.header[1], raw.header[2], raw.header[3], at.scales);
    Part<W> part{d, m, {}};
    for (u32 half = 0; half < kRuns; ++half) {
      const auto q = map(raw.qs, [&](const Reg<u32>& word, u32 i) {
        return bits_of_bytes<W>(word, 4 * half, 4) | bits_of_bytes(raw.qh[i], at.sub_block + half, 1, 4);
      });
      part.runs.push_back({q, scales.scale[half], scales.min[half]});
    }
    return part;
  }
};

}  // namespace ptxgen::formats
