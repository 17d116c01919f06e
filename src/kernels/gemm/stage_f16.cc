// Staging activations as f16: a CTA takes a row, twice. First it finds the largest absolute value, then it
// scales and converts; a thread takes a step at a time, four values of each quarter of a block.

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/gemm/stage.h"
#include "src/kernels/gemm/tensor_order.h"
#include "src/kernels/parts/dependence.h"

namespace ptxgen {
namespace {

constexpr u32 kThreads = 256;

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
  shape.grid = {staged_f16_groups(args.m) * kSlabGroupRows};
  shape.block = {kThreads};
  return shape;
}

void StageF16::build(KernelBuilder& b) const {
  b.maxntid(kThreads);
  parts::launch_dependents(b);
  const Reg<u32> m = b.param(&Args::m);
  const Reg<u32> row = b.ctaid_x();
  const Pred exists = row < m;
  const auto src = b.param(&Args::src) + cvt<u64>((min)(row, m - 1u)) * u64{k};
  const auto values = assume_aligned<16>(src);
  parts::wait_for_predecessor(b);

  const auto tops = b.shared<u32>(kThreads / 32);
  const Reg<u32> top = gemm::warp_absmax(gemm::own_absmax(b, values, k, b.tid_x(), kThreads));
  b.if_((b.tid_x() & 31u) == 0u, [&] { st_shared(tops + (b.tid_x() >> 5), top); });
  b.bar_sync(0);
  Reg<u32> absmax = ld_shared(tops);
  for (u32 warp = 1; warp < kThreads / 32; ++warp) {
    const Reg<u32> other = ld_shared(tops + warp);
    absmax = (max)(absmax, other);
  }
  const gemm::RowScale scale = gemm::row_scale(absmax);

  const gemm::TensorOrder of = gemm::tensor_order(order);
  const Reg<u32> groups = (m + (kSlabGroupRows - 1)) / kSlabGroupRows;
  const auto dst = b.param(&Args::dst);
  const u32 steps = static_cast<u32>(staged_f16_slabs(k)) * gemm::kSlabSteps;
  b.for_(b.tid_x(), steps, kThreads, [&](const Reg<u32>& step) {
    const gemm::Sixteen sixteen = gemm::load_step(of, values, (min)(step, k / 16 - 1));
    const Pred counts = exists && step < k / 16;
    const Reg<u64> group =
        cvt<u64>(step / gemm::kSlabSteps) * cvt<u64>(groups) + cvt<u64>(row / kSlabGroupRows);
    const auto piece = at<parts::Bytes<16>>(dst + group * u64{gemm::kGroupBytes}) +
                       (step % gemm::kSlabSteps * (2 * kSlabGroupRows) + row % kSlabGroupRows);
    const auto octets = gemm::octets_of(b, sixteen, [&](const Reg<f32>& value) {
      return selp(value * scale.factor, b.constant<f32>(0.f), counts);
    });
    const auto octet = at<u32>(assume_aligned<16>(piece));
    st_global_v4(octet, octets[0]);
    st_global_v4(assume_aligned<16>(octet + gemm::kOctetBytes / 4), octets[1]);
  });

  const auto inverses = at<f32>(dst + cvt<u64>(groups) * (staged_f16_slabs(k) * gemm::kGroupBytes));
  b.if_(b.tid_x() == 0u, [&] {
    st_global(assume_aligned<4>(inverses) + row, selp(scale.inverse, b.constant<f32>(0.f), exists));
  });
}

}  // namespace ptxgen
