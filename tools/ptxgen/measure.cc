#include "tools/ptxgen/measure.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/reference/operation.h"

namespace ptxgen::tool {
namespace {

// One set of the kernel's buffers, and the argument values that name them.
struct BufferSet {
  std::vector<Buffer> buffers;
  std::vector<u64> values;
};

absl::StatusOr<std::vector<std::byte>> random_content(const reference::Operation& operation,
                                                      std::size_t argument) {
  constexpr u64 kSeed = 1;
  std::vector<std::byte> content(operation.arguments()[argument].bytes);
  const absl::Status made = operation.make_input(argument, kSeed, 0, absl::MakeSpan(content));
  if (!made.ok()) return made;
  return content;
}

// Input is the same in every set; what differs is where it lies.
absl::StatusOr<std::vector<BufferSet>> make_sets(const Device& device, const reference::Operation& operation,
                                                 const std::vector<u64>& values, u32 count) {
  std::vector<BufferSet> sets(count);
  for (BufferSet& set : sets) set.values = values;
  for (std::size_t i = 0; i < operation.arguments().size(); ++i) {
    const ArgInfo& argument = operation.arguments()[i];
    if (argument.direction == Direction::kScalar) continue;
    absl::StatusOr<std::vector<std::byte>> content;
    if (operation.reads(i)) content = random_content(operation, i);
    if (operation.reads(i) && !content.ok()) return content.status();
    for (BufferSet& set : sets) {
      absl::StatusOr<Buffer> buffer = device.allocate(argument.bytes, argument.name);
      if (!buffer.ok()) return buffer.status();
      if (operation.reads(i)) {
        if (auto s = buffer->copy_from_host(content->data(), content->size()); !s.ok()) return s;
      }
      set.values[i] = buffer->address();
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
                                    const std::vector<u64>& values, const MeasureOptions& options) {
  if (cache.device().kind() != DeviceKind::kCuda) {
    return absl::FailedPreconditionError(str_cat("only a CUDA device can be timed, and this is the ",
                                                 cache.device().description(),
                                                 "; choose one with --device cuda"));
  }
  absl::StatusOr<CompiledKernel> compiled = cache.get(kernel);
  if (!compiled.ok()) return compiled.status();
  const auto operation = reference::operation_of(kernel, values);
  if (!operation.ok()) return operation.status();
  Measurement result;
  for (const ArgInfo& argument : (*operation)->arguments()) result.bytes += argument.bytes;
  result.buffer_sets = static_cast<u32>(
      std::min<u64>(options.calls, options.rotate_bytes / std::max<u64>(result.bytes, 1) + 1));

  absl::StatusOr<std::vector<BufferSet>> sets =
      make_sets(cache.device(), **operation, values, result.buffer_sets);
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
