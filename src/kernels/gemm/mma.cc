// The f16 tensor cores by mma.m16n8k16, with weights as A and activations as B: a lane's registers of A are
// its own bytes of the blocks of two rows (tensor_order.h), so weights pass through shared memory as they
// are, and are decoded in registers.
//
// Work.     A CTA has tile_n rows of weights and tile_m rows of a; a warp 32 of the one and all of the other,
//           so that no weight is decoded twice. It walks along k in slabs of 64 values. With split_k there
//           are two teams of such warps, each with a pipeline of its own, that take the chunks of k in turn.
// Pipeline. Weights come in chunks of 256 values, two in shared memory; activations in slabs, four. While
//           slab q is multiplied, or before where a is f32, slab q + 3 starts on its way, and with the first
//           slab of a chunk the next chunk. Each slab has one group of asynchronous copies, so all but the
//           last two groups have landed when slab q begins; the barrier after that wait also says that slab q
//           - 1 is no longer read, whose place slab q + 3 takes.
// Sums.     In the order of k, and of two teams over even chunks plus over odd ones. An output depends on
//           nothing but its two rows.

#include <algorithm>
#include <optional>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/outputs.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/gemm/stage.h"
#include "src/kernels/gemm/weight_chunks.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/walking.h"

namespace ptxgen::gemm {
namespace {

constexpr u32 kChunks = 2, kSlabs = kChunkSlabs;  // in shared memory
constexpr u32 kAhead = kSlabs - 1;                // slabs on their way
constexpr u32 kWarpRows = 32;                     // of weights
constexpr u32 kRowsOfLane = kWarpRows / 8, kTiles = kWarpRows / 16;
constexpr u32 kColumns = 8;      // of a multiplication
constexpr u32 kTeamBarrier = 3;  // of the first team; the next one is the other's

struct Geometry {
  u32 tile_m, tile_n;
  u32 teams;
  u32 chunk_stage, slab_stage;  // bytes
  u32 shared_bytes;

  u32 team() const { return 32 * (tile_n / kWarpRows); }  // threads
  u32 threads() const { return teams * team(); }
  u32 team_stages() const { return kChunks * chunk_stage + kSlabs * slab_stage; }  // bytes
};

Geometry geometry_of(const Gemm& g) {
  Geometry s;
  s.tile_m = g.tile_m ? g.tile_m : 64;
  s.tile_n = g.tile_n ? g.tile_n : 128;
  s.chunk_stage = s.tile_n * ChunkLayout(g).pitch;
  s.slab_stage = s.tile_m / kSlabGroupRows * kGroupBytes;
  s.teams = std::max(g.split_k, 1u);
  s.shared_bytes =
      s.teams * s.team_stages() + (g.a_type == Activations::kF32 ? RowScales::bytes(s.tile_m) : 0);
  return s;
}

// CTAs that are to share an SM's registers. Three of up to 64 rows of a, where they fit: the third hides what
// two wait for. Else as many as leave a thread all that it can have.
u32 ctas_per_sm(const Gemm& g, const Geometry& s) {
  constexpr Format kFit[] = {Format::kQ4_0, Format::kQ8_0, Format::kQ2_K, Format::kQ4_K};
  const bool fit = std::find(std::begin(kFit), std::end(kFit), g.format) != std::end(kFit);
  return fit && g.a_type == Activations::kF16 && s.threads() == 128 && s.tile_m <= 64 ? 3 : 256 / s.threads();
}

// Slabs of a team's staged activations on their way into shared memory, one after the other. What does not
// change from slab to slab is found once: it costs registers, but fewer instructions among those of the
// tensor cores.
class StagedSlabs {
 public:
  StagedSlabs(KernelBuilder& k, const Geometry& s, const GlobalPtr<const std::byte, 16>& a, const Reg<u32>& m,
              const Reg<u32>& first_m, const Reg<u32>& team, const Reg<u32>& thread)
      : s_(s),
        own_(thread * kPiece),
        groups_((m + (kSlabGroupRows - 1)) / kSlabGroupRows),
        next_(begin(a, first_m, team)) {
    const Reg<u32> first = first_m / kSlabGroupRows;
    for (u32 bytes = 0; bytes < s.slab_stage; bytes += s.team() * kPiece) {
      const Pred exists = first + (own_ + bytes) / kGroupBytes < groups_;
      there_.push_back(selp(k.constant<u32>(kPiece), k.constant<u32>(0), exists));
    }
  }

