#include "tools/ptxgen/measure.h"

#include <algorithm>
#include <utility>

namespace ptxgen::tool {
namespace {

absl::StatusOr<std::vector<std::byte>> random_content(const reference::Operation& operation,
                                                      std::size_t argument) {
  constexpr u64 kSeed = 1;
  std::vector<std::byte> content(operation.arguments()[argument].bytes);
  const absl::Status made = operation.make_input(argument, kSeed, 0, absl::MakeSpan(content));
  if (!made.ok()) return made;
  operation.level(argument, absl::MakeSpan(content));
  return content;
}

bool is_buffer(const ArgInfo& argument) {
  return argument.direction != Direction::kScalar;
}

using Record = absl::FunctionRef<absl::Status(u32 call)>;

absl::StatusOr<Graph> graph_of(const Stream& stream, u32 calls, Record record) {
  if (auto begun = stream.begin_capture(); !begun.ok()) return begun;
  absl::Status recorded;
  for (u32 call = 0; call < calls && recorded.ok(); ++call) recorded = record(call);
  absl::StatusOr<Graph> graph = stream.end_capture();
  if (!recorded.ok()) return recorded;
  return graph;
}

}  // namespace

u32 calls_for(u64 bytes, u64 device_bytes, const RotationOptions& options) {
  if (options.calls != 0) return options.calls;
  const u64 most = std::min(options.most_bytes, device_bytes / 4) / std::max<u64>(bytes, 1);
  const u64 wanted = std::max<u64>(options.usual_calls, options.least_bytes / std::max<u64>(bytes, 1) + 1);
  return static_cast<u32>(std::clamp<u64>(std::min(most, wanted), 1, options.most_calls));
}

absl::StatusOr<Workload> Workload::prepare(const Device& device, const reference::Operation& operation,
                                           const std::vector<u64>& values, const RotationOptions& options) {
  const ArgInfos& arguments = operation.arguments();
  u64 largest = 0, largest_input = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_buffer(arguments[i])) continue;
    largest = std::max(largest, arguments[i].bytes);
    if (operation.reads(i)) largest_input = std::max(largest_input, arguments[i].bytes);
  }
  const auto shared = [&](std::size_t i) {
    const u64 beside = operation.writes(i) ? largest : largest_input;
    return arguments[i].bytes <= kSharedBytes && arguments[i].bytes <= beside / 4;
  };
  Workload workload;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_buffer(arguments[i]) || shared(i)) continue;
    if (operation.reads(i)) workload.bytes_read_ += arguments[i].bytes;
    if (operation.writes(i)) workload.bytes_written_ += arguments[i].bytes;
  }
  workload.values_.assign(calls_for(workload.bytes(), device.properties().memory_bytes, options), values);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_buffer(arguments[i])) continue;
    absl::Status added = workload.add_argument(device, operation, i, shared(i));
    if (!added.ok()) return added;
  }
  return workload;
}

absl::Status Workload::add_argument(const Device& device, const reference::Operation& operation,
                                    std::size_t argument, bool shared) {
  const ArgInfo& info = operation.arguments()[argument];
  const std::size_t first = buffers_.size();
  for (u32 call = 0; call < calls(); ++call) {
    if (!shared || call == 0) {
      absl::StatusOr<Buffer> buffer = device.allocate(info.bytes, info.name);
      if (!buffer.ok()) return buffer.status();
      buffers_.push_back(*std::move(buffer));
    }
    values_[call][argument] = buffers_.back().address();
  }
  if (!operation.reads(argument)) return absl::OkStatus();
  // The same in every set: what differs is where it lies.
  absl::StatusOr<std::vector<std::byte>> content = random_content(operation, argument);
  if (!content.ok()) return content.status();
  if (auto s = buffers_[first].copy_from_host(content->data(), content->size()); !s.ok()) return s;
  const Stream stream = device.default_stream();
  for (std::size_t i = first + 1; i < buffers_.size(); ++i) {
    if (auto s = buffers_[i].copy_from(buffers_[first], info.bytes, stream); !s.ok()) return s;
  }
  return stream.synchronize();
}

absl::StatusOr<std::vector<Timing>> time_in_turns(const Stream& stream, absl::Span<const u32> calls,
                                                  u32 replays, RecordOf record) {
  const std::size_t graphs = calls.size();
  std::vector<Graph> recorded;
  for (std::size_t g = 0; g < graphs; ++g) {
    absl::StatusOr<Graph> graph = graph_of(stream, calls[g], [&](u32 call) { return record(g, call); });
    if (!graph.ok()) return graph.status();
    recorded.push_back(*std::move(graph));
  }
  const Device device = stream.device();
  absl::StatusOr<Event> start = device.create_event(), end = device.create_event();
  if (!start.ok()) return start.status();
  if (!end.ok()) return end.status();

  std::vector<std::vector<double>> microseconds(graphs);
  for (u32 replay = 0; replay <= replays; ++replay) {
    for (std::size_t g = 0; g < graphs; ++g) {
      for (const absl::Status& status :
           {start->record(stream), recorded[g].launch(stream), end->record(stream), stream.synchronize()}) {
        if (!status.ok()) return status;
      }
      absl::StatusOr<float> milliseconds = end->elapsed_ms_since(*start);
      if (!milliseconds.ok()) return milliseconds.status();
      if (replay > 0) microseconds[g].push_back(1e3 * *milliseconds / calls[g]);
    }
  }
  std::vector<Timing> timings;
  for (std::vector<double>& of_graph : microseconds) {
    std::sort(of_graph.begin(), of_graph.end());
    timings.push_back({of_graph[of_graph.size() / 2], of_graph.front(), of_graph.back()});
  }
  return timings;
}

absl::StatusOr<Timing> time_calls(const Stream& stream, u32 calls, u32 replays, Record record) {
  const absl::StatusOr<std::vector<Timing>> timings =
      time_in_turns(stream, {calls}, replays, [&](std::size_t, u32 call) { return record(call); });
  if (!timings.ok()) return timings.status();
  return timings->front();
}

absl::StatusOr<std::vector<Timing>> time_calls(absl::Span<const CompiledKernel> kernels, const Device& device,
                                               const Workload& workload, u32 replays, bool dependent) {
  const absl::StatusOr<Stream> stream = device.create_stream();
  if (!stream.ok()) return stream.status();
  const std::vector<u32> calls(kernels.size(), workload.calls());
  return time_in_turns(*stream, calls, replays, [&](std::size_t kernel, u32 call) {
    return kernels[kernel].launch(*stream, workload.values(call),
                                  {.programmatic_dependent_launch = dependent});
  });
}

absl::StatusOr<Timing> time_calls(const CompiledKernel& kernel, const Device& device,
                                  const Workload& workload, u32 replays, bool dependent) {
  const auto timings = time_calls(absl::MakeConstSpan(&kernel, 1), device, workload, replays, dependent);
  if (!timings.ok()) return timings.status();
  return timings->front();
}

}  // namespace ptxgen::tool
