// Counts what a thread takes from the heap.
#pragma once

#include <cstdint>

namespace ptxgen::testing {

// How often the calling thread has called operator new, in any form, since it began.
std::uint64_t allocations_of_this_thread();

}  // namespace ptxgen::testing
