// Machine code for many kernels and GPUs in one file, made once for a fleet: by `ptxgen pack` without a GPU,
// or exported from a cache directory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/export.h"
#include "ptxgen/kernel_key.h"

namespace ptxgen {

// A pack, mapped read-only; a shared handle. Its code runs in this process: take packs from nobody you would
// not take a shared library from. Hazard: the mapping follows the file. If somebody truncates it meanwhile,
// reading the missing part raises SIGBUS; replace a pack by renaming a new one over it.
class PTXGEN_API Pack {
 public:
  // Checks the head and the index; each entry is verified when it is read.
  static absl::StatusOr<Pack> open(const std::string& path);

  const std::string& path() const;
  std::size_t size() const;  // entries
  // Entry `i` < size(), or what is wrong with it.
  absl::StatusOr<StoredKernel> entry(std::size_t i) const;

  // The cubin for this text and for a key that differs at most in compiler and PTX ISA: the text says all
  // that these could have changed before the compiler, and any compiler's code is right. Nothing where there
  // is none in order.
  std::optional<Image> find(const KernelKey& key, std::string_view ptx) const;

  // The PTX that some LLVM made of this IR for a key that differs at most in that LLVM too. A cache with the
  // code generator llvm then needs none.
  struct Generated {
    std::string codegen;  // "llvm 19.1.7"
    std::string ptx;
  };
  std::optional<Generated> find_generated(const KernelKey& key, std::string_view llvm_ir) const;

 private:
  struct State;
  explicit Pack(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// The bytes of a pack with these kernels, in this order.
PTXGEN_API std::string make_pack(absl::Span<const StoredKernel> kernels);

}  // namespace ptxgen
