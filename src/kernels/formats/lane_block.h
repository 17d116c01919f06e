// A block of which a lane reads its own bytes of every run, and the header that all lanes read. It stands
// where a pointer to a block does: parts are then counted from the lane's, so that they may be constants, and
// with them all shifts and masks that follow from a part's place.
#pragma once

#include <numeric>

#include "src/kernels/formats/format.h"

namespace ptxgen::formats {

template <Format F, Space S, u32 LaneBytes>
class LaneBlock {
 public:
  using Block = BlockPtr<F, S>;
  static constexpr std::size_t kAlign = std::gcd(Block::kAlign, std::size_t{LaneBytes});
  static constexpr bool kRealigned = S == Space::kShared && kAlign == 2;
  using Lane = std::conditional_t<kRealigned, parts::Realigned, Ptr<S, typename Block::element_type, kAlign>>;

  // `lane` counts the lanes that share the block.
  LaneBlock(const Block& block, const Reg<u32>& lane) : block_(block), lane_(lane_of(block, lane)) {}

  const Block& block() const { return block_; }
  const Lane& lane() const { return lane_; }

 private:
  static Lane lane_of(const Block& block, const Reg<u32>& lane) {
    const auto bytes = at<typename Block::element_type>(at<parts::Bytes<LaneBytes>>(block) + lane);
    if constexpr (kRealigned) {
      return parts::realign(bytes);
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
Words<W> header_bytes(const LaneBlock<F, S, L>& block, const Index& index) {
  return header_bytes<W, Offset>(block.block(), index);
}
template <std::size_t Offset, Format F, Space S, u32 L>
Reg<f16> header_f16(const LaneBlock<F, S, L>& block) {
  return header_f16<Offset>(block.block());
}
template <std::size_t Offset, Format F, Space S, u32 L>
Reg<s8> header_s8(const LaneBlock<F, S, L>& block, const Index& pair, const Reg<u32>& second) {
  return header_s8<Offset>(block.block(), pair, second);
}
template <Format F, Space S, u32 L>
const typename LaneBlock<F, S, L>::Lane& quants_of(const LaneBlock<F, S, L>& block) {
  return block.lane();
}

}  // namespace ptxgen::formats
