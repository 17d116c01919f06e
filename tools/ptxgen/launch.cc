#include "tools/ptxgen/launch.h"

#include <unistd.h>

#include "ptxgen/strings.h"

namespace ptxgen::tool {
namespace {

// What a device has for buffers. The emulated one keeps a byte beside each, which remembers writes.
u64 capacity(const DeviceProperties& device) {
  if (device.kind == DeviceKind::kCuda) return device.memory_bytes;
  return static_cast<u64>(::sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(::sysconf(_SC_PAGESIZE)) / 2;
}

absl::Status check_fit(const Descriptor& kernel, const ArgInfos& arguments, const Device& device) {
  const u64 available = capacity(device.properties());
  u64 left = available;
  for (const ArgInfo& argument : arguments) {
    if (argument.bytes > left) {
      return absl::ResourceExhaustedError(str_cat(kernel.text(), ": argument ", argument.name, " has ",
                                                  argument.bytes, " bytes, and ", device.description(),
                                                  " holds ", available, " in all; choose smaller constants"));
    }
    left -= argument.bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Launch> Launch::prepare(KernelCache& cache, const KernelType& kernel,
                                       std::vector<u64> values) {
  const ArgInfos arguments = kernel->arguments(values);
  if (absl::Status s = check_fit(*kernel, arguments, cache.device()); !s.ok()) return s;
  absl::StatusOr<CompiledKernel> compiled = cache.get(kernel);
  if (!compiled.ok()) return compiled.status();

  Launch launch(*std::move(compiled), cache.device());
  launch.arguments_ = arguments;
  launch.values_ = std::move(values);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Buffer& buffer = launch.buffers_.emplace_back();
    if (arguments[i].direction == Direction::kScalar) continue;
    absl::StatusOr<Buffer> allocated = cache.device().allocate(arguments[i].bytes, arguments[i].name);
    if (!allocated.ok()) return allocated.status();
    buffer = *std::move(allocated);
    launch.values_[i] = buffer.address();
  }
  return launch;
}

absl::StatusOr<float> Launch::run() {
  const Stream stream = device_.default_stream();
  absl::StatusOr<Event> start = device_.create_event(), end = device_.create_event();
  if (!start.ok()) return start.status();
  if (!end.ok()) return end.status();
  if (absl::Status s = start->record(stream); !s.ok()) return s;
  if (absl::Status s = kernel_.launch(stream, values_); !s.ok()) return s;
  if (absl::Status s = end->record(stream); !s.ok()) return s;
  if (absl::Status s = stream.synchronize(); !s.ok()) return s;
  return end->elapsed_ms_since(*start);
}

}  // namespace ptxgen::tool
