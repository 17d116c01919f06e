// A thread owns a row of weights and tile_m outputs of it. The activations of these lie in shared memory, a
// chunk of k at a time, and all threads of a warp read the same of them; each decodes its own weights, once
// for all.

#include "src/kernels/formats/held_header.h"
#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/schedules.h"
#include "src/kernels/parts/add_part.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/reduce.h"
#include "src/kernels/parts/stage.h"

namespace ptxgen::gemm {
namespace {

using parts::Bytes;

constexpr u32 kThreads = 128;
constexpr u32 kCtasPerSm =
    4;  // so 128 registers a thread; left to itself ptxas aims at more CTAs, and spills
constexpr u32 kChunkValues = 512;
constexpr u32 kDefaultRows = 8;
constexpr u32 kStagedBlock = 48;  // bytes of 32 int8 activations, whose q begins at a multiple of 16

// The bytes of a part: of f32 as many as registers have room for, since a thread keeps their values for all
// its rows of a; of int8, so much that a run lies under one scale.
template <class F>
constexpr u32 width(bool int8) {
  if (!int8) return F::kRuns == 4 ? 8 : 16;
  return F::kRuns == 4 || F::kRunStride == 16 ? 16 : 32;
}

template <class F, bool Int8>
class RowsKernel {
  static constexpr u32 W = width<F>(Int8);
  static constexpr FormatInfo kInfo = info(F::kFormat);
  // A piece of staged activations that a pointer counts in: a block of int8, or 16 bytes of f32.
  using Unit = Bytes<Int8 ? kStagedBlock : 16>;
  static constexpr std::size_t kUnitAlign = 16;
  static constexpr u32 kUnitValues = Int8 ? 32 : 4;

 public:
  RowsKernel(KernelBuilder& k, const Gemm& g, const Shape& shape)
      : k_(k),
        g_(g),
        rows_(shape.tile_m),
        m_(k.param(&Gemm::Args::m)),
        a_(k.param(&Gemm::Args::a)),
        tile_(tile_of_cta(k, shape, m_)),
        row_(tile_.first_n + k.tid_x()),
        staged_(at<Unit>(k.dynamic_shared<u32, 16>())) {}

  void build() {
    parts::launch_dependents(k_);
    parts::wait_for_predecessor(k_);
    std::vector<Var<f32>> sums;
    for (u32 i = 0; i < rows_; ++i) sums.push_back(k_.var<f32>(0.f));
    const auto weights =
        at<Bytes<kInfo.block_bytes>>(assume_aligned<kInfo.alignment>(k_.param(&Gemm::Args::weights)));
    const auto blocks = weights + cvt<u64>((min)(row_, g_.n - 1)) * u64{g_.k / kInfo.block_values};
    const auto add_chunk = [&](const Reg<u32>& chunk, u32 values) {
      k_.bar_sync(0);
      stage(chunk, values);
      k_.bar_sync(0);
      const auto first = blocks + chunk * (kChunkValues / kInfo.block_values);
      k_.for_(0u, values / kInfo.block_values, 1,
              [&](const Reg<u32>& block) { add_block(first + block, block, sums); });
    };
    const u32 whole = g_.k / kChunkValues, rest = g_.k % kChunkValues;
    k_.for_(0u, whole, 1, [&](const Reg<u32>& chunk) { add_chunk(chunk, kChunkValues); });
    if (rest) add_chunk(k_.constant<u32>(whole), rest);
    store(sums);
  }

 private:
  SharedPtr<Unit, kUnitAlign> staged_row(const Reg<u32>& row) const {
    return assume_aligned<kUnitAlign>(staged_ + row * (kChunkValues / kUnitValues));
  }

  // A piece of a chunk's activations: which row it is of, and the how manieth of that row.
  struct Piece {
    Reg<u32> row, index;
  };

  // use(piece, load(piece)) for each of so many pieces of every row. A thread's loads come before its first
  // use of one, so that their latencies overlap. `pieces` times rows must be a multiple of the threads.
  template <class Load, class Use>
  void for_each_piece(u32 pieces, Load&& load, Use&& use) const {
    std::vector<Piece> mine;
    std::vector<decltype(load(std::declval<const Piece&>()))> loaded;
    for (u32 i = 0; i < rows_ * pieces; i += kThreads) {
      const Reg<u32> item = k_.tid_x() + i;
      mine.push_back({item / pieces, item % pieces});
      loaded.push_back(load(mine.back()));
    }
    for (std::size_t i = 0; i < mine.size(); ++i) use(mine[i], loaded[i]);
  }

  GlobalPtr<const f32, 16> x_of(const Reg<u32>& row, const Reg<u32>& chunk) const {
    const Reg<u64> first = cvt<u64>((min)(tile_.first_m + row, m_ - 1u)) * u64{g_.k};
    return assume_aligned<16>(at<f32>(a_) + first + chunk * kChunkValues);
  }

