// A block whose header the lanes that share it have loaded together: each lane one piece, which the others
// get by shuffle. It stands where a pointer to a block does.
//
// All lanes of the warp must be there whenever a header is read.
#pragma once

#include "src/kernels/formats/header_pieces.h"

namespace ptxgen::formats {

// Which piece of a block a lane loads: the same of every block.
template <class F>
class HeaderLane {
  static constexpr u32 kPiece = kHeaderPiece<F>;
  static constexpr u32 kPieces = [] {
    u32 bytes = 0;
    for (const ByteRange& range : F::kHeader) bytes += range.bytes;
    return bytes / kPiece;
  }();

 public:
  // `lane` counts from the first of the lanes that share the block, `first` is that one's number in the warp.
  HeaderLane(const Reg<u32>& lane, const Reg<u32>& first) : first_(first), piece_(piece_of(lane)) {}

  const Reg<u32>& first() const { return first_; }
  const Reg<u32>& piece() const { return piece_; }

 private:
  // Lanes beyond the last piece load that one too.
  static Reg<u32> piece_of(const Reg<u32>& lane) {
    const Reg<u32> index = (min)(lane, kPieces - 1);
    const Reg<u32> piece = index + F::kHeader[0].offset / kPiece;
    if constexpr (F::kHeader.size() == 1) return piece;
    constexpr u32 kFirst = F::kHeader[0].bytes / kPiece;
    return selp(piece, index + (F::kHeader.back().offset / kPiece - kFirst), index < kFirst);
  }

  Reg<u32> first_, piece_;
};

template <class F, class Block>
class SharedHeader {
  static constexpr u32 kPiece = kHeaderPiece<F>;

 public:
  using InPieces = F;

  SharedHeader(const Block& block, const HeaderLane<F>& lane)
      : block_(block), first_(lane.first()), piece_(load(block, lane.piece())) {}

  const Block& quants() const { return block_; }
  // The piece at byte `offset` of the block, or so many pieces behind it.
  Reg<u32> piece(u32 offset) const { return from(first_ + index_of(offset)); }
  Reg<u32> piece(u32 offset, const Index& behind) const {
    return from((behind + first_).value() + index_of(offset));
  }

 private:
  static constexpr u32 index_of(u32 offset) {
    u32 before = 0;
    for (const ByteRange& range : F::kHeader) {
      if (offset >= range.offset && offset < range.offset + range.bytes)
        return (before + offset - range.offset) / kPiece;
      before += range.bytes;
    }
    return before / kPiece;  // not in the header
  }

  static Reg<u32> load(const Block& block, const Reg<u32>& piece) {
    const auto bytes = at<parts::Bytes<kPiece>>(block) + piece;
    if constexpr (kPiece == 4) {
      return parts::load(at<u32>(bytes));
    } else {
      return cvt<u32>(parts::load(at<u16>(bytes)));
    }
  }

  Reg<u32> from(const Reg<u32>& lane) const { return shfl_sync_idx(piece_, lane, 0x1fu, 0xffffffffu); }

  Block block_;
  Reg<u32> first_, piece_;
};

template <u32 W, std::size_t Offset, class F, class Block>
Words<W> header_bytes(const SharedHeader<F, Block>& block, const Index& index) {
  static_assert(kHeaderPiece<F> == 4);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Words<W>{block.piece(Offset + 4 * I, index * (W / 4))...};
  }
  (std::make_index_sequence<W / 4>{});
}
template <std::size_t Offset, class F, class Block>
Reg<s8> header_s8(const SharedHeader<F, Block>& block, const Index& pair, const Reg<u32>& second) {
  static_assert(kHeaderPiece<F> == 2);
  return cvt<s8>(block.piece(Offset, pair) >> (second * 8u));
}
template <class F, class Block>
const Block& quants_of(const SharedHeader<F, Block>& block) {
  return block.quants();
}

}  // namespace ptxgen::formats
