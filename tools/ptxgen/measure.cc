#include "tools/ptxgen/measure.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "ptxgen/kernels.h"
#include "src/reference/generate.h"

namespace ptxgen::tool {
namespace {

// One set of the kernel's buffers, and the argument values that name them.
struct BufferSet {
  std::vector<Buffer> buffers;
  std::vector<u64> values;
};

std::vector<std::byte> random_content(const KernelType& kernel, const ArgInfo& argument) {
  constexpr u64 kSeed = 1;
  if (const Dequant* dequant = kernel.get_if<Dequant>(); dequant && argument.name == "weights") {
    return reference::random_blocks(dequant->format, dequant->num_blocks(), kSeed);
  }
  std::vector<std::byte> content(argument.bytes);
  std::mt19937_64 random(kSeed);
  for (std::byte& byte : content) byte = static_cast<std::byte>(random());
  return content;
}

// Input is the same in every set; what differs is where it lies.
absl::StatusOr<std::vector<BufferSet>> make_sets(const Device& device, const KernelType& kernel, u32 count) {
  std::vector<BufferSet> sets(count);
  const std::vector<u64> no_values(kernel->num_arguments());
  for (const ArgInfo& argument : kernel->arguments(no_values)) {
    if (argument.direction == Direction::kScalar) {
      for (BufferSet& set : sets) set.values.push_back(0);
      continue;
    }
    const std::vector<std::byte> content = random_content(kernel, argument);
    for (BufferSet& set : sets) {
      absl::StatusOr<Buffer> buffer = device.allocate(argument.bytes, argument.name);
      if (!buffer.ok()) return buffer.status();
      if (auto copied = buffer->copy_from_host(content.data(), content.size()); !copied.ok()) return copied;
      set.values.push_back(buffer->address());
      set.buffers.push_back(*std::move(buffer));
    }
  }
  return sets;
}

absl::StatusOr<std::vector<double>> time_replays(const Device& device, const CompiledKernel& kernel,
                                                 const std::vector<BufferSet>& sets,
                                                 const MeasureOptions& options) {
  absl::StatusOr<Stream> stream = device.create_stream();
  if (!stream.ok()) return stream.status();
  if (auto begun = stream->begin_capture(); !begun.ok()) return begun;
  for (u32 call = 0; call < options.calls; ++call) {
    if (auto launched = kernel.launch(*stream, sets[call % sets.size()].values); !launched.ok())
      return launched;
  }
  absl::StatusOr<Graph> graph = stream->end_capture();
  if (!graph.ok()) return graph.status();

  absl::StatusOr<Event> start = device.create_event();
  absl::StatusOr<Event> end = device.create_event();
  if (!start.ok()) return start.status();
  if (!end.ok()) return end.status();
  std::vector<double> microseconds;
  for (u32 replay = 0; replay < options.replays; ++replay) {
    for (const absl::Status& status :
         {start->record(*stream), graph->launch(*stream), end->record(*stream), stream->synchronize()}) {
      if (!status.ok()) return status;
    }
    absl::StatusOr<float> milliseconds = end->elapsed_ms_since(*start);
    if (!milliseconds.ok()) return milliseconds.status();
    if (replay > 0) microseconds.push_back(1e3 * *milliseconds / options.calls);
  }
  return microseconds;
}

}  // namespace

absl::StatusOr<Measurement> measure(KernelCache& cache, const KernelType& kernel,
                                    const MeasureOptions& options) {
  if (cache.device().kind() != DeviceKind::kCuda) {
    return absl::FailedPreconditionError("only a CUDA device can be timed; this is " +
                                         cache.device().description());
  }
  absl::StatusOr<CompiledKernel> compiled = cache.get(kernel);
  if (!compiled.ok()) return compiled.status();
  Measurement result;
  const std::vector<u64> no_values(kernel->num_arguments());
  for (const ArgInfo& argument : kernel->arguments(no_values)) result.bytes += argument.bytes;
  result.buffer_sets = static_cast<u32>(
      std::min<u64>(options.calls, options.rotate_bytes / std::max<u64>(result.bytes, 1) + 1));

  absl::StatusOr<std::vector<BufferSet>> sets = make_sets(cache.device(), kernel, result.buffer_sets);
  if (!sets.ok()) return sets.status();
  absl::StatusOr<std::vector<double>> times = time_replays(cache.device(), *compiled, *sets, options);
  if (!times.ok()) return times.status();
  std::sort(times->begin(), times->end());
  result.microseconds = (*times)[times->size() / 2];
  result.fastest = times->front();
  result.slowest = times->back();
  return result;
}

}  // namespace ptxgen::tool
