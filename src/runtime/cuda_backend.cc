// A CUDA device through its primary context.
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "ptxgen/strings.h"
#include "src/runtime/backend.h"
#include "src/runtime/cuda_properties.h"
#include "src/runtime/driver.h"
#include "src/runtime/driver_version.h"
#include "src/runtime/whole_program.h"

namespace ptxgen::internal {
namespace {

CUstream as_stream(Handle handle) {
  return static_cast<CUstream>(handle);
}
CUevent as_event(Handle handle) {
  return static_cast<CUevent>(handle);
}
CUfunction as_function(Handle handle) {
  return static_cast<CUfunction>(handle);
}

// What the driver's compiler writes about a text. It writes at most the size given, and ends the text with a
// zero where it fits.
class JitLog {
  static constexpr std::uintptr_t kBytes = 16384;
  std::string info_ = std::string(kBytes, '\0'), errors_ = std::string(kBytes, '\0');

 public:
  JitLog() = default;
  JitLog(const JitLog&) = delete;
  JitLog& operator=(const JitLog&) = delete;

  std::array<CUjit_option, 4> options = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                         CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 4> values = {info_.data(), reinterpret_cast<void*>(kBytes), errors_.data(),
                                 reinterpret_cast<void*>(kBytes)};
  unsigned count() const { return static_cast<unsigned>(options.size()); }

  std::string info() const { return text_of(info_); }
  std::string errors() const { return text_of(errors_); }

 private:
  static std::string text_of(const std::string& buffer) {
    std::string text = buffer.c_str();
    absl::StripTrailingAsciiWhitespace(&text);
    return text;
  }
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Driver& driver, CUdevice device, CUcontext context, DeviceProperties properties)
      : Backend(std::move(properties)), driver_(driver), device_(device), context_(context) {}
  ~CudaBackend() override { (void)driver_.cuDevicePrimaryCtxRelease_v2(device_); }

  absl::Status health() const override;

  absl::StatusOr<std::uint64_t> allocate(std::uint64_t bytes, std::string_view name) override;
  void free(std::uint64_t address) override { end(driver_.cuMemFree_v2, address); }
  absl::StatusOr<void*> allocate_pinned(std::uint64_t bytes) override;
  void free_pinned(void* data) override { end(driver_.cuMemFreeHost, data); }

  absl::Status copy_in(std::uint64_t to, const void* from, std::uint64_t bytes, Handle stream) override {
    return call("copying to the device", driver_.cuMemcpyHtoDAsync_v2, to, from, bytes, as_stream(stream));
  }
  absl::Status copy_out(void* to, std::uint64_t from, std::uint64_t bytes, Handle stream) override {
    return call("copying from the device", driver_.cuMemcpyDtoHAsync_v2, to, from, bytes, as_stream(stream));
  }
  absl::Status copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, Handle stream) override {
    return call("copying on the device", driver_.cuMemcpyDtoDAsync_v2, to, from, bytes, as_stream(stream));
  }
  absl::Status fill(std::uint64_t to, std::uint8_t value, std::uint64_t bytes, Handle stream) override {
    return call("filling memory", driver_.cuMemsetD8Async, to, value, bytes, as_stream(stream));
  }

  absl::StatusOr<Handle> create_stream() override {
    return create<CUstream>("creating a stream", driver_.cuStreamCreate, CU_STREAM_DEFAULT);
  }
  void destroy_stream(Handle stream) override { end(driver_.cuStreamDestroy_v2, as_stream(stream)); }
  absl::Status synchronize(Handle stream) override {
    return call("waiting for a stream", driver_.cuStreamSynchronize, as_stream(stream));
  }
  absl::Status synchronize_device() override {
    return call("waiting for the device", driver_.cuCtxSynchronize);
  }

  absl::StatusOr<Handle> create_event() override {
    return create<CUevent>("creating an event", driver_.cuEventCreate, CU_EVENT_DEFAULT);
  }
  void destroy_event(Handle event) override { end(driver_.cuEventDestroy_v2, as_event(event)); }
  absl::Status record(Handle event, Handle stream) override {
    return call("recording an event", driver_.cuEventRecord, as_event(event), as_stream(stream));
  }
  absl::Status wait(Handle stream, Handle event) override {
    return call("making a stream wait for an event", driver_.cuStreamWaitEvent, as_stream(stream),
                as_event(event), 0u);
  }
  absl::Status synchronize_event(Handle event) override {
    return call("waiting for an event", driver_.cuEventSynchronize, as_event(event));
  }
  absl::StatusOr<float> elapsed_ms(Handle start, Handle end) override;

