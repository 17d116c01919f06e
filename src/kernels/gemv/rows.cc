// Rows are dealt to warps: a row to one warp, or to several that add their sums in shared memory. A warp
// walks along its row in spans, 32 parts of blocks or more; lane i takes the i-th part, so its loads and its
// neighbours' are contiguous.

#include "src/kernels/gemv/rows.h"

#include <algorithm>

#include "src/kernels/formats/shared_header.h"
#include "src/kernels/formats/with_format.h"
#include "src/kernels/parts/add_part.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/reduce.h"
#include "src/kernels/parts/stage.h"
#include "src/kernels/parts/walking.h"

namespace ptxgen::gemv {
namespace {

using parts::Bytes;

constexpr u32 kChunkValues = 4096;  // of x, in shared memory
constexpr u32 kQ8_1Bytes = sizeof(BlockQ8_1);
// Threads of an SM for which registers suffice, 64, 48, 40 or 32 a thread. The more, the more latency they
// hide; but left to itself ptxas aims at still more, and spills, or at fewer.
template <class F>
constexpr u32 kThreadsOfWords = F::kRuns<4 ? 2048 : F::kMostMin> 1 ? 1280 : 1536;
template <class F, u32 W>
constexpr u32 kThreadsPerSm = W == 1   ? 1024
                              : W == 4 ? kThreadsOfWords<F>
                                       : 1536;
constexpr u32 kCtasPerSm = 16;  // every SM holds as many, and some more

// ---- The walk along a row

template <class F, u32 W>
class RowWalk {
  static constexpr u32 kParts = formats::parts_per_block<F>(W);
  static constexpr u32 kSpanParts = std::max(32u, kParts);
  static constexpr u32 kSharing = std::min(32u, kParts);  // lanes to a block
  static constexpr u32 kBlockValues = info(F::kFormat).block_values;

 public:
  static constexpr u32 kSpanBlocks = kSpanParts / kParts;

  RowWalk(KernelBuilder& k, const RowPlan& plan, const Reg<u32>& lane, const Reg<u32>& first_span)
      : k_(k), plan_(plan), lane_(lane), first_span_(first_span) {
    if constexpr (kParts > 32) {  // of a byte each
      for (u32 chunk = 0; chunk < kParts / 32; ++chunk) places_.push_back(F::template place<W>(lane, chunk));
    } else {
      places_.push_back(F::template place<W>(lane % kParts));
    }
    if (plan.shared_headers) header_.emplace(lane % kSharing, lane / kSharing * kSharing);
  }

  // Adds the blocks [first, first + count) of the row; x begins with the first one's activations.
  template <class X>
  void add(const formats::BlockPtr<F::kFormat>& row, u32 first, u32 count, const X& x, Var<f32>& acc) const {
    const u32 spans = count / kSpanBlocks, rest = count % kSpanBlocks;
    const Reg<u32> own =
        kSpanBlocks == 1 ? first_span_ : first_span_ * kSpanBlocks + lane_ / kParts;  // its first block
    const u32 turns = turns_at_once(spans), blocks = kSpanBlocks * plan_.warps_per_row;
    const u32 x_elements = blocks * (plan_.int8 ? kBlockValues / 32 : kBlockValues);
    const auto add_turns = [&](const auto& block, const auto& activations) {
      constexpr std::size_t kAlign = std::decay_t<decltype(activations)>::kAlign;
      for (u32 turn = 0; turn < turns; ++turn)
        acc = add_span(block + turn * blocks, assume_aligned<kAlign>(activations + turn * x_elements), acc);
    };
    if (spans == turns * plan_.warps_per_row) {
      add_turns(row + own + first, x_of_block(x, own));
    } else {
      parts::Walking at_block(row + own + first);
      parts::Walking at_x(x_of_block(x, own));
      k_.for_(first_span_, spans, turns * plan_.warps_per_row, [&](const Reg<u32>&) {
        add_turns(at_block.pointer(), at_x.pointer());
        at_block.advance(turns * blocks * info(F::kFormat).block_bytes);
        at_x.advance(turns * x_elements * (plan_.int8 ? kQ8_1Bytes : 4));
      });
    }
    if (rest == 0) return;
    // A last span that is not full: lanes past the end take its last block, and add nothing.
    k_.if_(first_span_ == spans % plan_.warps_per_row, [&] {
      const Reg<u32> wanted = lane_ / kParts;
      const Reg<u32> block = (min)(wanted, rest - 1) + spans * kSpanBlocks;
      const Reg<f32> before = acc;
      const Reg<f32> after = add_span(row + block + first, x_of_block(x, block), before);
      acc = selp(after, before, wanted < rest);
    });
  }

 private:
  // Turns of a warp that are written out one after the other, where every warp has a multiple of them: what
  // their addresses differ by is constant.
  u32 turns_at_once(u32 spans) const {
    const u32 turns = spans / plan_.warps_per_row;
    if (spans % plan_.warps_per_row != 0 || places_.size() > 1) return 1;
    return turns % 4 == 0 ? 4 : turns % 2 == 0 ? 2 : 1;
  }

