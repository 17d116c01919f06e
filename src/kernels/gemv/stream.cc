// Weights depend on no earlier kernel. So a producer lane copies them into a ring in shared memory from the
// first cycle on, while the kernel before this one still runs; the consumers wait for its end, take the
// activations, and then only for weights.
//
// Work.   CTA c of a job's takes rows [c n / ctas, (c + 1) n / ctas): one contiguous range of bytes, in tiles
// of
//         whole rows. A part of a block, 64 or 32 values, goes to one lane; row_lanes neighbouring lanes
//         share a row, a slice of its columns, and a warp takes the same slice of 32 / row_lanes rows at
//         once. Warps are numbered slice + slices * group. A lane's columns are the same for all the CTA's
//         rows: its activations stay in registers.
// Sums.   Lanes of a row are added by shuffles, each slice leaves a partial sum per row in shared memory, and
//         at the end these are added in the order of the slices.
// Pace.   The next kernel's CTA starts where one of the kernel before this ended: just when this kernel's
//         consumers fetch the activations, and these would queue behind a whole ring of its copies. So only
//         in_flight tiles are on their way at once, and half as many at first.
// Next.   launch_dependents is issued at once, or when `trigger` tiles remain to be loaded, so that the next
//         kernel's ring does not fill early; but its start takes time then, and at once was the fastest.

#include "src/kernels/gemv/stream.h"

#include <algorithm>
#include <bit>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemv/producer.h"
#include "src/kernels/gemv/stream_activations.h"
#include "src/kernels/parts/per_thread.h"
#include "src/kernels/parts/requires.h"

namespace ptxgen::gemv {
namespace {

using parts::Bytes;

// Sums each of the values, a power of two, over `lanes` neighbouring lanes. While several remain, lanes swap
// halves of them and keep one half each. Returns the number of the value in front, which lanes /
// values.size() neighbours then hold. The order of additions depends on `lanes` alone.
Reg<u32> exchange_sums(std::vector<Reg<f32>>& values, u32 lanes, const Reg<u32>& lane) {
  KernelBuilder& k = *lane.kernel();
  Reg<u32> index = k.constant<u32>(0);
  for (u32 distance = lanes / 2; distance > 0; distance /= 2) {
    const auto received = [&](const Reg<f32>& value) {
      return shfl_sync_bfly(value, distance, 0x1fu, parts::kAllLanes);
    };
    const std::size_t half = values.size() / 2;
    if (half == 0) {
      const Reg<f32> other = received(values[0]);
      values[0] = values[0] + other;
      continue;
    }
    const Pred upper = (lane & distance) != 0u;
    for (std::size_t i = 0; i < half; ++i) {
      const Reg<f32> other = received(selp(values[i], values[i + half], upper));
      values[i] = selp(values[i + half], values[i], upper) + other;
    }
    values.resize(half, values[0]);
    index = index + selp(k.constant<u32>(static_cast<u32>(half)), k.constant<u32>(0), upper);
  }
  return index;
}

// silu(gate) * up, where silu(x) = x / (1 + exp(-x)).
Reg<f32> swiglu(const Reg<f32>& gate, const Reg<f32>& up) {
  constexpr f32 kMinusLog2E = -1.442695041f;
  return gate * rcp_approx(ex2_approx(gate * kMinusLog2E) + 1.f) * up;
}

// One job, by the CTAs that have it.
template <class F>
class JobKernel {
  static constexpr u32 W = kPartBytes<F>;
  static constexpr u32 kBlockBytes = info(F::kFormat).block_bytes;
  using Raw = typename F::template Raw<W>;
  using Part = formats::Part<W>;

