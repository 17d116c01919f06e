// Rounding f32 results to the type they are stored in.
#pragma once

#include "ptxgen/kernel_builder.h"
#include "ptxgen/kernels.h"

namespace ptxgen::parts {

// Two values rounded to nearest even and packed, `low` at the lower address; of e4m3 (which saturates) in the
// low half of the result. NaN becomes the canonical 0x7fff, or 0x7f. Targets before sm_80 have no bf16 and no
// paired conversion, those before sm_89 no e4m3.
Reg<u32> narrow_pair(KernelBuilder& k, ElementType type, const Reg<f32>& low, const Reg<f32>& high);

}  // namespace ptxgen::parts