  void stage_at_once(const Reg<u32>& chunk, u32 values) const {
    if constexpr (Int8) {
      const auto load = [&](const Piece& piece) {
        return parts::load_eight(x_of(piece.row, chunk), piece.index);
      };
      const auto use = [&](const Piece& piece, const std::array<Reg<f32>, 8>& x) {
        parts::stage_eight(k_, x, staged_row(piece.row), piece.index);
      };
      for_each_piece(values / 8, load, use);
    } else {
      const auto load = [&](const Piece& piece) {
        return ld_global_v4(at<f32>(at<Bytes<16>>(x_of(piece.row, chunk)) + piece.index));
      };
      const auto use = [&](const Piece& piece, const std::array<Reg<f32>, 4>& four) {
        st_shared_v4(at<f32>(staged_row(piece.row) + piece.index), four);
      };
      for_each_piece(values / 4, load, use);
    }
  }

  // Rows past the last are that one again; their sums are not kept.
  void stage(const Reg<u32>& chunk, u32 values) const {
    if (g_.a_type == Activations::kF32 && rows_ * (values / (Int8 ? 8 : 4)) % kThreads == 0)
      return stage_at_once(chunk, values);
    k_.for_(0u, rows_, 1, [&](const Reg<u32>& i) {
      const Reg<u64> row = cvt<u64>((min)(tile_.first_m + i, m_ - 1u));
      if (g_.a_type == Activations::kQ8_1) {
        const auto blocks =
            at<Bytes<sizeof(BlockQ8_1)>>(a_) + row * u64{g_.k / 32} + chunk * (kChunkValues / 32);
        const auto words = at<u32>(assume_aligned<4>(blocks));
        const auto target = at<u32>(staged_row(i));
        constexpr u32 kWords = sizeof(BlockQ8_1) / 4, kGap = (kStagedBlock - sizeof(BlockQ8_1)) / 4;
        k_.for_(k_.tid_x(), values / 32 * kWords, kThreads, [&](const Reg<u32>& word) {
          const Reg<u32> value = ld_global(words + word);
          const Reg<u32> gaps = (word + (kWords - 1)) / kWords;  // before it
          st_shared(assume_aligned<4>(target) + (word + gaps * kGap), value);
        });
        return;
      }
      const auto x = at<f32>(a_) + row * u64{g_.k} + chunk * kChunkValues;
      if constexpr (Int8) {
        parts::stage_q8_1(k_, assume_aligned<16>(x), staged_row(i), values, kThreads);
      } else {
        parts::stage_floats(k_, assume_aligned<16>(x), at<f32>(staged_row(i)), values, kThreads);
      }
    });
  }

  template <class Block>
  void add_block(const Block& weights, const Reg<u32>& block, std::vector<Var<f32>>& sums) const {
    const formats::HeldHeader<F, Block> held(weights);  // as many sectors as a part: no neighbour shares them
    k_.for_(0u, formats::parts_per_block<F>(W), 1, [&](const Reg<u32>& part) {
      const auto place = F::template place<W>(part);
      const auto raw = F::template load<W>(held, place);
      const formats::Part<W> decoded = F::decode(raw, place, formats::Packing::kExact);
      for (u32 i = 0; i < rows_; ++i) {
        // Else ptxas loads the activations of all rows first, for which there are not registers enough.
        if (i > 0) k_.bar_warp_sync(parts::kAllLanes);
        const SharedPtr<const Unit, kUnitAlign> x =
            staged_ + (i * (kChunkValues / kUnitValues)) + block * (kInfo.block_values / kUnitValues);
        if constexpr (Int8) {
          sums[i] = parts::add_part<F, W>(decoded, place.base, x, sums[i]);
        } else {
          sums[i] = parts::add_part<F, W>(decoded, place.base.index(), at<f32>(x), sums[i]);
        }
      }
    });
  }

  void store(const std::vector<Var<f32>>& sums) const {
    const auto c = k_.param(&Gemm::Args::c) + cvt<u64>(tile_.first_m) * u64{g_.n} + row_;
    for (u32 i = 0; i < rows_; ++i) {
      const Reg<f32> sum = sums[i];
      k_.if_(row_ < g_.n && tile_.first_m + i < m_, [&] { st_global(c + u64{i} * g_.n, sum); });
    }
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const u32 rows_;
  const Reg<u32> m_;
  const GlobalPtr<const std::byte, 16> a_;
  const Tile tile_;
  const Reg<u32> row_;
  const SharedPtr<Unit, kUnitAlign> staged_;
};

}  // namespace

Shape row_shape(const Gemm& g) {
  const u32 rows = g.tile_m ? g.tile_m : kDefaultRows;
  const u32 row_bytes =
      g.schedule == GemmSchedule::kDp4a ? kChunkValues / 32 * kStagedBlock : kChunkValues * 4;
  return {rows, kThreads, kThreads, u64{rows} * row_bytes};
}

void build_rows(KernelBuilder& k, const Gemm& g) {
  const Shape shape = row_shape(g);
  k.maxntid(shape.threads);
  k.minnctapersm(kCtasPerSm);
  formats::with_format(g.format, [&]<class F>(std::type_identity<F>) {
    if (g.schedule == GemmSchedule::kDp4a) {
      RowsKernel<F, true>(k, g, shape).build();
    } else {
      RowsKernel<F, false>(k, g, shape).build();
    }
  });
}

}  // namespace ptxgen::gemm
