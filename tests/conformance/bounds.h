// How close an approximation is to a GPU's: the bounds of the PTX ISA.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "tests/conformance/cases.h"

namespace ptxgen::testing {

// Whether the two results of a thread of an approximate case agree. `input` is the thread's. Where the PTX
// ISA promises nothing for the operands, they do.
bool agree(const ConformanceCase& c, absl::Span<const std::byte> input, absl::Span<const std::byte> a,
           absl::Span<const std::byte> b);

// Whether the case's instruction has a bound.
bool has_bound(const ConformanceCase& c);

}  // namespace ptxgen::testing
