// KernelCache::prepare().
#include <algorithm>

#include "ptxgen/kernel_cache.h"
#include "src/runtime/crew.h"
#include "src/runtime/device_state.h"

namespace ptxgen {

std::vector<absl::Status> KernelCache::prepare(absl::Span<const KernelType> kernels,
                                               const PrepareOptions& options) {
  std::size_t threads = internal::crew_size(std::min(options.threads, PrepareOptions::kMaxThreads));
  // Other threads would not be refused what this one is.
  if (!device().state_->refuse_while_recording("").ok()) threads = 0;

  std::vector<absl::StatusOr<KernelOrigin>> origins(kernels.size(), absl::UnknownError(""));
  std::vector<absl::Status> statuses(kernels.size());
  internal::Crew crew(kernels.size(), threads, [&](std::size_t i) {
    const absl::StatusOr<CompiledKernel> kernel = get(kernels[i]);
    if (kernel.ok()) {
      origins[i] = kernel->origin();
    } else {
      origins[i] = kernel.status();
    }
  });
  for (std::size_t done = 1; done <= kernels.size(); ++done) {
    const std::size_t i = crew.take();
    statuses[i] = origins[i].status();
    if (options.progress) options.progress({done, kernels.size(), kernels[i], origins[i]});
  }
  return statuses;
}

}  // namespace ptxgen
