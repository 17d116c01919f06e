// A block whose header the lanes that share it have loaded together: each lane one piece, which the others
// get by shuffle. It stands where a pointer to a block does.
//
// All lanes of the warp must be there whenever a header is read.
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

template <class F, class Block>
class SharedHeader {
  static constexpr u32 kPiece = info(F::kFormat).alignment >= 4 ? 4 : 2;  // bytes
  static constexpr u32 kPieces = [] {
    u32 bytes = 0;
    for (const ByteRange& range : F::kHeader) bytes += range.bytes;
    return bytes / kPiece;
  }();

 public:
  // `lane` counts from the first of the lanes that share the block, `first` is that one's number in the warp.
  SharedHeader(const Block& block, const Reg<u32>& lane, const Reg<u32>& first)
      : block_(block), first_(first), piece_(load(block, lane)) {}

  const Block& quants() const { return block_; }

  template <std::size_t Offset>
  Reg<u32> word() const {
    if constexpr (kPiece == 4) return piece(first_ + index_of(Offset));
    const Reg<u32> low = piece(first_ + index_of(Offset));
    const Reg<u32> high = piece(first_ + index_of(Offset + 2));
    return prmt(low, high, 0x5410);
  }
  template <std::size_t Offset>
  Reg<u32> word(const Reg<u32>& index) const {
    constexpr u32 kPerWord = 4 / kPiece;
    const Reg<u32> lane = first_ + index_of(Offset) + index * kPerWord;
    const Reg<u32> low = piece(lane);
    if constexpr (kPiece == 4) return low;
    const Reg<u32> high = piece(lane + 1u);
    return prmt(low, high, 0x5410);
  }
  template <std::size_t Offset>
  Reg<u16> half() const {
    const Reg<u32> bits = piece(first_ + index_of(Offset));
    return cvt<u16>(kPiece == 4 && Offset % 4 == 2 ? bits >> 16 : bits);
  }
  // `further` by whole pieces is the same byte of a later one.
  template <std::size_t Offset>
  Reg<s8> byte(const Reg<u32>& index, u32 further) const {
    const Reg<u32> near = index + further % kPiece;
    const Reg<u32> bits = piece(first_ + (index_of(Offset) + further / kPiece) + near / kPiece);
    return cvt<s8>(bits >> (near % kPiece * 8u));
  }

 private:
  static constexpr u32 index_of(u32 offset) {
    u32 before = 0;
    for (const ByteRange& range : F::kHeader) {
      if (offset >= range.offset && offset < range.offset + range.bytes)
        return (before + offset - range.offset) / kPiece;
      before += range.bytes;
    }
    return kPieces;  // not in the header
  }

  // Lanes beyond the last piece load that one too.
  static Reg<u32> load(const Block& block, const Reg<u32>& lane) {
    const Reg<u32> index = (min)(lane, kPieces - 1);
    Reg<u32> offset = index * kPiece + F::kHeader[0].offset;
    if constexpr (F::kHeader.size() == 2) {
      constexpr u32 kFirst = F::kHeader[0].bytes / kPiece;
      offset = selp(offset, (index - kFirst) * kPiece + F::kHeader[1].offset, index < kFirst);
    }
    const auto bytes = at<parts::Bytes<kPiece>>(block) + offset / kPiece;
    if constexpr (kPiece == 4) {
      return parts::load(at<u32>(bytes));
    } else {
      return cvt<u32>(parts::load(at<u16>(bytes)));
    }
  }

  Reg<u32> piece(const Reg<u32>& lane) const { return shfl_sync_idx(piece_, lane, 0x1fu, 0xffffffffu); }

  Block block_;
  Reg<u32> first_, piece_;
};

template <u32 Count, std::size_t Offset, class F, class Block>
std::array<Reg<u32>, Count> header_words(const SharedHeader<F, Block>& block) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, Count>{block.template word<Offset + 4 * I>()...};
  }
  (std::make_index_sequence<Count>{});
}
template <u32 W, std::size_t Offset, class F, class Block>
Words<W> header_bytes(const SharedHeader<F, Block>& block, const Reg<u32>& index) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Words<W>{block.template word<Offset + 4 * I>(index * (W / 4))...};
  }
  (std::make_index_sequence<W / 4>{});
}
template <std::size_t Offset, class F, class Block>
Reg<f16> header_f16(const SharedHeader<F, Block>& block) {
  return bitcast<f16>(block.template half<Offset>());
}
template <std::size_t Offset, class F, class Block>
Reg<s8> header_s8(const SharedHeader<F, Block>& block, const Reg<u32>& index, u32 further) {
  return block.template byte<Offset>(index, further);
}
template <class F, class Block>
const Block& quants_of(const SharedHeader<F, Block>& block) {
  return block.quants();
}

}  // namespace ptxgen::formats
