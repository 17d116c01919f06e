#include "tools/ptxgen/floor.h"

#include <algorithm>

namespace ptxgen::tool {
namespace {

constexpr u64 kVector = 16;

// Read's argument `least`: with it, practically nothing is written.
constexpr u64 kKeepNothing = 0xffffffff;

// The plans that were best for one size or another on an H200: one to four CTAs an SM, with 32 KB to 128 KB
// in flight on it.
std::vector<Read> plans(u64 bytes, u32 sm_count) {
  std::vector<Read> all;
  for (const u32 ctas_per_sm : {1u, 2u, 4u}) {
    for (const u32 threads : {256u, 512u, 1024u}) {
      if (ctas_per_sm * threads > 2048) continue;
      for (const u32 loads : {4u, 8u}) {
        all.push_back({.vectors = static_cast<u32>(std::max<u64>(bytes / kVector, 1)),
                       .ctas = ctas_per_sm * sm_count,
                       .threads = threads,
                       .loads = loads});
      }
    }
  }
  return all;
}

absl::StatusOr<Workload> workload_of(const Device& device, const KernelType& kernel,
                                     const std::vector<u64>& values, const RotationOptions& rotation) {
  const auto operation = reference::operation_of(kernel, values);
  if (!operation.ok()) return operation.status();
  return Workload::prepare(device, **operation, values, rotation);
}

}  // namespace

absl::StatusOr<std::vector<BenchRow>> measure(absl::Span<const CompiledKernel> kernels, const Device& device,
                                              const Workload& workload, u32 replays, bool dependent) {
  const absl::StatusOr<std::vector<Timing>> times = time_calls(kernels, device, workload, replays, dependent);
  if (!times.ok()) return times.status();
  std::vector<BenchRow> rows;
  for (const CompiledKernel& kernel : kernels) {
    const LaunchShape shape = kernel.descriptor().launch_shape(workload.values(0));
    const FunctionInfo& info = kernel.function().info();
    const absl::StatusOr<u32> ctas =
        kernel.function().max_ctas_per_sm(shape.block.count(), shape.dynamic_shared_bytes);
    if (!ctas.ok()) return ctas.status();
    rows.push_back({.kernel = kernel.descriptor().text(),
                    .dependent = dependent,
                    .calls = workload.calls(),
                    .bytes = workload.bytes(),
                    .time = (*times)[rows.size()],
                    .footprint = {info.registers, info.static_shared_bytes, shape.dynamic_shared_bytes, *ctas,
                                  info.local_bytes},
                    .origin = kernel.origin()});
  }
  return rows;
}

absl::StatusOr<BenchRow> measure(const CompiledKernel& kernel, const Device& device, const Workload& workload,
                                 u32 replays, bool dependent) {
  const auto rows = measure(absl::MakeConstSpan(&kernel, 1), device, workload, replays, dependent);
  if (!rows.ok()) return rows.status();
  return rows->front();
}

absl::StatusOr<Floors::Floor> Floors::measure_read(u64 bytes) {
  const Device& device = cache_.device();
  Floor floor;
  std::optional<Workload> workload;
  for (const Read& plan : plans(bytes, device.properties().sm_count)) {
    const KernelType kernel = plan;
    if (!workload) {
      std::vector<u64> values = kernel->default_arguments();
      values.back() = kKeepNothing;
      absl::StatusOr<Workload> prepared = workload_of(device, kernel, values, rotation_);
      if (!prepared.ok()) return prepared.status();
      workload = *std::move(prepared);
    }
    const absl::StatusOr<CompiledKernel> compiled = cache_.get(kernel);
    if (!compiled.ok()) return compiled.status();
    if (plan.threads > compiled->function().info().max_threads) continue;
    for (const bool dependent : {false, true}) {
      if (dependent && !compiled->generated().waits_for_predecessor) continue;
      const absl::StatusOr<BenchRow> row = measure(*compiled, device, *workload, replays_, dependent);
      if (!row.ok()) return row.status();
      std::optional<BenchRow>& best = dependent ? floor.read_dependent : floor.read;
      if (!best || row->time.median < best->time.median) best = *row;
    }
  }
  return floor;
}

absl::StatusOr<std::optional<double>> Floors::read(u64 bytes, bool dependent) {
  Floor& floor = floors_[bytes];
  if (!floor.read) {
    absl::StatusOr<Floor> measured = measure_read(bytes);
    if (!measured.ok()) return measured.status();
    floor.read = std::move(measured->read);
    floor.read_dependent = std::move(measured->read_dependent);
  }
  const std::optional<BenchRow>& row = dependent ? floor.read_dependent : floor.read;
  return row ? std::optional(row->time.median) : std::nullopt;
}

absl::StatusOr<double> Floors::copy(u64 bytes) {
  Floor& floor = floors_[bytes];
  if (!floor.copy) {
    const KernelType kernel = Copy{.vectors = static_cast<u32>(std::max<u64>(bytes / (2 * kVector), 1))};
    const absl::StatusOr<CompiledKernel> compiled = cache_.get(kernel);
    if (!compiled.ok()) return compiled.status();
    const absl::StatusOr<Workload> workload =
        workload_of(cache_.device(), kernel, kernel->default_arguments(), rotation_);
    if (!workload.ok()) return workload.status();
    const absl::StatusOr<BenchRow> row = measure(*compiled, cache_.device(), *workload, replays_, false);
    if (!row.ok()) return row.status();
    floor.copy = *row;
  }
  return floor.copy->time.median;
}

std::vector<BenchRow> Floors::rows() const {
  std::vector<BenchRow> all;
  for (const auto& [bytes, floor] : floors_) {
    for (const std::optional<BenchRow>& row : {floor.read_dependent, floor.read, floor.copy}) {
      if (row) all.push_back(*row);
    }
  }
  return all;
}

}  // namespace ptxgen::tool