  template <class Block, class X>
  Reg<f32> add_span(const Block& block, const X& activations, Reg<f32> acc) const {
    const auto add_parts = [&](const auto& source) {
      for (const auto& place : places_) {
        const auto raw = F::template load<W>(source, place);
        acc = parts::add_part<F, W>(F::decode(raw, place, formats::Packing::kExact),
                                    from_lane(place.base, activations), activations, acc);
      }
    };
    if (plan_.shared_headers) {
      add_parts(formats::SharedHeader<F, Block>(block, *header_));
    } else {
      add_parts(block);
    }
    return acc;
  }

  // The activations of a block from the lane's on: what its parts have in common is in the pointer, and
  // from_lane() is the rest.
  template <Space S>
  auto x_of_block(const Ptr<S, const f32, 16>& x, const Reg<u32>& block) const {
    const Reg<u32> varying = *places_[0].base.index().varying();
    if constexpr (W == 1) {
      return at<f32>(at<Bytes<kBlockValues * 4>>(x) + block) + varying;
    } else {
      return assume_aligned<16>(x + (block * kBlockValues + varying));
    }
  }
  template <Space S, std::size_t Align>
  formats::Index from_lane(const formats::Base& base, const Ptr<S, const f32, Align>&) const {
    return {k_, base.index().constant()};
  }
  template <Space S>
  Ptr<S, const Bytes<kQ8_1Bytes>, 4> x_of_block(const Ptr<S, const Bytes<kQ8_1Bytes>, 4>& x,
                                                const Reg<u32>& block) const {
    const auto of_block = x + block * (kBlockValues / 32);
    const auto& lanes = places_[0].base.block.varying();
    return lanes ? of_block + *lanes : of_block;
  }
  template <Space S>
  formats::Base from_lane(const formats::Base& base, const Ptr<S, const Bytes<kQ8_1Bytes>, 4>&) const {
    return {{k_, base.block.constant()}, base.in_block};
  }

