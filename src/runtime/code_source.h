// Where a kernel's machine code comes from: packs, the disk, the compiler, in this order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/cubin_store.h"
#include "ptxgen/kernel_cache.h"

namespace ptxgen::internal {

// Thread-safe.
class CodeSource {
 public:
  CodeSource(const Device& device, const KernelCacheOptions& options);

  // The key of no kernel yet.
  const KernelKey& environment() const { return environment_; }

  // The PTX that a pack has for this IR, and whose work it is.
  std::optional<Pack::Generated> find_generated(const KernelKey& key, const std::string& llvm_ir) const;

  struct Code {
    Function function;
    KernelOrigin origin;
  };
  // The kernel's entry, loaded. `arguments`: how many it has. Code that is there and cannot be loaded is
  // passed over.
  absl::StatusOr<Code> load(const KernelKey& key, const GeneratedKernel& kernel, std::size_t arguments);

  // As KernelCache::store_status().
  absl::Status status() const;

 private:
  struct Wanted {
    const KernelKey& key;
    const GeneratedKernel& kernel;
    std::size_t arguments;
  };
  absl::StatusOr<Function> load(const Wanted& wanted, const Image& image) const;
  // What a pack or the disk has, where it can be loaded. An error: the device is lost.
  absl::StatusOr<std::optional<Code>> load_packed(const Wanted& wanted) const;
  absl::StatusOr<std::optional<Code>> load_kept(const Wanted& wanted) const;
  absl::StatusOr<std::optional<Code>> try_load(const Wanted& wanted, const std::optional<Image>& image,
                                               KernelOrigin origin) const;
  absl::StatusOr<Image> compile(const Wanted& wanted) const;

  const Device device_;
  const KernelKey environment_;
  const std::vector<Pack> packs_;
  const absl::StatusOr<std::optional<std::string>> helper_;  // that compiles; nothing: this process does
  std::optional<CubinStore> store_;                          // nothing: the device has no machine code
};

}  // namespace ptxgen::internal
