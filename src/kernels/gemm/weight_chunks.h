// Rows of weights in shared memory as they are stored, up to four chunks of 256 values at a time, and the
// registers of an A operand from them (tensor_order.h).
#pragma once

#include <vector>

#include "ptxgen/tensor_map.h"
#include "src/kernels/formats/format.h"
#include "src/kernels/gemm/row_units.h"
#include "src/kernels/gemm/tensor_order.h"

namespace ptxgen::gemm {

inline constexpr u32 kChunkValues = 256, kChunkSlabs = kChunkValues / kSlabValues;
inline constexpr u32 kPiece = 16;  // bytes of an asynchronous copy

// Where a tensor copy has measured faster on an H200 than copies of pieces. Wider slabs keep busy what copies
// boxes too.
inline bool boxes_pay(Format format, u32 tile_m) {
  switch (format) {
    case Format::kQ4_0:
    case Format::kQ8_0:
    case Format::kQ4_K: return tile_m <= 128;
    default: return false;
  }
}

// How the chunks of a row that share a stage lie in global and in shared memory.
struct ChunkLayout {
  u32 row_bytes, chunk_bytes;
  bool whole_pieces;  // every chunk begins at a multiple of 16 bytes
  bool boxes;         // a tensor copy brings a stage, without room between rows
  u32 pieces;         // that a stage's part of a row touches
  u32 pitch;          // from row to row in shared memory

  explicit ChunkLayout(const Gemm& g, u32 chunks = 1) {
    const FormatInfo& f = info(g.format);
    row_bytes = g.k / f.block_values * f.block_bytes;
    chunk_bytes = kChunkValues / f.block_values * f.block_bytes;
    whole_pieces = chunk_bytes % kPiece == 0 && row_bytes % kPiece == 0;
    boxes = whole_pieces && g.schedule == GemmSchedule::kWgmma && boxes_pay(g.format, g.tile_m);
    // Blocks begin at even addresses, so one more piece where they may begin anywhere.
    pieces = (chunks * chunk_bytes + (whole_pieces ? 0 : kPiece - 2) + kPiece - 1) / kPiece;
    // Of an odd number rows begin in different banks; but what a box has beyond its pieces costs more.
    pitch = (boxes ? pieces : pieces | 1) * kPiece;
  }

  // Whether a tensor copy takes so many words of a row, if it is one.
  bool fits_box() const {
    constexpr u32 kMostWords = 256;
    return !boxes || pitch / u32{sizeof(u32)} <= kMostWords;
  }
  // `n` rows, in boxes of `rows` of a stage.
  TiledTensor tensor(u64 weights, u32 n, u32 rows) const {
    return {.type = Type::kU32,
            .address = weights,
            .rank = 2,
            .extents = {row_bytes / sizeof(u32), n},
            .strides = {row_bytes},
            .box = {pitch / u32{sizeof(u32)}, rows},
            .l2_promotion = 128};
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
    std::vector<typename F::template Raw<W>> raws;
    std::vector<UnitWeights<F>> weights;
  };

  // Of the tile whose first row is `first_n`, `chunks` to a stage.
  WeightChunks(KernelBuilder& k, const Gemm& g, const GlobalPtr<const std::byte, 16>& weights,
               const Reg<u32>& first_n, const Reg<u32>& lane, u32 chunks = 1)
      : k_(k),
        g_(g),
        layout_(g, chunks),
        weights_(weights),
        first_n_(first_n),
        place_(F::template place<W>(lane & 3u)),
        lane_row_(lane >> 2) {}

  // Starts copies of `values` values of `rows` rows from chunk `chunk` on, by thread `thread` of `threads`:
  // the 16-byte pieces that they touch, as far as the matrix reaches.
  void copy(const SharedPtr<std::byte, 16>& stage, const Reg<u32>& chunk, u32 values, u32 rows,
            const Reg<u32>& thread, u32 threads) const {
    if (layout_.row_bytes % kPiece == 0) {
      copy_columns(stage, chunk, values, rows, thread, threads);
    } else {
      copy_anywhere(stage, chunk, values, rows, thread, threads);
    }
  }

  // The same by one thread, for a whole stage: the box of ChunkLayout::tensor() that begins with the chunk.
  // What is outside the matrix becomes zeros.
  void copy_box(const SharedPtr<std::byte, 128>& stage, const Reg<u32>& chunk, const TensorMapPtr& tensor,
                const SharedPtr<MBarrier>& full) const {
    const Reg<u32> word = chunk * (layout_.chunk_bytes / u32{sizeof(u32)});
    const std::array<Reg<s32>, 2> begin = {bitcast<s32>(word), bitcast<s32>(first_n_)};
    cp_async_bulk_tensor_2d_shared_global(stage, tensor, begin, full);
  }

