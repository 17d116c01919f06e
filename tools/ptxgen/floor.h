// What a kernel's time is compared with, measured in the same run.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ptxgen/bench_report.h"
#include "tools/ptxgen/measure.h"

namespace ptxgen::tool {

// Times a kernel on its workload. Which kernel and constants it is, and ratios, are the caller's to add.
absl::StatusOr<BenchRow> measure(const CompiledKernel& kernel, const Device& device, const Workload& workload,
                                 u32 replays, bool dependent);
// Several with the same arguments, in turns.
absl::StatusOr<std::vector<BenchRow>> measure(absl::Span<const CompiledKernel> kernels, const Device& device,
                                              const Workload& workload, u32 replays, bool dependent);

class Floors {
 public:
  Floors(KernelCache& cache, const RotationOptions& rotation, u32 replays)
      : cache_(cache), rotation_(rotation), replays_(replays) {}

  // The best of several plans of Read over so many bytes; `dependent` with programmatic dependent launch, and
  // then nothing where the device's target has none.
  absl::StatusOr<std::optional<double>> read(u64 bytes, bool dependent);
  // A copy that reads half the bytes and writes the other half.
  absl::StatusOr<double> copy(u64 bytes);

  // All that were measured, by bytes.
  std::vector<BenchRow> rows() const;

 private:
  struct Floor {
    std::optional<BenchRow> read, read_dependent, copy;
  };
  absl::StatusOr<Floor> measure_read(u64 bytes);

  KernelCache& cache_;
  const RotationOptions rotation_;
  const u32 replays_;
  std::map<u64, Floor> floors_;
};

}  // namespace ptxgen::tool
