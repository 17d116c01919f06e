// Copies of quantised weights in a type that cuBLASLt multiplies, as an executor keeps them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/device.h"
#include "ptxgen/executor.h"

namespace ptxgen::internal {

// One copy. It is complete on the device when the executor's calls see it, and ends when every stream that
// reads it is past it.
class WeightCopy {
 public:
  explicit WeightCopy(Buffer memory) : memory_(std::move(memory)) {}
  WeightCopy(const WeightCopy&) = delete;
  WeightCopy& operator=(const WeightCopy&) = delete;
  ~WeightCopy();

  const Buffer& memory() const { return memory_; }
  // What was given to the stream so far reads it; `recording`: in a graph, which may run at any time.
  absl::Status read_by(const Stream& stream, bool recording);

 private:
  friend class WeightCopies;
  Buffer memory_;
  u64 last_use_ = 0;  // guarded by the owner's mutex
  std::mutex mutex_;  // guards the rest
  bool recorded_ = false;
  std::vector<std::pair<void*, Event>> readers_;  // one a stream
};
using WeightCopyPtr = std::shared_ptr<WeightCopy>;

// The copies of all matrices, found by their handles, never by an address. Together they have at most
// max_bytes: those used longest ago make room, but none that a call is about to use or that a graph reads.
// Those of matrices whose last handle has gone make room first. Any number of threads may use it.
class WeightCopies {
 public:
  WeightCopies(const Device& device, u64 max_bytes) : device_(device), max_bytes_(max_bytes) {}

  // nullptr: there is none.
  WeightCopyPtr find(const WeightMatrix& weights, ElementType type);
  // Makes one by `fill`, which must have waited for its work, unless another thread has meanwhile.
  // kResourceExhausted: the budget or the device has no room.
  absl::StatusOr<WeightCopyPtr> find_or_make(const WeightMatrix& weights, ElementType type, u64 bytes,
                                             const std::function<absl::Status(const Buffer&)>& fill);
  // Ends the matrix's copies, those that graphs read too.
  void release(const WeightMatrix& weights);
  u64 bytes() const;

  // What is known about the largest |value| of a matrix as f16; nothing: not asked yet.
  std::optional<f32> largest(const WeightMatrix& weights) const;
  void set_largest(const WeightMatrix& weights, f32 value);

 private:
  struct Entry {
    std::weak_ptr<const void> handle;
    std::optional<f32> largest;
    std::array<WeightCopyPtr, 2> copies;  // f16, e4m3
  };
  using Entries = absl::flat_hash_map<const void*, Entry>;

  static std::size_t index(ElementType type) { return type == ElementType::kF16 ? 0 : 1; }
  Entry& entry(const WeightMatrix& weights);
  WeightCopyPtr find_locked(const WeightMatrix& weights, ElementType type);
  // Takes copies out until `bytes` more have room.
  absl::StatusOr<std::vector<WeightCopyPtr>> make_room(u64 bytes);
  // The copy to take out next, which is taken out; nullptr: none may be.
  WeightCopyPtr take_eldest();

  const Device device_;
  const u64 max_bytes_;
  std::mutex making_;         // held while one is made
  mutable std::mutex mutex_;  // guards the rest
  Entries entries_;
  u64 bytes_ = 0, uses_ = 0;
};

}  // namespace ptxgen::internal
