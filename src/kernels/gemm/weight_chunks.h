// Rows of weights in shared memory as they are stored, a chunk of 256 values at a time, and the registers of
// an A operand from them (tensor_order.h).
#pragma once

#include <vector>

#include "src/kernels/formats/format.h"
#include "src/kernels/gemm/half_weights.h"
#include "src/kernels/gemm/tensor_order.h"

namespace ptxgen::gemm {

inline constexpr u32 kChunkValues = 256, kChunkSlabs = kChunkValues / kSlabValues;
inline constexpr u32 kPiece = 16;  // bytes of an asynchronous copy

// How a chunk of a row lies in global and in shared memory.
struct ChunkLayout {
  u32 row_bytes, chunk_bytes;
  bool whole_pieces;  // every chunk begins at a multiple of 16 bytes
  u32 pieces;         // that a chunk touches
  u32 pitch;          // from row to row in shared memory

  ChunkLayout(Format format, u32 k) {
    const FormatInfo& f = info(format);
    row_bytes = k / f.block_values * f.block_bytes;
    chunk_bytes = kChunkValues / f.block_values * f.block_bytes;
    whole_pieces = chunk_bytes % kPiece == 0 && row_bytes % kPiece == 0;
    // Blocks begin at even addresses, so one more piece where they may begin anywhere.
    pieces = (chunk_bytes + (whole_pieces ? 0 : kPiece - 2) + kPiece - 1) / kPiece;
    pitch = (pieces | 1) * kPiece;  // an odd number, so that rows begin in different banks
  }
};

template <class F>
class WeightChunks {
  static constexpr FormatInfo kInfo = info(F::kFormat);
  static constexpr TensorOrder kOf = kOrder<F>;
  static constexpr u32 W = kOf.lane_bytes();
  static constexpr std::size_t kBlockAlign = kInfo.block_bytes % kPiece == 0 ? kPiece : kInfo.alignment;
  using Block = SharedPtr<const parts::Bytes<kInfo.block_bytes>, kBlockAlign>;

 public:
  static constexpr bool kWholeChunk = kOf.block_values == kChunkValues;  // a chunk is one block

  // What a lane has of a block in each of its rows.
  struct Lane {
    PairSelectors pairs;
    std::vector<typename F::template Raw<W>> raws;
    std::vector<HalfScales<F>> scales;
  };

  // Of the tile whose first row is `first_n`.
  WeightChunks(KernelBuilder& k, const Gemm& g, const GlobalPtr<const std::byte, 16>& weights,
               const Reg<u32>& first_n, const Reg<u32>& lane)
      : k_(k),
        g_(g),
        layout_(g.format, g.k),
        weights_(weights),
        first_n_(first_n),
        lane_(lane),
        pairs_(k.shared<u32, 8>(2 * 32)),
        place_(F::template place<W>(lane & 3u)),
        lane_row_(lane >> 2) {}

  // By the first warp, before a barrier of the CTA and the first load(). Selectors come from memory, each
  // lane its own, because an assembler keeps what is the same in all lanes in uniform registers, and copies
  // it before each use: an instruction for every two weights.
  void init() const {
    st_shared_v2(pairs_of_lane(), {k_.constant<u32>(kPairSelectors[0]), k_.constant<u32>(kPairSelectors[1])});
  }

  // Starts copies of `values` values of a chunk of `rows` rows, by thread `thread` of `threads`: the 16-byte
  // pieces that they touch, as far as the matrix reaches. Rows past the last are that one again; their sums
  // are not kept.
  void copy(const SharedPtr<std::byte, 16>& stage, const Reg<u32>& chunk, u32 values, u32 rows,
            const Reg<u32>& thread, u32 threads) const {
    const u32 bytes = values / kInfo.block_values * kInfo.block_bytes;
    const u32 pieces = layout_.whole_pieces ? bytes / kPiece : layout_.pieces;
    k_.for_(thread, rows * pieces, threads, [&](const Reg<u32>& index) {
      const Reg<u32> row = index / pieces;
      const Reg<u32> piece = index % pieces;
      const Reg<u64> begin =
          cvt<u64>(row_of(row)) * u64{layout_.row_bytes} + cvt<u64>(chunk) * u64{layout_.chunk_bytes};
      const auto target = assume_aligned<16>(stage + (row * layout_.pitch + piece * kPiece));
      if (layout_.whole_pieces) {
        const Reg<u64> from = begin + cvt<u64>(piece * kPiece);
        cp_async_cg_16(target, assume_aligned<16>(weights_ + from));
        return;
      }
      const Reg<u64> from = (begin & ~u64{kPiece - 1}) + cvt<u64>(piece * kPiece);
      k_.if_(from < begin + u64{bytes}, [&] {
        const Reg<u64> left = u64{g_.n} * layout_.row_bytes - from;
        cp_async_cg_16(target, assume_aligned<16>(weights_ + from), cvt<u32>((min)(left, u64{kPiece})));
      });
    });
  }

  // Block `block` of a chunk, in rows lane / 4, lane / 4 + 8 ... (`rows` of them) from `first` of the tile
  // on.
  Lane load(const SharedPtr<std::byte, 16>& stage, const Reg<u32>& chunk, const Reg<u32>& block,
            const Reg<u32>& first, u32 rows) const {
    Lane lane{ld_shared_v2(pairs_of_lane()), {}, {}};
    for (u32 r = 0; r < rows; ++r) {
      const Reg<u32> row = first + lane_row_ + 8 * r;
      Reg<u32> offset = row * layout_.pitch + block * kInfo.block_bytes;
      if (!layout_.whole_pieces) {
        const Reg<u32> begin = row_of(row) * layout_.row_bytes + chunk * layout_.chunk_bytes;
        offset = offset + (begin & (kPiece - 1));
      }
      const Block at_row =
          at<const parts::Bytes<kInfo.block_bytes>>(assume_aligned<kBlockAlign>(stage + offset));
      lane.raws.push_back(F::template load<W>(at_row, place_));
      lane.scales.emplace_back(k_, F::decode(lane.raws.back(), place_, formats::Packing::kInPlace));
    }
    return lane;
  }

  // The registers of A for 16 rows, which are rows 2 `tile` and 2 `tile` + 1 of the lane's, and step `step`
  // of the block.
  std::array<Reg<f16x2>, 4> registers(const Lane& lane, u32 tile, u32 step) const {
    const auto low = four(lane, 2 * tile, step), high = four(lane, 2 * tile + 1, step);
    return {low[0], high[0], low[1], high[1]};
  }

 private:
  SharedPtr<u32, 8> pairs_of_lane() const { return assume_aligned<8>(pairs_ + lane_ * 2u); }
  Reg<u32> row_of(const Reg<u32>& row) const { return (min)(first_n_ + row, g_.n - 1); }
  std::array<Reg<f16x2>, 2> four(const Lane& lane, u32 row, u32 step) const {
    const auto part = F::decode(lane.raws[row], place_, formats::Packing::kInPlace);
    return lane.scales[row].four(kOf.run(step), part.runs[kOf.run(step)].q[kOf.word(step)], lane.pairs);
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const ChunkLayout layout_;
  const GlobalPtr<const std::byte, 16> weights_;
  const Reg<u32> first_n_;
  const Reg<u32> lane_;
  const SharedPtr<u32, 8> pairs_;
  const typename F::Place place_;
  const Reg<u32> lane_row_;
};

}  // namespace ptxgen::gemm
