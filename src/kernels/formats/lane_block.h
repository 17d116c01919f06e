// A block of which a lane reads its own bytes of every run, and the header that all lanes read. It stands
// where a pointer to a block does: parts are then counted from the lane's, so that they may be constants, and
// with them all shifts and masks that follow from a part's place.
#pragma once

#include <numeric>

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

// Bytes at a 2-byte alignment in shared memory, as the words around them and the permutation that realigns.
struct Realigned {
  SharedPtr<const u32> words;
  Reg<u32> select;
};

template <u32 W, std::size_t Offset, std::size_t Stride = W>
Words<W> load_bytes(const Realigned& bytes, const Reg<u32>& index) {
  static_assert(W % 4 == 0 && Offset % 4 == 0 && Stride % 4 == 0, "all from the same place in a word");
  const auto first = at<parts::Bytes<Stride>, Offset>(bytes.words) + index;
  std::vector<Reg<u32>> raw;
  for (u32 i = 0; i <= W / 4; ++i) raw.push_back(ld_shared(assume_aligned<4>(at<u32>(first) + i)));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Words<W>{prmt(raw[I], raw[I + 1], bytes.select)...};
  }
  (std::make_index_sequence<W / 4>{});
}

template <Format F, Space S, u32 LaneBytes>
class LaneBlock {
 public:
  using Block = BlockPtr<F, S>;
  static constexpr std::size_t kAlign = std::gcd(Block::kAlign, std::size_t{LaneBytes});
  static constexpr bool kRealigned = S == Space::kShared && kAlign == 2;
  using Lane = std::conditional_t<kRealigned, Realigned, Ptr<S, typename Block::element_type, kAlign>>;

  // `lane` counts the lanes that share the block.
  LaneBlock(const Block& block, const Reg<u32>& lane) : block_(block), lane_(lane_of(block, lane)) {}

  const Block& block() const { return block_; }
  const Lane& lane() const { return lane_; }

 private:
  static Lane lane_of(const Block& block, const Reg<u32>& lane) {
    const auto bytes = at<typename Block::element_type>(at<parts::Bytes<LaneBytes>>(block) + lane);
    if constexpr (kRealigned) {
      KernelBuilder& k = *block.kernel();
      const Reg<u32> address = Reg<u32>(&k, bytes.base()) + static_cast<u32>(bytes.offset());
      const Reg<u32> select = selp(k.constant<u32>(0x5432), k.constant<u32>(0x3210), (address & 2u) != 0u);
      const Reg<u32> aligned = address & ~3u;
      return {SharedPtr<const u32>(&k, aligned.id()), select};
    } else {
      return assume_aligned<kAlign>(bytes);
    }
  }

  Block block_;
  Lane lane_;
};

template <u32 Count, std::size_t Offset, Format F, Space S, u32 L>
std::array<Reg<u32>, Count> header_words(const LaneBlock<F, S, L>& block) {
  return header_words<Count, Offset>(block.block());
}
template <u32 W, std::size_t Offset, Format F, Space S, u32 L>
Words<W> header_bytes(const LaneBlock<F, S, L>& block, const Reg<u32>& index) {
  return header_bytes<W, Offset>(block.block(), index);
}
template <std::size_t Offset, Format F, Space S, u32 L>
Reg<f16> header_f16(const LaneBlock<F, S, L>& block) {
  return header_f16<Offset>(block.block());
}
template <std::size_t Offset, Format F, Space S, u32 L>
Reg<s8> header_s8(const LaneBlock<F, S, L>& block, const Reg<u32>& index, u32 further) {
  return header_s8<Offset>(block.block(), index, further);
}
template <Format F, Space S, u32 L>
const typename LaneBlock<F, S, L>::Lane& quants_of(const LaneBlock<F, S, L>& block) {
  return block.lane();
}

}  // namespace ptxgen::formats