  // A slab's groups lie side by side, in global memory as here; those that there are not become zeros. Each
  // thread has as many pieces. After the last of a chunk the other teams' chunks are passed over.
  void copy_next(const SharedPtr<std::byte, 16>& stage, bool last_of_chunk) {
    const auto from = next_.pointer();
    for (u32 i = 0; i < there_.size(); ++i) {
      const u32 bytes = i * s_.team() * kPiece;
      cp_async_cg_16(assume_aligned<16>(stage + (own_ + bytes)), assume_aligned<16>(from + u64{bytes}),
                     there_[i]);
    }
    const u64 slabs = 1 + (last_of_chunk ? (s_.teams - 1) * kChunkSlabs : 0);
    next_.advance(cvt<u64>(groups_) * (slabs * kGroupBytes));
  }

 private:
  GlobalPtr<const std::byte> begin(const GlobalPtr<const std::byte, 16>& a, const Reg<u32>& first_m,
                                   const Reg<u32>& team) const {
    const Reg<u64> first = cvt<u64>(first_m / kSlabGroupRows);
    const Reg<u64> slab = cvt<u64>(groups_) * cvt<u64>(team * kChunkSlabs);
    return a + ((slab + first) * u64{kGroupBytes} + cvt<u64>(own_));
  }

  const Geometry s_;
  const Reg<u32> own_, groups_;
  parts::Walking<GlobalPtr<const std::byte>> next_;  // where the thread's first piece of the next slab lies
  std::vector<Reg<u32>> there_;                      // bytes of each of its pieces
};

template <class F>
class MmaKernel {
  using Chunks = WeightChunks<F>;
  using A = Fragment<Matrix::kA, f16, 16, 16>;
  using B = Fragment<Matrix::kB, f16, 16, 8>;
  using Sums = std::vector<std::vector<Accumulator<f32, 16, 8>>>;  // [16 rows of weights][8 rows of a]