  absl::StatusOr<TensorMap> encode_tensor_map(const TiledTensor& tensor) override;

  absl::StatusOr<Image> compile(const std::string& ptx) override;
  absl::StatusOr<Handle> load(const Image& image, std::string& log) override;
  void unload_module(Handle module) override { end(driver_.cuModuleUnload, static_cast<CUmodule>(module)); }
  absl::StatusOr<LoadedFunction> find_function(Handle module, const std::string& name,
                                               std::optional<std::size_t> parameters) override;
  absl::StatusOr<std::uint32_t> max_ctas_per_sm(Handle function, std::uint64_t block_threads,
                                                std::uint64_t dynamic_shared_bytes) override;
  absl::Status raise_dynamic_shared(Handle function, std::uint64_t bytes) override {
    return call("allowing dynamic shared memory above 48 KiB", driver_.cuFuncSetAttribute,
                as_function(function), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                static_cast<int>(bytes));
  }
  absl::Status allow_non_portable_cluster(Handle function) override {
    return call("allowing clusters of more than 8 CTAs", driver_.cuFuncSetAttribute, as_function(function),
                CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }
  absl::Status launch(Handle function, const LaunchShape& shape, absl::Span<const KernelArg> args,
                      const LaunchOptions& options, Handle stream) override;

  absl::Status enqueue(Handle, std::function<absl::Status()> work) override {
    const Current current(*this);
    if (current.result() != CUDA_SUCCESS) return check(current.result(), "making the context current");
    return work();
  }

  absl::Status begin_capture(Handle stream) override {
    return call("beginning to record a stream", driver_.cuStreamBeginCapture_v2, as_stream(stream),
                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  }
  absl::StatusOr<Handle> end_capture(Handle stream) override;
  absl::Status launch_graph(Handle graph, Handle stream) override {
    return call("launching a graph", driver_.cuGraphLaunch, static_cast<CUgraphExec>(graph),
                as_stream(stream));
  }
  void destroy_graph(Handle graph) override {
    end(driver_.cuGraphExecDestroy, static_cast<CUgraphExec>(graph));
  }

 private:
  // Makes the context current for its lifetime, and restores what was current before.
  class Current {
   public:
    explicit Current(const CudaBackend& backend) : driver_(backend.driver_) {
      CUcontext current = nullptr;
      result_ = driver_.cuCtxGetCurrent(&current);
      if (result_ != CUDA_SUCCESS || current == backend.context_) return;
      result_ = driver_.cuCtxPushCurrent_v2(backend.context_);
      pushed_ = result_ == CUDA_SUCCESS;
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      CUcontext popped = nullptr;
      if (pushed_) (void)driver_.cuCtxPopCurrent_v2(&popped);
    }
    CUresult result() const { return result_; }

   private:
    const Driver& driver_;
    CUresult result_;
    bool pushed_ = false;
  };

  // Calls an entry point inside the context.
  template <class Entry, class... Args>
  absl::Status call(absl::string_view doing, Entry entry, Args... args) {
    const Current current(*this);
    return check(current.result() == CUDA_SUCCESS ? entry(args...) : current.result(), doing);
  }

  // The same for an entry point that writes a handle first.
  template <class Object, class Entry, class... Args>
  absl::StatusOr<Handle> create(absl::string_view doing, Entry entry, Args... args) {
    Object object = nullptr;
    if (absl::Status s = call(doing, entry, &object, args...); !s.ok()) return s;
    return Handle(object);
  }

  // Calls an entry point that ends an object's life.
  template <class Entry, class Object>
  void end(Entry entry, Object object) {
    const Current current(*this);
    if (current.result() == CUDA_SUCCESS) (void)entry(object);
  }

  absl::Status check(CUresult result, absl::string_view doing);
  // The driver's verdict on a text, with its log.
  absl::Status refusal(const absl::Status& status, const JitLog& log) const;
  absl::StatusOr<Image> link(const std::string& ptx, CUlinkState state);
  absl::StatusOr<int> function_attribute(CUfunction function, CUfunction_attribute attribute);
  absl::Status read_param_bytes(CUfunction function, std::size_t parameters, FunctionInfo& info);

  const Driver& driver_;
  const CUdevice device_;
  const CUcontext context_;

  mutable std::mutex mutex_;  // guards lost_
  absl::Status lost_;         // the error that ended the context
};

absl::Status CudaBackend::health() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

absl::Status CudaBackend::check(CUresult result, absl::string_view doing) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  absl::Status status = driver_.status(result, doing);
  const std::lock_guard lock(mutex_);
  if (lost_.ok()) {
    if (!is_sticky(result)) return status;
    lost_ = absl::Status(
        status.code(),
        str_cat(status.message(), "; the device's context is lost: nothing more can be done on CUDA device ",
                properties_.index, " in this process"));
    return lost_;
  }
  return absl::Status(lost_.code(), str_cat(doing, ": the device was lost before, while ", lost_.message()));
}

absl::StatusOr<std::uint64_t> CudaBackend::allocate(std::uint64_t bytes, std::string_view name) {
  CUdeviceptr address = 0;
  const std::string doing =
      str_cat("allocating ", bytes, " bytes for ", name, " on CUDA device ", properties_.index);
  if (absl::Status s = call(doing, driver_.cuMemAlloc_v2, &address, bytes); !s.ok()) return s;
  return address;
}

absl::StatusOr<void*> CudaBackend::allocate_pinned(std::uint64_t bytes) {
  void* data = nullptr;
  const std::string doing = str_cat("allocating ", bytes, " bytes of pinned host memory");
  if (absl::Status s = call(doing, driver_.cuMemAllocHost_v2, &data, bytes); !s.ok()) return s;
  return data;
}

absl::StatusOr<float> CudaBackend::elapsed_ms(Handle start, Handle end) {
  float ms = 0;
  if (absl::Status s = call("measuring between two events", driver_.cuEventElapsedTime, &ms, as_event(start),
                            as_event(end));
      !s.ok()) {
    return s;
  }
  return ms;
}

absl::Status CudaBackend::refusal(const absl::Status& status, const JitLog& log) const {
  std::string message =
      str_cat(status.message(), "; driver ", driver_version_text(properties_.driver_version), " for ",
              properties_.target.to_string(), " accepts PTX ISA up to ", properties_.highest_isa.to_string());
  for (const std::string& text : {log.errors(), log.info()}) {
    if (!text.empty()) str_append(&message, "\n", text);
  }
  return absl::Status(status.code(), message);
}

absl::StatusOr<Image> CudaBackend::link(const std::string& ptx, CUlinkState state) {
  // The driver takes the text with its terminating zero.
  absl::Status status = call("compiling PTX", driver_.link_add_data, state, CU_JIT_INPUT_PTX,
                             const_cast<void*>(static_cast<const void*>(ptx.c_str())), ptx.size() + 1, "ptx",
                             0u, static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr));
  void* cubin = nullptr;
  std::size_t bytes = 0;
  if (status.ok()) status = call("compiling PTX", driver_.link_complete, state, &cubin, &bytes);
  if (!status.ok()) return status;
  return Image{ImageKind::kCubin, std::string(static_cast<const char*>(cubin), bytes),
               ""};  // dies with `state`
}

