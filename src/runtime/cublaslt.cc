#include "src/runtime/cublaslt.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"

namespace ptxgen::internal {
namespace {

constexpr std::size_t kOldest = 120000;  // the first that takes e4m3 on sm_89 and sm_90

std::string version_text(std::size_t version) {
  return str_cat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::vector<std::string> names_to_try(const std::string& path) {
  if (!path.empty()) return {path};
  std::vector<std::string> names;
  for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
    for (const char* version : {"13", "12"}) names.push_back(str_cat(folder, "libcublasLt.so.", version));
  }
  return names;
}

absl::StatusOr<std::pair<void*, std::string>> open_first(const std::string& path) {
  const std::vector<std::string> names = names_to_try(path);
  std::string why;
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return std::pair(library, name);
    const char* error = dlerror();
    str_append(&why, why.empty() ? "" : "; ", error == nullptr ? name : error);
  }
  return absl::NotFoundError(str_cat("cuBLASLt could not be opened (", why,
                                     "); install libcublas of CUDA 12 or 13, or name its libcublasLt in ",
                                     env::kCublasLt.name));
}

template <class Entry>
bool resolve(void* library, const char* name, Entry& entry) {
  entry = reinterpret_cast<Entry>(dlsym(library, name));
  return entry != nullptr;
}

absl::StatusOr<std::unique_ptr<CublasLt>> load(const std::string& path) {
  const auto opened = open_first(path);
  if (!opened.ok()) return opened.status();
  void* const library = opened->first;
  const std::string& name = opened->second;
  const auto refuse = [&](const std::string& why) {
    dlclose(library);
    return absl::FailedPreconditionError(str_cat(name, why, "; ptxgen needs cuBLASLt ", version_text(kOldest),
                                                 " or later: name another in ", env::kCublasLt.name));
  };
  auto lt = std::make_unique<CublasLt>();
  const char* missing = nullptr;
#define PTXGEN_CUBLASLT_RESOLVE(entry, result, parameters) \
  if (!resolve(library, #entry, lt->entry)) missing = #entry;
  PTXGEN_CUBLASLT_ENTRIES(PTXGEN_CUBLASLT_RESOLVE)
#undef PTXGEN_CUBLASLT_RESOLVE
  if (missing != nullptr) return refuse(str_cat(" lacks ", missing));
  const std::size_t version = lt->cublasLtGetVersion();
  if (version < kOldest) return refuse(str_cat(" is cuBLASLt ", version_text(version)));
  resolve(library, "ptxgen_emulated_memory", lt->emulated_memory);
  lt->name = str_cat(name, " ", version_text(version));
  return lt;
}

absl::StatusCode status_code(LtStatus result) {
  switch (result) {
    case LtStatus::kAllocFailed: return absl::StatusCode::kResourceExhausted;
    case LtStatus::kInvalidValue: return absl::StatusCode::kInvalidArgument;
    case LtStatus::kArchMismatch:
    case LtStatus::kNotSupported: return absl::StatusCode::kUnimplemented;
    case LtStatus::kNotInitialized: return absl::StatusCode::kFailedPrecondition;
    default: return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CublasLt::status(LtStatus result, std::string_view doing) const {
  if (result == LtStatus::kSuccess) return absl::OkStatus();
  const char* error = cublasLtGetStatusName(result);
  return absl::Status(status_code(result),
                      str_cat(doing, " (", name, "): ", error == nullptr ? "an unknown error" : error));
}

absl::StatusOr<const CublasLt*> open_cublaslt(const std::string& path) {
  static std::mutex mutex;
  // Left to the end of the process, after static destructors.
  static auto& opened = *new std::map<std::string, std::unique_ptr<CublasLt>>();

  const std::string wanted = path.empty() ? env::text(env::kCublasLt) : path;
  const std::lock_guard lock(mutex);
  std::unique_ptr<CublasLt>& lt = opened[wanted];
  if (lt == nullptr) {
    absl::StatusOr<std::unique_ptr<CublasLt>> loaded = load(wanted);
    if (!loaded.ok()) return loaded.status();
    lt = *std::move(loaded);
  }
  return lt.get();
}

}  // namespace ptxgen::internal
