// Which control flow may differ between the threads that must be together: those of a CTA at a barrier, those
// of a warp at an .aligned instruction, those of a warpgroup at one of wgmma.
#pragma once

#include <utility>
#include <vector>

#include "ptxgen/ir.h"
#include "ptxgen/source_location.h"

namespace ptxgen {

// The positions in `together` (instruction, place) of those that not all these threads are sure to reach at
// once: a branch or loop around them depends on a value that may differ. Needs a scheduled kernel.
std::vector<u32> reached_divergently(const Kernel& kernel,
                                     const std::vector<std::pair<u32, SourceLocation>>& together);

}  // namespace ptxgen