absl::StatusOr<Image> CudaBackend::compile(const std::string& ptx) {
  Image text = {ImageKind::kPtx, ptx, ""};
  if (driver_.link_create == nullptr || needs_whole_program(ptx)) return text;
  JitLog log;
  CUlinkState state = nullptr;
  absl::Status status =
      call("compiling PTX", driver_.link_create, log.count(), log.options.data(), log.values.data(), &state);
  if (status.ok()) {
    absl::StatusOr<Image> image = link(ptx, state);
    end(driver_.link_destroy, state);
    if (image.ok()) {
      image->log = log.info();
      return image;
    }
    status = image.status();
  }
  // A linker that does not work is no verdict on the text: loading it will tell.
  const absl::StatusCode code = status.code();
  if (code == absl::StatusCode::kUnimplemented || code == absl::StatusCode::kInternal) return text;
  return refusal(status, log);
}

absl::StatusOr<Handle> CudaBackend::load(const Image& image, std::string& log) {
  CUmodule module = nullptr;
  if (image.kind == ImageKind::kCubin) {
    if (absl::Status s = call("loading a cubin", driver_.cuModuleLoadDataEx, &module,
                              static_cast<const void*>(image.bytes.data()), 0u,
                              static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr));
        !s.ok()) {
      return s;
    }
    return Handle(module);
  }
  JitLog jit;
  const absl::Status status =
      call("compiling PTX", driver_.cuModuleLoadDataEx, &module,
           static_cast<const void*>(image.bytes.c_str()), jit.count(), jit.options.data(), jit.values.data());
  if (!status.ok()) return refusal(status, jit);
  log += jit.info();
  return Handle(module);
}

