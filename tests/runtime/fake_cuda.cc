// The shared library behind fake_cuda.h. Device memory is host memory; launches are noted and not run; the
// "compiler" reads as much of PTX as it takes to find entries and their parameters, its cubin is a head that
// names the compute capability and the text. A text with an entry called so crashes or hangs it.
#include "tests/runtime/fake_cuda.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <thread>

#undef cuEventElapsedTime  // the fake exports the name that old drivers have

using ptxgen::testing::FakeCuda;
using ptxgen::testing::FakeDevice;
using ptxgen::testing::FakeLaunch;
using ptxgen::testing::FakeTensorMap;

struct CUctx_st {
  int device;
  int holders = 0;
  bool lost = false;
  CUresult lost_with = CUDA_SUCCESS;
};

namespace {

enum class What { kMemory, kPinned, kStream, kEvent, kModule, kFunction, kGraph, kGraphExec, kLink };

struct Object {
  What what;
  CUcontext context;
  std::string text = {};                 // of a module or link: its PTX; of a function: its name
  std::vector<std::size_t> params = {};  // of a function: sizes
  std::array<int, 3> cluster = {};       // .reqnctapercluster
  bool non_portable_cluster = false;
  bool capturing = false, broken = false;  // of a stream
  std::thread::id capturer = {};
  int dynamic_limit = 48 * 1024;
  std::chrono::steady_clock::time_point time = {};
  std::size_t bytes = 0;
  std::string cubin = {};  // of a link, as is the next
  std::vector<std::pair<CUjit_option, void*>> options = {};
};

struct Injection {
  CUresult result;
  int times, skip;
};

// The contexts a thread has pushed. Without a destructor: objects of static storage outlive those of the
// thread.
struct ContextStack {
  std::array<CUcontext, 16> contexts;
  std::size_t size;

  void push(CUcontext context) { contexts.at(size++) = context; }
  CUcontext top() const { return size == 0 ? nullptr : contexts[size - 1]; }
};
thread_local ContextStack current_contexts;

class Fake final : public FakeCuda {
 public:
  Fake() { reset(); }

  void reset() override;
  void set_version(int version) override {
    lock_guard lock(mutex);
    driver_version = version;
  }
  void set_devices(std::vector<FakeDevice> list) override {
    lock_guard lock(mutex);
    devices = std::move(list);
  }
  void fail(std::string entry, CUresult result, int times, int skip) override {
    lock_guard lock(mutex);
    injections[std::move(entry)] = {result, times, skip};
  }
  void shut_down() override {
    lock_guard lock(mutex);
    down = true;
  }
  void set_jit_milliseconds(int milliseconds) override {
    lock_guard lock(mutex);
    jit_milliseconds = milliseconds;
  }

  int jits() override {
    lock_guard lock(mutex);
    return jit_count;
  }
  int calls(std::string_view entry) override {
    lock_guard lock(mutex);
    return call_counts[std::string(entry)];
  }
  int alive() override;
  std::vector<std::string> violations() override {
    lock_guard lock(mutex);
    return broken_rules;
  }
  std::vector<FakeLaunch> launches() override {
    lock_guard lock(mutex);
    return launched;
  }
  std::vector<FakeTensorMap> tensor_maps() override {
    lock_guard lock(mutex);
    return encoded;
  }
  CUcontext make_context(int device) override {
    lock_guard lock(mutex);
    return foreign.emplace_back(std::make_unique<CUctx_st>(CUctx_st{device})).get();
  }
  void set_current(CUcontext context) override { current_contexts = {{context}, context != nullptr}; }
  CUcontext current() override { return current_contexts.top(); }

  using lock_guard = std::lock_guard<std::recursive_mutex>;