 public:
  MmaKernel(KernelBuilder& k, const Gemm& g, const Shape& shape, const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        g_(g),
        s_(geometry_of(g)),
        m_(k.param(&Gemm::Args::m)),
        a_(k.param(&Gemm::Args::a)),
        tile_(tile_of_cta(k, shape, m_)),
        lane_(k.tid_x() & 31u),
        team_(s_.teams > 1 ? k.tid_x() / s_.team() : k.constant<u32>(0)),
        thread_(s_.teams > 1 ? k.tid_x() % s_.team() : k.tid_x()),
        warp_(thread_ >> 5),
        weights_(k, g, assume_aligned<16>(k.param(&Gemm::Args::weights)), tile_.first_n, lane_),
        shared_(shared),
        chunks_(assume_aligned<16>(shared + team_ * s_.team_stages())),
        slabs_(assume_aligned<16>(chunks_ + kChunks * s_.chunk_stage)),
        scales_(k, at<f32>(assume_aligned<16>(shared + s_.teams * s_.team_stages())), s_.tile_m) {}

  void build() {
    parts::launch_dependents(k_);
    RowUnits<F> units(k_, kRowsOfLane);
    const Passes passes(k_, s_.threads());
    k_.if_(k_.tid_x() == 0u, [&] { passes.init(); });
    const auto request = [&] { passes.request(); };
    passes.run([&](const Passes::Pass&) { multiply(units), k_.if_(units.refit(), request); }, [] {});
  }

 private:
  void multiply(RowUnits<F>& units) {
    if (staged()) staged_slabs_.emplace(k_, s_, a_, m_, tile_.first_m, team_, thread_);
    copy_chunk_if_there(team_);
    parts::wait_for_predecessor(k_);
    if (!staged()) {
      scales_.find(g_.k, s_.threads(), [&](const Reg<u32>& i) { return row_of_a(i); });
      k_.bar_sync(0);
    }
    for (u32 slab = 0; slab < kAhead; ++slab) {
      fill_slab_if_there(team_ * kChunkSlabs + slab, slab);
      k_.cp_async_commit_group();
    }
    Sums sums(kTiles);
    for (auto& of_tile : sums) {
      for (u32 i = 0; i < s_.tile_m / kColumns; ++i) of_tile.emplace_back(k_);
    }
    if (whole()) {
      k_.for_(team_, whole(), s_.teams,
              [&](const Reg<u32>& chunk) { add_chunk(chunk, kChunkValues, units, sums); });
    }
    if (rest()) {
      k_.if_(team_ == whole() % s_.teams, [&] { add_chunk(k_.constant<u32>(whole()), rest(), units, sums); });
    }
    for (u32 tile = 0; tile < kTiles; ++tile) {
      for (auto& group : sums[tile]) scale_rows(group, units.inverse(2 * tile), units.inverse(2 * tile + 1));
    }
    if (s_.teams > 1) {
      k_.bar_sync(0);  // the stages, in whose place sums come, are no longer read
      k_.if_(team_ > 0u, [&] { keep(sums); });
      k_.bar_sync(0);
    }
    k_.if_(team_ == 0u, [&] { store(sums); });
  }

  bool staged() const { return g_.a_type == Activations::kF16; }
  u32 whole() const { return g_.k / kChunkValues; }
  u32 rest() const { return g_.k % kChunkValues; }
  u32 slabs() const { return static_cast<u32>(staged_f16_slabs(g_.k)); }

  // ---- Into shared memory, by all threads

  SharedPtr<std::byte, 16> chunk_stage(const Reg<u32>& chunk) const {
    return assume_aligned<16>(chunks_ + chunk / s_.teams % kChunks * s_.chunk_stage);
  }
  SharedPtr<std::byte, 16> slab_stage(u32 stage) const {
    return assume_aligned<16>(slabs_ + stage * s_.slab_stage);
  }
  void copy_chunk(const Reg<u32>& chunk, u32 values) const {
    weights_.copy(chunk_stage(chunk), chunk, values, s_.tile_n, thread_, s_.team());
  }
  void copy_chunk_if_there(const Reg<u32>& chunk) const {
    if (whole()) k_.if_(chunk < whole(), [&] { copy_chunk(chunk, kChunkValues); });
    if (rest()) k_.if_(chunk == whole(), [&] { copy_chunk(chunk, rest()); });
  }
  // Rows past the last are that one again; their sums are not kept.
  GlobalPtr<const f32, 16> row_of_a(const Reg<u32>& i) const {
    const Reg<u32> row = (min)(tile_.first_m + i, m_ - 1u);
    return assume_aligned<16>(at<f32>(a_) + cvt<u64>(row) * u64{g_.k});
  }

  void fill_slab_if_there(const Reg<u32>& slab, u32 stage) {
    k_.if_(slab < slabs(), [&] {
      if (staged_slabs_) {
        staged_slabs_->copy_next(slab_stage(stage), stage + 1 == kSlabs);
      } else {
        convert_slab(slab, slab_stage(stage));
      }
    });
  }
  void convert_slab(const Reg<u32>& slab, const SharedPtr<std::byte, 16>& stage) const {
    k_.for_(thread_, s_.tile_m * kSlabSteps, s_.team(), [&](const Reg<u32>& index) {
      const Reg<u32> row = index / kSlabSteps;
      const Reg<u32> in_slab = index % kSlabSteps;
      const Reg<u32> step = (min)(slab * kSlabSteps + in_slab, g_.k / 16 - 1);
      const Sixteen sixteen = load_step(kOrder<F>, row_of_a(row), step);
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

  void add_chunk(const Reg<u32>& chunk, u32 values, RowUnits<F>& units, Sums& sums) {
    std::optional<typename Chunks::Lane> own;
    const auto load = [&](u32 block) {
      own = weights_.load(chunk_stage(chunk), chunk, k_.constant<u32>(0), block, warp_ * kWarpRows, units,
                          chunk < s_.teams);
    };
    for (u32 slab = 0; slab * kSlabValues < values; ++slab) {
      k_.cp_async_wait_group(kAhead - 1);
      team_barrier();
      if (!staged()) start_next(chunk, slab);  // which takes many registers
      if (Chunks::kWholeChunk && slab == 0) load(0);
      for (u32 half = 0; half < 2; ++half) {
        const u32 done = slab * kSlabValues + half * 32;
        if (done >= values) break;
        if (!Chunks::kWholeChunk) load(done / 32);
        add_steps(*own, Chunks::kWholeChunk ? done / 16 : 0, slab_stage(slab), half, sums);
        if (half == 0 && staged()) start_next(chunk, slab);
      }
    }
  }

  // The team's slab kAhead further on, and with a chunk's first slab its next chunk.
  void start_next(const Reg<u32>& chunk, u32 slab) {
    const u32 ahead = slab + kAhead;
    const u32 of_others = ahead < kChunkSlabs ? 0 : (s_.teams - 1) * kChunkSlabs;
    fill_slab_if_there(chunk * kChunkSlabs + (ahead + of_others), ahead % kSlabs);
    if (slab == 0) copy_chunk_if_there(chunk + s_.teams);
    k_.cp_async_commit_group();
  }

  // Steps `step` and `step` + 1 of a block, which are half `half` of the slab at `stage`.
  void add_steps(const typename Chunks::Lane& own, u32 step, const SharedPtr<std::byte, 16>& stage, u32 half,
                 Sums& sums) const {
    // Of two groups, two octets each: rows lane % 8 of octet lane / 8 % 2 of group lane / 16.
    const auto columns =
        stage + ((lane_ >> 4) * kGroupBytes + (lane_ >> 3 & 1u) * kOctetBytes + (lane_ & 7u) * kPiece);
    for (u32 i = 0; i < 2; ++i) {
      std::vector<A> a;  // [16 rows]
      for (u32 tile = 0; tile < kTiles; ++tile) a.push_back(A(weights_.registers(own, tile, step + i)));
      const u32 octet = (2 * half + i) * 2;
      for (u32 group = 0; group < s_.tile_m / kColumns; group += 2) {
        const auto octets =
            ldmatrix_x4(at<f16>(assume_aligned<16>(columns + (group * kGroupBytes + octet * kOctetBytes))));
        for (u32 j = 0; j < 2; ++j) {
          const B b({octets[2 * j], octets[2 * j + 1]});
          for (u32 tile = 0; tile < kTiles; ++tile)
            sums[tile][group + j] = mma(a[tile], b, sums[tile][group + j]);
        }
      }
    }
  }

  void team_barrier() const {
    if (s_.teams == 1) return k_.bar_sync(0);
    k_.bar_sync(team_ + kTeamBarrier, s_.team());
  }

  // ---- Sums

  // Where one of the second team's lies, for the same thread of the first.
  SharedPtr<f32> place(u32 tile, u32 group, u32 i) const {
    return at<f32>(shared_) + (thread_ + ((tile * (s_.tile_m / kColumns) + group) * 4 + i) * s_.team());
  }
  void keep(const Sums& sums) const {
    for (u32 tile = 0; tile < kTiles; ++tile) {
      for (u32 group = 0; group < s_.tile_m / kColumns; ++group) {
        for (u32 i = 0; i < 4; ++i) st_shared(place(tile, group, i), sums[tile][group][i]);
      }
    }
  }
  // Of the first team: with what the second one has kept.
  Reg<f32> total(const Sums& sums, u32 tile, u32 group, u32 i) const {
    const Reg<f32> own = sums[tile][group][i];
    return s_.teams == 1 ? own : own + ld_shared(place(tile, group, i));
  }

  void store(const Sums& sums) const {
    const Reg<u32> own_m = (lane_ & 3u) * 2u;
    const Reg<u32> first_m = tile_.first_m + own_m;
    const auto inverses = staged_inverses(g_, a_, m_);
    store_outputs(
        k_, g_, m_, first_m, tile_.first_n + warp_ * kWarpRows + (lane_ >> 2), s_.tile_m / kColumns,
        kRowsOfLane, g_.n % s_.tile_n == 0,
        [&](u32 group, u32 j, u32 r) { return total(sums, r / 2, group, r % 2 * 2 + j); },
        [&](u32 row) {
          return staged() ? ld_global(inverses + (first_m + row)) : scales_.inverse(own_m + row);
        });
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const Geometry s_;
  const Reg<u32> m_;
  const GlobalPtr<const std::byte, 16> a_;
  const Tile tile_;
  const Reg<u32> lane_, team_, thread_, warp_;
  const Chunks weights_;
  const SharedPtr<std::byte, 16> shared_, chunks_, slabs_;  // of the CTA; of the team
  const RowScales scales_;
  std::optional<StagedSlabs> staged_slabs_;
};

}  // namespace

Shape mma_shape(const Gemm& g) {
  const Geometry s = geometry_of(g);
  return {s.tile_m, s.tile_n, s.threads(), s.shared_bytes};
}

void build_mma(KernelBuilder& k, const Gemm& g) {
  const Shape shape = mma_shape(g);
  k.maxntid(shape.threads);
  k.minnctapersm(ctas_per_sm(g, geometry_of(g)));
  const SharedPtr<std::byte, 16> shared = at<std::byte>(k.dynamic_shared<u32, 128>());
  formats::with_format(g.format,
                       [&]<class F>(std::type_identity<F>) { MmaKernel<F>(k, g, shape, shared).build(); });
}

}  // namespace ptxgen::gemm