absl::StatusOr<int> CudaBackend::function_attribute(CUfunction function, CUfunction_attribute attribute) {
  int value = 0;
  if (absl::Status s =
          call("reading a kernel's attributes", driver_.cuFuncGetAttribute, &value, attribute, function);
      !s.ok()) {
    return s;
  }
  return value;
}

// Asks for no more than there are: the index past the last one would be an API error in the eyes of
// compute-sanitizer.
absl::Status CudaBackend::read_param_bytes(CUfunction function, std::size_t parameters, FunctionInfo& info) {
  if (driver_.func_get_param_info == nullptr) return absl::OkStatus();
  const Current current(*this);
  std::vector<std::uint32_t> sizes;
  CUresult result = current.result();
  while (result == CUDA_SUCCESS && sizes.size() < parameters) {
    std::size_t offset = 0, size = 0;
    result = driver_.func_get_param_info(function, sizes.size(), &offset, &size);
    if (result == CUDA_SUCCESS) sizes.push_back(static_cast<std::uint32_t>(size));
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) {
    return check(result, "reading a kernel's parameters");
  }
  info.param_bytes = std::move(sizes);
  return absl::OkStatus();
}

absl::StatusOr<LoadedFunction> CudaBackend::find_function(Handle module, const std::string& name,
                                                          std::optional<std::size_t> parameters) {
  CUfunction function = nullptr;
  if (absl::Status s = call(str_cat("looking for the entry ", name), driver_.cuModuleGetFunction, &function,
                            static_cast<CUmodule>(module), name.c_str());
      !s.ok()) {
    return s;
  }
  constexpr std::array<CUfunction_attribute, 7> kAttributes = {
      CU_FUNC_ATTRIBUTE_NUM_REGS,
      CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
      CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
      CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,  // 0: none is required
      CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
      CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
  std::array<std::uint32_t, 7> values = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    absl::StatusOr<int> value = function_attribute(function, kAttributes[i]);
    if (!value.ok()) return value.status();
    values[i] = static_cast<std::uint32_t>(*value);
  }
  const Dim3 cluster = {values[4], values[5], values[6]};
  LoadedFunction loaded = {
      function,
      {values[0], values[1], values[2], values[3], cluster.empty() ? Dim3() : cluster, std::nullopt}};
  if (!parameters.has_value()) return loaded;
  if (absl::Status s = read_param_bytes(function, *parameters, loaded.info); !s.ok()) return s;
  return loaded;
}