  KernelBuilder& k_;
  const RowPlan plan_;
  const Reg<u32> lane_, first_span_;
  std::vector<typename F::Place> places_;
  std::optional<formats::HeaderLane<F>> header_;
};

// ---- The kernel

template <class F, u32 W>
void build(KernelBuilder& k, const Gemv& gemv, const RowPlan& plan) {
  const u32 blocks = gemv.k / info(F::kFormat).block_values;
  k.maxntid(plan.threads());
  const u32 threads_per_sm = std::min(kThreadsPerSm<F, W>, limits(k.target()).threads_per_sm());
  k.minnctapersm(std::clamp(threads_per_sm / plan.threads(), 1u, kCtasPerSm));
  const Reg<u32> lane = k.tid_x() & 31u;
  const Reg<u32> warp = k.tid_x() >> 5;
  const bool one_row = plan.rows_per_cta == 1 && plan.warps_per_row > 1;  // the whole CTA's
  const Reg<u32> row = one_row ? k.ctaid_x() : k.ctaid_x() * plan.rows_per_cta + warp / plan.warps_per_row;
  const RowWalk<F, W> walk(k, plan, lane, warp % plan.warps_per_row);
  Var<f32> acc = k.var<f32>(0.f);
  const auto weights = at<Bytes<info(F::kFormat).block_bytes>>(
      assume_aligned<info(F::kFormat).alignment>(k.param(&Gemv::Args::weights)));
  const auto x_bytes = k.param(&Gemv::Args::x);
  const auto x = at<f32>(assume_aligned<16>(x_bytes));
  const auto with_row = [&](auto&& body) {
    const auto blocks_of_row = [&] {
      if (plan.warps_per_row == 1) return body(weights + cvt<u64>(row) * u64{blocks});
      // In one instruction: a row has fewer than 2^32 bytes. It is short for several warps, so that what
      // stands before their turns counts.
      const Reg<u64> begin =
          mad_wide(row, blocks * info(F::kFormat).block_bytes, Reg<u64>(&k, weights.base()));
      body(formats::BlockPtr<F::kFormat>(&k, begin.id(), weights.offset()));
    };
    if (gemv.n % plan.rows_per_cta == 0) return blocks_of_row();
    k.if_(row < gemv.n, blocks_of_row);
  };

  parts::launch_dependents(k);
  parts::wait_for_predecessor(k);
  if (plan.int8) {
    if constexpr (W >= 4) {
      if (gemv.x_type == Activations::kQ8_1) {
        const auto quantized = at<Bytes<kQ8_1Bytes>>(assume_aligned<4>(x_bytes));
        with_row([&](const auto& w) { walk.add(w, 0, blocks, quantized, acc); });
      } else {
        const SharedPtr<Bytes<kQ8_1Bytes>, 4> staged = at<Bytes<kQ8_1Bytes>>(k.dynamic_shared<u32>());
        parts::stage_q8_1(k, x, staged, gemv.k, plan.threads());
        k.bar_sync(0);
        const SharedPtr<const Bytes<kQ8_1Bytes>, 4> quantized = staged;
        with_row([&](const auto& w) { walk.add(w, 0, blocks, quantized, acc); });
      }
    }
  } else if (plan.x_from == XFrom::kGlobal) {
    with_row([&](const auto& w) { walk.add(w, 0, blocks, x, acc); });
  } else {
    const u32 chunk = std::min(gemv.k, plan.x_from == XFrom::kShared ? gemv.k : kChunkValues);
    const auto staged = k.dynamic_shared<f32, 16>();
    const SharedPtr<const f32, 16> staged_x = staged;
    for (u32 first = 0; first < gemv.k; first += chunk) {
      const u32 values = std::min(chunk, gemv.k - first);
      if (first > 0) k.bar_sync(0);
      parts::stage_floats(k, assume_aligned<16>(x + first), staged, values, plan.threads());
      k.bar_sync(0);
      constexpr u32 kBlockValues = info(F::kFormat).block_values;
      with_row(
          [&](const auto& w) { walk.add(w, first / kBlockValues, values / kBlockValues, staged_x, acc); });
    }
  }

  const auto y = k.param(&Gemv::Args::y) + row;
  const Reg<f32> sum = parts::lane_sum(acc);
  if (plan.warps_per_row == 1) {
    k.if_(lane == 0u && row < gemv.n, [&] { st_global(y, sum); });
    return;
  }
  const auto sums = k.shared<f32>(plan.warps_per_row);
  k.if_(lane == 0u, [&] { st_shared(sums + warp, sum); });
  k.bar_sync(0);
  k.if_(k.tid_x() == 0u, [&] {
    Reg<f32> total = ld_shared(sums);
    for (u32 i = 1; i < plan.warps_per_row; ++i) {
      const Reg<f32> next = ld_shared(sums + i);
      total = total + next;
    }
    st_global(y, total);
  });
}

constexpr u32 kMaxStaged = kMaxStaticSharedBytes;  // what every target gives a CTA without opting in

}  // namespace

RowPlan row_plan(const Gemv& gemv) {
  const u32 warps = gemv.num_warps ? gemv.num_warps : 4;
  const u32 rows = gemv.outputs_per_block ? gemv.outputs_per_block : 8;
  switch (gemv.schedule) {
    case Schedule::kTiled: return {.rows_per_cta = rows, .x_from = XFrom::kShared};
    case Schedule::kChunkedTiled: return {.rows_per_cta = rows, .x_from = XFrom::kSharedChunks};
    case Schedule::kCoalesced: return {.shared_headers = true};
    case Schedule::kWide: return {.warps_per_row = 8};
    case Schedule::kVectorized: return {.width = 4};
    case Schedule::kMultiWarp: return {.width = 4, .warps_per_row = warps};
    case Schedule::kMultiWarpDp4a:
      return {.width = 4, .warps_per_row = warps, .shared_headers = true, .int8 = true};
    case Schedule::kHalfWarpDp4a: return {.width = 8, .warps_per_row = warps, .int8 = true};
    case Schedule::kWarp:
    case Schedule::kStream:
    case Schedule::kMma:
    case Schedule::kMmaDirect: break;
  }
  return {};
}

absl::Status check_rows(const Gemv& gemv) {
  const RowPlan plan = row_plan(gemv);
  const u64 bytes = row_shared_bytes(gemv);
  if (bytes > kMaxStaged) {
    return absl::InvalidArgumentError(
        str_cat("k is ", gemv.k, "; schedule ", kEnumNames<Schedule>[static_cast<u32>(gemv.schedule)],
                " keeps x in shared memory, ", bytes, " bytes of at most ", kMaxStaged, ": choose ",
                plan.int8 ? "x_type q8_1" : "schedule chunked_tiled"));
  }
  return absl::OkStatus();
}

u64 row_shared_bytes(const Gemv& gemv) {
  const RowPlan plan = row_plan(gemv);
  if (plan.int8) return gemv.x_type == Activations::kQ8_1 ? 0 : u64{gemv.k} / 32 * kQ8_1Bytes;
  switch (plan.x_from) {
    case XFrom::kShared: return u64{gemv.k} * 4;
    case XFrom::kSharedChunks: return u64{std::min(gemv.k, kChunkValues)} * 4;
    case XFrom::kGlobal: break;
  }
  return 0;
}

void build_rows(KernelBuilder& k, const Gemv& gemv) {
  const RowPlan plan = row_plan(gemv);
  formats::with_format(gemv.format, [&]<class F>(std::type_identity<F>) {
    switch (plan.width) {
      case 4: return build<F, 4>(k, gemv, plan);
      case 8: return build<F, 8>(k, gemv, plan);
      default: return build<F, 1>(k, gemv, plan);
    }
  });
}

}  // namespace ptxgen::gemv
