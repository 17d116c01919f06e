// Devices, and what lives on them: memory, streams, events, modules, graphs.
//
// A Device is a CUDA GPU or the emulated one; everything below behaves alike on both. All objects keep what
// they stand on alive, so they may be destroyed in any order, at any time, static storage included; a
// destructor reports nothing. Every call may come from any thread: it makes the device's context current for
// its own duration and leaves the caller's current context as it was. Objects are not to be destroyed or
// moved while another thread uses them.
//
// Errors are statuses. A CUDA error carries what was being done, its name and its text. One that the device
// does not recover from (an illegal address, say) is kDataLoss, and so is every later call on that device:
// see Device::health().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/arguments.h"
#include "ptxgen/export.h"
#include "ptxgen/launch_shape.h"
#include "ptxgen/target.h"
#include "ptxgen/tensor_map.h"

namespace ptxgen {

namespace internal {
class DeviceState;
struct ModuleState;
struct FunctionState;
struct DeviceAccess;
}  // namespace internal

enum class DeviceKind : std::uint8_t { kCuda, kEmulator };

enum class DeviceChoice : std::uint8_t {
  kAuto,      // CUDA device 0; where there is no driver or no device, the emulated one
  kCuda,      // CUDA device `index`, or an error
  kEmulator,  // the emulated device
};

struct DeviceOptions {
  DeviceChoice choice = DeviceChoice::kAuto;
  int index = 0;                               // CUDA ordinal
  std::string libcuda = {};                    // empty: PTXGEN_LIBCUDA, else "libcuda.so.1"
  std::optional<Target> emulator_target = {};  // empty: PTXGEN_EMULATOR_TARGET, else sm_90a
  std::uint32_t emulator_threads = 0;          // 0: PTXGEN_EMULATOR_THREADS, else one for each processor

  // Reads "auto", "cuda", "cuda:<index>" or "emulator".
  PTXGEN_API static absl::StatusOr<DeviceOptions> parse(std::string_view text);
  // What PTXGEN_DEVICE asks for.
  PTXGEN_API static absl::StatusOr<DeviceOptions> from_environment();
};

struct PTXGEN_API DeviceProperties {
  DeviceKind kind = DeviceKind::kEmulator;
  int index = 0;  // CUDA ordinal; 0 for an emulated device
  std::string name;
  int compute_major = 0, compute_minor = 0;  // compute capability
  Target target;                             // the newest of kTargets whose code this device and driver run
  PtxIsa highest_isa;                        // the highest `.version` that the driver's JIT accepts
  int driver_version = 0;  // as cuDriverGetVersion gives it: 12040 is 12.4; 0 for an emulated device
  std::string libcuda;     // the driver library, as it was opened; empty for an emulated device

  std::uint32_t sm_count = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  std::uint64_t shared_bytes_per_block = 0;        // without opting in: 48 KiB
  std::uint64_t shared_bytes_per_block_optin = 0;  // the most that static and dynamic together can be
  std::uint32_t max_threads_per_block = 0;
  Dim3 max_block;
  Dim3 max_grid;

  // What every device of a target has: of a kind and a number of SMs that the caller knows, and without
  // memory.
  static DeviceProperties of(Target target, DeviceKind kind, std::uint32_t sm_count);
};

// What a device loads.
enum class ImageKind : std::uint8_t {
  kPtx,    // text, which the driver compiles when it is loaded
  kCubin,  // machine code for one compute capability
};

struct Image {
  ImageKind kind = ImageKind::kPtx;
  std::string bytes = {};
  std::string log = {};  // what the compiler had to say about a success; often empty
};

class Buffer;
class Stream;
class Event;
class Module;
class PinnedBuffer;

// A shared handle on one device; copies stand for the same one.
class PTXGEN_API Device {
 public:
  // Opens what PTXGEN_DEVICE asks for, by default CUDA device 0 or else the emulated device.
  static absl::StatusOr<Device> open();
  static absl::StatusOr<Device> open(const DeviceOptions& options);

  // How many devices the CUDA driver has. Without a driver: kNotFound.
  static absl::StatusOr<int> cuda_device_count(const DeviceOptions& options = {});

  const DeviceProperties& properties() const;
  DeviceKind kind() const { return properties().kind; }
  Target target() const { return properties().target; }
  PtxIsa highest_isa() const { return properties().highest_isa; }

  // One line: which device this is ("CUDA device 0: NVIDIA H200, sm_90a, PTX ISA up to 8.4, driver 12.4").
  const std::string& description() const;
  // One line: why this one was opened; for an emulated device opened by kAuto, what stood in the way of CUDA.
  const std::string& reason() const;

  // Ok, or the error by which the device was lost. A lost CUDA context takes all its memory with it, and no
  // call in this process revives it.
  absl::Status health() const;

