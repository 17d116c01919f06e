// A kernel with device memory for its arguments, launched once and timed.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/kernel_cache.h"

namespace ptxgen::tool {

class Launch {
 public:
  // Compiles the kernel and allocates a buffer for each buffer argument. `values` holds the scalars at their
  // places. Refused where the buffers together do not fit into the device's memory (the host's, when
  // emulated).
  static absl::StatusOr<Launch> prepare(KernelCache& cache, const KernelType& kernel,
                                        std::vector<u64> values);

  // In the order of arguments; empty for a scalar.
  const ArgInfos& arguments() const { return arguments_; }
  Buffer& buffer(std::size_t argument) { return buffers_[argument]; }

  // Launches, waits, and returns the milliseconds that the device took.
  absl::StatusOr<float> run();

 private:
  Launch(CompiledKernel kernel, Device device) : kernel_(std::move(kernel)), device_(std::move(device)) {}

  CompiledKernel kernel_;
  Device device_;
  std::vector<u64> values_;
  ArgInfos arguments_;
  std::vector<Buffer> buffers_;
};

}  // namespace ptxgen::tool
