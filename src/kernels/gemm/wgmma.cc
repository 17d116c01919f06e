// The f16 tensor cores of Hopper by wgmma.m64nNk16, N = tile_m: weights are A, in registers, activations B,
// in shared memory as they were staged. Roles:
//
//   consumers  a team or two, each two warpgroups of 64 rows of weights, or four of one. Teams take the
//              chunks of k in turn, so that one decodes while another multiplies. A warp has 16 rows, a lane
//              its bytes of two of them, as in schedule mma. While the tensor cores multiply a slab of 64
//              values, the next one is decoded.
//   copiers    one thread that brings chunks of weights into a ring, a tensor copy a stage; or, where that
//              cannot be or does not pay, three warps, by cp.async, in pieces of 16 bytes wherever blocks
//              begin. They start before the kernel that writes the activations has ended.
//   one thread that brings slabs of activations into another ring, a bulk copy each, or a set where the tile
//              has all rows of a.
//
// With ctas, a CTA takes tiles in turn, and copiers go on to the next while consumers store.
//
// With split_k, so many CTAs of a cluster share k. Each adds the sums of all, in their order, for a part of
// the outputs: those that the others have sent it, or, where shared memory has no room for them, have kept.
//
// A stage of weights is free when a consumer has read its registers from it; one of activations when the
// multiplications of the slab after it have been started and its own have ended.

#include <algorithm>
#include <optional>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/outputs.h"
#include "src/kernels/gemm/warpgroup_sums.h"
#include "src/kernels/gemm/wgmma_geometry.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/ring.h"

namespace ptxgen::gemm {
namespace {

constexpr u32 kSumsBarrier = 1, kPassBarrier = 3;
constexpr u32 kRowsTogether = 1024;  // of a

// How far a consumer has come in the rings.
struct Cursors {
  parts::Ring::Cursor chunk, slab, inverses;
};

// What belongs to a tile.
template <class F>
struct TilePart {
  Tile tile;
  Reg<u32> first_group, own_groups;  // of 8 rows of a: where its own begin in a, and how many there are
  WeightChunks<F> weights;
  // Where the CTA has several: its number among them; this is the first sweep over the first; its rows are
  // not those of the sweep before.
  std::optional<Reg<u32>> turn = {};
  std::optional<Pred> first = {}, other_rows = {};
};

template <class F>
class WgmmaKernel {
  using Chunks = WeightChunks<F>;
  using Part = TilePart<F>;

