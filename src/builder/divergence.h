// Which control flow may differ between the threads of a CTA.
#pragma once

#include <utility>
#include <vector>

#include "ptxgen/ir.h"
#include "ptxgen/source_location.h"

namespace ptxgen {

// The positions in `barriers` (instruction, place) of those that not every thread of a CTA is sure to reach:
// a branch or loop around them depends on a value that may differ between threads. Needs a scheduled kernel.
std::vector<u32> divergent_barriers(const Kernel& kernel,
                                    const std::vector<std::pair<u32, SourceLocation>>& barriers);

}  // namespace ptxgen
