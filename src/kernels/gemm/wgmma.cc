// The f16 tensor cores of Hopper by wgmma.m64nNk16, N = tile_m: weights are A, in registers, activations B,
// in shared memory as they were staged. Roles:
//
//   consumers  two warpgroups of 64 rows of weights each, all of k. A warp has 16 rows, a lane its bytes of
//              two of them, as in schedule mma. While the tensor cores multiply a slab of 64 values, the
//              next one is decoded.
//   copiers    three warps that bring chunks of weights into a ring by cp.async, in pieces of 16 bytes
//              wherever blocks begin. They start before the kernel that writes the activations has ended.
//   one thread that brings slabs of activations into another ring, a bulk copy each.
//
// With split_k, so many CTAs of a cluster share k. Each leaves its sums in its own shared memory, and adds
// those of all, in their order, for a part of the outputs.
//
// A stage of weights is free when a consumer has read its registers from it; one of activations when the
// multiplications of the slab after it have been started and its own have ended.

#include <algorithm>
#include <memory>
#include <optional>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/outputs.h"
#include "src/kernels/gemm/weight_chunks.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/ring.h"

namespace ptxgen::gemm {
namespace {

constexpr u32 kWarpgroup = 128, kConsumers = 2 * kWarpgroup, kCopiers = 96;
constexpr u32 kThreads = kConsumers + kWarpgroup;
constexpr u32 kRows = 128;  // of weights
constexpr u32 kRowsOfLane = 2;
constexpr u32 kMostChunks = 8;
// Registers of a thread: the launch gives all of them 168. The accumulators of 256 rows of a take more, which
// the warps that copy can spare: 128 * 40 + 256 * 232 = 384 * 168.
constexpr u32 kCopierRegisters = 40, kConsumerRegisters = 232;
constexpr u32 kColumnsThatNeedMore = 256;
constexpr u32 kSumsPitch = kRows + 4;  // from one row of a to the next: a warp's stores meet in no bank

struct Geometry {
  u32 columns;                  // rows of a
  u32 chunks, slabs;            // stages
  u32 chunk_stage, slab_stage;  // bytes
  u32 shared_bytes;
  u32 split;
};

Geometry geometry_of(const Gemm& g) {
  Geometry s;
  s.columns = g.tile_m ? g.tile_m : 64;
  s.slabs = s.columns >= 128 ? 4 : 8;
  s.slab_stage = s.columns / kSlabGroupRows * kGroupBytes;
  s.chunk_stage = kRows * ChunkLayout(g.format, g.k).pitch;
  constexpr u32 kBarrierBytes = 1024;  // of the rings, and more
  const u32 room =
      static_cast<u32>(limits(kHopper).shared_bytes_per_cta()) - kBarrierBytes - s.slabs * s.slab_stage;
  s.chunks = std::min(kMostChunks, room / s.chunk_stage);
  s.shared_bytes = s.slabs * s.slab_stage + s.chunks * s.chunk_stage;
  s.split = std::max(g.split_k, 1u);
  return s;
}

using A = Fragment<Matrix::kA, f16, 64, 16>;

// The accumulators of a warpgroup, whose number the instruction's type has.
class Sums {
 public:
  virtual ~Sums() = default;
  virtual void add(const A& a, const MatrixDescriptor<f16>& b) = 0;
  virtual Reg<f32> operator[](u32 i) const = 0;
};
template <u32 N>
class SumsOf final : public Sums {
 public:
  explicit SumsOf(KernelBuilder& k) : sums_(k) {}
  void add(const A& a, const MatrixDescriptor<f16>& b) override { wgmma_mma_async(sums_, a, b, true); }
  Reg<f32> operator[](u32 i) const override { return sums_[i]; }

 private:
  Accumulator<f32, 64, N> sums_;
};
std::unique_ptr<Sums> make_sums(KernelBuilder& k, u32 columns) {
  switch (columns) {
    case 8: return std::make_unique<SumsOf<8>>(k);
    case 16: return std::make_unique<SumsOf<16>>(k);
    case 32: return std::make_unique<SumsOf<32>>(k);
    case 64: return std::make_unique<SumsOf<64>>(k);
    case 128: return std::make_unique<SumsOf<128>>(k);
    default: return std::make_unique<SumsOf<256>>(k);
  }
}

template <class F>
class WgmmaKernel {
  using Chunks = WeightChunks<F>;

