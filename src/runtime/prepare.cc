// KernelCache::prepare().
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "ptxgen/kernel_cache.h"
#include "src/runtime/device_state.h"

namespace ptxgen {
namespace {

constexpr std::uint32_t kDefaultThreads = 16;

// The threads of one prepare(), and what they have finished.
class Crew {
 public:
  Crew(KernelCache& cache, absl::Span<const KernelType> kernels)
      : cache_(cache), kernels_(kernels), origins_(kernels.size(), absl::UnknownError("")) {}
  ~Crew() {
    next_ = kernels_.size();  // where the caller's callback throws
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // As many as the system gives.
  void start(std::size_t count) {
    try {
      while (threads_.size() < count) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
    }
    if (threads_.empty()) work();
  }

  // The next one that is finished, waiting for it.
  std::size_t take() {
    std::unique_lock lock(mutex_);
    finished_one_.wait(lock, [this] { return taken_ < finished_.size(); });
    return finished_[taken_++];
  }

  const absl::StatusOr<KernelOrigin>& origin(std::size_t i) const { return origins_[i]; }

 private:
  void work() {
    for (std::size_t i = next_++; i < kernels_.size(); i = next_++) {
      const absl::StatusOr<CompiledKernel> kernel = cache_.get(kernels_[i]);
      absl::StatusOr<KernelOrigin> origin =
          kernel.ok() ? absl::StatusOr<KernelOrigin>(kernel->origin()) : kernel.status();
      const std::lock_guard lock(mutex_);
      origins_[i] = std::move(origin);
      finished_.push_back(i);
      finished_one_.notify_one();
    }
  }

  KernelCache& cache_;
  const absl::Span<const KernelType> kernels_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards the rest
  std::condition_variable finished_one_;
  std::vector<absl::StatusOr<KernelOrigin>> origins_;  // those of finished_ are not written any more
  std::vector<std::size_t> finished_;
  std::size_t taken_ = 0;
};

}  // namespace

std::vector<absl::Status> KernelCache::prepare(absl::Span<const KernelType> kernels,
                                               const PrepareOptions& options) {
  std::uint32_t threads = std::min(options.threads, PrepareOptions::kMaxThreads);
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, kDefaultThreads);
  // Other threads would not be refused what this one is.
  if (!device().state_->refuse_while_recording("").ok()) threads = 0;

  std::vector<absl::Status> statuses(kernels.size());
  Crew crew(*this, kernels);
  crew.start(std::min<std::size_t>(threads, kernels.size()));
  for (std::size_t done = 1; done <= kernels.size(); ++done) {
    const std::size_t i = crew.take();
    statuses[i] = crew.origin(i).status();
    if (options.progress) options.progress({done, kernels.size(), kernels[i], crew.origin(i)});
  }
  return statuses;
}

}  // namespace ptxgen