  // Block `block` of chunk `chunk`, which is number `in_stage` of its stage, in rows lane / 4, lane / 4 + 8
  // ... from `first` of the tile on, a row for each unit.
  Lane load(const SharedPtr<std::byte, 16>& stage, const Reg<u32>& chunk, const Reg<u32>& in_stage, u32 block,
            const Reg<u32>& first, RowUnits<F>& units, const std::optional<Pred>& begins) const {
    Lane lane;
    std::vector<formats::Part<W>> parts;
    const Reg<u32> own = first + lane_row_;
    // Where the chunk begins in its stage's part of the row.
    const auto within = [&](const Reg<u32>& begin) { return begin & (kPiece - 1); };
    const Reg<u32> of_chunk = (chunk - in_stage) * layout_.chunk_bytes;
    Reg<u32> offset = own * layout_.pitch + in_stage * layout_.chunk_bytes + block * kInfo.block_bytes;
    const bool rows_alike = layout_.row_bytes % kPiece == 0;
    if (!layout_.whole_pieces && rows_alike) offset = offset + within(of_chunk);
    const auto of_first = stage + offset;
    for (u32 r = 0; r < units.rows(); ++r) {
      auto of_row = of_first + 8 * r * layout_.pitch;
      if (!rows_alike) of_row = of_row + within(row_of(own + 8 * r) * layout_.row_bytes + of_chunk);
      const Block at_row = at<const parts::Bytes<kInfo.block_bytes>>(assume_aligned<kBlockAlign>(of_row));
      lane.raws.push_back(F::template load<W>(at_row, place_));
      parts.push_back(decode(lane.raws.back()));
    }
    units.see(parts, block == 0 ? begins : std::nullopt);
    for (u32 r = 0; r < units.rows(); ++r) lane.weights.emplace_back(k_, decode(lane.raws[r]), units.unit(r));
    return lane;
  }

  // The registers of A for 16 rows, which are rows 2 `tile` and 2 `tile` + 1 of the lane's, and step `step`
  // of the block.
  std::array<Reg<f16x2>, 4> registers(const Lane& lane, u32 tile, u32 step) const {
    const auto low = four(lane, 2 * tile, step), high = four(lane, 2 * tile + 1, step);
    return {low[0], high[0], low[1], high[1]};
  }

 private:
  static u32 bytes_of(u32 values) { return values / kInfo.block_values * kInfo.block_bytes; }

  // All rows begin alike: a thread has one piece of every so many rows, at one distance from the next. Rows
  // past the last become zeros.
  void copy_columns(const SharedPtr<std::byte, 16>& stage, const Reg<u32>& chunk, u32 values, u32 rows,
                    const Reg<u32>& thread, u32 threads) const {
    const u32 bytes = bytes_of(values);
    const u32 pieces = layout_.whole_pieces ? bytes / kPiece : layout_.pieces;
    const u32 rows_at_once = threads / pieces;
    const Reg<u32> begin = chunk * layout_.chunk_bytes;
    const Reg<u32> row = thread / pieces;
    const Reg<u32> offset = (layout_.whole_pieces ? begin : begin & ~(kPiece - 1)) + thread % pieces * kPiece;
    Pred takes_part = thread < rows_at_once * pieces;
    if (!layout_.whole_pieces) takes_part = takes_part && offset < begin + bytes;
    const auto from = weights_ + (cvt<u64>(first_n_ + row) * u64{layout_.row_bytes} + cvt<u64>(offset));
    const auto to = stage + (row * layout_.pitch + thread % pieces * kPiece);
    k_.if_(takes_part, [&] {
      for (u32 first = 0; first < rows; first += rows_at_once) {
        const auto target = assume_aligned<16>(to + first * layout_.pitch);
        const auto source = assume_aligned<16>(from + u64{first} * layout_.row_bytes);
        const auto copy_piece = [&] {
          if (g_.n % rows == 0) return cp_async_cg_16(target, source);
          const Pred exists = first_n_ + row + first < g_.n;
          cp_async_cg_16(target, source, selp(k_.constant<u32>(kPiece), k_.constant<u32>(0), exists));
        };
        if (first + rows_at_once <= rows) {
          copy_piece();
        } else {
          k_.if_(row + first < rows, copy_piece);
        }
      }
    });
  }

  // Rows past the last are that one again; their sums are not kept.
  void copy_anywhere(const SharedPtr<std::byte, 16>& stage, const Reg<u32>& chunk, u32 values, u32 rows,
                     const Reg<u32>& thread, u32 threads) const {
    const u32 bytes = bytes_of(values);
    k_.for_(thread, rows * layout_.pieces, threads, [&](const Reg<u32>& index) {
      const Reg<u32> row = index / layout_.pieces;
      const Reg<u32> piece = index % layout_.pieces;
      const Reg<u64> begin =
          cvt<u64>(row_of(row)) * u64{layout_.row_bytes} + cvt<u64>(chunk) * u64{layout_.chunk_bytes};
      const auto target = assume_aligned<16>(stage + (row * layout_.pitch + piece * kPiece));
      const Reg<u64> from = (begin & ~u64{kPiece - 1}) + cvt<u64>(piece * kPiece);
      k_.if_(from < begin + u64{bytes}, [&] {
        const Reg<u64> left = u64{g_.n} * layout_.row_bytes - from;
        cp_async_cg_16(target, assume_aligned<16>(weights_ + from), cvt<u32>((min)(left, u64{kPiece})));
      });
    });
  }

  Reg<u32> row_of(const Reg<u32>& row) const { return (min)(first_n_ + row, g_.n - 1); }
  std::array<Reg<f16x2>, 2> four(const Lane& lane, u32 row, u32 step) const {
    const u32 run = kOf.run(step);
    return lane.weights[row].four(run, decode(lane.raws[row]).runs[run].q[kOf.word(step)]);
  }
  // Written anew in each gap between effects, so that no weight waits in a register.
  formats::Part<W> decode(const typename F::template Raw<W>& raw) const {
    return F::decode(raw, place_, formats::Packing::kUnmasked);
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const ChunkLayout layout_;
  const GlobalPtr<const std::byte, 16> weights_;
  const Reg<u32> first_n_;
  const typename F::Place place_;
  const Reg<u32> lane_row_;
};

}  // namespace ptxgen::gemm
