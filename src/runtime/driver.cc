#include "src/runtime/driver.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/runtime/driver_version.h"

namespace ptxgen::internal {
namespace {

absl::StatusCode status_code(CUresult result) {
  if (is_sticky(result)) return absl::StatusCode::kDataLoss;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_NOT_FOUND: return absl::StatusCode::kNotFound;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_NO_BINARY_FOR_GPU: return absl::StatusCode::kInvalidArgument;
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_DEINITIALIZED: return absl::StatusCode::kFailedPrecondition;
    case CUDA_ERROR_NOT_SUPPORTED: return absl::StatusCode::kUnimplemented;
    default: return absl::StatusCode::kInternal;
  }
}

template <class Entry>
bool resolve(void* library, const char* name, Entry& entry) {
  entry = reinterpret_cast<Entry>(dlsym(library, name));
  return entry != nullptr;
}

absl::StatusOr<std::unique_ptr<Driver>> load_driver(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::NotFoundError(
        absl::StrCat("the CUDA driver library could not be opened (", why == nullptr ? path : why,
                     "); install NVIDIA's driver, or name its libcuda in PTXGEN_LIBCUDA"));
  }
  auto driver = std::make_unique<Driver>();
  const char* missing = nullptr;
#define PTXGEN_CUDA_RESOLVE(name) \
  if (!resolve(library, #name, driver->name)) missing = #name;
  PTXGEN_CUDA_ENTRIES(PTXGEN_CUDA_RESOLVE)
#undef PTXGEN_CUDA_RESOLVE
  resolve(library, "cuFuncGetParamInfo", driver->func_get_param_info);
  if (!resolve(library, "cuLinkCreate_v2", driver->link_create) ||
      !resolve(library, "cuLinkAddData_v2", driver->link_add_data) ||
      !resolve(library, "cuLinkComplete", driver->link_complete) ||
      !resolve(library, "cuLinkDestroy", driver->link_destroy)) {
    driver->link_create = nullptr;
  }
  resolve(library, "cuTensorMapEncodeTiled", driver->tensor_map_encode_tiled);
  if (missing != nullptr) {
    dlclose(library);
    return absl::FailedPreconditionError(absl::StrCat(path, " lacks ", missing,
                                                      "; ptxgen needs NVIDIA's driver for CUDA ",
                                                      driver_version_text(kOldestDriver), " or later"));
  }
  return driver;
}

}  // namespace

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED: return true;
    default: return false;
  }
}

std::string Driver::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return absl::StrFormat("CUDA error %d, which this driver does not know", static_cast<int>(result));
  }
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return absl::StrCat(name, " (", text, ")");
}

absl::Status Driver::status(CUresult result, absl::string_view doing) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return absl::Status(status_code(result), absl::StrCat(doing, ": ", describe(result)));
}

absl::StatusOr<const Driver*> open_driver(const std::string& path) {
  static std::mutex mutex;
  // Left to the end of the process, after static destructors.
  static auto& opened = *new std::map<std::string, std::unique_ptr<Driver>>();

  const std::lock_guard lock(mutex);
  std::unique_ptr<Driver>& driver = opened[path];
  if (driver == nullptr) {
    absl::StatusOr<std::unique_ptr<Driver>> loaded = load_driver(path);
    if (!loaded.ok()) return loaded.status();
    driver = *std::move(loaded);
  }
  // Again at each open, since it is cheap and a failure (no device yet) may pass.
  if (absl::Status s = driver->status(driver->cuInit(0), absl::StrCat("initialising ", path)); !s.ok())
    return s;
  return driver.get();
}

absl::StatusOr<int> driver_version(const Driver& driver) {
  int version = 0;
  if (absl::Status s = driver.status(driver.cuDriverGetVersion(&version), "asking for the driver's version");
      !s.ok()) {
    return s;
  }
  if (version < kOldestDriver) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is the driver for CUDA ", driver_version_text(version), "; ptxgen needs ",
                     driver_version_text(kOldestDriver), " or later: update NVIDIA's driver"));
  }
  return version;
}

}  // namespace ptxgen::internal