 public:
  // `tensor`: of the weights; nothing where they are copied in pieces.
  WgmmaKernel(KernelBuilder& k, const Gemm& g, const Shape& shape, const std::optional<TensorMapPtr>& tensor,
              const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        g_(g),
        s_(geometry_of(g)),
        shape_(shape),
        m_(k.param(&Gemm::Args::m)),
        a_(k.param(&Gemm::Args::a)),
        tensor_(tensor),
        thread_(k.tid_x()),
        lane_(thread_ & 31u),
        warp_(shfl_sync_idx(thread_ / 32u, 0u, 0x1fu, 0xffffffffu)),
        groups_((m_ + (kSlabGroupRows - 1)) / kSlabGroupRows),
        rank_(s_.split > 1 ? k.cluster_ctarank() : k.constant<u32>(0)),
        first_chunk_(s_.split > 1 ? first_chunk_of(rank_) : k.constant<u32>(0)),
        end_chunk_(end_chunk()),
        received_(at<f32>(assume_aligned<16>(shared + (s_.slab_bytes() + s_.stages * s_.stage)))),
        sums_(s_.kept ? received_ : at<f32>(shared)),
        slabs_(k, shared, s_.slab_sets, s_.set()),
        chunks_(k, assume_aligned<16>(shared + s_.slab_bytes()), s_.stages, s_.stage),
        inverses_(k, at<std::byte>(k.shared<f32, 16>(s_.columns)), 1, s_.columns * sizeof(f32)) {
    if (!in_turn()) own_.emplace(part_of(number_of_cta(k, shape)));
  }

  void build() {
    parts::launch_dependents(k_);
    if (s_.received) k_.barrier_cluster_arrive();
    const Passes passes(k_, s_.threads());
    k_.if_(thread_ == 0u, [&] { passes.init(); });
    const auto run = [&](bool copies, absl::FunctionRef<void(const Passes::Pass&)> role) {
      passes.run([&](const Passes::Pass& pass) { begin(pass, copies), role(pass); }, [&] { end(copies); });
    };
    // From a shuffle of its own: of one of warp_ the builder does not see that a warpgroup has it in common.
    const Reg<u32> warpgroup = shfl_sync_idx(thread_ / kWarpgroup, 0u, 0x1fu, 0xffffffffu);
    const Registers registers = registers_of(s_);
    k_.if_(
        warpgroup < s_.consumers() / kWarpgroup,
        [&] {
          if (registers.consumer) k_.setmaxnreg_inc(registers.consumer);
          if (s_.received) k_.barrier_cluster_wait();  // all have begun, and can be sent sums
          RowUnits<F> units(k_, kRowsOfLane);
          run(false, [&](const Passes::Pass& pass) {
            consume(passes, pass, warpgroup / s_.team_warpgroups(), units);
          });
        },
        [&] {
          if (registers.copier) k_.setmaxnreg_dec(registers.copier);
          run(true, [&](const Passes::Pass& pass) {
            k_.if_(
                thread_ < s_.consumers() + kCopiers, [&] { copy_weights(pass); },
                [&] { k_.if_(lane_ == 0u, [&] { copy_activations(pass); }); });
          });
          if (s_.received) k_.barrier_cluster_wait();
        });
    if (s_.received) {
      meet();
      add_received();
    } else if (s_.split > 1) {
      meet();
      add_kept();
      meet();  // nobody ends while others read its sums
    }
  }

 private:
  // A pass begins with empty rings, the first perhaps with a box on its way; in a second one that could come
  // over sums, whose fences count for it only behind the barrier.
  void begin(const Passes::Pass& pass, bool copies) const {
    const u32 readers = s_.chunks_in_stage * s_.team_warps();
    if (copies && copies_ahead()) {
      k_.if_(thread_ == s_.consumers(), [&] {
        chunks_.init_one(k_.constant<u32>(0), readers);
        k_.if_(!pass.second(), [&] { copy_first_box(); });
      });
    }
    slabs_.init_by_warps(warp_, lane_, s_.team_warps());
    chunks_.init_by_warps(warp_, lane_, readers, tensor_ ? 1 : kCopiers, copies_ahead());
    inverses_.init_by_warps(warp_, lane_, s_.team_warps());
    clear_missing_groups();
    k_.bar_sync(kPassBarrier, s_.threads());
  }
  void end(bool copies) const {
    k_.fence_proxy_async_shared_cta();  // sums may lie where stages come again
    slabs_.end_by_warps(warp_, lane_);
    if (copies && copies_ahead())
      k_.if_(thread_ == s_.consumers(), [&] { chunks_.end_one(k_.constant<u32>(0)); });
    chunks_.end_by_warps(warp_, lane_, copies_ahead());
    inverses_.end_by_warps(warp_, lane_);
  }

  // Whether a CTA has several tiles, one after the other.
  bool in_turn() const { return g_.ctas > 0; }
  // Tile `number` of those that CTAs take in turn: all with the first kRowsTogether rows of a, then all with
  // the next, so that what CTAs read of a at a time finds room in the L2 cache.
  Tile tile_in_turn(const Reg<u32>& number) const {
    const u32 together = kRowsTogether / s_.columns, of_block = together * tiles_of_n();
    const Reg<u32> block = number / of_block, in_block = number % of_block;
    const Reg<u32> width = (min)(tiles_of_m(shape_, m_) - block * together, together);
    const Reg<u32> of_n = in_block / width;
    return {(block * together + in_block - of_n * width) * s_.columns, of_n * s_.rows};
  }
  Part part_of(const Reg<u32>& number) const {
    const Tile tile = in_turn() ? tile_in_turn(number) : tile_at(shape_, m_, number);
    const Reg<u32> first_group = tile.first_m / kSlabGroupRows;
    return {tile, first_group, (min)(groups_ - first_group, s_.columns / kSlabGroupRows),
            Chunks(k_, g_, assume_aligned<16>(k_.param(&Gemm::Args::weights)), tile.first_n, lane_,
                   s_.chunks_in_stage)};
  }

  // visit(part) for the CTA's tiles. Of several, a second pass has those that need it, twice each: first for
  // their rows' units, then for the sums.
  template <class Visit>
  void for_each_tile(const Passes::Pass& pass, Visit&& visit) const {
    if (!in_turn()) return visit(*own_);
    const Reg<u32> tiles = tiles_of_m(shape_, m_) * tiles_of_n();
    Var<u32> number = k_.var<u32>(k_.ctaid_x()), sweep = k_.var<u32>(0u);
    k_.while_([&] { return number < tiles; },
              [&] {
                const Reg<u32> turn = number / g_.ctas;
                k_.if_(pass.has(turn), [&] {
                  Part part = part_of(number);
                  part.turn.emplace(turn);
                  part.first.emplace(turn == 0u && sweep == 0u);
                  part.other_rows.emplace(sweep == 0u);
                  visit(part);
                });
                const Pred once_more = pass.second() && sweep == 0u;
                number = selp(number, number + g_.ctas, once_more);
                sweep = selp(k_.constant<u32>(1), k_.constant<u32>(0), once_more);
              });
  }

  u32 tiles_of_n() const { return (g_.n + s_.rows - 1) / s_.rows; }
  u32 whole_chunks() const { return g_.k / kChunkValues; }
  u32 rest() const { return g_.k % kChunkValues; }
  static u32 slabs_of(u32 values) { return (values + kSlabValues - 1) / kSlabValues; }
  // The CTA of rank `rank` begins with a whole stage.
  Reg<u32> first_chunk_of(const Reg<u32>& rank) const {
    const u32 stages = whole_chunks() / s_.chunks_in_stage;
    return rank * stages / s_.split * s_.chunks_in_stage;
  }
  Reg<u32> end_chunk() const {
    const Reg<u32> all = k_.constant<u32>(whole_chunks());
    return s_.split == 1 ? all : selp(all, first_chunk_of(rank_ + 1u), rank_ == s_.split - 1);
  }

  // visit(chunk, values) for all values that are the CTA's, `chunks` chunks at a time. What is left after as
  // many is the last CTA's.
  template <class Visit>
  void for_each_chunk(u32 chunks, Visit&& visit) const {
    const u32 values = chunks * kChunkValues, rest = g_.k % values;
    const Reg<u32> end = end_chunk_ / chunks * chunks;
    k_.for_(first_chunk_, end, chunks, [&](const Reg<u32>& chunk) { visit(chunk, values); });
    if (rest == 0) return;
    const auto add = [&] { visit(k_.constant<u32>(g_.k / values * chunks), rest); };
    if (s_.split == 1) return add();
    k_.if_(rank_ == s_.split - 1, add);
  }

  // Rows of a past the last group are in no copy, and their products are not kept; but a multiplication reads
  // them.
  void clear_missing_groups() const {
    const u32 whole = s_.columns / kSlabGroupRows;
    const Pred some_missing = in_turn() ? groups_ % whole != 0u : own_->own_groups < whole;
    k_.if_(some_missing, [&] {
      k_.for_(thread_, s_.slab_bytes() / kPiece, s_.threads(), [&](const Reg<u32>& piece) {
        const Reg<u32> zero = k_.constant<u32>(0);
        st_shared_v4(at<u32>(assume_aligned<16>(slabs_.stage(0u) + piece * kPiece)),
                     {zero, zero, zero, zero});
      });
      k_.fence_proxy_async_shared_cta();
    });
  }

  // ---- Producers

  void copy_weights(const Passes::Pass& pass) const {
    if (!tensor_) return copy_pieces(pass);
    k_.if_(thread_ == s_.consumers(), [&] { copy_boxes(pass); });
  }

  // Until the stage for chunk `chunk` is free; and in the ring's first round, until the one before has
  // landed: while the kernels before end, what they and then this one read of activations would wait behind a
  // whole ring of weights.
  void await_stage(const Part& part, const Reg<u32>& chunk, const parts::Ring::Cursor& to) const {
    const Reg<u32> asked_for = chunk - first_chunk_;
    Pred first_round = asked_for > 0u && asked_for < s_.stages * s_.chunks_in_stage;
    if (part.first) first_round = first_round && *part.first;
    k_.if_(first_round, [&] { chunks_.wait_first(to.stage() - 1u); });
    chunks_.wait_free(to);
  }

  // Whether a CTA's first box, where all have one, is asked for before the other barriers have begun.
  // Measured on an H200: this helps where little of k is left to wait for, and hinders who stages long rows.
  bool copies_ahead() const {
    constexpr u32 kFewColumns = 16, kMostValues = 8192;
    const bool all_have_one = whole_chunks() / s_.chunks_in_stage >= s_.split;
    return tensor_ && all_have_one && s_.columns <= kFewColumns && g_.k <= kMostValues;
  }
  void copy_first_box() const {
    copy_box(in_turn() ? part_of(k_.ctaid_x()) : *own_, first_chunk_, k_.constant<u32>(0));
  }
  void copy_box(const Part& part, const Reg<u32>& chunk, const Reg<u32>& stage) const {
    const auto full = chunks_.announce(stage, k_.constant<u32>(s_.stage));
    part.weights.copy_box(assume_aligned<128>(chunks_.stage(stage)), chunk, *tensor_, full);
  }
  void copy_boxes(const Passes::Pass& pass) const {
    parts::Ring::Cursor to = chunks_.cursor();
    for_each_tile(pass, [&](const Part& part) {
      for_each_chunk(s_.chunks_in_stage, [&](const Reg<u32>& chunk, u32) {
        const auto copy = [&] {
          await_stage(part, chunk, to);
          copy_box(part, chunk, to.stage());
        };
        if (copies_ahead()) {
          Pred on_its_way = chunk == first_chunk_ && !pass.second();
          if (part.first) on_its_way = on_its_way && *part.first;
          k_.if_(!on_its_way, copy);
        } else {
          copy();
        }
        to.advance();
      });
    });
  }

  void copy_pieces(const Passes::Pass& pass) const {
    parts::Ring::Cursor to = chunks_.cursor();
    for_each_tile(pass, [&](const Part& part) {
      for_each_chunk(s_.chunks_in_stage, [&](const Reg<u32>& chunk, u32 values) {
        await_stage(part, chunk, to);
        part.weights.copy(chunks_.stage(to.stage()), chunk, values, s_.rows, thread_ - s_.consumers(),
                          kCopiers);
        chunks_.announce_copied(to.stage());
        to.advance();
      });
    });
  }

  void copy_activations(const Passes::Pass& pass) const {
    parts::wait_for_predecessor(k_);
    parts::Ring::Cursor to = slabs_.cursor(), to_inverses = inverses_.cursor();
    for_each_tile(pass, [&](const Part& part) {
      copy_slabs(part, to);
      copy_inverses(part, to_inverses);  // last, as they are needed last
    });
  }

  void copy_slabs(const Part& part, parts::Ring::Cursor& to) const {
    const Reg<u32> bytes = part.own_groups * kGroupBytes;
    const Reg<u64> pitch = cvt<u64>(groups_) * u64{kGroupBytes};
    for_each_chunk(1, [&](const Reg<u32>& chunk, u32 values) {
      const u32 slabs = slabs_of(values);
      for (u32 first = 0; first < slabs; first += s_.slabs_in_set) {
        const u32 count = std::min(s_.slabs_in_set, slabs - first);
        slabs_.wait_free(to);
        const auto barrier = slabs_.announce(to.stage(), bytes * count);
        const auto from = a_ + (cvt<u64>(chunk * kChunkSlabs + first) * pitch +
                                cvt<u64>(part.first_group) * u64{kGroupBytes});
        const auto one_by_one = [&] {
          for (u32 i = 0; i < count; ++i) {
            cp_async_bulk_shared_global(assume_aligned<16>(slabs_.stage(to.stage()) + i * s_.slab),
                                        assume_aligned<16>(from + pitch * u64{i}), bytes, barrier);
          }
        };
        if (count == 1) {
          one_by_one();
        } else {
          const auto together = [&] {
            cp_async_bulk_shared_global(slabs_.stage(to.stage()), assume_aligned<16>(from), bytes * count,
                                        barrier);
          };
          // Where the tile has all rows of a, its slabs lie one behind the other on both sides.
          k_.if_(groups_ == s_.columns / kSlabGroupRows, together, one_by_one);
        }
        to.advance();
      }
    });
  }

  // What the rows' products are multiplied with in the end.
  void copy_inverses(const Part& part, parts::Ring::Cursor& to) const {
    const auto from = staged_inverses(g_, a_, m_) + part.tile.first_m;
    const Reg<u32> bytes = part.own_groups * (kSlabGroupRows * sizeof(f32));
    if (in_turn()) inverses_.wait_free(to);
    cp_async_bulk_shared_global(inverses_.stage(0u), assume_aligned<16>(at<const std::byte>(from)), bytes,
                                inverses_.announce(0u, bytes));
    if (in_turn()) to.advance();
  }

  // ---- Consumers

  void consume(const Passes& passes, const Passes::Pass& pass, const Reg<u32>& team,
               RowUnits<F>& units) const {
    const Reg<u32> none = k_.constant<u32>(0);
    Cursors at = {chunks_.cursor(s_.stage_step() > 1 ? team / s_.chunks_in_stage : none),
                  slabs_.cursor(team * s_.sets_in_chunk()), inverses_.cursor()};
    for_each_tile(pass, [&](const Part& part) {
      if (part.other_rows) units.forget(*part.other_rows);
      multiply_tile(part, team, at, units);
      k_.if_(units.refit(), [&] { part.turn ? passes.request(*part.turn) : passes.request(); });
    });
  }

  void multiply_tile(const Part& part, const Reg<u32>& team, Cursors& at, RowUnits<F>& units) const {
    const std::unique_ptr<WarpgroupSums> sums = make_warpgroup_sums(k_, s_.columns);
    // Teams take chunks in turn, of one stage where it has one for each.
    const Reg<u32> none = k_.constant<u32>(0);
    const Reg<u32> in_stage = s_.chunks_in_stage > 1 ? team % s_.chunks_in_stage : none;
    Var<u32> before = k_.var<u32>(0u);
    const Reg<u32> first = first_chunk_ + team;
    const auto add = [&](const Reg<u32>& chunk, u32 values, const Pred& later) {
      add_chunk(part, chunk, in_stage, values, later, at, before, units, *sums);
    };
    k_.for_(first, end_chunk_, s_.teams,
            [&](const Reg<u32>& chunk) { add(chunk, kChunkValues, chunk > first); });
    if (rest()) {
      const Reg<u32> chunk = k_.constant<u32>(whole_chunks());
      Pred own = team == (s_.teams > 1 ? (chunk - first_chunk_) % s_.teams : none);
      if (s_.split > 1) own = own && rank_ == s_.split - 1;
      k_.if_(own, [&] { add(chunk, rest(), chunk > first); });
    }
    k_.wgmma_wait_group(0);
    if (in_turn()) slabs_.release(before, lane_);
    inverses_.wait_full(at.inverses);
    sums->scale(units.inverse(0), units.inverse(1));
    const auto store_tile = [&] {
      store(part.tile, *sums);
      if (in_turn()) inverses_.release(at.inverses, lane_);
    };
    if (s_.teams == 1 && s_.split == 1) {
      store_tile();
      if (in_turn()) at.inverses.advance();
      return;
    }
    // Where sums come in place of the stages, these are no longer read. Where they lie behind them, the sums
    // of the tile before have been added: after that the first team lets go of that tile's scales, and this
    // tile's, for which all have waited, come in their place.
    if (!s_.kept && (s_.teams > 1 || !s_.received)) k_.bar_sync(kSumsBarrier, s_.consumers());
    if (s_.teams > 1) {
      k_.if_(team > 0u, [&] { keep(*sums, team); });
      k_.bar_sync(kSumsBarrier, s_.consumers());
    }
    k_.if_(team == 0u, [&] {
      if (s_.received) {
        send(*sums);
      } else if (s_.split > 1) {
        keep_total(*sums);
      } else {
        store_tile();
      }
    });
    if (in_turn()) at.inverses.advance();
  }

  Reg<u32> warp_in_team() const { return thread_ / 32u % s_.team_warps(); }
  Reg<u32> row_in_tile() const { return warp_in_team() * kRowsOfWarp; }

  // `later`: a slab has been multiplied before, from stage `before`.
  void add_chunk(const Part& part, const Reg<u32>& chunk, const Reg<u32>& in_stage, u32 values,
                 const Pred& later, Cursors& at, Var<u32>& before, RowUnits<F>& units,
                 WarpgroupSums& sums) const {
    const u32 slabs = slabs_of(values);
    std::optional<typename Chunks::Lane> own;
    chunks_.wait_full(at.chunk);
    const auto load = [&](u32 block) {
      own = part.weights.load(chunks_.stage(at.chunk.stage()), chunk, in_stage, block, row_in_tile(), units,
                              !later);
    };
    for (u32 i = 0; i < slabs; ++i) {
      std::vector<WarpgroupA> a;
      for (u32 step = 0; step < kSlabSteps && i * kSlabValues + step * 16 < values; ++step) {
        const u32 first = i * kSlabValues + step * 16;
        if (first % info(F::kFormat).block_values == 0) load(first / info(F::kFormat).block_values);
        a.push_back(WarpgroupA(part.weights.registers(*own, 0, first % info(F::kFormat).block_values / 16)));
      }
      const bool last_load = Chunks::kWholeChunk ? i == 0 : i + 1 == slabs;
      if (last_load) {
        chunks_.release(at.chunk, lane_);
        at.chunk.advance(s_.stage_step());
      }
      const u32 in_set = i % s_.slabs_in_set;
      if (in_set == 0) slabs_.wait_full(at.slab);
      multiply(a, at.slab, in_set, sums);
      // After the second of four: ptxas serialises multiplications of more than two slabs on end (C7513).
      if (in_set == s_.slabs_in_set / 4) release_before(i >= s_.slabs_in_set, later, before);
      if (in_set + 1 < s_.slabs_in_set && i + 1 < slabs) continue;
      before = at.slab.stage();
      at.slab.advance(i + 1 < slabs ? 1 : 1 + (s_.teams - 1) * s_.sets_in_chunk());
    }
  }

  void release_before(bool surely, const Pred& later, const Var<u32>& before) const {
    if (surely) return slabs_.release(before, lane_);
    k_.if_(later, [&] { slabs_.release(before, lane_); });
  }

  // Starts the multiplications of slab `i` of a set, and waits for those of the one before.
  void multiply(const std::vector<WarpgroupA>& a, const parts::Ring::Cursor& set, u32 i,
                WarpgroupSums& sums) const {
    const MatrixDescriptor<f16> b(at<f16>(slabs_.stage(set.stage())),
                                  {.leading_bytes = kOctetBytes, .stride_bytes = kGroupBytes});
    k_.wgmma_fence();
    for (u32 step = 0; step < a.size(); ++step)
      sums.add(a[step], b.advance(i * s_.slab + step * 2 * kOctetBytes));
    k_.wgmma_commit_group();
    k_.wgmma_wait_group(1);
  }

  void store(const Tile& tile, const WarpgroupSums& sums) const {
    const Reg<u32> first_m = tile.first_m + (lane_ & 3u) * 2u;
    const Reg<u32> first_n = tile.first_n + row_in_tile() + (lane_ >> 2);
    parts::wait_for_predecessor(k_);
    store_outputs(
        k_, g_, m_, first_m, first_n, s_.columns / kSlabGroupRows, kRowsOfLane, g_.n % s_.rows == 0,
        [&](u32 group, u32 j, u32 r) { return total(sums, group, r * 2 + j); },
        [&](u32 row) { return ld_shared(inverse_of((lane_ & 3u) * 2u + row)); });
  }

  // What products with row `column` of the tile are multiplied with.
  SharedPtr<f32> inverse_of(const Reg<u32>& column) const {
    return assume_aligned<4>(at<f32>(inverses_.stage(0u))) + column;
  }

  // ---- Sums over teams and a cluster

  // What teams but the first keep for it, and then the first for the cluster. Where accumulator `i` of a
  // group lies, of each team's lane alike.
  SharedPtr<f32> place(u32 group, u32 i) const {
    const Reg<u32> column = (lane_ & 3u) * 2u, row = row_in_tile() + (lane_ >> 2);
    const auto own = sums_ + (column * s_.sums_pitch() + row);
    return own + ((group * kSlabGroupRows + i % 2) * s_.sums_pitch() + i / 2 * 8);
  }
  // Of the first team: with what the others have kept.
  Reg<f32> total(const WarpgroupSums& sums, u32 group, u32 i) const {
    Reg<f32> sum = sums[group * 4 + i];
    for (u32 other = 0; other + 1 < s_.teams; ++other)
      sum = sum + ld_shared(place(group, i) + other * s_.sums_of_team());
    return sum;
  }
  void for_each_sum(absl::FunctionRef<void(u32 group, u32 i)> visit) const {
    for (u32 group = 0; group < s_.columns / kSlabGroupRows; ++group) {
      for (u32 i = 0; i < 4; ++i) visit(group, i);
    }
  }
  // By another team than the first; by the first.
  void keep(const WarpgroupSums& sums, const Reg<u32>& team) const {
    const Reg<u32> before = s_.teams > 2 ? (team - 1u) * s_.sums_of_team() : k_.constant<u32>(0);
    for_each_sum([&](u32 group, u32 i) { st_shared(place(group, i) + before, sums[group * 4 + i]); });
  }
  void keep_total(const WarpgroupSums& sums) const {
    for_each_sum([&](u32 group, u32 i) {
      const Reg<f32> sum = total(sums, group, i);
      st_shared(place(group, i), sum);
    });
  }

  void meet() const {
    k_.barrier_cluster_arrive();
    k_.barrier_cluster_wait();
  }

  // Rank r of the cluster adds and stores what warps first_warp_of(r) up to first_warp_of(r + 1) have, and is
  // sent all sums of theirs: f32 [split][own_warps()][columns / 2][32], those of each rank, warp and lane.
  Reg<u32> first_warp_of(const Reg<u32>& rank) const {
    return (rank * s_.team_warps() + (s_.split - 1)) / s_.split;
  }
  // By the first team.
  void send(const WarpgroupSums& sums) const {
    const Reg<u32> warp = warp_in_team();
    const Reg<u32> owner = warp * s_.split / s_.team_warps();
    const Reg<u32> place = rank_ * s_.own_warps() + (warp - first_warp_of(owner));
    const auto to = mapa(received_, owner) + (place * s_.sums_of_warp() + lane_);
    for_each_sum(
        [&](u32 group, u32 i) { st_shared_cluster(to + (group * 4 + i) * 32, total(sums, group, i)); });
  }
  void add_received() const {
    parts::wait_for_predecessor(k_);
    const Reg<u32> first_warp = first_warp_of(rank_);
    const Reg<u32> own = (first_warp_of(rank_ + 1u) - first_warp) * s_.sums_of_warp();
    k_.for_(thread_, own, s_.threads(), [&](const Reg<u32>& place) {
      const Reg<u32> lane = place & 31u, i = place / 32u % (s_.columns / 2);
      const Reg<u32> column = i / 4u * kSlabGroupRows + (lane & 3u) * 2u + (i & 1u);
      const Reg<u32> row =
          (first_warp + place / s_.sums_of_warp()) * kRowsOfWarp + (i >> 1 & 1u) * 8u + (lane >> 2);
      put(column, row, [&] {
        Reg<f32> sum = ld_shared(received_ + place);
        for (u32 from = 1; from < s_.split; ++from)
          sum = sum + ld_shared(received_ + place + from * s_.own_warps() * s_.sums_of_warp());
        return sum;
      });
    });
  }
  void add_kept() const {
    parts::wait_for_predecessor(k_);
    std::vector<ClusterSharedPtr<f32, 16>> of_ranks;
    for (u32 rank = 0; rank < s_.split; ++rank) of_ranks.push_back(mapa(sums_, k_.constant<u32>(rank)));
    k_.for_(rank_ * s_.threads() + thread_, s_.columns * s_.rows, s_.split * s_.threads(),
            [&](const Reg<u32>& i) {
              const Reg<u32> column = i / s_.rows, row = i % s_.rows;
              put(column, row, [&] {
                const Reg<u32> place = column * s_.sums_pitch() + row;
                Reg<f32> sum = ld_shared_cluster(of_ranks[0] + place);
                for (u32 rank = 1; rank < s_.split; ++rank)
                  sum = sum + ld_shared_cluster(of_ranks[rank] + place);
                return sum;
              });
            });
  }

  // Output (column, row) of the tile, if there is one.
  template <class Sum>
  void put(const Reg<u32>& column, const Reg<u32>& row, Sum&& sum) const {
    const Reg<u32> m = own_->tile.first_m + column;
    const Reg<u32> n = own_->tile.first_n + row;
    k_.if_(m < m_ && n < g_.n, [&] {
      const Reg<f32> value = sum();
      st_global(k_.param(&Gemm::Args::c) + (cvt<u64>(m) * u64{g_.n} + cvt<u64>(n)),
                value * ld_shared(inverse_of(column)));
    });
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const Geometry s_;
  const Shape& shape_;
  const Reg<u32> m_;
  const GlobalPtr<const std::byte, 16> a_;
  const std::optional<TensorMapPtr> tensor_;
  const Reg<u32> thread_, lane_, warp_;
  const Reg<u32> groups_;                   // of 8 rows of a
  const Reg<u32> rank_;                     // in the cluster
  const Reg<u32> first_chunk_, end_chunk_;  // whole ones
  const SharedPtr<f32, 16> received_;       // behind the stages, from all of the cluster
  const SharedPtr<f32, 16> sums_;  // there or in place of slabs and stages, for the first team or the cluster
  const parts::Ring slabs_, chunks_;
  const parts::Ring inverses_;  // of the tile's rows of a
  std::optional<Part> own_;     // of a CTA that has one tile
};

}  // namespace

Shape wgmma_shape(const Gemm& g) {
  const Geometry s = geometry_of(g);
  return {s.columns, s.rows, s.threads(), s.shared_bytes, s.split};
}

bool wgmma_takes_turns(const Gemm& g) {
  if (g.tile_n || g.split_k) return false;
  Gemm in_turn = g;
  in_turn.ctas = 1;
  const Geometry s = geometry_of(in_turn);
  if (s.teams == 1) return true;
  // Each stage and set must be the same team's in every tile; and fewer than two chunks for each are no ring.
  return g.k % (s.teams * kChunkValues) == 0 && s.stages * s.chunks_in_stage >= 2 * s.teams;
}

std::optional<TiledTensor> wgmma_tensor(const Gemm& g, u64 weights) {
  const Geometry s = geometry_of(g);
  const ChunkLayout layout(g, s.chunks_in_stage);
  if (!layout.boxes) return std::nullopt;
  return layout.tensor(weights, g.n, s.rows);
}

void build_wgmma(KernelBuilder& k, const Gemm& g) {
  const Shape shape = wgmma_shape(g);
  std::optional<TensorMapPtr> tensor;
  if (wgmma_tensor(g, 0)) tensor = k.tensor_map();
  k.maxntid(shape.threads);
  k.minnctapersm(1);
  if (shape.split_k > 1) k.cluster(shape.split_k);
  const SharedPtr<std::byte, 16> shared = at<std::byte>(k.dynamic_shared<u32, 128>());
  formats::with_format(
      g.format, [&]<class F>(std::type_identity<F>) { WgmmaKernel<F>(k, g, shape, tensor, shared).build(); });
}

}  // namespace ptxgen::gemm
