// Timing kernels as an engine meets them: data that no cache holds, calls without gaps.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/kernel_cache.h"
#include "src/reference/operation.h"

namespace ptxgen::tool {

// How many sets of its buffers a kernel gets, one for each call of a graph.
struct RotationOptions {
  u32 calls = 0;                             // 0: as many as the next three allow
  u64 least_bytes = u64{1} << 30;            // in all sets together: far beyond any L2
  u64 most_bytes = u64{3} << 30;             // and at most so much, or a quarter of the device's memory
  u32 usual_calls = 120, most_calls = 1000;  // more than the usual only for least_bytes
};

// Calls whose buffers have `bytes` each.
u32 calls_for(u64 bytes, u64 device_bytes, const RotationOptions& options);

// A kernel's buffers on a device, with valid random content. Large ones exist once for each call, so that
// every call finds its data in memory and not in a cache. Small ones (at most kSharedBytes, and at most a
// quarter of the largest input, or for outputs of the largest buffer) stand for activations, which the kernel
// before has just written: all calls share them.
class Workload {
 public:
  static constexpr u64 kSharedBytes = 1 << 20;

  static absl::StatusOr<Workload> prepare(const Device& device, const reference::Operation& operation,
                                          const std::vector<u64>& values, const RotationOptions& options);

  u32 calls() const { return static_cast<u32>(values_.size()); }
  ArgValues values(u32 call) const { return values_[call]; }
  // Of the buffers that each call has for itself.
  u64 bytes_read() const { return bytes_read_; }
  u64 bytes_written() const { return bytes_written_; }
  u64 bytes() const { return bytes_read_ + bytes_written_; }

 private:
  absl::Status add_argument(const Device& device, const reference::Operation& operation, std::size_t argument,
                            bool shared);

  std::vector<Buffer> buffers_;
  std::vector<std::vector<u64>> values_;
  u64 bytes_read_ = 0, bytes_written_ = 0;
};

// Microseconds of a call, over the replays.
struct Timing {
  double median = 0, fastest = 0, slowest = 0;
};

// Records `calls` calls from the stream in a graph, each by `record`, and replays it, once to warm up and
// then `replays` times.
absl::StatusOr<Timing> time_calls(const Stream& stream, u32 calls, u32 replays,
                                  absl::FunctionRef<absl::Status(u32 call)> record);

// The same of several graphs, each of so many calls, which take turns at each replay: what changes meanwhile,
// as a clock that power and heat govern, changes all their times.
using RecordOf = absl::FunctionRef<absl::Status(std::size_t graph, u32 call)>;
absl::StatusOr<std::vector<Timing>> time_in_turns(const Stream& stream, absl::Span<const u32> calls,
                                                  u32 replays, RecordOf record);

// One call of the kernel for each of the workload's sets. `dependent`: with programmatic dependent launch.
absl::StatusOr<Timing> time_calls(const CompiledKernel& kernel, const Device& device,
                                  const Workload& workload, u32 replays, bool dependent);
// Of each of several kernels with the same arguments, in turns.
absl::StatusOr<std::vector<Timing>> time_calls(absl::Span<const CompiledKernel> kernels, const Device& device,
                                               const Workload& workload, u32 replays, bool dependent);

}  // namespace ptxgen::tool
