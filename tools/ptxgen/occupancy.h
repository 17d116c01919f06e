// How many CTAs of a kernel an SM holds at once.
#pragma once

#include "ptxgen/target.h"
#include "ptxgen/types.h"

namespace ptxgen::tool {

// CTAs an SM, from what a CTA takes; 0 when not even one fits.
u32 ctas_per_sm(const TargetLimits& limits, u64 threads, u32 registers, u64 shared_bytes);

}  // namespace ptxgen::tool
