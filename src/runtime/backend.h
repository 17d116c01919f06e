// What a kind of device has to be able to do; the classes of device.h are built on this alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/device.h"

namespace ptxgen::internal {

// A stream, event, module, function or graph of a backend. The stream nullptr is the default stream.
using Handle = void*;

struct LoadedFunction {
  Handle handle;  // lives as long as its module
  FunctionInfo info;
};

// One device. All calls may come from any thread. Extents, shapes and arguments have been checked by the
// caller. Everything that ends an object's life is silent: it also runs when the driver has already gone.
class Backend {
 public:
  explicit Backend(DeviceProperties properties) : properties_(std::move(properties)) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  const DeviceProperties& properties() const { return properties_; }
  virtual absl::Status health() const = 0;

  virtual absl::StatusOr<std::uint64_t> allocate(std::uint64_t bytes, std::string_view name) = 0;
  virtual void free(std::uint64_t address) = 0;
  virtual absl::StatusOr<void*> allocate_pinned(std::uint64_t bytes) = 0;
  virtual void free_pinned(void* data) = 0;

  virtual absl::Status copy_in(std::uint64_t to, const void* from, std::uint64_t bytes, Handle stream) = 0;
  virtual absl::Status copy_out(void* to, std::uint64_t from, std::uint64_t bytes, Handle stream) = 0;
  virtual absl::Status copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, Handle stream) = 0;
  virtual absl::Status fill(std::uint64_t to, std::uint8_t value, std::uint64_t bytes, Handle stream) = 0;

  virtual absl::StatusOr<Handle> create_stream() = 0;
  virtual void destroy_stream(Handle stream) = 0;
  virtual absl::Status synchronize(Handle stream) = 0;
  virtual absl::Status synchronize_device() = 0;

  virtual absl::StatusOr<Handle> create_event() = 0;
  virtual void destroy_event(Handle event) = 0;
  virtual absl::Status record(Handle event, Handle stream) = 0;
  virtual absl::Status wait(Handle stream, Handle event) = 0;
  virtual absl::Status synchronize_event(Handle event) = 0;
  virtual absl::StatusOr<float> elapsed_ms(Handle start, Handle end) = 0;

  virtual absl::StatusOr<TensorMap> encode_tensor_map(const TiledTensor& tensor) = 0;

  virtual absl::StatusOr<Image> compile(const std::string& ptx) = 0;
  // Adds to `log` what the driver says about a success.
  virtual absl::StatusOr<Handle> load(const Image& image, std::string& log) = 0;
  virtual void unload_module(Handle module) = 0;
  // `parameters`: how many the entry has at most; nothing: not known.
  virtual absl::StatusOr<LoadedFunction> find_function(Handle module, const std::string& name,
                                                       std::optional<std::size_t> parameters) = 0;
  virtual absl::StatusOr<std::uint32_t> max_ctas_per_sm(Handle function, std::uint64_t block_threads,
                                                        std::uint64_t dynamic_shared_bytes) = 0;
  // Lets the function be launched with as much dynamic shared memory as the device has beside its static;
  // called before the first launch that needs more than 48 KiB in all.
  virtual absl::Status raise_dynamic_shared(Handle function, std::uint64_t bytes) = 0;
  // Called before a launch with a cluster of more than 8 CTAs.
  virtual absl::Status allow_non_portable_cluster(Handle function) = 0;
  virtual absl::Status launch(Handle function, const LaunchShape& shape, absl::Span<const KernelArg> args,
                              const LaunchOptions& options, Handle stream) = 0;

  // Does work that a library gives to the stream: at once, with the device's context current; on an emulated
  // device where the stream does it, so that each launch of a graph does it anew.
  virtual absl::Status enqueue(Handle stream, std::function<absl::Status()> work) = 0;

  virtual absl::Status begin_capture(Handle stream) = 0;
  virtual absl::StatusOr<Handle> end_capture(Handle stream) = 0;  // a graph ready to launch
  virtual absl::Status launch_graph(Handle graph, Handle stream) = 0;
  virtual void destroy_graph(Handle graph) = 0;

 protected:
  DeviceProperties properties_;
};

// CUDA device `index`. kNotFound: there is no driver or no device; anything else: they are there and do not
// work.
absl::StatusOr<std::unique_ptr<Backend>> open_cuda(const std::string& libcuda, int index);
absl::StatusOr<int> count_cuda_devices(const std::string& libcuda);

std::unique_ptr<Backend> open_emulator(Target target, std::uint32_t threads);

}  // namespace ptxgen::internal
