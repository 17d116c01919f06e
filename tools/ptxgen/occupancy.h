// How many CTAs of a kernel an SM holds at once.
#pragma once

#include <optional>

#include "ptxgen/target.h"
#include "ptxgen/types.h"

namespace ptxgen::tool {

// What an SM of a target has (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
struct SmLimits {
  u16 sm;
  u32 warps;
  u32 ctas;
  u32 shared_bytes;
};
std::optional<SmLimits> sm_limits(Target target);

// CTAs an SM, from what a CTA takes; 0 when not even one fits.
u32 ctas_per_sm(const SmLimits& limits, u64 threads, u32 registers, u64 shared_bytes);

}  // namespace ptxgen::tool
