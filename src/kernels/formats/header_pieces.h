// Headers of blocks that have been loaded in pieces: a class with these is `InPieces`, and has piece(offset),
// the piece at a byte of the block.
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

template <class F>
inline constexpr u32 kHeaderPiece = info(F::kFormat).alignment >= 4 ? 4 : 2;  // bytes

template <u32 Count, std::size_t Offset, class Header>
requires requires {
  typename Header::InPieces;
}
std::array<Reg<u32>, Count> header_words(const Header& header) {
  const auto word = [&](u32 offset) {
    const Reg<u32> low = header.piece(offset);
    if constexpr (kHeaderPiece<typename Header::InPieces> == 4) {
      return low;
    } else {
      const Reg<u32> high = header.piece(offset + 2);
      return prmt(low, high, 0x5410);
    }
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, Count>{word(Offset + 4 * I)...};
  }
  (std::make_index_sequence<Count>{});
}
template <std::size_t Offset, class Header>
requires requires {
  typename Header::InPieces;
}
Reg<f16> header_f16(const Header& header) {
  constexpr bool kUpper = kHeaderPiece<typename Header::InPieces> == 4 && Offset % 4 == 2;
  const Reg<u32> bits = header.piece(Offset);
  return bitcast<f16>(cvt<u16>(kUpper ? bits >> 16 : bits));
}

}  // namespace ptxgen::formats
