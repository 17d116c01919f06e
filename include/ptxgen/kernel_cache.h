// Compiled kernels of one device, found by their descriptors.
//
//   KernelCache cache(device);
//   auto kernel = cache.get(Scale{.n = 1024});            // compiles the first time
//   kernel->launch(stream, {.in = x.ptr<const f32>(), .out = y.ptr<f32>(), .factor = 2});
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/cubin_store.h"
#include "ptxgen/device.h"
#include "ptxgen/export.h"
#include "ptxgen/kernel_type.h"
#include "ptxgen/pack.h"

namespace ptxgen {

// Where the machine code of a kernel came from.
enum class KernelOrigin : std::uint8_t {
  kCompiled,  // the compiler; an emulated device takes the PTX
  kDisk,      // the cache directory
  kPack,
};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<KernelOrigin> = {"compiled", "disk", "pack"};

namespace internal {
class KernelStore;
struct CachedKernel;
}  // namespace internal

// A kernel ready to launch; a shared handle, which keeps it loaded whatever becomes of the cache.
class PTXGEN_API CompiledKernel {
 public:
  const Descriptor& descriptor() const;
  // What the kernel was compiled from and for, as one line:
  // "scale n=1024; codegen direct, sm_89, PTX ISA 8.4, driver 12.4, ptxgen 0.1.0".
  const std::string& key() const;
  // Its PTX, and what that needs.
  const GeneratedKernel& generated() const;
  const Function& function() const;
  KernelOrigin origin() const;

  // Checks the arguments (their number; each buffer's alignment, and that it is there when the kernel touches
  // it) and the shape that the descriptor gives for them, and adds the launch to the stream.
  absl::Status launch(const Stream& stream, ArgValues values, const LaunchOptions& options = {}) const;

 private:
  friend class KernelCache;
  explicit CompiledKernel(std::shared_ptr<const internal::CachedKernel> state) : state_(std::move(state)) {}
  std::shared_ptr<const internal::CachedKernel> state_;
};

// The same where the descriptor's type is known, and with it the arguments'.
template <KernelDescriptor D>
class CompiledKernelOf : public CompiledKernel {
 public:
  explicit CompiledKernelOf(CompiledKernel kernel) : CompiledKernel(std::move(kernel)) {}

  absl::Status launch(const Stream& stream, const typename D::Args& args,
                      const LaunchOptions& options = {}) const {
    return CompiledKernel::launch(stream, detail::to_values(args), options);
  }
};

struct KernelCacheOptions {
  Codegen codegen = Codegen::kDirect;
  std::optional<std::string> dump = {};  // as KernelCache::set_dump(); nothing: PTXGEN_DUMP
  std::vector<Pack> packs = {};          // asked in this order, before the disk
  CubinStoreOptions store = {};          // on the disk; an emulated device has nothing to keep
  // Compile in a process of its own, and load there first what was compiled, so that PTX that crashes the
  // driver's compiler or poisons a context costs that process. Nothing: PTXGEN_ISOLATE. An emulated device
  // runs no driver and takes no notice.
  std::optional<bool> isolate = {};
  std::string isolate_helper = {};  // the path of ptxgen-isolate; empty: found as docs/cache.md says
};

struct PrepareProgress {
  std::size_t done = 0, total = 0;
  const KernelType& kernel;                    // the one that was finished last
  const absl::StatusOr<KernelOrigin>& origin;  // or why there is no such kernel
};

struct PrepareOptions {
  std::uint32_t threads = 0;  // that compile, at most kMaxThreads; 0: one a processor, at most 16
  // Called once a kernel, by the thread that called prepare().
  std::function<void(const PrepareProgress&)> progress = {};

  static constexpr std::uint32_t kMaxThreads = 256;
};

struct KernelCacheStats {
  std::uint64_t hits = 0;      // answered by a kernel that was there, or that another thread was compiling
  std::uint64_t compiles = 0;  // generated and, in order, given to the compiler
  std::uint64_t failures = 0;  // of those
  std::uint64_t from_disk = 0, from_pack = 0;  // generated, and found compiled
};

// A kernel that is not in memory is generated, and its machine code taken from the packs, from the disk or
// from the compiler, whose product is then kept on disk.
//
// Any number of threads may use one cache. However many ask for a kernel that is not there, one compiles it
// and the others wait for the result, be it the kernel or the failure; a failure is forgotten then, so that
// the next call tries again. A hit generates nothing, allocates nothing and takes no lock.
// Descriptors are compared in full; a hash only finds them. What else decides about the code is fixed for a
// cache: the device with its target and driver, the code generator, and this library.
class PTXGEN_API KernelCache {
 public:
  explicit KernelCache(const Device& device, const KernelCacheOptions& options = {});
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  template <KernelDescriptor D>
  absl::StatusOr<CompiledKernelOf<D>> get(const D& descriptor) {
    absl::StatusOr<CompiledKernel> kernel = get(DescriptorOf<D>(descriptor));
    if (!kernel.ok()) return std::move(kernel).status();
    return CompiledKernelOf<D>(*std::move(kernel));
  }
  absl::StatusOr<CompiledKernel> get(const KernelType& type) { return get(*type); }
  absl::StatusOr<CompiledKernel> get(const Descriptor& descriptor);

  // Gets all of them ready, several at once, and returns one status a kernel, in their order. A thread that
  // records a stream gets for a kernel that is not there yet the refusal that get() would return.
  std::vector<absl::Status> prepare(absl::Span<const KernelType> kernels, const PrepareOptions& options = {});

  const Device& device() const;
  KernelCacheStats stats() const;

  // Ok, or why no kernel is kept on disk, or else why the last one that could not be kept was not. It fails
  // no get().
  absl::Status store_status() const;

  // From now on each kernel that get() returns or fails to compile is written below `folder`, once:
  // `<name>-<hash of the key>/` with kernel.ptx, descriptor.txt (the key), and ptxas.log where a ptxas is
  // installed, or error.txt. Each file appears whole. The empty string ends it. Nothing here fails a get():
  // see dump_status().
  void set_dump(std::string folder);
  // Ok, or why a file could not be written; the last such failure.
  absl::Status dump_status() const;

 private:
  std::unique_ptr<internal::KernelStore> store_;
};

}  // namespace ptxgen