  // Memory of `bytes`, contents undefined; 0 bytes is a valid, empty buffer. Aligned to 256 bytes. An
  // emulated device calls it `name` in its messages.
  absl::StatusOr<Buffer> allocate(std::uint64_t bytes, std::string_view name = "buffer") const;
  // Host memory that copies to and from the device without an intermediate one.
  absl::StatusOr<PinnedBuffer> allocate_pinned(std::uint64_t bytes) const;

  absl::StatusOr<Stream> create_stream() const;
  // The stream that everything uses that names none; ordered with all streams made by create_stream().
  Stream default_stream() const;
  // A CUstream of the caller's, which stays the caller's; it must belong to this device's primary context.
  Stream borrow_stream(void* cu_stream) const;
  absl::StatusOr<Event> create_event() const;

  // Compiles PTX text for this device. A refusal carries the compiler's log. The image is a cubin; it is the
  // text itself on an emulated device, and where the driver compiles but hands out no cubins.
  absl::StatusOr<Image> compile(std::string_view ptx) const;
  // Loads what compile() made here or on a device with the same compute capability. The bytes of a cubin go
  // to the driver as they are: take them from nobody you would not take code from.
  absl::StatusOr<Module> load(const Image& image) const;
  // Both.
  absl::StatusOr<Module> load_module(std::string_view ptx) const;

  // What tensor copies on this device need to know of `tensor`, checked against TiledTensor::validate().
  // Needs sm_90; the bits are this device's alone.
  absl::StatusOr<TensorMap> encode_tensor_map(const TiledTensor& tensor) const;

  // Waits for everything given to the device by this process.
  absl::Status synchronize() const;

  bool operator==(const Device& other) const = default;

 private:
  explicit Device(std::shared_ptr<internal::DeviceState> state) : state_(std::move(state)) {}
  absl::StatusOr<Module> load(const Image& image, std::string ptx) const;
  friend class Buffer;
  friend class Stream;
  friend class Event;
  friend class Module;
  friend class Function;
  friend class KernelCache;
  friend struct internal::DeviceAccess;
  std::shared_ptr<internal::DeviceState> state_;
};

// Device memory that this object owns. A copy that names no stream is done when the call returns; one on a
// stream is ordered with that stream, and its host memory must stay until the stream is past it. Extents are
// checked.
class PTXGEN_API Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer();

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t address() const { return address_; }
  // The address `offset` bytes in, as kernel arguments carry it. That it has the alignment is the caller's
  // word: a buffer begins at a multiple of 256.
  template <class T, std::size_t Align = alignof(T)>
  DevicePtr<T, Align> ptr(std::uint64_t offset = 0) const {
    return {address_ + offset};
  }

  absl::Status copy_from_host(const void* source, std::uint64_t bytes, std::uint64_t offset = 0);
  absl::Status copy_from_host(const void* source, std::uint64_t bytes, std::uint64_t offset,
                              const Stream& stream);
  absl::Status copy_to_host(void* target, std::uint64_t bytes, std::uint64_t offset = 0) const;
  absl::Status copy_to_host(void* target, std::uint64_t bytes, std::uint64_t offset,
                            const Stream& stream) const;
  // The first `bytes` of `source`, on the same device.
  absl::Status copy_from(const Buffer& source, std::uint64_t bytes, const Stream& stream);
  // Every byte becomes `value`.
  absl::Status fill(std::uint8_t value);
  absl::Status fill(std::uint8_t value, const Stream& stream);

 private:
  friend class Device;
  Buffer(std::shared_ptr<internal::DeviceState> state, std::uint64_t address, std::uint64_t bytes)
      : state_(std::move(state)), address_(address), bytes_(bytes) {}
  void swap(Buffer& other) noexcept;
  absl::Status check_range(std::string_view action, std::uint64_t bytes, std::uint64_t offset) const;
  absl::Status check_stream(const Stream& stream) const;

  std::shared_ptr<internal::DeviceState> state_;
  std::uint64_t address_ = 0, bytes_ = 0;
};

// Page-locked host memory; ordinary memory for an emulated device.
class PTXGEN_API PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    PinnedBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~PinnedBuffer();

  void* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  friend class Device;
  PinnedBuffer(std::shared_ptr<internal::DeviceState> state, void* data, std::uint64_t bytes)
      : state_(std::move(state)), data_(data), bytes_(bytes) {}
  void swap(PinnedBuffer& other) noexcept;

  std::shared_ptr<internal::DeviceState> state_;
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Work recorded from a stream, to be launched as one.
class PTXGEN_API Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept { swap(other); }
  Graph& operator=(Graph&& other) noexcept {
    Graph(std::move(other)).swap(*this);
    return *this;
  }
  ~Graph();

  absl::Status launch(const Stream& stream) const;

 private:
  friend class Stream;
  Graph(std::shared_ptr<internal::DeviceState> state, void* handle)
      : state_(std::move(state)), handle_(handle) {}
  void swap(Graph& other) noexcept;

  std::shared_ptr<internal::DeviceState> state_;
  void* handle_ = nullptr;
};

