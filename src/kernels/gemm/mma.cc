// The f16 tensor cores by mma.m16n8k16, with weights as A and activations as B: a lane's registers of A are
// its own bytes of the blocks of two rows (tensor_order.h), so weights pass through shared memory as they
// are, and are decoded in registers.
//
// Work.     A CTA has tile_n rows of weights and tile_m rows of a; a warp 32 of the one and up to 64 of the
//           other, all of k, which it walks along in slabs of 64 values.
// Pipeline. Weights come in chunks of 256 values, two in shared memory; activations in slabs, four. Before
//           slab q is multiplied, slab q + 3 starts on its way, and with the first slab of a chunk the next
//           chunk. Each slab has one group of asynchronous copies, so all but the last two groups have landed
//           when slab q begins; the barrier after that wait also says that slab q - 1 is no longer read,
//           whose place slab q + 3 takes.
// Sums.     In the order of k. An output depends on nothing but its two rows.

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/half_weights.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/gemm/schedules.h"
#include "src/kernels/gemm/stage.h"
#include "src/kernels/parts/dependence.h"

namespace ptxgen::gemm {
namespace {

using parts::Bytes;

constexpr u32 kChunkValues = 256, kChunkSlabs = kChunkValues / kSlabValues;
constexpr u32 kChunks = 2, kSlabs = kChunkSlabs;  // in shared memory
constexpr u32 kAhead = kSlabs - 1;                // slabs on their way
constexpr u32 kWarpRows = 32;                     // of weights
constexpr u32 kMostWarpColumns = 64;              // rows of a
constexpr u32 kColumns = 8;                       // of a multiplication
constexpr u32 kPiece = 16;                        // bytes of an asynchronous copy

struct Geometry {
  u32 tile_m, tile_n;
  u32 warps_n, columns;  // warps along the weights; rows of a that a warp has
  u32 row_bytes;         // of weights
  u32 chunk_blocks, chunk_bytes;
  bool whole_pieces;            // every chunk begins at a multiple of 16 bytes
  u32 pieces, pitch;            // of a row's chunk in shared memory
  u32 chunk_stage, slab_stage;  // bytes
  u32 shared_bytes;

  u32 threads() const { return 32 * warps_n * (tile_m / columns); }
};

Geometry geometry_of(const Gemm& g) {
  const FormatInfo& f = info(g.format);
  Geometry s;
  s.tile_m = g.tile_m ? g.tile_m : 64;
  s.tile_n = g.tile_n ? g.tile_n : 128;
  s.warps_n = s.tile_n / kWarpRows;
  s.columns = std::min(s.tile_m, kMostWarpColumns);
  s.row_bytes = g.k / f.block_values * f.block_bytes;
  s.chunk_blocks = kChunkValues / f.block_values;
  s.chunk_bytes = s.chunk_blocks * f.block_bytes;
  s.whole_pieces = s.chunk_bytes % kPiece == 0 && s.row_bytes % kPiece == 0;
  // A chunk that begins anywhere touches a piece more.
  s.pieces = (s.chunk_bytes + (s.whole_pieces ? 0 : kPiece - 2) + kPiece - 1) / kPiece;
  s.pitch = (s.pieces | 1) * kPiece;  // an odd number, so that rows begin in different banks
  s.chunk_stage = s.tile_n * s.pitch;
  s.slab_stage = s.tile_m / kSlabGroupRows * kGroupBytes;
  s.shared_bytes = kChunks * s.chunk_stage + kSlabs * s.slab_stage +
                   (g.a_type == Activations::kF32 ? RowScales::bytes(s.tile_m) : 0);
  return s;
}

template <class F>
class MmaKernel {
  static constexpr FormatInfo kInfo = info(F::kFormat);
  static constexpr TensorOrder kOf = kOrder<F>;
  static constexpr u32 W = kOf.lane_bytes();
  static constexpr bool kWholeChunk = kOf.block_values == kChunkValues;  // a chunk is one block
  static constexpr std::size_t kBlockAlign = kInfo.block_bytes % kPiece == 0 ? kPiece : kInfo.alignment;
  static constexpr u32 kRowsOfLane = kWarpRows / 8, kTiles = kWarpRows / 16;
  using Block = SharedPtr<const Bytes<kInfo.block_bytes>, kBlockAlign>;
  using Raw = typename F::template Raw<W>;
  using A = Fragment<Matrix::kA, f16, 16, 16>;
  using B = Fragment<Matrix::kB, f16, 16, 8>;
  using Sums = std::vector<std::vector<Accumulator<f32, 16, 8>>>;  // [16 rows of weights][8 rows of a]

