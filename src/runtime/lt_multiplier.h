// Products by cuBLASLt on one device.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/types.h"
#include "src/runtime/cublaslt.h"
#include "src/runtime/device_state.h"

namespace ptxgen::internal {

// c[m][n] = a[m][k] w[n][k]^T in f32, all row after row, rows of c `ldc` values apart; sums are f32.
struct LtProduct {
  LtType type;  // of a and w
  u32 m, n, k, ldc;
  u64 a, w, c;
  u64 a_scale = 0, w_scale = 0;  // f32 on the device that the products are multiplied with; 0: none. f16 has
                                 // the first alone
  u64 zero = 0;                  // f32 on the device, for f16 with a scale

  std::string to_string() const;  // "cublaslt m=512 n=4096 k=4096 type=f16"
};

// Any number of threads may use one: the library keeps nothing in a handle that calls would share.
class LtMultiplier : public std::enable_shared_from_this<LtMultiplier> {
 public:
  // What a product may use beside its operands, as the cuBLAS documentation recommends for sm_90
  // (cublasSetWorkspace).
  static constexpr u64 kWorkspaceBytes = 32 << 20;

  static absl::StatusOr<std::shared_ptr<LtMultiplier>> create(const CublasLt& lt,
                                                              std::shared_ptr<DeviceState> device);
  ~LtMultiplier();

  // Gives the product to the stream. kUnimplemented: the library has none for this shape and alignment; what
  // it answered is kept.
  absl::Status multiply(Handle stream, const LtProduct& product, u64 workspace);
  // to[m][n] = the first n values of each row of from[m][ld], f32.
  absl::Status copy_columns(Handle stream, u64 from, u32 ld, u64 to, u32 m, u32 n);

  const CublasLt& library() const { return lt_; }

 private:
  // What decides about the algorithm: of addresses, only how they are aligned.
  struct Key {
    LtType type;
    u32 m, n, k, ldc, a_alignment, w_alignment, c_alignment;
    bool scaled;

    bool operator==(const Key&) const = default;
    template <class H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), static_cast<int>(key.type), key.m, key.n, key.k, key.ldc,
                        key.a_alignment, key.w_alignment, key.c_alignment, key.scaled);
    }
  };
  class Description;

  LtMultiplier(const CublasLt& lt, std::shared_ptr<DeviceState> device)
      : lt_(lt), device_(std::move(device)) {}
  absl::StatusOr<LtAlgo> algorithm(const LtProduct& product);
  absl::StatusOr<LtAlgo> ask(const Key& key, const Description& description) const;
  // Runs `work` as the stream's, with what it works on in place.
  template <class Work>
  absl::Status enqueue(Handle stream, Work work);

  const CublasLt& lt_;
  const std::shared_ptr<DeviceState> device_;
  LtHandle handle_ = nullptr;
  std::mutex mutex_;  // guards the next
  absl::flat_hash_map<Key, absl::StatusOr<LtAlgo>> algorithms_;
};

}  // namespace ptxgen::internal
