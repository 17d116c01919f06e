#include "src/codegen/llvm/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"

namespace ptxgen::llvm {
namespace {

// The oldest with opaque pointers alone, `memory(...)` and LLVMGetVersion.
constexpr unsigned kOldest = 16;
// What the suite runs with; the first to be looked for.
constexpr unsigned kTested = 19;

// What each version brought (LLVM, lib/Target/NVPTX/NVPTX.td at its release branches).
struct Release {
  unsigned major;
  PtxIsa isa;  // the newest that it writes
};
constexpr Release kReleases[] = {{16, {7, 8}}, {17, {8, 1}}, {18, {8, 3}}, {19, {8, 5}},
                                 {20, {8, 7}}, {21, {8, 8}}, {22, {9, 0}}};

// The releases' targets: the first PTX ISA of a target is in ptxgen's own table, so a release has what it can
// write `.version` for. LLVM 17 alone came before a target of an ISA that it writes.
unsigned first_release(ptxgen::Target target, PtxIsa isa) {
  const PtxIsa needed = std::max(isa, first_isa(target));
  const bool late = target.arch_specific && target.sm == 90;
  for (const Release& release : kReleases) {
    if (release.isa >= needed && !(late && release.major == 17)) return release.major;
  }
  return std::end(kReleases)[-1].major + 1;
}

// The names under which distributions install the library of a version.
std::vector<std::string> names_of(unsigned major) {
  return {str_cat("libLLVM.so.", major, ".1"), str_cat("libLLVM-", major, ".so.1"),
          str_cat("libLLVM-", major, ".so")};
}

// The version tested first, then newer ones, then older ones.
std::vector<std::string> candidates() {
  std::vector<unsigned> versions = {kTested};
  for (unsigned major = kTested + 1; major <= std::end(kReleases)[-1].major + 2; ++major)
    versions.push_back(major);
  for (unsigned major = kTested - 1; major >= kOldest; --major) versions.push_back(major);
  std::vector<std::string> names;
  for (const unsigned major : versions) {
    for (std::string& name : names_of(major)) names.push_back(std::move(name));
  }
  return names;
}

constexpr std::string_view kInstall =
    "install LLVM's runtime library (Debian: apt-get install libllvm19) or name one in PTXGEN_LLVM_LIBRARY";

// A sanitizer replaces the allocator of the process, and does not let a library prefer its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PTXGEN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PTXGEN_SANITIZED 1
#endif
#endif

// The symbols stay with the library, and it uses its own before those of another LLVM in the process.
#ifdef PTXGEN_SANITIZED
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

template <class Entry>
bool resolve(void* library, const char* name, Entry& entry) {
  entry = reinterpret_cast<Entry>(dlsym(library, name));
  return entry != nullptr;
}

absl::StatusOr<std::unique_ptr<Library>> resolve_all(void* handle, const std::string& path) {
  auto library = std::make_unique<Library>();
  library->path = path;
  if (!resolve(handle, "LLVMGetVersion", library->LLVMGetVersion)) {  // LLVM 16 has it first
    const bool is_llvm = resolve(handle, "LLVMContextCreate", library->LLVMContextCreate);
    const std::string what = is_llvm ? str_cat(" is an LLVM before ", kOldest, ", which ptxgen needs; ")
                                     : std::string(" is no LLVM; ");
    return absl::FailedPreconditionError(str_cat(path, what, kInstall));
  }
  unsigned minor = 0, patch = 0;
  library->LLVMGetVersion(&library->major, &minor, &patch);
  library->version = str_cat(library->major, ".", minor, ".", patch);
  if (library->major < kOldest) {
    return absl::FailedPreconditionError(str_cat(path, " is LLVM ", library->version, ", and ptxgen needs ",
                                                 kOldest, " or later; ", kInstall));
  }
  const char* missing = nullptr;
#define PTXGEN_LLVM_RESOLVE(name, ...) \
  if (!resolve(handle, #name, library->name)) missing = missing ? missing : #name;
  PTXGEN_LLVM_ENTRIES(PTXGEN_LLVM_RESOLVE)
#undef PTXGEN_LLVM_RESOLVE
  if (missing == nullptr) return library;
  if (!library->LLVMInitializeNVPTXTarget) {
    return absl::FailedPreconditionError(
        str_cat(path, " (LLVM ", library->version, ") was built without the NVPTX back-end; ", kInstall));
  }
  return absl::FailedPreconditionError(
      str_cat(path, " (LLVM ", library->version, ") lacks ", missing, " of the C API; ", kInstall));
}

absl::StatusOr<std::unique_ptr<Library>> load(const std::string& path) {
  void* handle = dlopen(path.c_str(), kFlags);
  if (handle == nullptr) {
    const char* why = dlerror();
    return absl::NotFoundError(
        str_cat("LLVM could not be opened (", why == nullptr ? path.c_str() : why, "); ", kInstall));
  }
  absl::StatusOr<std::unique_ptr<Library>> library = resolve_all(handle, path);
  if (!library.ok()) {
    dlclose(handle);
    return library.status();
  }
  (*library)->LLVMInitializeNVPTXTargetInfo();
  (*library)->LLVMInitializeNVPTXTarget();
  (*library)->LLVMInitializeNVPTXTargetMC();
  (*library)->LLVMInitializeNVPTXAsmPrinter();
  return library;
}

// The first that is there; what it lacks is then said of it.
absl::StatusOr<std::unique_ptr<Library>> find() {
  const std::vector<std::string> names = candidates();
  for (const std::string& name : names) {
    absl::StatusOr<std::unique_ptr<Library>> library = load(name);
    if (library.status().code() != absl::StatusCode::kNotFound) return library;
  }
  return absl::NotFoundError(str_cat("no LLVM from ", kOldest, " on is installed (", names.front(),
                                     " and others were looked for); ", kInstall));
}

}  // namespace

absl::Status Library::check(ptxgen::Target target, PtxIsa isa) const {
  const unsigned first = first_release(target, isa);
  if (first <= major) return absl::OkStatus();
  return absl::UnimplementedError(
      str_cat(path, " is LLVM ", version, ", which does not know ", target.to_string(), " with PTX ISA ",
              isa.to_string(), "; the first that does is LLVM ", first, ": install it or name one in ",
              env::kLlvmLibrary.name, ", choose an older target, or use the direct code generator"));
}

absl::StatusOr<const Library*> open_library() {
  static std::mutex mutex;
  // By the path asked for. Left to the end of the process, after static destructors.
  static auto& opened = *new std::map<std::string, std::unique_ptr<Library>>();

  const std::string path = env::text(env::kLlvmLibrary);
  const std::lock_guard lock(mutex);
  std::unique_ptr<Library>& library = opened[path];
  if (library == nullptr) {
    absl::StatusOr<std::unique_ptr<Library>> found = path.empty() ? find() : load(path);
    if (!found.ok()) return found.status();
    library = *std::move(found);
  }
  return library.get();
}

}  // namespace ptxgen::llvm
