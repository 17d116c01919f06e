// A block of which a thread reads several parts, and whose fixed header it loads once for all of them. It
// stands where a pointer to a block does.
#pragma once

#include "src/kernels/formats/header_pieces.h"

namespace ptxgen::formats {

template <class F, class Block>
class HeldHeader {
  static constexpr u32 kPiece = kHeaderPiece<F>;

 public:
  using InPieces = F;

  explicit HeldHeader(const Block& block) : block_(block) {
    constexpr ByteRange kFixed = F::kFixed;
    if constexpr (kPiece == 4) {
      for (const Reg<u32>& word : parts::load_words<kFixed.bytes / 4>(at<std::byte, kFixed.offset>(block)))
        pieces_.push_back(word);
    } else {
      for (u32 i = 0; i < kFixed.bytes / kPiece; ++i)
        pieces_.push_back(cvt<u32>(parts::load(at<u16, kFixed.offset>(block) + i)));
    }
  }

  const Block& block() const { return block_; }
  // The piece at byte `offset` of the block.
  Reg<u32> piece(u32 offset) const { return pieces_[(offset - F::kFixed.offset) / kPiece]; }

 private:
  Block block_;
  std::vector<Reg<u32>> pieces_;
};

template <u32 W, std::size_t Offset, class F, class Block>
Words<W> header_bytes(const HeldHeader<F, Block>& block, const Index& index) {
  return header_bytes<W, Offset>(block.block(), index);
}
template <std::size_t Offset, class F, class Block>
Reg<s8> header_s8(const HeldHeader<F, Block>& block, const Index& pair, const Reg<u32>& second) {
  return header_s8<Offset>(block.block(), pair, second);
}
template <class F, class Block>
const Block& quants_of(const HeldHeader<F, Block>& block) {
  return block.block();
}

}  // namespace ptxgen::formats
