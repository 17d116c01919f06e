// The rows of x are few columns of a matrix product on int8 tensor cores: mma.m16n8k32 (m16n8k16) multiplies
// a sub-block of 16 rows of weights by 8 rows of x, quantised to int8, and the exact integer sums are scaled
// in f32:
//
//   acc[row][m] += (d scale)[row] dx[m] I[row][m] + (m min)[row] (dx sum of xq)[m]
//
// Work.   CTA c takes rows [c n / ctas, (c + 1) n / ctas) in tiles of 16, and plan.columns rows of x. A
// tile's
//         columns are cut into spans, a block of 256 values or four of 32. Slice i of 16 is spans i, i + 16
//         ...; warp w of W has slices w, w + W ... A chunk, what a stage of the ring holds of each row, is a
//         multiple of W spans.
// Sums.   Those of the slices are added pairwise, slice i and i + 8, then i and i + 4 ...: each warp begins
//         with its own, leaves the sum in shared memory, and threads add those of the warps. So an output
//         depends on its row of weights and its row of x alone, not on the plan.
// Loads.  As in schedule `stream` (stream.cc), each lane of the producer warp copying a row; or, by
//         `mma_direct`, by the consumers from global memory.

#include "src/kernels/gemv/mma.h"

#include <numeric>

#include "src/kernels/formats/lane_block.h"
#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemv/mma_activations.h"
#include "src/kernels/gemv/producer.h"
#include "src/kernels/parts/per_thread.h"
#include "src/kernels/parts/reduce.h"
#include "src/kernels/parts/requires.h"

namespace ptxgen::gemv {
namespace {

using parts::Bytes;

// An accumulator that starts at these bits is, as a float, that plus the sum (q8_1.h).
constexpr s32 kStart = parts::kMagicBits;

// The sum of a power of two of values: halves are added until one is left.
Reg<f32> tree_sum(std::vector<Reg<f32>> values) {
  while (values.size() > 1) {
    const std::size_t half = values.size() / 2;
    for (std::size_t i = 0; i < half; ++i) values[i] = values[i] + values[i + half];
    values.resize(half, values[0]);
  }
  return values[0];
}

// small * factor, rounded once.
Reg<f32> scaled(const formats::Small& small, const Reg<f32>& factor) {
  // A power of two times factor is exact, and one for all scales of a block.
  if (small.bias == parts::kTwoTo23) return fma_rn(small.biased, factor, factor * -small.bias);
  return small.value() * factor;
}

template <class F>
class MmaKernel {
  using L = MmaLayout<F>;
  static constexpr u32 W = L::kWidth;
  static constexpr u32 kBlockBytes = info(F::kFormat).block_bytes;
  using Part = formats::Part<W>;
  using Sums = std::vector<std::vector<Var<f32>>>;  // [slice of the warp][group * 4 + C register]
  template <Space S>
  using BlockPtr = formats::BlockPtr<F::kFormat, S>;