CUtensorMapDataType tensor_type(Type type) {
  switch (type) {
    case Type::kU8: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case Type::kU16: return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case Type::kU32: return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case Type::kS32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case Type::kU64: return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case Type::kS64: return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case Type::kF16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case Type::kBf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case Type::kF64: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

// The driver alone knows the bits.
absl::StatusOr<TensorMap> CudaBackend::encode_tensor_map(const TiledTensor& tensor) {
  if (driver_.tensor_map_encode_tiled == nullptr) {
    return absl::FailedPreconditionError(str_cat("encoding a tensor map: this is the driver for CUDA ",
                                                 driver_version_text(properties_.driver_version),
                                                 "; tensor maps need 12.0 or later"));
  }
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
  constexpr CUtensorMapSwizzle kSwizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                              CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_32B};
  const CUtensorMapL2promotion promotion = tensor.l2_promotion == 0     ? CU_TENSOR_MAP_L2_PROMOTION_NONE
                                           : tensor.l2_promotion == 64  ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B
                                           : tensor.l2_promotion == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                                        : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const CUtensorMapFloatOOBfill fill = tensor.out_of_bounds == OutOfBounds::kNaN
                                           ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                           : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  CUtensorMap map = {};
  const std::array<cuuint64_t, 5> extents = std::bit_cast<std::array<cuuint64_t, 5>>(tensor.extents);
  const std::array<cuuint64_t, 4> strides = std::bit_cast<std::array<cuuint64_t, 4>>(tensor.strides);
  if (absl::Status s = call("encoding a tensor map", driver_.tensor_map_encode_tiled, &map,
                            tensor_type(tensor.type), static_cast<cuuint32_t>(tensor.rank),
                            reinterpret_cast<void*>(tensor.address), extents.data(), strides.data(),
                            tensor.box.data(), tensor.element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                            kSwizzles[static_cast<std::size_t>(tensor.swizzle)], promotion, fill);
      !s.ok()) {
    return s;
  }
  return std::bit_cast<TensorMap>(map);
}

absl::StatusOr<std::uint32_t> CudaBackend::max_ctas_per_sm(Handle function, std::uint64_t block_threads,
                                                           std::uint64_t dynamic_shared_bytes) {
  int ctas = 0;
  if (absl::Status s =
          call("asking for a kernel's occupancy", driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor, &ctas,
               as_function(function), static_cast<int>(block_threads), dynamic_shared_bytes);
      !s.ok()) {
    return s;
  }
  return static_cast<std::uint32_t>(ctas);
}

absl::Status CudaBackend::launch(Handle function, const LaunchShape& shape, absl::Span<const KernelArg> args,
                                 const LaunchOptions& options, Handle stream) {
  absl::InlinedVector<void*, 32> values;
  for (const KernelArg& arg : args) values.push_back(const_cast<void*>(arg.data));  // the driver only reads

  std::array<CUlaunchAttribute, 2> attributes = {};
  CUlaunchConfig config = {};
  const auto narrow = [](std::uint64_t value) { return static_cast<unsigned>(value); };
  config.gridDimX = narrow(shape.grid.x), config.gridDimY = narrow(shape.grid.y),
  config.gridDimZ = narrow(shape.grid.z);
  config.blockDimX = narrow(shape.block.x), config.blockDimY = narrow(shape.block.y);
  config.blockDimZ = narrow(shape.block.z);
  config.sharedMemBytes = narrow(shape.dynamic_shared_bytes);
  config.hStream = as_stream(stream);
  config.attrs = attributes.data();
  if (shape.cluster != Dim3()) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = narrow(shape.cluster.x);
    attribute.value.clusterDim.y = narrow(shape.cluster.y);
    attribute.value.clusterDim.z = narrow(shape.cluster.z);
  }
  if (options.programmatic_dependent_launch) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
  return call("launching", driver_.cuLaunchKernelEx, &config, as_function(function), values.data(),
              static_cast<void**>(nullptr));
}

absl::StatusOr<Handle> CudaBackend::end_capture(Handle stream) {
  CUgraph graph = nullptr;
  if (absl::Status s =
          call("ending the recording of a stream", driver_.cuStreamEndCapture, as_stream(stream), &graph);
      !s.ok()) {
    return s;
  }
  CUgraphExec exec = nullptr;
  absl::Status status =
      call("instantiating a graph", driver_.cuGraphInstantiateWithFlags, &exec, graph, 0ull);
  end(driver_.cuGraphDestroy, graph);
  if (!status.ok()) return status;
  return Handle(exec);
}

absl::StatusOr<int> count_devices(const Driver& driver) {
  int count = 0;
  if (absl::Status s = driver.status(driver.cuDeviceGetCount(&count), "counting the CUDA devices"); !s.ok())
    return s;
  return count;
}

}  // namespace

absl::StatusOr<int> count_cuda_devices(const std::string& libcuda) {
  absl::StatusOr<const Driver*> driver = open_driver(libcuda);
  if (!driver.ok()) return driver.status();
  return count_devices(**driver);
}

absl::StatusOr<std::unique_ptr<Backend>> open_cuda(const std::string& libcuda, int index) {
  absl::StatusOr<const Driver*> opened = open_driver(libcuda);
  if (!opened.ok()) return opened.status();
  const Driver& driver = **opened;
  absl::StatusOr<int> count = count_devices(driver);
  if (!count.ok()) return count.status();
  if (index < 0 || index >= *count) {
    return absl::NotFoundError(str_cat("there is no CUDA device ", index, ": the driver has ", *count,
                                       *count == 0 ? "" : ", counted from 0"));
  }
  CUdevice device = 0;
  if (absl::Status s = driver.status(driver.cuDeviceGet(&device, index), "asking for a CUDA device"); !s.ok())
    return s;
  absl::StatusOr<DeviceProperties> properties = read_properties(driver, device, index);
  if (!properties.ok()) return properties.status();
  properties->libcuda = libcuda;
  CUcontext context = nullptr;
  if (absl::Status s = driver.status(driver.cuDevicePrimaryCtxRetain(&context, device),
                                     str_cat("retaining the primary context of CUDA device ", index));
      !s.ok()) {
    return s;
  }
  return std::make_unique<CudaBackend>(driver, device, context, *std::move(properties));
}

}  // namespace ptxgen::internal
