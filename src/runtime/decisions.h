// What an executor has decided, found by what was asked for.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ptxgen/gemm_variant.h"
#include "ptxgen/gemv_variant.h"
#include "ptxgen/kernel_cache.h"

namespace ptxgen::internal {

// What was decided about a product: nothing of it changes afterwards.
struct Decision {
  std::optional<CompiledKernel> kernel;  // nothing: a library multiplies
  u32 rows;                              // of x that it takes at once; 0: any number
  bool dependent;                        // launched before its predecessor has ended
  std::string path, reason, name;
  GemmPath library = GemmPath::kFused;  // the path, where a library multiplies
  bool asked = false;                   // somebody asks for that path
  // What stages f32 activations in scratch for the kernel; nothing: it reads them as they are.
  std::optional<CompiledKernel> stage = {};
};
using DecisionPtr = std::shared_ptr<const Decision>;

struct ShapeKey {
  GemvShape shape;
  bool aligned;
  std::optional<GemvVariant> call;

  bool operator==(const ShapeKey&) const = default;
  template <class H>
  friend H AbslHashValue(H state, const ShapeKey& key) {
    return H::combine(std::move(state), hash_fields(key.shape), key.aligned,
                      key.call ? hash_fields(*key.call) : 0);
  }
};

struct FusedKey {
  FusedGemv product;
  bool aligned;

  bool operator==(const FusedKey& other) const {
    return aligned == other.aligned && equal_fields(product, other.product);
  }
  template <class H>
  friend H AbslHashValue(H state, const FusedKey& key) {
    return H::combine(std::move(state), hash_fields(key.product), key.aligned);
  }
};

// One for all m of a tile.
struct GemmKey {
  GemmShape shape;
  bool aligned;
  std::optional<GemmVariant> call;
  bool fused = false;  // by a kernel, whatever is asked for

  bool operator==(const GemmKey&) const = default;
  template <class H>
  friend H AbslHashValue(H state, const GemmKey& key) {
    return H::combine(std::move(state), hash_fields(key.shape), key.aligned, key.fused,
                      key.call ? hash_fields(*key.call) : 0);
  }
};

template <class Key>
class Decisions {
 public:
  DecisionPtr find(const Key& key) const {
    const std::shared_lock lock(mutex_);
    const auto it = decisions_.find(key);
    return it == decisions_.end() ? nullptr : it->second;
  }
  // Of two threads that decide at the same time, one is heard; both decide the same.
  DecisionPtr add(const Key& key, DecisionPtr decision) {
    const std::lock_guard lock(mutex_);
    return decisions_.emplace(key, std::move(decision)).first->second;
  }

 private:
  mutable std::shared_mutex mutex_;  // guards decisions_
  absl::flat_hash_map<Key, DecisionPtr> decisions_;
};

}  // namespace ptxgen::internal
