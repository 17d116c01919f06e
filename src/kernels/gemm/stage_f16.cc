// Staging activations as f16. A CTA takes two neighbouring rows, whose threads alternate, so that they store
// whole sectors together. A thread keeps its steps, each four values of every quarter of a block, in
// registers until the row's largest absolute value is known, and then scales and converts them. Of longer
// rows a CTA takes one, and the longest are read twice. Or the CTAs of a cluster share them, and tell each
// other the largest value.

#include <algorithm>
#include <optional>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/gemm/stage.h"
#include "src/kernels/gemm/tensor_order.h"
#include "src/kernels/parts/dependence.h"

namespace ptxgen {
namespace {

constexpr u32 kWarp = 32;

// How rows are dealt to threads: steps of a row, with those that its last slab lacks, go to its threads in
// turn.
struct Deal {
  u32 rows;     // of a CTA
  u32 steps;    // of a row
  u32 threads;  // of a row in a CTA
  u32 held;     // steps that a thread keeps in registers; 0: it reads them twice
  u32 ctas;     // of a cluster, for each `rows`

  u32 cta() const { return threads * rows; }
  u32 stride() const { return threads * ctas; }  // from a thread's step to its next
};

Deal deal_of(const StageF16& stage) {
  constexpr u32 kMost = 1024;
  const u32 steps = static_cast<u32>(staged_f16_slabs(stage.k)) * gemm::kSlabSteps;
  const u32 ctas = std::max(stage.ctas, 1u);
  struct Way {
    u32 rows, held, most_threads;
  };
  for (const Way way : {Way{2, 1, kMost / 2}, Way{2, 2, kMost}, Way{1, 2, kMost}}) {
    const u32 multiple = kWarp / way.rows, at_once = way.held * multiple * ctas;
    const u32 threads = (steps + at_once - 1) / at_once * multiple;
    if (threads * way.rows <= way.most_threads) return {way.rows, steps, threads, way.held, ctas};
  }
  return {2, steps, kMost / 2, 0, ctas};
}

}  // namespace

StagedOrder staged_order(Format format) {
  return formats::with_format(format, []<class F>(std::type_identity<F>) {
    constexpr StagedOrder kStaged = gemm::staged_order_of(gemm::kOrder<F>);
    return kStaged;
  });
}

u32 staged_k(StagedOrder order, u32 slab, u32 octet, u32 i) {
  const gemm::TensorOrder of = gemm::tensor_order(order);
  const u32 step = slab * gemm::kSlabSteps + octet / 2;
  const u32 in_block = step % of.steps();
  return step / of.steps() * of.block_values + of.base(i / 2) + of.run(in_block) * of.run_stride +
         of.word(in_block) * 4 + octet % 2 * 2 + i % 2;
}

Bounds StageF16::k_bounds() const {
  const u32 block = gemm::tensor_order(order).block_values;
  return {.min = block, .max = 1u << 24, .multiple = block};
}

LaunchShape StageF16::launch_shape(const Args& args) const {
  LaunchShape shape;
  const Deal deal = deal_of(*this);
  shape.grid = {staged_f16_groups(args.m) * (kSlabGroupRows / deal.rows) * deal.ctas};
  shape.block = {deal.cta()};
  shape.cluster = {deal.ctas};
  return shape;
}

void StageF16::build(KernelBuilder& b) const {
  const Deal deal = deal_of(*this);
  const bool shared = deal.ctas > 1;
  if (shared && !b.target().supports(kHopper)) {
    return b.mistake(
        SourceLocation::current(),
        str_cat("ctas is ", ctas, ", and clusters need ", kHopper.to_string(), "; the kernel is built for ",
                b.target().to_string(), ". Leave ctas out for this target"));
  }
  b.maxntid(deal.cta());
  if (shared) b.cluster(deal.ctas);
  parts::launch_dependents(b);
  if (shared) b.barrier_cluster_arrive();
  const Reg<u32> m = b.param(&Args::m);
  const Reg<u32> in_cta = b.tid_x() % deal.rows, of_row = b.tid_x() / deal.rows;
  const Reg<u32> thread = shared ? b.cluster_ctarank() * deal.threads + of_row : of_row;
  const Reg<u32> row = (shared ? b.ctaid_x() / deal.ctas : b.ctaid_x()) * deal.rows + in_cta;
  const Pred exists = row < m;
  const auto src = b.param(&Args::src) + cvt<u64>((min)(row, m - 1u)) * u64{k};
  const auto values = assume_aligned<16>(src);
  const gemm::TensorOrder of = gemm::tensor_order(order);
  const u32 steps = k / 16;  // that there are
  parts::wait_for_predecessor(b);

  std::vector<gemm::Sixteen> held;
  std::optional<Reg<u32>> own;
  for (u32 i = 0; i < deal.held; ++i) {
    const Reg<u32> step = thread + i * deal.stride();
    held.push_back(gemm::load_step(of, values, (min)(step, steps - 1)));
  }
  for (const gemm::Sixteen& sixteen : held) {
    const Reg<u32> top = gemm::absmax_of(sixteen);
    own = own ? (max)(*own, top) : top;
  }
  if (held.empty()) own = gemm::own_absmax(b, values, k, thread, deal.stride());

  const Reg<u32> absmax = parts::cta_max(b, *own, deal.cta(), deal.rows, in_cta, deal.ctas);
  const gemm::RowScale scale = gemm::row_scale(absmax);

  const Reg<u32> groups = (m + (kSlabGroupRows - 1)) / kSlabGroupRows;
  const auto dst = b.param(&Args::dst);
  const auto put = [&](const Reg<u32>& step, const gemm::Sixteen& sixteen) {
    const Pred counts = k % kSlabValues == 0 ? exists : exists && step < steps;
    const Reg<u64> group =
        cvt<u64>(step / gemm::kSlabSteps) * cvt<u64>(groups) + cvt<u64>(row / kSlabGroupRows);
    const auto piece = at<parts::Bytes<16>>(dst + group * u64{gemm::kGroupBytes}) +
                       (step % gemm::kSlabSteps * (2 * kSlabGroupRows) + row % kSlabGroupRows);
    auto octets = gemm::octets_of(b, sixteen, [&](const Reg<f32>& value) { return value * scale.factor; });
    for (auto& words : octets) {
      for (Reg<u32>& word : words) word = selp(word, b.constant<u32>(0), counts);
    }
    const auto octet = at<u32>(assume_aligned<16>(piece));
    st_global_v4(octet, octets[0]);
    st_global_v4(assume_aligned<16>(octet + gemm::kOctetBytes / 4), octets[1]);
  };
  for (u32 i = 0; i < deal.held; ++i) {
    const Reg<u32> step = thread + i * deal.stride();
    if ((i + 1) * deal.stride() <= deal.steps) {
      put(step, held[i]);
    } else {
      b.if_(step < deal.steps, [&] { put(step, held[i]); });
    }
  }
  if (held.empty()) {
    b.for_(thread, deal.steps, deal.stride(),
           [&](const Reg<u32>& step) { put(step, gemm::load_step(of, values, (min)(step, steps - 1))); });
  }

  const auto inverses = at<f32>(dst + cvt<u64>(groups) * (staged_f16_slabs(k) * gemm::kGroupBytes));
  b.if_(thread == 0u, [&] {
    st_global(assume_aligned<4>(inverses) + row, selp(scale.inverse, b.constant<f32>(0.f), exists));
  });
}

}  // namespace ptxgen
