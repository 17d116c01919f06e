// Q2_K: 256 values in 16 sub-blocks of 16; value = q * (d * scale) - dmin * min.
// Source: ggml-quants.c, dequantize_row_q2_K; ggml-common.h, block_q2_K.
//
//   byte 0    scales[16]: of sub-block s the scale in the low nibble, the min in the high nibble
//   byte 16   qs[64]: each half of the block takes 32 bytes, whose bit pairs 0..3 are four runs of 32 values
//   byte 80   d, dmin, f16
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct Q2_K {
  static constexpr Format kFormat = Format::kQ2_K;
  static constexpr u32 kRuns = 4;
  static constexpr u32 kRunStride = 32;
  static constexpr u32 kFieldBits = 2;
  static constexpr u32 kBias = 0;
  static constexpr bool kSigned = false;
  static constexpr f32 kMostScale = 15;
  static constexpr f32 kMostMin = 15;
  static constexpr std::array<ByteRange, 2> kHeader = {{{0, 16}, {80, 4}}};
  static constexpr ByteRange kFixed = {80, 4};

  struct Place {
    Base base;
    Index part;
    Index half;       // of the block
    Reg<u32> second;  // 8 for the second sub-block of each run
  };
  template <u32 W, class... Part>
  static Place place(const Part&... at) {
    const ChunkPart part = chunk_part<W>(at...);
    const Index& half = part.chunk;
    return {{half * 4, part.in_chunk}, part.part, half, (part.in_chunk >> 4) * 8u};
  }

  template <u32 W>
  struct Raw {
    Reg<u32> d_dmin;
    Words<8> scales;  // of the half's sub-blocks, two a run
    Words<W> qs;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    const auto [d_dmin] = header_words<1, 80>(block);
    const auto scales = header_bytes<8, 0>(block, at.half);
    const auto qs = load_bytes<W, 16>(quants_of(block), at.part);
    return {d_dmin, scales, qs};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place& at, Packing packing) {
    const auto [d, m] = d_and_m(raw.d_dmin);
    Part<W> part{d, m, {}};
    for (u32 run = 0; run < kRuns; ++run) {
      const Reg<u32> scale_min = raw.scales[run / 2] >> at.second;  // in bytes 0 and 2
      part.runs.push_back({fields_of_bytes<Q2_K, W>(raw.qs, run, packing),
                           small_byte(bits_of_bytes<4>(scale_min, 0, 4), 2 * (run % 2)),
                           small_byte(bits_of_bytes<4>(scale_min, 4, 4), 2 * (run % 2))});
    }
    return part;
  }
};

}  // namespace ptxgen::formats