 public:
  WgmmaKernel(KernelBuilder& k, const Gemm& g, const Shape& shape, const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        g_(g),
        s_(geometry_of(g)),
        m_(k.param(&Gemm::Args::m)),
        a_(k.param(&Gemm::Args::a)),
        tile_(tile_of_cta(k, shape, m_)),
        thread_(k.tid_x()),
        lane_(thread_ & 31u),
        groups_((m_ + (kSlabGroupRows - 1)) / kSlabGroupRows),
        first_group_(tile_.first_m / kSlabGroupRows),
        own_groups_((min)(groups_ - first_group_, s_.columns / kSlabGroupRows)),
        rank_(s_.split > 1 ? k.cluster_ctarank() : k.constant<u32>(0)),
        first_chunk_(boundary(0)),
        end_chunk_(boundary(1)),
        weights_(k, g, assume_aligned<16>(k.param(&Gemm::Args::weights)), tile_.first_n, lane_),
        sums_(at<f32>(shared)),
        slabs_(k, shared, s_.slabs, s_.slab_stage),
        chunks_(k, assume_aligned<16>(shared + s_.slabs * s_.slab_stage), s_.chunks, s_.chunk_stage) {}

  void build() {
    parts::launch_dependents(k_);
    k_.if_(thread_ == 0u, [&] {
      slabs_.init(kConsumers / 32);
      chunks_.init(kConsumers / 32, kCopiers);
    });
    k_.if_(thread_ < 32u, [&] { weights_.init(); });
    clear_missing_groups();
    k_.bar_sync(0);
    const Reg<u32> warpgroup = shfl_sync_idx(thread_ / kWarpgroup, 0u, 0x1fu, 0xffffffffu);
    const bool moves_registers = s_.columns >= kColumnsThatNeedMore;
    k_.if_(
        warpgroup < 2u,
        [&] {
          if (moves_registers) k_.setmaxnreg_inc(kConsumerRegisters);
          consume();
        },
        [&] {
          if (moves_registers) k_.setmaxnreg_dec(kCopierRegisters);
          k_.if_(
              thread_ < kConsumers + kCopiers, [&] { copy_weights(); },
              [&] { k_.if_(lane_ == 0u, [&] { copy_activations(); }); });
        });
    if (s_.split > 1) add_and_store();
  }

 private:
  u32 whole_chunks() const { return g_.k / kChunkValues; }
  u32 rest() const { return g_.k % kChunkValues; }
  // Where the chunks of the CTA of rank rank_ + i begin.
  Reg<u32> boundary(u32 i) const {
    if (s_.split == 1) return k_.constant<u32>(i * whole_chunks());
    return (rank_ + i) * whole_chunks() / s_.split;
  }
  // What is left after the whole chunks is the last CTA's.
  template <class Body>
  void with_rest(Body&& body) const {
    if (rest() == 0) return;
    const auto add = [&] { body(k_.constant<u32>(whole_chunks())); };
    if (s_.split == 1) return add();
    k_.if_(rank_ == s_.split - 1, add);
  }

  // Rows of a past the last group are in no copy, and their products are not kept; but a multiplication reads
  // them.
  void clear_missing_groups() const {
    k_.if_(own_groups_ < s_.columns / kSlabGroupRows, [&] {
      k_.for_(thread_, s_.slabs * s_.slab_stage / kPiece, kThreads, [&](const Reg<u32>& piece) {
        const Reg<u32> zero = k_.constant<u32>(0);
        st_shared_v4(at<u32>(assume_aligned<16>(slabs_.stage(0u) + piece * kPiece)),
                     {zero, zero, zero, zero});
      });
      k_.fence_proxy_async_shared_cta();
    });
  }

  // ---- Producers

  void copy_weights() const {
    parts::Ring::Cursor to = chunks_.cursor();
    const auto copy = [&](const Reg<u32>& chunk, u32 values) {
      chunks_.wait_free(to);
      weights_.copy(chunks_.stage(to.stage()), chunk, values, kRows, thread_ - kConsumers, kCopiers);
      chunks_.announce_copied(to.stage());
      to.advance();
    };
    k_.for_(first_chunk_, end_chunk_, 1, [&](const Reg<u32>& chunk) { copy(chunk, kChunkValues); });
    with_rest([&](const Reg<u32>& chunk) { copy(chunk, rest()); });
  }

  void copy_activations() const {
    parts::wait_for_predecessor(k_);
    parts::Ring::Cursor to = slabs_.cursor();
    const Reg<u32> bytes = own_groups_ * kGroupBytes;
    Reg<u32> end = end_chunk_ * kChunkSlabs;
    if (rest()) {
      const Reg<u32> all = k_.constant<u32>(static_cast<u32>(staged_f16_slabs(g_.k)));
      end = s_.split == 1 ? all : selp(all, end, rank_ == s_.split - 1);
    }
    k_.for_(first_chunk_ * kChunkSlabs, end, 1, [&](const Reg<u32>& slab) {
      slabs_.wait_free(to);
      const Reg<u64> group = cvt<u64>(slab) * cvt<u64>(groups_) + cvt<u64>(first_group_);
      const auto barrier = slabs_.announce(to.stage(), bytes);
      cp_async_bulk_shared_global(slabs_.stage(to.stage()), assume_aligned<16>(a_ + group * u64{kGroupBytes}),
                                  bytes, barrier);
      to.advance();
    });
  }

  // ---- Consumers

  void consume() const {
    const std::unique_ptr<Sums> sums = make_sums(k_, s_.columns);
    parts::Ring::Cursor chunk = chunks_.cursor(), slab = slabs_.cursor();
    Var<u32> before = k_.var<u32>(0u);
    k_.for_(first_chunk_, end_chunk_, 1, [&](const Reg<u32>& i) {
      add_chunk(i, kChunkValues, i > first_chunk_, chunk, slab, before, *sums);
    });
    with_rest([&](const Reg<u32>& i) {
      add_chunk(i, rest(), end_chunk_ > first_chunk_, chunk, slab, before, *sums);
    });
    k_.wgmma_wait_group(0);
    if (s_.split > 1) {
      keep(*sums);
    } else {
      store(*sums);
    }
  }

  // `later`: a slab has been multiplied before, from stage `before`.
  void add_chunk(const Reg<u32>& chunk, u32 values, const Pred& later, parts::Ring::Cursor& from,
                 parts::Ring::Cursor& slab, Var<u32>& before, Sums& sums) const {
    const u32 slabs = (values + kSlabValues - 1) / kSlabValues;
    std::optional<typename Chunks::Lane> own;
    chunks_.wait_full(from);
    const auto load = [&](u32 block) {
      own = weights_.load(chunks_.stage(from.stage()), chunk, k_.constant<u32>(block), thread_ / 32u * 16u,
                          kRowsOfLane);
    };
    for (u32 i = 0; i < slabs; ++i) {
      std::vector<A> a;
      for (u32 step = 0; step < kSlabSteps && i * kSlabValues + step * 16 < values; ++step) {
        const u32 first = i * kSlabValues + step * 16;
        if (first % info(F::kFormat).block_values == 0) load(first / info(F::kFormat).block_values);
        a.push_back(A(weights_.registers(*own, 0, first % info(F::kFormat).block_values / 16)));
      }
      const bool last_load = Chunks::kWholeChunk ? i == 0 : i + 1 == slabs;
      if (last_load) {
        chunks_.release(from, lane_);
        from.advance();
      }
      multiply(a, slab, sums);
      if (i > 0) {
        slabs_.release(before, lane_);
      } else {
        k_.if_(later, [&] { slabs_.release(before, lane_); });
      }
      before = slab.stage();
      slab.advance();
    }
  }

  // Starts the multiplications of a slab, and waits for those of the one before.
  void multiply(const std::vector<A>& a, const parts::Ring::Cursor& slab, Sums& sums) const {
    slabs_.wait_full(slab);
    const MatrixDescriptor<f16> b(at<f16>(slabs_.stage(slab.stage())),
                                  {.leading_bytes = kOctetBytes, .stride_bytes = kGroupBytes});
    k_.wgmma_fence();
    for (u32 step = 0; step < a.size(); ++step) sums.add(a[step], b.advance(step * 2 * kOctetBytes));
    k_.wgmma_commit_group();
    k_.wgmma_wait_group(1);
  }

  void store(const Sums& sums) const {
    const Reg<u32> first_m = tile_.first_m + (lane_ & 3u) * 2u;
    const Reg<u32> first_n = tile_.first_n + thread_ / 32u * 16u + (lane_ >> 2);
    parts::wait_for_predecessor(k_);
    const auto inverses = staged_inverses(g_, a_, m_);
    store_outputs(
        k_, g_, m_, first_m, first_n, s_.columns / kSlabGroupRows, kRowsOfLane, g_.n % kRows == 0,
        [&](u32 group, u32 j, u32 r) { return sums[group * 4 + r * 2 + j]; },
        [&](u32 row) { return ld_global(inverses + (first_m + row)); });
  }

  // ---- Sums over a cluster

  SharedPtr<f32> sum_at(const Reg<u32>& column, const Reg<u32>& row) const {
    return sums_ + (column * kSumsPitch + row);
  }
  void keep(const Sums& sums) const {
    k_.bar_sync(1, kConsumers);  // the stages, in whose place the sums come, are no longer read
    const auto own = sum_at((lane_ & 3u) * 2u, thread_ / 32u * 16u + (lane_ >> 2));
    for (u32 group = 0; group < s_.columns / kSlabGroupRows; ++group) {
      for (u32 i = 0; i < 4; ++i) {
        const Reg<f32> sum = sums[group * 4 + i];
        st_shared(own + ((group * kSlabGroupRows + i % 2) * kSumsPitch + i / 2 * 8), sum);
      }
    }
  }
  void add_and_store() const {
    k_.barrier_cluster_arrive();
    k_.barrier_cluster_wait();
    parts::wait_for_predecessor(k_);
    std::vector<ClusterSharedPtr<f32, 16>> of_ranks;
    for (u32 rank = 0; rank < s_.split; ++rank) of_ranks.push_back(mapa(sums_, k_.constant<u32>(rank)));
    const u32 share = s_.columns / s_.split;
    const auto inverses = staged_inverses(g_, a_, m_);
    k_.for_(thread_, share * kRows, kThreads, [&](const Reg<u32>& i) {
      const Reg<u32> column = rank_ * share + i / kRows;
      const Reg<u32> row = i % kRows;
      const Reg<u32> m = tile_.first_m + column;
      const Reg<u32> n = tile_.first_n + row;
      k_.if_(m < m_ && n < g_.n, [&] {
        const Reg<u32> place = column * kSumsPitch + row;
        Reg<f32> sum = ld_shared_cluster(of_ranks[0] + place);
        for (u32 rank = 1; rank < s_.split; ++rank) {
          const Reg<f32> other = ld_shared_cluster(of_ranks[rank] + place);
          sum = sum + other;
        }
        const Reg<f32> inverse = ld_global(inverses + m);
        st_global(k_.param(&Gemm::Args::c) + (cvt<u64>(m) * u64{g_.n} + cvt<u64>(n)), sum * inverse);
      });
    });
    k_.barrier_cluster_arrive();  // nobody ends while others read its sums
    k_.barrier_cluster_wait();
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const Geometry s_;
  const Reg<u32> m_;
  const GlobalPtr<const std::byte, 16> a_;
  const Tile tile_;
  const Reg<u32> thread_, lane_;
  const Reg<u32> groups_, first_group_, own_groups_;  // of 8 rows of a; what the CTA has of them
  const Reg<u32> rank_;                               // in the cluster
  const Reg<u32> first_chunk_, end_chunk_;            // whole ones
  const Chunks weights_;
  const SharedPtr<f32, 16> sums_;  // of the CTA, for all of its cluster, in place of the stages
  const parts::Ring slabs_, chunks_;
};

}  // namespace

Shape wgmma_shape(const Gemm& g) {
  const Geometry s = geometry_of(g);
  return {s.columns, kRows, kThreads, s.shared_bytes, s.split};
}

void build_wgmma(KernelBuilder& k, const Gemm& g) {
  const Shape shape = wgmma_shape(g);
  k.maxntid(shape.threads);
  k.minnctapersm(1);
  if (shape.split_k > 1) k.cluster(shape.split_k);
  const SharedPtr<std::byte, 16> shared = at<std::byte>(k.dynamic_shared<u32, 128>());
  formats::with_format(g.format,
                       [&]<class F>(std::type_identity<F>) { WgmmaKernel<F>(k, g, shape, shared).build(); });
}

}  // namespace ptxgen::gemm
