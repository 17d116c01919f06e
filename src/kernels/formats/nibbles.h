// What the formats of 32 values with two nibbles a byte have in common. Source: ggml-common.h, block_q4_0 to
// block_q5_1.
//
//   byte 0    d, f16
//   then      m, f16, where there is one
//   then      qh, 32 bits, where values have a fifth bit: bit j is that of value j
//   then      qs[16]: byte j has value j in its low nibble, value j + 16 in its high nibble
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

struct NibbleLayout {
  u32 bias = 0;
  bool m = false;
  bool fifth_bit = false;
};

template <Format F, NibbleLayout L>
struct Nibbles {
  static constexpr Format kFormat = F;
  static constexpr u32 kRuns = 2;
  static constexpr u32 kRunStride = 16;
  static constexpr u32 kFieldBits = L.fifth_bit ? 0 : 4;
  static constexpr u32 kBias = L.bias;
  static constexpr bool kSigned = false;
  static constexpr f32 kMostScale = 1;
  static constexpr f32 kMostMin = 1;
  static constexpr u32 kQh = L.m ? 4 : 2;
  static constexpr u32 kQs = kQh + (L.fifth_bit ? 4 : 0);
  static constexpr std::array<ByteRange, 1> kHeader = {{{0, kQs}}};
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
    std::optional<Reg<f16>> m;
    std::optional<Reg<u32>> qh;
    Words<W> qs;
  };
  template <u32 W, class Block>
  static Raw<W> load(const Block& block, const Place& at) {
    std::optional<Reg<f16>> m;
    std::optional<Reg<u32>> qh;
    const Reg<f16> d = header_f16<0>(block);
    if constexpr (L.m) m.emplace(header_f16<2>(block));
    if constexpr (L.fifth_bit) qh.emplace(header_words<1, kQh>(block)[0]);
    return {d, m, qh, load_bytes<W, kQs>(quants_of(block), at.part)};
  }

  template <u32 W>
  static Part<W> decode(const Raw<W>& raw, const Place& at, Packing packing) {
    Part<W> part{cvt<f32>(raw.d), {}, {}};
    if (raw.m) part.m.emplace(cvt<f32>(*raw.m));
    for (const u32 half : {0u, 1u}) {
      [[maybe_unused]] const auto with_fifth_bit = [&](const Reg<u32>& word, u32 i) {
        const Reg<u32> bits = *raw.qh >> (at.base.in_block + (16 * half + 4 * i));
        return bits_of_bytes<W>(word, 4 * half, 4) | parts::spread_bits(bits, 4);
      };
      if constexpr (L.fifth_bit) {
        part.runs.push_back({map(raw.qs, with_fifth_bit)});
      } else {
        part.runs.push_back({fields_of_bytes<Nibbles, W>(raw.qs, half, packing)});
      }
    }
    return part;
  }
};

}  // namespace ptxgen::formats
