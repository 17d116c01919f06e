// The emulated device: every piece of work is done before the call that asks for it returns.
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ptxgen/emulator.h"
#include "src/runtime/backend.h"

namespace ptxgen::internal {
namespace {

using Clock = std::chrono::steady_clock;
using Work = std::function<absl::Status()>;

struct EmulatedStream {
  std::mutex mutex;  // guards all of it
  bool recording = false;
  std::vector<Work> recorded;
};

struct EmulatedEvent {
  std::mutex mutex;  // guards all of it
  bool happened = false;
  Clock::time_point time;
};

struct EmulatedGraph {
  std::vector<Work> work;
};

struct EmulatedFunction {
  std::shared_ptr<const emulator::Program> program;
  const emulator::EntryInfo* entry;
};

struct EmulatedModule {
  std::shared_ptr<const emulator::Program> program;
  std::vector<EmulatedFunction> functions;  // one an entry
};

class EmulatorBackend final : public Backend {
 public:
  EmulatorBackend(DeviceProperties properties, std::uint32_t threads)
      : Backend(std::move(properties)), options_{.workers = threads, .device = properties_.target} {}

  // A kernel's fault ends that launch and nothing else.
  absl::Status health() const override { return absl::OkStatus(); }

  absl::StatusOr<std::uint64_t> allocate(std::uint64_t bytes, std::string_view name) override {
    return memory_.allocate(bytes, name);
  }
  void free(std::uint64_t address) override { (void)memory_.free(address); }
  absl::StatusOr<void*> allocate_pinned(std::uint64_t bytes) override;
  void free_pinned(void* data) override { ::operator delete(data); }

  absl::Status copy_in(std::uint64_t to, const void* from, std::uint64_t bytes, Handle stream) override {
    return submit(stream, [=, this] {
      return memory_.write(to, {static_cast<const std::byte*>(from), bytes});
    });
  }
  absl::Status copy_out(void* to, std::uint64_t from, std::uint64_t bytes, Handle stream) override {
    return submit(stream, [=, this] { return memory_.read(from, {static_cast<std::byte*>(to), bytes}); });
  }
  absl::Status copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, Handle stream) override;
  absl::Status fill(std::uint64_t to, std::uint8_t value, std::uint64_t bytes, Handle stream) override {
    return submit(stream, [=, this] { return memory_.fill(to, std::byte{value}, bytes); });
  }

  absl::StatusOr<Handle> create_stream() override { return Handle(new EmulatedStream); }
  void destroy_stream(Handle stream) override { delete static_cast<EmulatedStream*>(stream); }
  absl::Status synchronize(Handle) override { return absl::OkStatus(); }
  absl::Status synchronize_device() override { return absl::OkStatus(); }

  absl::StatusOr<Handle> create_event() override { return Handle(new EmulatedEvent); }
  void destroy_event(Handle event) override { delete static_cast<EmulatedEvent*>(event); }
  absl::Status record(Handle event, Handle stream) override;
  absl::Status wait(Handle, Handle) override { return absl::OkStatus(); }
  absl::Status synchronize_event(Handle) override { return absl::OkStatus(); }
  absl::StatusOr<float> elapsed_ms(Handle start, Handle end) override;

  absl::StatusOr<TensorMap> encode_tensor_map(const TiledTensor& tensor) override {
    return emulator::encode_tensor_map(tensor);
  }

  // There is no machine code: the text is what runs.
  absl::StatusOr<Image> compile(const std::string& ptx) override { return Image{ImageKind::kPtx, ptx, ""}; }
  absl::StatusOr<Handle> load(const Image& image, std::string& log) override;
  void unload_module(Handle module) override { delete static_cast<EmulatedModule*>(module); }
  absl::StatusOr<LoadedFunction> find_function(Handle module, const std::string& name,
                                               std::optional<std::size_t> parameters) override;
  absl::StatusOr<std::uint32_t> max_ctas_per_sm(Handle, std::uint64_t, std::uint64_t) override {
    return absl::UnimplementedError("the emulated device has no occupancy: ask a CUDA device");
  }
  absl::Status raise_dynamic_shared(Handle, std::uint64_t) override { return absl::OkStatus(); }
  absl::Status allow_non_portable_cluster(Handle) override { return absl::OkStatus(); }
  absl::Status launch(Handle function, const LaunchShape& shape, absl::Span<const KernelArg> args,
                      const LaunchOptions& options, Handle stream) override;

  absl::Status enqueue(Handle stream, Work work) override { return submit(stream, std::move(work)); }

  absl::Status begin_capture(Handle stream) override;
  absl::StatusOr<Handle> end_capture(Handle stream) override;
  absl::Status launch_graph(Handle graph, Handle stream) override;
  void destroy_graph(Handle graph) override { delete static_cast<EmulatedGraph*>(graph); }

 private:
  // Does the work, or adds it to what the stream records.
  template <class DoWork>
  absl::Status submit(Handle stream, DoWork work) {
    if (stream == nullptr) return work();
    EmulatedStream& queue = *static_cast<EmulatedStream*>(stream);
    const std::lock_guard lock(queue.mutex);  // two threads that share a stream take turns
    if (!queue.recording) return work();
    queue.recorded.push_back(std::move(work));
    return absl::OkStatus();
  }

  emulator::Memory memory_;
  const emulator::Options options_;
};

absl::StatusOr<void*> EmulatorBackend::allocate_pinned(std::uint64_t bytes) {
  void* data = ::operator new(bytes, std::nothrow);
  if (data == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("allocating ", bytes, " bytes of host memory"));
  return data;
}

absl::Status EmulatorBackend::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, Handle stream) {
  return submit(stream, [=, this]() -> absl::Status {
    std::vector<std::byte> between(bytes);
    if (absl::Status s = memory_.read(from, absl::MakeSpan(between)); !s.ok()) return s;
    return memory_.write(to, between);
  });
}

