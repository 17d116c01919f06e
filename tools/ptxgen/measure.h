// Timing kernels as an engine meets them: data that no cache holds, calls without gaps.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/kernel_cache.h"

namespace ptxgen::tool {

struct MeasureOptions {
  u64 rotate_bytes = u64{2} << 30;  // buffers of at least so many bytes in all, used in turn: beyond any L2
  u32 calls = 40;                   // in one graph
  u32 replays = 21;                 // of the graph, each timed; the first is a warm-up
};

struct Measurement {
  double microseconds = 0;  // of a call: the median of the replays
  double fastest = 0, slowest = 0;
  u64 bytes = 0;        // read and written by a call
  u32 buffer_sets = 0;  // used in turn

  double gigabytes_per_second() const { return static_cast<double>(bytes) / microseconds * 1e-3; }
};

// Runs the kernel with these values of its scalars on random data (valid blocks where it takes quantised
// weights), which takes a kernel that has a reference. Needs a CUDA device: an
// emulated one has no time worth measuring, and is refused.
absl::StatusOr<Measurement> measure(KernelCache& cache, const KernelType& kernel,
                                    const std::vector<u64>& values, const MeasureOptions& options = {});

}  // namespace ptxgen::tool
