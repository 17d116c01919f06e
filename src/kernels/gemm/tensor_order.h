// The order of k in products of f16. An A operand (mma m16n8k16, wgmma m64nNk16) gives a lane four values of
// a row, so four lanes, which share the row, take a quarter of a block each, the part number `lane` of
// info.block_values / 4 / runs bytes (format.h). A step is four values of each of them: word w of run r.
// The first and third of the four are the lane's columns 2 t, 2 t + 1 of the 16, the second and last 2 t + 8,
// 2 t + 9: one mask takes bytes 0 and 2 out of a word as two halves.
#pragma once

#include "ptxgen/gemm.h"
#include "src/kernels/formats/format.h"

namespace ptxgen::gemm {

struct TensorOrder {
  u32 block_values, runs, run_stride;

  bool operator==(const TensorOrder&) const = default;
  constexpr u32 lane_bytes() const { return block_values / (4 * runs); }
  constexpr u32 steps() const { return block_values / 16; }  // of a block
  constexpr u32 run(u32 step) const { return step % runs; }
  constexpr u32 word(u32 step) const { return step / runs; }
  // Where the first run of a lane begins in the block.
  constexpr u32 base(u32 lane) const {
    const u32 byte = lane * lane_bytes();
    return byte / run_stride * run_stride * runs + byte % run_stride;
  }
};

template <class F>
inline constexpr TensorOrder kOrder = {info(F::kFormat).block_values, F::kRuns, F::kRunStride};

constexpr TensorOrder tensor_order(StagedOrder order) {
  switch (order) {
    case StagedOrder::kNibbles: return {32, 2, 16};
    case StagedOrder::kBytes: return {32, 1, 32};
    case StagedOrder::kWideRuns: return {256, 2, 32};
    case StagedOrder::kNarrowRuns: break;
  }
  return {256, 4, 32};
}

// The staged order of a format's blocks; one that has none does not compile.
constexpr StagedOrder staged_order_of(const TensorOrder& order) {
  for (u32 i = 0; i < kEnumNames<StagedOrder>.size(); ++i) {
    if (tensor_order(static_cast<StagedOrder>(i)) == order) return static_cast<StagedOrder>(i);
  }
  throw "blocks that lie otherwise need a StagedOrder of their own";
}

// Of a slab: steps, octets of a group, and the bytes of a group.
inline constexpr u32 kSlabSteps = kSlabValues / 16, kSlabOctets = kSlabValues / 8;
inline constexpr u32 kOctetBytes = kSlabGroupRows * 8 * sizeof(f16);
inline constexpr u32 kGroupBytes = kSlabOctets * kOctetBytes;

}  // namespace ptxgen::gemm
