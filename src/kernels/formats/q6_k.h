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
  static constexpr u32 kRunStride = 32;
  static constexpr u32 kFieldBits = 0;
  static constexpr u32 kBias = 32;
  static constexpr bool kSigned = false;
  static constexpr f32 kMostScale = 128;
  static constexpr f32 kMostMin = 1;
  static constexpr std::array<ByteRange, 1> kHeader = {{{192, 18}}};
  static constexpr ByteRange kFixed = {208, 2};

  struct Place {
    Base base;
    Index part;
    Index low_part;    // of ql
    Index sub_blocks;  // of run 0, a pair
    Reg<u32> second;   // 1 in the second of them
  };
  template <u32 W, class... Part>
  static Place place(const Part&... at) {
    const ChunkPart part = chunk_part<W>(at...);
    const Index& half = part.chunk;  // of the 64 bytes of qh
    return {{half * 4, part.in_chunk},
            part.part,
            half * (64 / W) + part.in_chunk / W,
            half * 4,
            part.in_chunk >> 4};
  }

  template <u32 W>
  struct Raw {
    Reg<f16> d;
    std::array<Words<W>, 2> ql;
    Words<W> qh;
    std::array<Reg<s8>, kRuns> scales;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    const Reg<f16> d = header_f16<208>(block);
    const auto quants = realigned(quants_of(block));
    const auto ql0 = load_bytes<W, 0>(quants, at.low_part);
    const auto ql1 = load_bytes<W, 32>(quants, at.low_part);
    const auto qh = load_bytes<W, 128>(quants, at.part);
    const auto s0 = header_s8<192>(block, at.sub_blocks, at.second);
    const auto s1 = header_s8<192>(block, at.sub_blocks + 1u, at.second);
    const auto s2 = header_s8<192>(block, at.sub_blocks + 2u, at.second);
    const auto s3 = header_s8<192>(block, at.sub_blocks + 3u, at.second);
    return {d, {ql0, ql1}, qh, {s0, s1, s2, s3}};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place&, Packing) {
    Part<W> part{cvt<f32>(raw.d), {}, {}};
    // Runs r and r + 2 have their bit pairs at bits 0 and 4 of each byte.
    const auto pairs = [&](u32 r) {
      return map(raw.qh, [&](const Reg<u32>& word, u32) { return (r ? word >> 2u : word) & 0x33333333u; });
    };
    const std::array<Words<W>, 2> qh = {pairs(0), pairs(1)};
    for (u32 run = 0; run < kRuns; ++run) {
      const auto q = map(raw.ql[run % 2], [&](const Reg<u32>& low, u32 i) {
        const Reg<u32>& high = qh[run % 2][i];
        return run < 2 ? nibbles_of(low, high << 4u) : nibbles_of(low >> 4u, high);
      });
      part.runs.push_back({q, Small{cvt_rn<f32>(raw.scales[run])}});
    }
    return part;
  }
};

}  // namespace ptxgen::formats
