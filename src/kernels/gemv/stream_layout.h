// How schedule `stream` cuts blocks into parts, and where activations lie in shared memory.
#pragma once

#include "src/kernels/formats/format.h"

namespace ptxgen::gemv {

// Bytes of quantised values in a part: a quarter of a block of 256 values, or a whole block of 32.
template <class F>
constexpr u32 kPartBytes = info(F::kFormat).block_values / F::kRuns /
                           (info(F::kFormat).block_values == 256 ? 4 : 1);
template <class F>
constexpr u32 kBlockParts = formats::parts_per_block<F>(kPartBytes<F>);

// Activations lie as lanes read them, without bank conflicts: for every 32 parts of a row, one plane after
// the other. A plane has 16 bytes of each part, kPlanes of them its values, run after run; planes are 64
// bytes further apart than that, so that the lanes that quantise a block write to different banks. Behind
// these there is for every 32 parts, run after run, a scale of each part.
template <class F>
constexpr u32 kPlanes = F::kRuns* kPartBytes<F> / 16;
constexpr u32 kPlanePitch = 32 * 16 + 64;
// f32 d over the run's unit; then the f32 sum of x as quantised, or, for formats with a bias, the s32 start
// of the accumulator.
constexpr u32 kScaleBytes = 8;

}  // namespace ptxgen::gemv