 public:
  MmaKernel(KernelBuilder& k, const Mma& s, const MmaPointers& pointers,
            const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        s_(s),
        g_(mma_geometry(s)),
        pointers_(pointers),
        lane_(k.tid_x() & 31u),
        warp_(k.tid_x() >> 5),
        first_row_(k.ctaid_x() * g_.least_rows + (min)(k.ctaid_x(), s.n % s.plan.ctas)),
        rows_(rows_of_cta()),
        first_column_(k.ctaid_y() * s.mma.columns),
        columns_((min)(pointers.m - first_column_, s.mma.columns)),
        ring_(s.direct ? std::nullopt
                       : std::optional<parts::Ring>(std::in_place, k, shared, s.plan.stages, g_.stage_bytes)),
        activations_(
            k, s_, g_,
            assume_aligned<4>(pointers.x + cvt<u64>(first_column_) * activation_bytes(s.x_type, s.k)),
            columns_, assume_aligned<16>(shared + g_.ring_bytes)),
        partials_(assume_aligned<16>(shared + (g_.ring_bytes + g_.word_bytes + g_.entry_bytes))) {}

  void build() {
    if (!ring_) {
      parts::launch_dependents(k_);
      return consume();
    }
    k_.if_(warp_ == s_.mma.warps, [&] { begin(); });
    k_.bar_sync(0);
    k_.if_(
        warp_ == s_.mma.warps, [&] { produce(); }, [&] { consume(); });
  }

 private:
  Reg<u32> rows_of_cta() const {
    const u32 more = s_.n % s_.plan.ctas;
    if (more == 0) return k_.constant<u32>(g_.least_rows);
    return selp(k_.constant<u32>(g_.most_rows), k_.constant<u32>(g_.least_rows), k_.ctaid_x() < more);
  }
  Reg<u32> tiles() const {
    if (g_.tiles(g_.least_rows) == g_.tiles(g_.most_rows)) return k_.constant<u32>(g_.tiles(g_.most_rows));
    return (rows_ + (kMmaRows - 1)) / kMmaRows;
  }
  // Of a tile's rows, those that the CTA has.
  Reg<u32> rows_of_tile(const Reg<u32>& tile) const { return (min)(rows_ - tile * kMmaRows, kMmaRows); }

  // ---- The producer: a warp, of which lane r copies row r of each tile. What passes through the ring are
  // the chunks of all tiles.

  Producer producer() const {
    return {k_,
            *ring_,
            g_.tiles(g_.least_rows) * g_.chunks,
            g_.tiles(g_.most_rows) * g_.chunks,
            tiles() * g_.chunks,
            s_.plan.in_flight,
            s_.plan.trigger};
  }
  void begin() {
    const Producer order = producer();
    order.allow_next_at_once();
    k_.if_(lane_ == 0u, [&] { ring_->init(s_.mma.warps, kMmaRows); });
    k_.bar_warp_sync(parts::kAllLanes);
    k_.if_(lane_ < kMmaRows,
           [&] { order.begin([&](const Reg<u32>& item, const Reg<u32>& stage) { copy_row(item, stage); }); });
  }
  void produce() {
    k_.if_(lane_ < kMmaRows, [&] {
      producer().rest([&](const Reg<u32>& item, const Reg<u32>& stage) { copy_row(item, stage); });
    });
  }

  void copy_row(const Reg<u32>& item, const Reg<u32>& stage) {
    const Reg<u32> tile = item / g_.chunks;
    const Reg<u32> chunk = item % g_.chunks;
    const Reg<u32> row = tile * kMmaRows + lane_;
    const Pred exists = row < rows_;
    const Reg<u32> offset = chunk * g_.chunk_bytes;
    const Reg<u32> bytes = (min)(g_.row_bytes - offset, g_.chunk_bytes);
    const Reg<u64> begin = cvt<u64>(first_row_ + row) * u64{g_.row_bytes} + cvt<u64>(offset);
    const auto target = assume_aligned<16>(ring_->stage(stage) + lane_ * g_.pitch);
    k_.if_(
        exists,
        [&] {
          if (g_.whole_vectors) {
            const auto barrier = ring_->announce(stage, bytes);
            cp_async_bulk_shared_global(target, assume_aligned<16>(pointers_.weights + begin), bytes,
                                        barrier);
            return;
          }
          const RaggedCopy ragged(k_, u64{s_.n} * g_.row_bytes, begin, bytes);
          const auto weights_of = [&](u32) { return pointers_.weights; };
          const auto target_of = [&](u32) { return target; };
          ragged.store_tail(1, weights_of, target_of);
          const auto barrier = ring_->announce(stage, ragged.bytes());
          ragged.copy(1, weights_of, target_of, barrier);
        },
        [&] { ring_->announce(stage, 0u); });
  }

  // ---- The consumers: warps

  void consume() {
    std::vector<typename F::Place> places;
    for (u32 step = 0; step < L::kSteps; ++step) {
      places.push_back(F::template place<W>(L::kSteps == 1 ? lane_ & 3u : k_.constant<u32>(4 * step)));
    }
    const Reg<u32> end = tiles();
    std::optional<parts::Ring::Cursor> at_stage;
    if (ring_) at_stage.emplace(ring_->cursor());
    activations_.stage();
    k_.for_(0u, end, 1, [&](const Reg<u32>& tile) {
      // Rows past the CTA's last are that one again; their sums are not kept.
      const Reg<u32> last = rows_of_tile(tile) - 1u;
      const std::array<Reg<u32>, 2> rows = {(min)(lane_ >> 2, last), (min)((lane_ >> 2) + 8u, last)};
      Sums sums(kMmaSlices / s_.mma.warps);
      for (auto& of_slice : sums) {
        for (u32 i = 0; i < 4 * g_.groups; ++i) of_slice.push_back(k_.var<f32>(0.f));
      }
      if (!ring_) {
        const auto row_of = [&](u32 i) { return global_row(tile, rows[i]); };
        add_blocks(std::array{row_of(0), row_of(1)}, k_.constant<u32>(0), g_.row_blocks, 0, places, sums);
      } else {
        add_stages(tile, rows, *at_stage, places, sums);
      }
      combine(tile, sums);
    });
  }

  BlockPtr<Space::kGlobal> global_row(const Reg<u32>& tile, const Reg<u32>& row) const {
    const Reg<u64> begin = cvt<u64>(first_row_ + tile * kMmaRows + row) * u64{g_.row_bytes};
    return at<const Bytes<kBlockBytes>>(
        assume_aligned<BlockPtr<Space::kGlobal>::kAlign>(pointers_.weights + begin));
  }

  void add_stages(const Reg<u32>& tile, const std::array<Reg<u32>, 2>& rows, parts::Ring::Cursor& at_stage,
                  const std::vector<typename F::Place>& places, Sums& sums) {
    const auto offset_of = [&](u32 i) {
      const Reg<u32> offset = rows[i] * g_.pitch;
      if (g_.whole_vectors) return offset;
      return offset + ((first_row_ + tile * kMmaRows + rows[i]) * g_.row_bytes & 15u);
    };
    const std::array<Reg<u32>, 2> offsets = {offset_of(0), offset_of(1)};
    const auto add_stage = [&](const Reg<u32>& first_block, u32 blocks, u32 phase) {
      ring_->wait_full(at_stage);
      const auto row_of = [&](u32 i) {
        using Block = BlockPtr<Space::kShared>;
        return Block(at<Bytes<kBlockBytes>>(
            assume_aligned<Block::kAlign>(ring_->stage(at_stage.stage()) + offsets[i])));
      };
      add_blocks(std::array{row_of(0), row_of(1)}, first_block, blocks, phase, places, sums);
      ring_->release(at_stage, lane_);
      at_stage.advance();
    };
    // So many chunks begin with different slices.
    const u32 chunk_spans = g_.chunk_blocks / L::kSpanBlocks;
    const u32 period = kMmaSlices / std::gcd(chunk_spans, kMmaSlices);
    const u32 full = g_.row_blocks / g_.chunk_blocks, rest = g_.row_blocks % g_.chunk_blocks;
    const u32 looped = full / period * period;
    const auto add_full = [&](const Reg<u32>& first_chunk, u32 count) {
      for (u32 i = 0; i < count; ++i)
        add_stage((first_chunk + i) * g_.chunk_blocks, g_.chunk_blocks, i * chunk_spans % kMmaSlices);
    };
    if (looped == period) {
      add_full(k_.constant<u32>(0), period);
    } else {
      k_.for_(0u, looped, period, [&](const Reg<u32>& chunk) { add_full(chunk, period); });
    }
    add_full(k_.constant<u32>(looped), full - looped);
    if (rest) add_stage(k_.constant<u32>(full * g_.chunk_blocks), rest, full * chunk_spans % kMmaSlices);
  }

  // The warp's spans of `blocks` blocks, which begin at `rows` and are the row's from `first` on. The first
  // span is of slice `phase`, a multiple of the warps.
  template <class Row>
  void add_blocks(const std::array<Row, 2>& rows, const Reg<u32>& first, u32 blocks, u32 phase,
                  const std::vector<typename F::Place>& places, Sums& sums) const {
    const u32 warps = s_.mma.warps, own = kMmaSlices / warps;
    // The `turn`-th span of the warp.
    const auto add_span = [&](const Reg<u32>& span, u32 turn, u32 count) {
      const Reg<u32> block = span * L::kSpanBlocks;
      const auto x = activations_.block(first + block, lane_);
      const std::array<Row, 2> at_block = {rows[0] + block, rows[1] + block};
      for (u32 b = 0; b < count; ++b) {
        add_block(std::array<Row, 2>{at_block[0] + b, at_block[1] + b}, x, b, places,
                  sums[(phase / warps + turn) % own]);
      }
    };
    const auto add_all_slices = [&](const Reg<u32>& first_span) {
      for (u32 turn = 0; turn < own; ++turn)
        add_span(first_span + turn * warps + warp_, turn, L::kSpanBlocks);
    };
    const u32 spans = blocks / L::kSpanBlocks, rest = blocks % L::kSpanBlocks;
    const u32 looped = spans / kMmaSlices * kMmaSlices;
    if (looped == kMmaSlices) {
      add_all_slices(k_.constant<u32>(0));
    } else {
      k_.for_(0u, looped, kMmaSlices, add_all_slices);
    }
    for (u32 turn = 0; turn * warps < spans - looped; ++turn) {
      const u32 first_span = looped + turn * warps;
      const auto add = [&] { add_span(warp_ + first_span, turn, L::kSpanBlocks); };
      if (first_span + warps <= spans) {
        add();
      } else {
        k_.if_(warp_ < spans - first_span, add);
      }
    }
    if (rest) {
      k_.if_(warp_ == spans % warps, [&] { add_span(k_.constant<u32>(spans), spans / warps, rest); });
    }
  }

  // One block, block `index` from x on.
  template <Space S>
  void add_block(const std::array<BlockPtr<S>, 2>& blocks, const typename MmaActivations<F>::Block& x,
                 u32 index, const std::vector<typename F::Place>& places, std::vector<Var<f32>>& sums) const {
    if constexpr (L::kSteps == 1) {
      add_step(blocks[0], blocks[1], places[0], x, index, sums);
    } else {
      using Lane = formats::LaneBlock<F::kFormat, S, W>;
      const Reg<u32> thread = lane_ & 3u;
      const Lane low(blocks[0], thread), high(blocks[1], thread);
      for (u32 step = 0; step < L::kSteps; ++step)
        add_step(low, high, places[step], x, index * L::kSteps + step, sums);
    }
  }

  template <class Block>
  void add_step(const Block& low, const Block& high, const typename F::Place& place,
                const typename MmaActivations<F>::Block& x, u32 step, std::vector<Var<f32>>& sums) const {
    const auto raw_low = F::template load<W>(low, place);
    const auto raw_high = F::template load<W>(high, place);
    const Part part_low = F::decode(raw_low, place, L::kPacking);
    const Part part_high = F::decode(raw_high, place, L::kPacking);
    for (u32 group = 0; group < g_.groups; ++group) {
      const u32 of_group = step * g_.groups + group;
      const std::vector<Reg<u32>> words = MmaActivations<F>::words(x, of_group);
      for (u32 p = 0; p < L::kProducts; ++p) {
        const auto entries = MmaActivations<F>::entries(x, of_group, p);
        const auto integers = multiply(part_low, part_high, p, words, entries);
        for (u32 i = 0; i < 4; ++i)
          add_product(i < 2 ? part_low : part_high, p, integers[i], entries, i % 2, sums[4 * group + i]);
      }
    }
  }

  // The sums of a product, in an mma's C registers, plus kStart.
  std::array<Reg<s32>, 4> multiply(const Part& low, const Part& high, u32 p,
                                   const std::vector<Reg<u32>>& words,
                                   const typename MmaActivations<F>::Entries& entries) const {
    using Weight = std::conditional_t<F::kSigned, s8, u8>;
    const auto start = [&](u32 column) {
      return F::kBias ? bitcast<s32>(entries.sum[column]) : k_.constant<s32>(kStart);
    };
    const Fragment<Matrix::kC, s32, 16, 8> c({start(0), start(1), start(0), start(1)});
    const auto& low_q = low.runs[p].q;
    const auto& high_q = high.runs[p].q;
    if constexpr (L::kSixteen) {
      const Fragment<Matrix::kA, Weight, 16, 16> a({low_q[0], high_q[0]});
      const Fragment<Matrix::kB, s8, 16, 8> b({words[p]});
      return mma(a, b, c).registers();
    } else {
      const auto& low_next = L::kPaired ? low.runs[p + 1].q[0] : low_q[W / 4 - 1];
      const auto& high_next = L::kPaired ? high.runs[p + 1].q[0] : high_q[W / 4 - 1];
      const Fragment<Matrix::kA, Weight, 16, 32> a({low_q[0], high_q[0], low_next, high_next});
      const Fragment<Matrix::kB, s8, 32, 8> b({words[2 * p], words[2 * p + 1]});
      return mma(a, b, c).registers();
    }
  }

  void add_product(const Part& part, u32 p, const Reg<s32>& integer,
                   const typename MmaActivations<F>::Entries& entries, u32 column, Var<f32>& sum) const {
    const formats::Run<W>& run = part.runs[p];
    const Reg<f32> scale = run.scale ? scaled(*run.scale, part.d) : part.d;
    const Reg<f32> factor = scale * bitcast<f32>(entries.d[column]);
    const Reg<f32> products = fma_rn(factor, bitcast<f32>(integer) - parts::kMagicFloat, sum);
    if (!part.m) {
      sum = products;
      return;
    }
    const Reg<f32> min = run.min ? scaled(*run.min, *part.m) : *part.m;
    sum = fma_rn(min, bitcast<f32>(entries.sum[column]), products);
  }

  // ---- Sums

  // Adds those of all warps and stores them. Two tiles' lie in shared memory: when all warps have left theirs
  // of one, all have read those of the one before it.
  void combine(const Reg<u32>& tile, const Sums& sums) const {
    const auto buffer = at<f32>(assume_aligned<16>(partials_ + (tile & 1u) * g_.partial_bytes));
    constexpr u32 kGroupFloats = kMmaRows * kMmaColumns;
    const auto of_warp = [&](u32 i) {
      std::vector<Reg<f32>> of_slices;
      for (const auto& of_slice : sums) of_slices.emplace_back(of_slice[i]);
      return tree_sum(of_slices);
    };
    for (u32 group = 0; group < g_.groups; ++group) {
      const Reg<u32> index = (warp_ * g_.groups + group) * kGroupFloats + lane_ * 4u;
      const std::array<Reg<f32>, 4> values = {of_warp(4 * group), of_warp(4 * group + 1),
                                              of_warp(4 * group + 2), of_warp(4 * group + 3)};
      st_shared_v4(assume_aligned<16>(buffer + index), values);
    }
    k_.bar_sync(1, g_.threads);
    const u32 outputs = g_.groups * kGroupFloats;
    parts::for_each_of(k_, outputs, outputs, g_.threads, [&](const Reg<u32>& i) {
      std::vector<Reg<f32>> of_warps;
      for (u32 warp = 0; warp < s_.mma.warps; ++warp)
        of_warps.push_back(ld_shared(buffer + i + warp * outputs));
      const Reg<f32> sum = tree_sum(of_warps);
      // Output i is register i % 4 of lane i / 4 % 32.
      const Reg<u32> row = (i >> 4 & 7u) + (i >> 1 & 1u) * 8u;
      const Reg<u32> column = i / kGroupFloats * kMmaColumns + (i >> 2 & 3u) * 2u + (i & 1u);
      k_.if_(row < rows_of_tile(tile) && column < columns_, [&] {
        const Reg<u64> output =
            cvt<u64>(first_column_ + column) * u64{s_.n} + cvt<u64>(first_row_ + tile * kMmaRows + row);
        st_global(pointers_.y + output, sum);
      });
    });
  }

  KernelBuilder& k_;
  const Mma& s_;
  const MmaGeometry g_;
  const MmaPointers& pointers_;
  const Reg<u32> lane_, warp_, first_row_, rows_, first_column_, columns_;
  const std::optional<parts::Ring> ring_;  // none: weights come from global memory
  const MmaActivations<F> activations_;
  const SharedPtr<std::byte, 16> partials_;
};

}  // namespace

void build_mma(KernelBuilder& k, const Mma& s, const MmaPointers& pointers) {
  constexpr Target kAmpere = {80, false};  // mma of int8 by 16 rows
  if (!parts::requires_target(k, s.direct ? "mma_direct" : "mma", s.direct ? kAmpere : kHopper)) return;
  k.maxntid(static_cast<u32>(mma_shape(s, 1).block.x));
  if (s.plan.ctas_per_sm) k.minnctapersm(s.plan.ctas_per_sm);
  const SharedPtr<std::byte, 16> shared = at<std::byte>(k.dynamic_shared<u32, 128>());
  formats::with_format(s.format,
                       [&]<class F>(std::type_identity<F>) { MmaKernel<F>(k, s, pointers, shared).build(); });
}

}  // namespace ptxgen::gemv
