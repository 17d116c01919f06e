// Moving and widening small integers packed in 32-bit words.
#pragma once

#include <array>
#include <vector>

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

// A stretch of memory of N bytes whose address is a multiple of Align: the element type of pointers to
// blocks.
template <std::size_t N>
struct Bytes {
  std::byte bytes[N];
};

// `Words` 32-bit words at p, in the widest loads that its alignment allows: 16, 8, 4 or 2 bytes.
template <u32 Words, std::size_t Align>
std::array<Reg<u32>, Words> load_words(const GlobalPtr<const std::byte, Align>& p) {
  const auto element = [&]<u32 I>() {
    if constexpr (Align >= 4) {
      return ld_global_nc(at<u32, 4 * I>(p));
    } else {
      static_assert(Align == 2, "ggml blocks are at least 2-byte aligned");
      const Reg<u16> low = ld_global_nc(at<u16, 4 * I>(p));
      const Reg<u16> high = ld_global_nc(at<u16, 4 * I + 2>(p));
      return pack<u32>(low, high);
    }
  };
  if constexpr (Words == 4 && Align >= 16) return ld_global_nc_v4(at<u32>(p));
  if constexpr (Words == 2 && Align >= 8) return ld_global_nc_v2(at<u32>(p));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, Words>{element.template operator()<I>()...};
  }
  (std::make_index_sequence<Words>{});
}

// Byte i of `bytes` minus `bias` as a float, exactly. 0x4b000000 is 2^23, whose last mantissa bit counts
// ones: a byte put into that pattern makes 2^23 + byte, and the subtraction leaves byte - bias. Two full-rate
// instructions, where a conversion runs at a quarter of the rate.
inline Reg<f32> byte_to_f32(const Reg<u32>& bytes, u32 i, u32 bias) {
  constexpr u32 kTwoTo23 = 0x4b000000;
  const Reg<u32> bits = prmt(bytes, kTwoTo23, 0x7440u | i);  // from the top: 0x4b, 0, 0, byte i
  return bitcast<f32>(bits) - static_cast<f32>((1u << 23) + bias);
}

// Bits 0 to 3 of a word, each in bit `to` of its byte.
inline Reg<u32> spread_bits(const Reg<u32>& word, u32 to) {
  constexpr u32 kSevenApart = 0x00204081;  // copies shifted by 0, 7, 14, 21: bit i lands on bit 8 i
  return ((word & 0xfu) * (kSevenApart << to)) & (0x01010101u << to);
}

}  // namespace ptxgen::parts