// A queue of work, done in order. The emulated device does each piece before the call that asks for it
// returns.
class PTXGEN_API Stream {
 public:
  Stream(Stream&& other) noexcept { swap(other); }
  Stream& operator=(Stream&& other) noexcept {
    Stream(std::move(other)).swap(*this);
    return *this;
  }
  ~Stream();

  // Waits until everything given to the stream so far is done, and returns the first error in it.
  absl::Status synchronize() const;
  // What the stream is given from now on waits until `event` has happened.
  absl::Status wait(const Event& event) const;

  // Between these two, work given to the stream is recorded and not done. Meanwhile the recording thread can
  // neither allocate, load modules nor wait: such calls are refused and leave the recording intact, and what
  // it destroys is released at the end.
  absl::Status begin_capture() const;
  absl::StatusOr<Graph> end_capture() const;

  void* native() const { return handle_; }  // the CUstream; nullptr is the default stream
  Device device() const { return Device(state_); }

 private:
  friend class Device;
  friend class Buffer;
  friend class Event;
  friend class Graph;
  friend class Function;
  Stream(std::shared_ptr<internal::DeviceState> state, void* handle, bool owned)
      : state_(std::move(state)), handle_(handle), owned_(owned) {}
  void swap(Stream& other) noexcept;

  std::shared_ptr<internal::DeviceState> state_;
  void* handle_ = nullptr;
  bool owned_ = false;
};

// A point in a stream's work. On an emulated device it has the host's time.
class PTXGEN_API Event {
 public:
  Event(Event&& other) noexcept { swap(other); }
  Event& operator=(Event&& other) noexcept {
    Event(std::move(other)).swap(*this);
    return *this;
  }
  ~Event();

  absl::Status record(const Stream& stream);
  absl::Status synchronize() const;
  // Milliseconds from `start` to this event; both must have happened.
  absl::StatusOr<float> elapsed_ms_since(const Event& start) const;

 private:
  friend class Device;
  friend class Stream;
  Event(std::shared_ptr<internal::DeviceState> state, void* handle)
      : state_(std::move(state)), handle_(handle) {}
  void swap(Event& other) noexcept;

  std::shared_ptr<internal::DeviceState> state_;
  void* handle_ = nullptr;
};

// What the compiler made of one entry. An emulated device has neither registers nor spills to report: 0.
struct FunctionInfo {
  std::uint32_t registers = 0;            // for each thread
  std::uint64_t static_shared_bytes = 0;  // for each CTA
  std::uint64_t local_bytes = 0;          // for each thread: spills and local arrays
  std::uint32_t max_threads = 0;          // the largest CTA that can be launched
  Dim3 cluster = {};                      // the cluster that every launch has; {1, 1, 1}: the launch says
  // The sizes of the parameters in order; nothing where the driver is too old to tell (before 12.4).
  std::optional<std::vector<std::uint32_t>> param_bytes;
};

// One kernel argument: where its value lies, and how long it is. Read before the launch returns.
struct KernelArg {
  const void* data = nullptr;
  std::size_t bytes = 0;

  template <class T>
  static KernelArg of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {&value, sizeof(T)};
  }
};

struct LaunchOptions {
  // Programmatic dependent launch: start while the kernel before it in the stream still runs; the kernel
  // itself waits, with griddepcontrol.wait, where it needs that one's results. Needs sm_90.
  bool programmatic_dependent_launch = false;
  // Clusters of more than 8 CTAs, up to 16, which not every GPU runs.
  bool non_portable_cluster = false;
};

// An entry of a module; a shared handle.
class PTXGEN_API Function {
 public:
  const std::string& name() const;
  const FunctionInfo& info() const;

  // How many CTAs of `block_threads` with `dynamic_shared_bytes` an SM holds at once.
  absl::StatusOr<std::uint32_t> max_ctas_per_sm(std::uint64_t block_threads,
                                                std::uint64_t dynamic_shared_bytes) const;

  // Checks `shape` and `args` against the device and the entry, names the field and the bound where they do
  // not fit, and adds the launch to the stream.
  absl::Status launch(const Stream& stream, const LaunchShape& shape, absl::Span<const KernelArg> args,
                      const LaunchOptions& options = {}) const;

 private:
  friend class Module;
  explicit Function(std::shared_ptr<const internal::FunctionState> state) : state_(std::move(state)) {}
  std::shared_ptr<const internal::FunctionState> state_;
};

// A loaded image; a shared handle. Functions keep their module loaded.
class PTXGEN_API Module {
 public:
  // The entry called `name`; kNotFound when there is none. `parameters`: how many it has; nothing: what PTX
  // says, and for a cubin, which says nothing, FunctionInfo::param_bytes stays empty.
  absl::StatusOr<Function> function(std::string_view name, std::optional<std::size_t> parameters = {}) const;
  // What the compiler had to say about a success; often empty.
  const std::string& log() const;

 private:
  friend class Device;
  explicit Module(std::shared_ptr<const internal::ModuleState> state) : state_(std::move(state)) {}
  std::shared_ptr<const internal::ModuleState> state_;
};

}  // namespace ptxgen