  // What every call goes through first.
  CUresult enter(const char* entry);
  // The same for one that needs a context.
  CUresult enter_context(const char* entry);
  // One that a thread may not make while it records a stream.
  CUresult enter_unsafe(const char* entry);
  CUresult broken(const char* entry, const std::string& rule, CUresult result) {
    broken_rules.push_back(std::string(entry) + ": " + rule);
    return result;
  }
  Object* make(What what) {
    objects[next_handle] = std::make_unique<Object>(Object{what, current()});
    return objects[next_handle++].get();
  }
  void* handle_of(const Object* object) {
    for (auto& [key, value] : objects) {
      if (value.get() == object) return reinterpret_cast<void*>(key);
    }
    return nullptr;
  }
  // The live object behind a handle, if it is of this kind and of the current context.
  Object* find(const char* entry, What what, const void* handle);
  CUresult check_stream(const char* entry, CUstream stream, Object** found = nullptr);
  Object* recording_of_this_thread();
  bool in_memory(CUdeviceptr address, std::size_t bytes);

  std::recursive_mutex mutex;
  int driver_version = 0;
  bool down = false, initialised = false;
  int jit_milliseconds = 0, jit_count = 0;
  std::vector<FakeDevice> devices;
  std::map<int, std::unique_ptr<CUctx_st>> primary;
  std::vector<std::unique_ptr<CUctx_st>> foreign;
  std::map<std::uintptr_t, std::unique_ptr<Object>> objects;
  std::uintptr_t next_handle = 0x1000;
  std::map<std::string, Injection> injections;
  std::map<std::string, int> call_counts;
  std::vector<std::string> broken_rules;
  std::vector<FakeLaunch> launched;
  std::vector<FakeTensorMap> encoded;
};

Fake& fake() {
  static Fake& instance = *new Fake;
  return instance;
}

void Fake::reset() {
  lock_guard lock(mutex);
  driver_version = 12040;
  down = initialised = false;
  jit_milliseconds = jit_count = 0;
  devices = {{"Fake A100", 8, 0}, {"Fake L4", 8, 9}};
  for (auto& [address, object] : objects) {
    if (object->what == What::kMemory || object->what == What::kPinned)
      std::free(reinterpret_cast<void*>(address));
  }
  objects.clear();
  primary.clear();
  foreign.clear();
  injections.clear();
  call_counts.clear();
  broken_rules.clear();
  launched.clear();
  encoded.clear();
  current_contexts = {};
}

int Fake::alive() {
  lock_guard lock(mutex);
  int count = 0;
  for (const auto& [address, object] : objects) count += object->what != What::kFunction;
  for (const auto& [device, context] : primary) count += context->holders;
  return count;
}

CUresult Fake::enter(const char* entry) {
  ++call_counts[entry];
  if (down) return CUDA_ERROR_DEINITIALIZED;
  const auto injected = injections.find(entry);
  if (injected == injections.end() || injected->second.times == 0) return CUDA_SUCCESS;
  if (injected->second.skip > 0) {
    --injected->second.skip;
    return CUDA_SUCCESS;
  }
  --injected->second.times;
  return injected->second.result;
}

CUresult Fake::enter_context(const char* entry) {
  const CUresult result = enter(entry);
  if (down) return result;
  const CUcontext context = current();
  if (context == nullptr) return broken(entry, "no context is current", CUDA_ERROR_INVALID_CONTEXT);
  if (context->holders == 0)
    return broken(entry, "the current context is nobody's any more", CUDA_ERROR_CONTEXT_IS_DESTROYED);
  if (context->lost) return context->lost_with;
  if (result >= 700 && result < 720) {
    context->lost = true;
    context->lost_with = result;
  }
  return result;
}

Object* Fake::recording_of_this_thread() {
  for (auto& [handle, object] : objects) {
    if (object->what == What::kStream && object->capturing && object->capturer == std::this_thread::get_id())
      return object.get();
  }
  return nullptr;
}

CUresult Fake::enter_unsafe(const char* entry) {
  const CUresult result = enter_context(entry);
  if (result != CUDA_SUCCESS) return result;
  Object* recording = recording_of_this_thread();
  if (recording == nullptr) return CUDA_SUCCESS;
  recording->broken = true;
  return broken(entry, "called while this thread records", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

Object* Fake::find(const char* entry, What what, const void* handle) {
  const auto found = objects.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == objects.end()) {
    broken(entry, "the handle is of nothing alive", CUDA_ERROR_INVALID_HANDLE);
    return nullptr;
  }
  if (found->second->what != what) {
    broken(entry, "the handle is of another kind", CUDA_ERROR_INVALID_HANDLE);
    return nullptr;
  }
  if (found->second->context != current()) {
    broken(entry, "the handle belongs to another context", CUDA_ERROR_INVALID_HANDLE);
    return nullptr;
  }
  return found->second.get();
}

CUresult Fake::check_stream(const char* entry, CUstream stream, Object** found) {
  if (stream == nullptr) {
    Object* recording = recording_of_this_thread();
    if (recording == nullptr) return CUDA_SUCCESS;
    recording->broken = true;
    return broken(entry, "the default stream is used while a stream is recorded",
                  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  Object* object = find(entry, What::kStream, stream);
  if (found != nullptr) *found = object;
  return object == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

bool Fake::in_memory(CUdeviceptr address, std::size_t bytes) {
  const auto after = objects.upper_bound(address);
  if (after == objects.begin()) return false;
  const auto& [start, object] = *std::prev(after);
  return object->what == What::kMemory && object->context == current() &&
         address + bytes <= start + object->bytes;
}

struct ErrorText {
  CUresult result;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
};

int highest_minor_isa(int driver_version) {  // times ten: 12040 is 84
  const int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  if (major == 11) return 78;
  if (major >= 13) return 90 + minor;
  return 80 + (minor <= 5 ? minor : minor - 1);
}

// Entries and parameter sizes, or the first line with the word "bogus".
CUresult compile(const std::string& ptx, std::string& error, Object& module) {
  int line = 1;
  for (std::size_t at = 0; at < ptx.size(); ++line) {
    const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
    if (ptx.substr(at, end - at).find("bogus") != std::string::npos) {
      error = "ptxas application ptx input, line " + std::to_string(line) +
              "; fatal   : Parsing error near '.f32': syntax error\n";
      return CUDA_ERROR_INVALID_PTX;
    }
    at = end + 1;
  }
  std::smatch version;
  if (!std::regex_search(ptx, version, std::regex(R"(\.version\s+(\d+)\.(\d+))")))
    return CUDA_ERROR_INVALID_PTX;
  const int isa = std::stoi(version[1]) * 10 + std::stoi(version[2]);
  if (isa > highest_minor_isa(fake().driver_version)) {
    error = "ptxas application ptx input, line 1; fatal   : Unsupported .version " + version[1].str() + "." +
            version[2].str() + "\n";
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  module.text = ptx;
  return CUDA_SUCCESS;
}

bool read_entry(const std::string& ptx, const std::string& name, std::vector<std::size_t>& params) {
  std::smatch entry;
  if (!std::regex_search(ptx, entry, std::regex("\\.entry\\s+" + name + R"(\s*\(([^)]*)\))"))) return false;
  const std::string list = entry[1];
  const std::regex param(R"(\.param\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+))");
  for (std::sregex_iterator it(list.begin(), list.end(), param), end; it != end; ++it) {
    params.push_back(std::stoul((*it)[1]) / 8);
  }
  return true;
}

// The cluster that the only entry of a text requires.
std::array<int, 3> read_cluster(const std::string& ptx) {
  std::smatch found;
  const std::regex cluster(R"(\.reqnctapercluster (\d+), (\d+), (\d+))");
  if (!std::regex_search(ptx, found, cluster)) return {};
  return {std::stoi(found[1]), std::stoi(found[2]), std::stoi(found[3])};
}

// Compiles for as long as a compiler takes, outside of the lock.
CUresult compile_slowly(const std::string& ptx, std::string& error, Object& made) {
  if (ptx.find("crash_the_compiler") != std::string::npos) std::abort();
  if (ptx.find("hang_the_compiler") != std::string::npos) {
    while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  int wait = 0;
  {
    const Fake::lock_guard lock(fake().mutex);
    wait = fake().jit_milliseconds;
    ++fake().jit_count;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(wait));
  const Fake::lock_guard lock(fake().mutex);
  return compile(ptx, error, made);
}

constexpr std::string_view kElf =
    "\x7f"
    "ELF of the fake for ";

// What a cubin of the fake begins with: the device it runs on.
std::string cubin_head(CUcontext context) {
  const FakeDevice& device = fake().devices.at(static_cast<std::size_t>(context->device));
  return std::string(kElf) + std::to_string(device.major) + "." + std::to_string(device.minor) + "\n";
}

void write_log(void* buffer, std::size_t size, const std::string& text) {
  std::strncpy(static_cast<char*>(buffer), text.c_str(), size);
}

}  // namespace

FakeCuda* fake_cuda() {
  return &fake();
}

#define ENTER_WITH(method, entry)            \
  const Fake::lock_guard lock(fake().mutex); \
  constexpr const char* kEntry = #entry;     \
  (void)kEntry;                              \
  if (const CUresult result = fake().method(#entry); result != CUDA_SUCCESS) return result
#define ENTER(entry) ENTER_WITH(enter, entry)
#define ENTER_CONTEXT(entry) ENTER_WITH(enter_context, entry)
#define ENTER_UNSAFE(entry) ENTER_WITH(enter_unsafe, entry)

// Ends the life of an object of a kind.
#define END(entry, kind, handle)                                                        \
  ENTER_UNSAFE(entry);                                                                  \
  if (fake().find(kEntry, kind, (handle)) == nullptr) return CUDA_ERROR_INVALID_HANDLE; \
  fake().objects.erase(reinterpret_cast<std::uintptr_t>(handle));                       \
  return CUDA_SUCCESS

extern "C" {

CUresult cuInit(unsigned) {
  ENTER(cuInit);
  fake().initialised = true;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  ENTER(cuDriverGetVersion);
  *version = fake().driver_version;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult result, const char** text) {
  for (const ErrorText& row : kErrors) {
    if (row.result == result) return *text = row.name, CUDA_SUCCESS;
  }
  return *text = nullptr, CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
  for (const ErrorText& row : kErrors) {
    if (row.result == result) return *text = row.text, CUDA_SUCCESS;
  }
  return *text = nullptr, CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = static_cast<int>(fake().devices.size());
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  ENTER(cuDeviceGet);
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  ENTER(cuDeviceGetName);
  std::strncpy(name, fake().devices.at(static_cast<std::size_t>(device)).name.c_str(),
               static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  ENTER(cuDeviceGetAttribute);
  const FakeDevice& row = fake().devices.at(static_cast<std::size_t>(device));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = row.major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = row.minor; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 108; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 41943040; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = row.minor == 9 ? 101376 : 166912;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  ENTER(cuDeviceTotalMem_v2);
  *bytes = std::size_t{40} << 30;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ENTER(cuDevicePrimaryCtxRetain);
  std::unique_ptr<CUctx_st>& primary = fake().primary[device];
  if (primary == nullptr) primary = std::make_unique<CUctx_st>(CUctx_st{device});
  ++primary->holders;
  *context = primary.get();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  const auto found = fake().primary.find(device);
  if (found == fake().primary.end() || found->second->holders == 0) {
    return fake().broken(kEntry, "released more often than retained", CUDA_ERROR_INVALID_CONTEXT);
  }
  --found->second->holders;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  ENTER(cuCtxGetCurrent);
  *context = fake().current();
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER(cuCtxPushCurrent_v2);
  current_contexts.push(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  ENTER(cuCtxPopCurrent_v2);
  if (current_contexts.size == 0) return fake().broken(kEntry, "nothing to pop", CUDA_ERROR_INVALID_CONTEXT);
  *context = current_contexts.top();
  --current_contexts.size;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  ENTER_UNSAFE(cuCtxSynchronize);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  ENTER_UNSAFE(cuMemAlloc_v2);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > std::size_t{1} << 30) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xcd, bytes);  // undefined to its user, the same in every run
  *address = reinterpret_cast<CUdeviceptr>(memory);
  auto object = std::make_unique<Object>(Object{What::kMemory, fake().current()});
  object->bytes = bytes;
  fake().objects[*address] = std::move(object);
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER_UNSAFE(cuMemFree_v2);
  if (fake().find(kEntry, What::kMemory, reinterpret_cast<void*>(address)) == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  fake().objects.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
CUresult cuMemAllocHost_v2(void** data, size_t bytes) {
  ENTER_UNSAFE(cuMemAllocHost_v2);
  *data = std::malloc(bytes);
  fake().objects[reinterpret_cast<std::uintptr_t>(*data)] =
      std::make_unique<Object>(Object{What::kPinned, fake().current()});
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* data) {
  ENTER_UNSAFE(cuMemFreeHost);
  if (fake().find(kEntry, What::kPinned, data) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  fake().objects.erase(reinterpret_cast<std::uintptr_t>(data));
  std::free(data);
  return CUDA_SUCCESS;
}

#define CHECK_COPY(stream, address, bytes)                                                                \
  if (const CUresult result = fake().check_stream(kEntry, stream); result != CUDA_SUCCESS) return result; \
  if (!fake().in_memory(address, bytes))                                                                  \
  return fake().broken(kEntry, "outside of memory", CUDA_ERROR_INVALID_VALUE)

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  ENTER_CONTEXT(cuMemcpyHtoDAsync_v2);
  CHECK_COPY(stream, to, bytes);
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER_CONTEXT(cuMemcpyDtoHAsync_v2);
  CHECK_COPY(stream, from, bytes);
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER_CONTEXT(cuMemcpyDtoDAsync_v2);
  CHECK_COPY(stream, to, bytes);
  CHECK_COPY(stream, from, bytes);
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  ENTER_CONTEXT(cuMemsetD8Async);
  CHECK_COPY(stream, to, bytes);
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  ENTER_CONTEXT(cuStreamCreate);
  *stream = static_cast<CUstream>(fake().handle_of(fake().make(What::kStream)));
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  END(cuStreamDestroy_v2, What::kStream, stream);
}
CUresult cuStreamSynchronize(CUstream stream) {
  ENTER_UNSAFE(cuStreamSynchronize);
  return fake().check_stream(kEntry, stream);
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER_CONTEXT(cuStreamWaitEvent);
  if (fake().find(kEntry, What::kEvent, event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return fake().check_stream(kEntry, stream);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  ENTER_CONTEXT(cuStreamBeginCapture_v2);
  Object* object = fake().find(kEntry, What::kStream, stream);
  if (object == nullptr || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) return CUDA_ERROR_INVALID_VALUE;
  object->capturing = true;
  object->broken = false;
  object->capturer = std::this_thread::get_id();
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  ENTER_CONTEXT(cuStreamEndCapture);
  Object* object = fake().find(kEntry, What::kStream, stream);
  if (object == nullptr || !object->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  object->capturing = false;
  if (object->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = static_cast<CUgraph>(fake().handle_of(fake().make(What::kGraph)));
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  ENTER_CONTEXT(cuGraphInstantiateWithFlags);
  if (fake().find(kEntry, What::kGraph, graph) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *exec = static_cast<CUgraphExec>(fake().handle_of(fake().make(What::kGraphExec)));
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  ENTER_CONTEXT(cuGraphLaunch);
  if (fake().find(kEntry, What::kGraphExec, exec) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return fake().check_stream(kEntry, stream);
}
CUresult cuGraphDestroy(CUgraph graph) {
  END(cuGraphDestroy, What::kGraph, graph);
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  END(cuGraphExecDestroy, What::kGraphExec, exec);
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  ENTER_CONTEXT(cuEventCreate);
  *event = static_cast<CUevent>(fake().handle_of(fake().make(What::kEvent)));
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  END(cuEventDestroy_v2, What::kEvent, event);
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER_CONTEXT(cuEventRecord);
  Object* object = fake().find(kEntry, What::kEvent, event);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  object->time = std::chrono::steady_clock::now();
  return fake().check_stream(kEntry, stream);
}
CUresult cuEventSynchronize(CUevent event) {
  ENTER_UNSAFE(cuEventSynchronize);
  return fake().find(kEntry, What::kEvent, event) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  ENTER_CONTEXT(cuEventElapsedTime);
  const Object *first = fake().find(kEntry, What::kEvent, start),
               *last = fake().find(kEntry, What::kEvent, end);
  if (first == nullptr || last == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *ms = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return CUDA_SUCCESS;
}

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  ENTER_UNSAFE(cuLinkCreate_v2);
  Object* link = fake().make(What::kLink);
  for (unsigned i = 0; i < count; ++i) link->options.emplace_back(options[i], values[i]);
  *state = static_cast<CUlinkState>(fake().handle_of(link));
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*,
                          unsigned, CUjit_option*, void**) {
  std::string ptx;
  {
    ENTER_UNSAFE(cuLinkAddData_v2);
    if (fake().find(kEntry, What::kLink, state) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const char* text = static_cast<const char*>(data);
    if (type != CU_JIT_INPUT_PTX || size == 0 || text[size - 1] != 0)
      return fake().broken(kEntry, "no zero at the end of the text", CUDA_ERROR_INVALID_VALUE);
    ptx = text;
  }
  std::string error;
  Object made{What::kModule, fake().current()};
  const CUresult result = compile_slowly(ptx, error, made);
  const Fake::lock_guard lock(fake().mutex);
  Object* link = fake().find("cuLinkAddData_v2", What::kLink, state);
  for (std::size_t i = 0; i + 1 < link->options.size(); ++i) {
    const auto [option, buffer] = link->options[i];
    const auto bytes = reinterpret_cast<std::size_t>(link->options[i + 1].second);
    if (option == CU_JIT_ERROR_LOG_BUFFER) write_log(buffer, bytes, error);
    if (option == CU_JIT_INFO_LOG_BUFFER) write_log(buffer, bytes, "info: compiled by the fake\n");
  }
  if (result == CUDA_SUCCESS) link->cubin = cubin_head(fake().current()) + ptx + '\0';
  return result;
}
CUresult cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  ENTER_UNSAFE(cuLinkComplete);
  Object* link = fake().find(kEntry, What::kLink, state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (link->cubin.empty()) return fake().broken(kEntry, "nothing to link", CUDA_ERROR_INVALID_VALUE);
  *cubin = link->cubin.data();
  *size = link->cubin.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  END(cuLinkDestroy, What::kLink, state);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  const std::string text = static_cast<const char*>(image);
  std::string error;
  Object compiled{What::kModule, fake().current()};
  {
    ENTER_UNSAFE(cuModuleLoadDataEx);
    if (text.starts_with(kElf)) {
      const std::string head = cubin_head(fake().current());
      if (!text.starts_with(head)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
      compiled.text = text.substr(head.size());
    } else if (text.starts_with("\x7f")) {
      return CUDA_ERROR_INVALID_IMAGE;
    }
  }
  const CUresult result = compiled.text.empty() ? compile_slowly(text, error, compiled) : CUDA_SUCCESS;
  const Fake::lock_guard lock(fake().mutex);
  for (unsigned i = 0; i + 1 < count; ++i) {
    const std::size_t size = reinterpret_cast<std::size_t>(values[i + 1]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) write_log(values[i], size, error);
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) write_log(values[i], size, "info: compiled by the fake\n");
  }
  if (result != CUDA_SUCCESS) return result;
  Object* made = fake().make(What::kModule);
  *made = compiled;
  *module = static_cast<CUmodule>(fake().handle_of(made));
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  END(cuModuleUnload, What::kModule, module);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  ENTER_CONTEXT(cuModuleGetFunction);
  Object* owner = fake().find(kEntry, What::kModule, module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<std::size_t> params;
  if (!read_entry(owner->text, name, params)) return CUDA_ERROR_NOT_FOUND;
  Object* made = fake().make(What::kFunction);
  made->text = name;
  made->params = params;
  made->cluster = read_cluster(owner->text);
  *function = static_cast<CUfunction>(fake().handle_of(made));
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  ENTER_CONTEXT(cuFuncGetAttribute);
  const Object* object = fake().find(kEntry, What::kFunction, function);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 40; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 16; break;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 512; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = object->cluster[0]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = object->cluster[1]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = object->cluster[2]; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ENTER_CONTEXT(cuFuncSetAttribute);
  Object* object = fake().find(kEntry, What::kFunction, function);
  if (object != nullptr && attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    object->non_portable_cluster = value != 0;
    return CUDA_SUCCESS;
  }
  if (object == nullptr || attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  object->dynamic_limit = value;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  ENTER_CONTEXT(cuFuncGetParamInfo);
  const Object* object = fake().find(kEntry, What::kFunction, function);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= object->params.size()) {
    return fake().broken(kEntry, "the entry has no such parameter", CUDA_ERROR_INVALID_VALUE);
  }
  *offset = 0;
  *size = object->params[index];
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, CUfunction function, int threads, size_t) {
  ENTER_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (fake().find(kEntry, What::kFunction, function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *ctas = 2048 / threads;
  return CUDA_SUCCESS;
}
#ifndef PTXGEN_FAKE_OLD_CUDA  // a driver before 11.8
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** args, void**) {
  ENTER_CONTEXT(cuLaunchKernelEx);
  if (const CUresult result = fake().check_stream(kEntry, config->hStream); result != CUDA_SUCCESS)
    return result;
  const Object* object = fake().find(kEntry, What::kFunction, function);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (static_cast<int>(config->sharedMemBytes) > object->dynamic_limit) {
    return fake().broken(kEntry, "more dynamic shared memory than allowed", CUDA_ERROR_INVALID_VALUE);
  }
  FakeLaunch launch = {object->text,
                       config->gridDimX,
                       config->gridDimY,
                       config->gridDimZ,
                       config->blockDimX,
                       config->blockDimY,
                       config->blockDimZ,
                       config->sharedMemBytes,
                       0,
                       false,
                       object->non_portable_cluster,
                       {},
                       object->context->device};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      launch.cluster_x = attribute.value.clusterDim.x;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) launch.programmatic = true;
  }
  for (std::size_t i = 0; i < object->params.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(args[i]);
    launch.args.emplace_back(bytes, bytes + object->params[i]);
  }
  fake().launched.push_back(std::move(launch));
  return CUDA_SUCCESS;
}
#endif

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  ENTER_CONTEXT(cuTensorMapEncodeTiled);
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return CUDA_ERROR_INVALID_VALUE;
  fake().encoded.push_back({type,
                            swizzle,
                            promotion,
                            fill,
                            rank,
                            reinterpret_cast<std::uintptr_t>(address),
                            {extents, extents + rank},
                            {strides, strides + rank - 1},
                            {box, box + rank},
                            {element_strides, element_strides + rank}});
  for (cuuint64_t& word : map->opaque) word = 0x7e5031;
  return CUDA_SUCCESS;
}

}  // extern "C"