absl::Status EmulatorBackend::record(Handle event, Handle stream) {
  return submit(stream, [event] {
    EmulatedEvent& mark = *static_cast<EmulatedEvent*>(event);
    const std::lock_guard lock(mark.mutex);
    mark.happened = true;
    mark.time = Clock::now();
    return absl::OkStatus();
  });
}

absl::StatusOr<float> EmulatorBackend::elapsed_ms(Handle start, Handle end) {
  std::array<Clock::time_point, 2> times;
  for (std::size_t i = 0; i < times.size(); ++i) {
    EmulatedEvent& event = *static_cast<EmulatedEvent*>(i == 0 ? start : end);
    const std::lock_guard lock(event.mutex);
    if (!event.happened)
      return absl::FailedPreconditionError("measuring between two events: one was never recorded");
    times[i] = event.time;
  }
  return std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
}

absl::StatusOr<Handle> EmulatorBackend::load(const Image& image, std::string&) {
  if (image.kind != ImageKind::kPtx)
    return absl::InvalidArgumentError("loading a cubin: the emulated device runs PTX text only");
  absl::StatusOr<std::shared_ptr<const emulator::Program>> program = emulator::Program::parse(image.bytes);
  if (!program.ok()) {
    return absl::Status(program.status().code(), absl::StrCat("compiling PTX: ", program.status().message()));
  }
  if ((*program)->version() > properties_.highest_isa || !properties_.target.supports((*program)->target())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compiling PTX: the text is for PTX ISA ", (*program)->version().to_string(), " and ",
        (*program)->target().to_string(), "; the emulated device is ", properties_.target.to_string(),
        " and accepts PTX ISA up to ", properties_.highest_isa.to_string()));
  }
  auto module = std::make_unique<EmulatedModule>();
  module->program = *std::move(program);
  for (const emulator::EntryInfo& entry : module->program->entries()) {
    module->functions.push_back({module->program, &entry});
  }
  return Handle(module.release());
}

absl::StatusOr<LoadedFunction> EmulatorBackend::find_function(Handle module, const std::string& name,
                                                              std::optional<std::size_t>) {
  for (EmulatedFunction& function : static_cast<EmulatedModule*>(module)->functions) {
    const emulator::EntryInfo& entry = *function.entry;
    if (entry.name != name) continue;
    FunctionInfo info;
    info.static_shared_bytes = entry.static_shared_bytes;
    info.max_threads = properties_.max_threads_per_block;
    for (const auto& bound : {entry.max_threads, entry.required_threads}) {
      if (bound.has_value()) info.max_threads = static_cast<std::uint32_t>(bound->count());
    }
    info.cluster = entry.required_cluster.value_or(Dim3());
    info.param_bytes.emplace();
    for (const emulator::ParamInfo& param : entry.params) {
      info.param_bytes->push_back(static_cast<std::uint32_t>(param.size));
    }
    return LoadedFunction{&function, std::move(info)};
  }
  return absl::NotFoundError(
      absl::StrCat("looking for the entry ", name, ": the module has none of that name"));
}

absl::Status EmulatorBackend::launch(Handle function, const LaunchShape& shape,
                                     absl::Span<const KernelArg> args, const LaunchOptions& options,
                                     Handle stream) {
  const EmulatedFunction& callee = *static_cast<const EmulatedFunction*>(function);
  std::vector<std::byte> params(callee.entry->param_bytes);
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::memcpy(params.data() + callee.entry->params[i].offset, args[i].data, args[i].bytes);
  }
  // Programmatic dependent launch permits an overlap and asks for none.
  return submit(stream, [this, callee, shape, options, params = std::move(params)] {
    const emulator::LaunchConfig config = {.grid = shape.grid,
                                           .block = shape.block,
                                           .dynamic_shared_bytes = shape.dynamic_shared_bytes,
                                           .params = params,
                                           .cluster = shape.cluster,
                                           .non_portable_cluster = options.non_portable_cluster};
    return emulator::launch(*callee.program, callee.entry->name, config, memory_, options_).status();
  });
}

absl::Status EmulatorBackend::begin_capture(Handle stream) {
  EmulatedStream& queue = *static_cast<EmulatedStream*>(stream);
  const std::lock_guard lock(queue.mutex);
  if (queue.recording)
    return absl::FailedPreconditionError("beginning to record a stream: it is being recorded");
  queue.recording = true;
  return absl::OkStatus();
}

absl::StatusOr<Handle> EmulatorBackend::end_capture(Handle stream) {
  EmulatedStream& queue = *static_cast<EmulatedStream*>(stream);
  const std::lock_guard lock(queue.mutex);
  if (!queue.recording)
    return absl::FailedPreconditionError("ending the recording of a stream: it is not being recorded");
  queue.recording = false;
  return Handle(new EmulatedGraph{std::exchange(queue.recorded, {})});
}

absl::Status EmulatorBackend::launch_graph(Handle graph, Handle stream) {
  return submit(stream, [graph] {
    for (const Work& work : static_cast<EmulatedGraph*>(graph)->work) {
      if (absl::Status s = work(); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
}

}  // namespace

std::unique_ptr<Backend> open_emulator(Target target, std::uint32_t threads) {
  // Host threads that execute CTAs are its SMs.
  DeviceProperties properties = DeviceProperties::of(target, DeviceKind::kEmulator, threads);
  properties.name = "ptxgen emulator";
  return std::make_unique<EmulatorBackend>(std::move(properties), threads);
}

}  // namespace ptxgen::internal