 public:
  JobKernel(KernelBuilder& k, const Stream& s, std::size_t job, const StreamPointers& pointers,
            std::size_t first_matrix, const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        s_(s),
        job_(s.jobs[job]),
        index_(job),
        g_(stream_geometry(s, job)),
        pointers_(pointers),
        first_matrix_(first_matrix),
        lane_(k.tid_x() & 31u),
        warp_(k.tid_x() >> 5),
        cta_(g_.first_cta ? k.ctaid_x() - g_.first_cta : k.ctaid_x()),
        first_row_(cta_ * g_.least_rows + (min)(cta_, job_.n % g_.ctas)),
        rows_(rows_of_cta()),
        ring_(k, shared, s.plan.stages, g_.stage_bytes),
        activations_(k, s_, g_, pointers_, assume_aligned<16>(shared + s.plan.stages * g_.stage_bytes),
                     g_.consumers * 32),
        partials_(at<f32>(
            assume_aligned<16>(shared + (s.plan.stages * g_.stage_bytes + s.max_m * g_.activation_bytes)))) {}

  void build() {
    k_.if_(k_.tid_x() == g_.consumers * 32, [&] { begin(); });
    k_.bar_sync(0);
    k_.if_(
        warp_ == g_.consumers, [&] { k_.if_(lane_ == 0u, [&] { produce(); }); },
        [&] {
          consume();
          k_.bar_sync(1, g_.consumers * 32);
          finish();
        });
  }

 private:
  Reg<u32> rows_of_cta() const {
    const u32 more = job_.n % g_.ctas;
    if (more == 0) return k_.constant<u32>(g_.least_rows);
    return selp(k_.constant<u32>(g_.most_rows), k_.constant<u32>(g_.least_rows), cta_ < more);
  }
  Reg<u32> tiles() const {
    if (g_.tiles(g_.least_rows) == g_.tiles(g_.most_rows)) return k_.constant<u32>(g_.tiles(g_.most_rows));
    return (rows_ + (g_.tile_rows - 1)) / g_.tile_rows;
  }

  // ---- A stage

  // Where in it the first byte of a tile lies.
  Reg<u32> first_byte(const Reg<u32>& tile) const {
    const bool same = g_.tile_rows * g_.row_bytes % kLineBytes == 0;
    return (same ? first_row_ : first_row_ + tile * g_.tile_rows) * g_.row_bytes & g_.kept_bits;
  }
  // Where the 16 bytes around it go.
  SharedPtr<std::byte, 16> place_of(const Reg<u32>& tile, const Reg<u32>& stage, u32 matrix) const {
    const auto begin = assume_aligned<16>(ring_.stage(stage) + matrix * g_.matrix_bytes);
    return g_.kept_bits < 16 ? begin : assume_aligned<16>(begin + (first_byte(tile) & ~15u));
  }

  // ---- The producer: one lane

  Producer producer() const {
    return {k_,
            ring_,
            g_.tiles(g_.least_rows),
            g_.tiles(g_.most_rows),
            tiles(),
            s_.plan.in_flight,
            s_.plan.trigger};
  }
  void begin() {
    const Producer order = producer();
    order.allow_next_at_once();
    ring_.init(g_.consumers);
    order.begin([&](const Reg<u32>& tile, const Reg<u32>& stage) { copy_tile(tile, stage); });
  }
  void produce() {
    producer().rest([&](const Reg<u32>& tile, const Reg<u32>& stage) { copy_tile(tile, stage); });
  }

  const GlobalPtr<const std::byte, 16>& weights(u32 matrix) const {
    return pointers_.weights[first_matrix_ + matrix];
  }

  void copy_tile(const Reg<u32>& tile, const Reg<u32>& stage) {
    const Reg<u32> row = tile * g_.tile_rows;
    const Reg<u32> bytes = (min)(rows_ - row, g_.tile_rows) * g_.row_bytes;
    const Reg<u64> begin = cvt<u64>(first_row_ + row) * u64{g_.row_bytes};
    const auto target = [&](u32 matrix) { return place_of(tile, stage, matrix); };
    if (!g_.whole_vectors) return copy_ragged(begin, bytes, stage, target);
    const auto barrier = ring_.announce(stage, bytes * job_.matrices);
    for (u32 matrix = 0; matrix < job_.matrices; ++matrix) {
      cp_async_bulk_shared_global(target(matrix), assume_aligned<16>(weights(matrix) + begin), bytes,
                                  barrier);
    }
  }

  template <class Target>
  void copy_ragged(const Reg<u64>& begin, const Reg<u32>& bytes, const Reg<u32>& stage, Target&& target) {
    const RaggedCopy ragged(k_, u64{job_.n} * g_.row_bytes, begin, bytes);
    const auto source = [&](u32 matrix) { return weights(matrix); };
    ragged.store_tail(job_.matrices, source, target);
    const auto barrier = ring_.announce(stage, ragged.bytes() * job_.matrices);
    ragged.copy(job_.matrices, source, target, barrier);
  }

  // ---- The consumers: warps

  // What a lane has of every tile.
  struct Share {
    Reg<u32> slice, first_row, block_offset;
    typename F::Place place;
  };

  void consume() {
    const u32 lanes = s_.plan.row_lanes;
    const Reg<u32> slice = warp_ % g_.slices;
    const Reg<u32> wanted = slice * lanes + (lane_ & (lanes - 1));
    const Reg<u32> part = (min)(wanted, g_.row_parts - 1);  // past the row's end: with activations of zero
    const Share share = {slice, warp_ / g_.slices * (s_.plan.rows * g_.sets) + lane_ / lanes,
                         part / kBlockParts<F> * kBlockBytes, F::template place<W>(part % kBlockParts<F>)};
    parts::Ring::Cursor at_stage = ring_.cursor();
    // The first tile mostly arrives while the kernel before still runs: it waits for that one's end decoded.
    const std::vector<Part> first =
        take_tile(share, k_.constant<u32>(0), at_stage, g_.tile_rows <= g_.least_rows);

    activations_.stage();
    std::vector<std::vector<parts::Int8Run<W>>> x;
    for (u32 m = 0; m < s_.max_m; ++m) x.push_back(activations_.load(m, part, wanted < g_.row_parts));

    // Every CTA has `least` tiles, some have one more.
    const u32 least = g_.tiles(g_.least_rows), together = tiles_together(),
              whole = least / together * together;
    // Those that end before tile `end`, `count` of them.
    const auto add_tiles = [&](const Reg<u32>& tile, u32 count, u32 end, std::vector<Part> taken) {
      std::vector<Reg<f32>> sums;  // of [tile][set][matrix][m]
      for (u32 i = 0; i < count; ++i) {
        if (taken.empty()) taken = take_tile(share, tile + i, at_stage, end * g_.tile_rows <= g_.least_rows);
        add_products(taken, x, sums);
        taken.clear();
      }
      leave_sums(share, tile, sums);
    };
    const u32 most = g_.tiles(g_.most_rows);
    add_tiles(k_.constant<u32>(0), together, together, first);
    if (whole > together) {
      k_.for_(together, whole, together, [&](const Reg<u32>& tile) { add_tiles(tile, together, whole, {}); });
    }
    if (whole < most) {
      k_.for_(whole, tiles(), 1, [&](const Reg<u32>& tile) { add_tiles(tile, 1, most, {}); });
    }
  }

  // Tiles of which the sums are reduced together: the more, the fewer shuffles and the longer the code. All
  // of a CTA's where these are few, so that there is no loop; else two.
  u32 tiles_together() const {
    constexpr u32 kMostSums = 8;
    const u32 sums = s_.plan.rows * job_.matrices * s_.max_m;  // of a tile
    const u32 least = g_.tiles(g_.least_rows), most = (std::min)(kMostSums, s_.plan.row_lanes) / sums;
    const bool all = least == g_.tiles(g_.most_rows) && std::has_single_bit(least) && least <= most;
    return all ? least : (std::min)({2u, least, (std::max)(most, 1u)});
  }

  // Waits for a tile, and lets go of it. `full`: it has all the rows that a tile may have.
  std::vector<Part> take_tile(const Share& share, const Reg<u32>& tile, parts::Ring::Cursor& at_stage,
                              bool full) const {
    ring_.wait_full(at_stage);
    std::vector<Raw> raw;
    for (u32 set = 0; set < s_.plan.rows; ++set) {
      for (u32 matrix = 0; matrix < job_.matrices; ++matrix)
        raw.push_back(load_row(at_stage, tile, share.first_row + set * g_.sets, matrix, share, full));
    }
    ring_.release(at_stage, lane_);
    at_stage.advance();
    std::vector<Part> taken;
    for (const Raw& row : raw) taken.push_back(F::decode(row, share.place, formats::Packing::kInPlace));
    return taken;
  }

  void add_products(const std::vector<Part>& taken, const std::vector<std::vector<parts::Int8Run<W>>>& x,
                    std::vector<Reg<f32>>& sums) const {
    for (const Part& part : taken) {
      for (const auto& runs : x) {
        Reg<f32> sum = k_.constant<f32>(0.f);
        for (u32 r = 0; r < F::kRuns; ++r) sum = parts::add_product<F, W>(part, part.runs[r], runs[r], sum);
        sums.push_back(sum);
      }
    }
  }

  // Those of the tiles from `first_tile` on.
  void leave_sums(const Share& share, const Reg<u32>& first_tile, std::vector<Reg<f32>>& sums) const {
    const u32 real = static_cast<u32>(sums.size()), values = std::bit_ceil(real),
              of_row = job_.matrices * s_.max_m;
    sums.resize(values, k_.constant<f32>(0.f));
    const Reg<u32> value = exchange_sums(sums, s_.plan.row_lanes, lane_);
    const Reg<u32> set = value / of_row;
    const Reg<u32> tile = first_tile + set / s_.plan.rows;
    const Reg<u32> row = tile * g_.tile_rows + share.first_row + set % s_.plan.rows * g_.sets;
    Pred kept = (lane_ & (s_.plan.row_lanes / values - 1)) == 0u && row < rows_;
    if (real < values) kept = kept && value < real;
    k_.if_(kept, [&] {
      st_shared(partials_ + ((share.slice * g_.most_rows + row) * of_row + value % of_row), sums[0]);
    });
  }

  Raw load_row(const parts::Ring::Cursor& at_stage, const Reg<u32>& tile, const Reg<u32>& wanted, u32 matrix,
               const Share& share, bool full) const {
    // Rows past the CTA's last are that one again; their sums are not kept.
    const Reg<u32> row = full ? wanted : (min)(wanted, (min)(rows_ - tile * g_.tile_rows, g_.tile_rows) - 1u);
    const Reg<u32> offset = row * g_.row_bytes + share.block_offset;
    const auto stage = ring_.stage(at_stage.stage()) + matrix * g_.matrix_bytes;
    using Block = formats::BlockPtr<F::kFormat, Space::kShared>;
    const Block block = at<Bytes<kBlockBytes>>(
        assume_aligned<Block::kAlign>(stage + (g_.kept_bits == 0 ? offset : offset + first_byte(tile))));
    return F::template load<W>(block, share.place);
  }

  // The sums of all slices, one output a thread.
  void finish() {
    const u32 of_row = job_.matrices * s_.max_m, threads = g_.consumers * 32;
    parts::for_each_of(k_, rows_ * s_.max_m, g_.most_rows * s_.max_m, threads, [&](const Reg<u32>& i) {
      const Reg<u32> row = i / s_.max_m;
      const Reg<u32> m = i % s_.max_m;
      const auto sum_of = [&](u32 matrix) {
        const auto first = partials_ + (row * of_row + matrix * s_.max_m + m);
        Reg<f32> sum = ld_shared(first);
        for (u32 slice = 1; slice < g_.slices; ++slice) {
          const Reg<f32> next = ld_shared(first + slice * g_.most_rows * of_row);
          sum = sum + next;
        }
        return sum;
      };
      const auto store = [&] {
        const Reg<u64> at_output = cvt<u64>(m) * u64{job_.n} + cvt<u64>(first_row_ + row);
        const Reg<f32> sum = sum_of(0);
        std::optional<Reg<f32>> result = sum;
        if (job_.matrices == 2) result.emplace(swiglu(sum, sum_of(1)));
        if (s_.residual && index_ == 0) {
          const Reg<f32> before = ld_global(*pointers_.residual + at_output);
          result.emplace(*result + before);
        }
        st_global(pointers_.y[index_] + at_output, *result);
      };
      if (pointers_.m) {
        k_.if_(m < *pointers_.m, store);
      } else {
        store();
      }
    });
  }

  KernelBuilder& k_;
  const Stream& s_;
  const Stream::Job& job_;
  const std::size_t index_;
  const StreamGeometry g_;
  const StreamPointers& pointers_;
  const std::size_t first_matrix_;
  const Reg<u32> lane_, warp_, cta_, first_row_, rows_;
  const parts::Ring ring_;
  const StagedActivations<F> activations_;
  const SharedPtr<f32> partials_;
};

}  // namespace

void build_stream(KernelBuilder& k, const Stream& s, const StreamPointers& pointers) {
  if (!parts::requires_target(k, "stream", kHopper)) return;  // bulk copies
  k.maxntid(static_cast<u32>(stream_shape(s).block.x));
  k.minnctapersm(std::max(1u, s.plan.ctas_per_sm));
  const SharedPtr<std::byte, 16> shared = at<std::byte>(k.dynamic_shared<u32, 128>());
  const auto build_job = [&](std::size_t job, std::size_t first_matrix) {
    formats::with_format(s.jobs[job].format, [&]<class F>(std::type_identity<F>) {
      JobKernel<F>(k, s, job, pointers, first_matrix, shared).build();
    });
  };
  // if the CTA is of job 0: job 0; else if it is of job 1: ...
  const auto from_job = [&](const auto& self, std::size_t job, std::size_t first_matrix) -> void {
    if (job + 1 == s.jobs.size()) return build_job(job, first_matrix);
    const StreamGeometry g = stream_geometry(s, job);
    k.if_(
        k.ctaid_x() < g.first_cta + g.ctas, [&] { build_job(job, first_matrix); },
        [&] { self(self, job + 1, first_matrix + s.jobs[job].matrices); });
  };
  from_job(from_job, 0, 0);
}

}  // namespace ptxgen::gemv
