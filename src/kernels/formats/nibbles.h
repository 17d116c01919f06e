// What the formats of 32 values with two nibbles a byte have in common: byte j of qs holds value j in its low
// nibble and value j + 16 in its high nibble. Source: ggml-common.h, block_q4_0 to block_q5_1.
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

// Both runs of the bytes `qs` that start at byte `base`. A fifth bit of value j is bit j of the block's word
// `qh`. Callers load `qs` in a statement of its own: C++ leaves open whether a load among the arguments comes
// before or after the others, and the PTX would depend on the host's compiler.
template <u32 W>
Part<W> nibble_part(const Reg<u32>& base, const std::array<Reg<u32>, W / 4>& qs, const Reg<f32>& scale,
                    const std::optional<Reg<f32>>& shift, const std::optional<Reg<u32>>& qh = {}) {
  Part<W> part{base, {}};
  for (const u32 half : {0u, 1u}) {
    const auto q = map(qs, [&](const Reg<u32>& word, u32 i) {
      const Reg<u32> nibbles = bits_of_bytes(word, 4 * half, 4);
      if (!qh) return nibbles;
      return nibbles | parts::spread_bits(*qh >> (base + (16 * half + 4 * i)), 4);
    });
    part.runs.push_back({16 * half, q, scale, shift});
  }
  return part;
}

}  // namespace ptxgen::formats
