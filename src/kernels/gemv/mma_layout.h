// How schedule `mma` cuts rows into products of the tensor cores, and where activations lie in shared memory.
//
// A product is one mma instruction, whose A operand is 16 rows of a sub-block of weights, 32 values or 16.
// Its lanes 4 g .. 4 g + 3 hold rows g and g + 8. Which k is whose is free as long as both operands agree, so
// the four lanes take four neighbouring parts of a block (format.h), and the decoded words are the A
// registers:
//
//   sub-blocks of 32, a run each        parts of 8 bytes: words 0 and 1 of a run are k 8 t .. 8 t + 7
//   sub-blocks of 32, two runs of 16    parts of 4 bytes: the words of both runs are k 4 t, 16 + 4 t
//   sub-blocks of 16                    parts of 4 bytes: the word of a run is k 4 t .. 4 t + 3
//
// For 16 values there is mma.m16n8k16. m16n8k32 with half of B zeroed would take as many instructions, twice
// the tensor-core time, and the scales of both halves in every lane.
//
// Four neighbouring parts are a step. It has kProducts products, and a block has kSteps steps.
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::gemv {

template <class F>
struct MmaLayout {
  static constexpr FormatInfo kInfo = info(F::kFormat);
  static constexpr bool kSixteen = F::kRuns == 4;             // a scale for 16 values
  static constexpr bool kPaired = F::kRunStride == 16;        // a scale for two runs
  static constexpr u32 kWidth = kSixteen || kPaired ? 4 : 8;  // bytes of a part
  static constexpr u32 kProducts = kPaired ? 1 : F::kRuns;
  static constexpr u32 kK = kSixteen ? 16 : 32;  // values of a product
  static constexpr u32 kSteps = formats::parts_per_block<F>(kWidth) / 4;
  // The runs of a pair meet in one sum, so they must have the same unit.
  static constexpr formats::Packing kPacking =
      kPaired ? formats::Packing::kExact : formats::Packing::kInPlace;
  // A warp takes so many consecutive blocks at once.
  static constexpr u32 kSpanBlocks = kInfo.block_values == 32 ? 4 : 1;

  // Activations in shared memory, for each step and 8 rows of x: the B registers of each lane, product after
  // product; and, elsewhere, for each product of them and each of the 8, kEntryBytes: f32 d over the weights'
  // unit, then the f32 sum of x as quantised, or, for formats with a bias, the s32 start of the accumulator.
  static constexpr u32 kProductWords = kK / 16;
  static constexpr u32 kLaneBytes = 4 * kProductWords * kProducts;
  static constexpr u32 kStepBytes = 32 * kLaneBytes;
  static constexpr u32 kEntryBytes = 8;
  static constexpr u32 kStepEntryBytes = kProducts * 8 * kEntryBytes;
};

}  // namespace ptxgen::gemv
