// Q3_K: 256 values in 16 sub-blocks of 16; value = (q - 4) * (d * (scale - 32)).
// Source: ggml-quants.c, dequantize_row_q3_K; ggml-common.h, block_q3_K.
//
//   byte 0     hmask[32]: bit r of byte l is the third bit of value l of run r, of the eight runs of 32
//   values byte 32    qs[64]: each half of the block takes 32 bytes, whose bit pairs 0..3 are four runs byte
//   96    scales[12]: six bits a sub-block s: the low four in nibble s / 8 of byte s % 8, the high two in bit
//   pair
//              s / 4 of byte 8 + s % 4
//   byte 108   d, f16
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct Q3_K {
  static constexpr Format kFormat = Format::kQ3_K;
  static constexpr u32 kRuns = 4;
  static constexpr u32 kRunStride = 32;
  static constexpr u32 kFieldBits = 0;
  static constexpr u32 kBias = 4;
  static constexpr bool kSigned = false;
  static constexpr f32 kMostScale = 32;
  static constexpr f32 kMostMin = 1;
  static constexpr std::array<ByteRange, 1> kHeader = {{{96, 14}}};
  static constexpr ByteRange kFixed = kHeader[0];

  struct Place {
    Base base;
    Index part;
    Reg<u32> hmask_part, first_run;  // run 0 of the part, of the block's eight
    Reg<u32> second;                 // 8 for the second sub-block of each run
  };
  template <u32 W, class... Part>
  static Place place(const Part&... at) {
    const ChunkPart part = chunk_part<W>(at...);
    const Index& half = part.chunk;
    return {{half * 4, part.in_chunk},
            part.part,
            part.in_chunk / W,
            (half * 4).value(),
            (part.in_chunk >> 4) * 8u};
  }

  template <u32 W>
  struct Raw {
    Reg<f16> d;
    std::array<Reg<u32>, 3> scales;
    Words<W> qs, hmask;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    const Reg<f16> d = header_f16<108>(block);
    const auto scales = header_words<3, 96>(block);
    const auto quants = realigned(quants_of(block));
    const auto qs = load_bytes<W, 32>(quants, at.part);
    const auto hmask = load_bytes<W, 0>(quants, at.hmask_part);
    return {d, scales, qs, hmask};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place& at, Packing) {
    // The scales of runs 2 i and 2 i + 1 of the half in bytes 0 and 2.
    const auto scales_of = [&](u32 i) {
      const Reg<u32> low = bits_of_bytes(raw.scales[i], at.first_run, 4);
      return (low | bits_of_bytes(raw.scales[2], at.first_run + 2 * i, 2, 4)) >> at.second;
    };
    const std::array<Reg<u32>, 2> scales = {scales_of(0), scales_of(1)};
    Part<W> part{cvt<f32>(raw.d), {}, {}};
    for (u32 run = 0; run < kRuns; ++run) {
      const auto q = map(raw.qs, [&](const Reg<u32>& word, u32 i) {
        return bits_of_bytes<W>(word, 2 * run, 2) | bits_of_bytes(raw.hmask[i], at.first_run + run, 1, 2);
      });
      part.runs.push_back({q, small_byte(scales[run / 2], 2 * (run % 2), 32)});
    }
    return part;
  }
};

}  // namespace ptxgen::formats
