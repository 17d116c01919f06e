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
// these there are for every 32 parts, run after run, the headers of each part: one for 8 values, which the
// lane that has quantised them writes, as in a BlockQ8_1 bf16 d and the s16 sum, but of these 8.
template <class F>
constexpr u32 kPlanes = F::kRuns* kPartBytes<F> / 16;
constexpr u32 kPlanePitch = 32 * 16 + 64;
template <class F>
constexpr u32 kRunHeaders = kPartBytes<F> / 8;
// Words from run to run, for the same reason not a multiple of 32.
template <class F>
constexpr u32 kHeaderPitch = 32 * kRunHeaders<F> + 32 / F::kRuns;

}  // namespace ptxgen::gemv