  // What a lane has of a block in each of its rows: rows lane / 4 + 8 r of the warp's.
  struct Weights {
    std::vector<Raw> raws;
    std::vector<HalfScales<F>> scales;
  };

 public:
  MmaKernel(KernelBuilder& k, const Gemm& g, const Shape& shape, const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        g_(g),
        s_(geometry_of(g)),
        m_(k.param(&Gemm::Args::m)),
        weights_(k.param(&Gemm::Args::weights)),
        a_(k.param(&Gemm::Args::a)),
        tile_(tile_of_cta(k, shape, m_)),
        lane_(k.tid_x() & 31u),
        warp_n_((k.tid_x() >> 5) % s_.warps_n),
        warp_m_((k.tid_x() >> 5) / s_.warps_n),
        place_(F::template place<W>(lane_ & 3u)),
        chunks_(shared),
        slabs_(assume_aligned<16>(shared + kChunks * s_.chunk_stage)),
        scales_(k, at<f32>(assume_aligned<16>(slabs_ + kSlabs * s_.slab_stage)), s_.tile_m) {}

  void build() {
    parts::launch_dependents(k_);
    copy_chunk(k_.constant<u32>(0), g_.k < kChunkValues ? g_.k : kChunkValues);
    parts::wait_for_predecessor(k_);
    if (!staged()) {
      scales_.find(g_.k, s_.threads(), [&](const Reg<u32>& i) { return row_of_a(i); });
      k_.bar_sync(0);
    }
    for (u32 slab = 0; slab < kAhead; ++slab) {
      if (slab < slabs()) fill_slab(k_.constant<u32>(slab), slab);
      k_.cp_async_commit_group();
    }
    Sums sums(kTiles);
    for (auto& of_tile : sums) {
      for (u32 i = 0; i < s_.columns / kColumns; ++i) of_tile.emplace_back(k_);
    }
    const u32 whole = g_.k / kChunkValues, rest = g_.k % kChunkValues;
    k_.for_(0u, whole, 1, [&](const Reg<u32>& chunk) { add_chunk(chunk, kChunkValues, sums); });
    if (rest) add_chunk(k_.constant<u32>(whole), rest, sums);
    store(sums);
  }

 private:
  bool staged() const { return g_.a_type == Activations::kF16; }
  u32 slabs() const { return static_cast<u32>(staged_f16_slabs(g_.k)); }

  // ---- Copies into shared memory, by all threads

  SharedPtr<std::byte, 16> chunk_stage(const Reg<u32>& chunk) const {
    return assume_aligned<16>(chunks_ + chunk % kChunks * s_.chunk_stage);
  }
  // Rows past the last are that one again; their sums are not kept.
  Reg<u32> row_of_weights(const Reg<u32>& row) const { return (min)(tile_.first_n + row, g_.n - 1); }

  // A chunk of `values` of all rows: the 16-byte pieces that it touches, as far as the matrix reaches.
  void copy_chunk(const Reg<u32>& chunk, u32 values) const {
    const u32 bytes = values / kInfo.block_values * kInfo.block_bytes;
    const u64 matrix_bytes = u64{g_.n} * s_.row_bytes;
    const u32 pieces = s_.whole_pieces ? bytes / kPiece : s_.pieces;
    k_.for_(k_.tid_x(), s_.tile_n * pieces, s_.threads(), [&](const Reg<u32>& index) {
      const Reg<u32> row = index / pieces;
      const Reg<u32> piece = index % pieces;
      const Reg<u64> begin =
          cvt<u64>(row_of_weights(row)) * u64{s_.row_bytes} + (cvt<u64>(chunk) * u64{s_.chunk_bytes});
      const auto target = assume_aligned<16>(chunk_stage(chunk) + (row * s_.pitch + piece * kPiece));
      if (s_.whole_pieces) {
        const Reg<u64> from = begin + cvt<u64>(piece * kPiece);
        cp_async_cg_16(target, assume_aligned<16>(weights_ + from));
        return;
      }
      const Reg<u64> from = (begin & ~u64{kPiece - 1}) + cvt<u64>(piece * kPiece);
      k_.if_(from < begin + u64{bytes}, [&] {
        const Reg<u32> there = cvt<u32>((min)(matrix_bytes - from, u64{kPiece}));
        cp_async_cg_16(target, assume_aligned<16>(weights_ + from), there);
      });
    });
  }

  SharedPtr<std::byte, 16> slab_stage(u32 stage) const {
    return assume_aligned<16>(slabs_ + stage * s_.slab_stage);
  }
  GlobalPtr<const f32, 16> row_of_a(const Reg<u32>& i) const {
    const Reg<u32> row = (min)(tile_.first_m + i, m_ - 1u);
    return assume_aligned<16>(at<f32>(a_) + cvt<u64>(row) * u64{g_.k});
  }

  void fill_slab(const Reg<u32>& slab, u32 stage) const {
    if (staged()) {
      copy_slab(slab, slab_stage(stage));
    } else {
      convert_slab(slab, slab_stage(stage));
    }
  }
  // A slab's groups lie side by side, in global memory as here; those that there are not become zeros.
  void copy_slab(const Reg<u32>& slab, const SharedPtr<std::byte, 16>& stage) const {
    const Reg<u32> groups = (m_ + (kSlabGroupRows - 1)) / kSlabGroupRows;
    const Reg<u32> first = tile_.first_m / kSlabGroupRows;
    const auto from = a_ + (cvt<u64>(slab) * cvt<u64>(groups) + cvt<u64>(first)) * u64{kGroupBytes};
    k_.for_(k_.tid_x(), s_.slab_stage / kPiece, s_.threads(), [&](const Reg<u32>& piece) {
      const Pred exists = first + piece / (kGroupBytes / kPiece) < groups;
      const Reg<u32> offset = selp(piece * kPiece, k_.constant<u32>(0), exists);
      const Reg<u32> there = selp(k_.constant<u32>(kPiece), k_.constant<u32>(0), exists);
      cp_async_cg_16(assume_aligned<16>(stage + piece * kPiece), assume_aligned<16>(from + offset), there);
    });
  }
  void convert_slab(const Reg<u32>& slab, const SharedPtr<std::byte, 16>& stage) const {
    k_.for_(k_.tid_x(), s_.tile_m * kSlabSteps, s_.threads(), [&](const Reg<u32>& index) {
      const Reg<u32> row = index / kSlabSteps;
      const Reg<u32> in_slab = index % kSlabSteps;
      const Reg<u32> step = (min)(slab * kSlabSteps + in_slab, g_.k / 16 - 1);
      const Sixteen sixteen = load_step(kOf, row_of_a(row), step);
      const Reg<f32> factor = scales_.factor(row);
      const auto octets = octets_of(k_, sixteen, [&](const Reg<f32>& value) { return value * factor; });
      const auto target =
          at<u32>(assume_aligned<16>(stage + (row / kSlabGroupRows * kGroupBytes +
                                              in_slab * (2 * kOctetBytes) + row % kSlabGroupRows * kPiece)));
      st_shared_v4(target, octets[0]);
      st_shared_v4(assume_aligned<16>(target + kOctetBytes / 4), octets[1]);
    });
  }

  // ---- Products

  void add_chunk(const Reg<u32>& chunk, u32 values, Sums& sums) const {
    std::optional<Weights> weights;  // of the chunk's block
    for (u32 slab = 0; slab * kSlabValues < values; ++slab) {
      k_.cp_async_wait_group(kAhead - 1);
      k_.bar_sync(0);
      start_next(chunk, slab);
      if (kWholeChunk && slab == 0) weights = load_weights(chunk, k_.constant<u32>(0));
      for (u32 half = 0; half < 2; ++half) {
        const u32 done = slab * kSlabValues + half * 32;
        if (done >= values) break;
        if (!kWholeChunk) weights = load_weights(chunk, k_.constant<u32>(done / kInfo.block_values));
        add_steps(*weights, kWholeChunk ? done / 16 : 0, slab_stage(slab), half, sums);
      }
    }
  }

  // Slab kAhead further on, and with a chunk's first slab the next chunk.
  void start_next(const Reg<u32>& chunk, u32 slab) const {
    const u32 ahead = slab + kAhead;
    k_.if_(chunk * kChunkSlabs + ahead < slabs(),
           [&] { fill_slab(chunk * kChunkSlabs + ahead, ahead % kSlabs); });
    if (slab == 0) {
      const u32 whole = g_.k / kChunkValues, rest = g_.k % kChunkValues;
      const Reg<u32> next = chunk + 1u;
      if (whole > 1) k_.if_(next < whole, [&] { copy_chunk(next, kChunkValues); });
      if (rest && whole > 0) k_.if_(next == whole, [&] { copy_chunk(next, rest); });
    }
    k_.cp_async_commit_group();
  }

  // Block `block` of a chunk in the lane's rows.
  Weights load_weights(const Reg<u32>& chunk, const Reg<u32>& block) const {
    Weights weights;
    for (u32 r = 0; r < kRowsOfLane; ++r) {
      const Reg<u32> row = warp_n_ * kWarpRows + (lane_ >> 2) + 8 * r;
      Reg<u32> offset = row * s_.pitch + block * kInfo.block_bytes;
      if (!s_.whole_pieces)
        offset = offset + ((row_of_weights(row) * s_.row_bytes + chunk * s_.chunk_bytes) & (kPiece - 1));
      const Block at_row =
          at<const Bytes<kInfo.block_bytes>>(assume_aligned<kBlockAlign>(chunk_stage(chunk) + offset));
      weights.raws.push_back(F::template load<W>(at_row, place_));
      weights.scales.emplace_back(k_, F::decode(weights.raws.back(), place_, formats::Packing::kInPlace));
    }
    return weights;
  }

  // Steps `step` and `step` + 1 of a block, which are half `half` of the slab at `stage`.
  void add_steps(const Weights& weights, u32 step, const SharedPtr<std::byte, 16>& stage, u32 half,
                 Sums& sums) const {
    std::vector<std::vector<A>> a(2);  // [step][16 rows]
    for (u32 i = 0; i < 2; ++i) {
      for (u32 tile = 0; tile < kTiles; ++tile) {
        const auto low = four(weights, 2 * tile, step + i), high = four(weights, 2 * tile + 1, step + i);
        a[i].push_back(A({low[0], high[0], low[1], high[1]}));
      }
    }
    const auto own = stage + (warp_m_ * (s_.columns / kSlabGroupRows * kGroupBytes) + lane_ * kPiece);
    for (u32 group = 0; group < s_.columns / kColumns; ++group) {
      const auto octets =
          ldmatrix_x4(at<f16>(assume_aligned<16>(own + (group * kGroupBytes + half * (4 * kOctetBytes)))));
      for (u32 i = 0; i < 2; ++i) {
        const B b({octets[2 * i], octets[2 * i + 1]});
        for (u32 tile = 0; tile < kTiles; ++tile) sums[tile][group] = mma(a[i][tile], b, sums[tile][group]);
      }
    }
  }
  std::array<Reg<f16x2>, 2> four(const Weights& weights, u32 row, u32 step) const {
    const auto part = F::decode(weights.raws[row], place_, formats::Packing::kInPlace);
    return weights.scales[row].four(kOf.run(step), part.runs[kOf.run(step)].q[kOf.word(step)]);
  }

  // ---- Results: register i of an accumulator is row lane / 4 + 8 (i / 2) and column 2 (lane % 4) + i % 2.

  void store(const Sums& sums) const {
    const Reg<u32> first_n = tile_.first_n + warp_n_ * kWarpRows + (lane_ >> 2);
    const Reg<u32> own_m = warp_m_ * s_.columns + (lane_ & 3u) * 2u;
    const Reg<u32> first_m = tile_.first_m + own_m;
    const auto c = k_.param(&Gemm::Args::c) + (cvt<u64>(first_m) * u64{g_.n} + cvt<u64>(first_n));
    const auto inverses =
        at<f32>(a_ + cvt<u64>((m_ + (kSlabGroupRows - 1)) / kSlabGroupRows) * (u64{slabs()} * kGroupBytes));
    for (u32 group = 0; group < s_.columns / kColumns; ++group) {
      for (u32 j = 0; j < 2; ++j) {
        const u32 column = group * kColumns + j;
        k_.if_(first_m + column < m_, [&] {
          const Reg<f32> inverse = staged() ? ld_global_nc(assume_aligned<4>(inverses) + (first_m + column))
                                            : scales_.inverse(own_m + column);
          for (u32 r = 0; r < kRowsOfLane; ++r) {
            const Reg<f32> sum = sums[r / 2][group][r % 2 * 2 + j];
            const auto put = [&] { st_global(c + (u64{column} * g_.n + r * 8), sum * inverse); };
            if (g_.n % s_.tile_n == 0) {
              put();
            } else {
              k_.if_(first_n + r * 8 < g_.n, put);
            }
          }
        });
      }
    }
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const Geometry s_;
  const Reg<u32> m_;
  const GlobalPtr<const std::byte, 16> weights_, a_;
  const Tile tile_;
  const Reg<u32> lane_, warp_n_, warp_m_;
  const typename F::Place place_;
  const SharedPtr<std::byte, 16> chunks_, slabs_;
  const RowScales scales_;
};

}  // namespace

Shape mma_shape(const Gemm& g) {
  const Geometry s = geometry_of(g);
  return {s.tile_m, s.tile_n, s.threads(), s.shared_bytes};
}

void build_mma(KernelBuilder& k, const Gemm& g) {
  const Shape shape = mma_shape(g);
  k.maxntid(shape.threads);
  const SharedPtr<std::byte, 16> shared = at<std::byte>(k.dynamic_shared<u32, 128>());
  formats::with_format(g.format,
                       [&]<class F>(std::type_identity<F>) { MmaKernel<F>(k, g, shape, shared).build(); });
}

}  // namespace ptxgen::gemm
