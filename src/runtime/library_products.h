// The products of an executor by cuBLASLt: paths sgemm, hgemm, dequant_hgemm and fp8.
//
// Activations are multiplied as rows of f16 or e4m3, all with one scale, which the device finds: the largest
// |a| of each of so many parts first, then the scale that products are multiplied with, the rows at kRowsAt.
// cuBLASLt takes scales at multiples of 16 bytes only. Copies of weights have one number for the largest.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/convert.h"
#include "ptxgen/executor.h"
#include "src/runtime/lt_multiplier.h"
#include "src/runtime/scratch.h"
#include "src/runtime/weight_copies.h"

namespace ptxgen::internal {

inline constexpr u32 kAbsmaxParts = 512;
inline constexpr u64 kAbsmaxAt = 0, kScaleAt = kAbsmaxParts * sizeof(f32), kRowsAt = kScaleAt + 256;
constexpr u64 scaled_rows_bytes(Activations type, u32 k, u64 rows) {
  return kRowsAt + rows * k * (type == Activations::kE4m3 ? 1 : 2);
}

// c[m][n] = a[m][k] W[n][k]^T.
struct LibraryProduct {
  GemmPath path;
  const WeightMatrix& weights;
  Activations a_type;  // f32, f16_rows or e4m3
  u64 a;
  u32 m;
  u64 c;
};

// The kernels that a path launches for such products on such a device.
std::vector<KernelType> library_kernels(const DeviceProperties& device, GemmPath path,
                                        const GemmShape& shape);

class LibraryProducts {
 public:
  // `library`, `copies_max_bytes`: as in ExecutorOptions. `dependent`: kernels may be launched before their
  // predecessor has ended.
  LibraryProducts(KernelCache& cache, ScratchPool& scratch, const std::string& library,
                  std::optional<u64> copies_max_bytes, bool dependent);

  // Opens the library and has memory ready for a product of shape.m rows.
  absl::Status prepare(GemmPath path, const GemmShape& shape);

  // Adds the product to the stream. kUnimplemented: the library has none such; kResourceExhausted: there is
  // no memory for it; kOutOfRange: the weights have values that f16 lacks.
  absl::StatusOr<GemmReport> run(const Stream& stream, const LibraryProduct& product);

  // f32 activations to scaled rows at `to`; what was launched is added to `kernels`.
  absl::Status scale_rows(const Stream& stream, u64 x, u64 count, Activations type, u64 to,
                          std::vector<std::string>& kernels);

  // What run() would do at the first product with these weights.
  absl::Status prepare_weights(const Stream& stream, const WeightMatrix& weights, GemmPath path);
  void release_weights(const WeightMatrix& weights) { copies_.release(weights); }

 private:
  // A stretch of rows of weights that is dequantised at once.
  struct Part {
    u32 first, rows;
  };
  // Where the pieces of a product's scratch lie, from its beginning.
  struct Layout {
    u64 workspace = 0, rows = 0, part = 0, padded = 0, bytes = 0;
  };

  absl::StatusOr<const CublasLt*> library() const;
  absl::StatusOr<std::shared_ptr<LtMultiplier>> multiplier();
  bool recording() const;

  std::vector<Part> parts_of(const WeightMatrix& weights, ElementType type) const;
  Layout layout_of(GemmPath path, const GemmShape& shape, bool padded) const;

  absl::StatusOr<WeightCopyPtr> weights_for(const Stream& stream, GemmPath path, const WeightMatrix& weights);
  absl::StatusOr<f32> largest_as_f16(const Stream& stream, const WeightMatrix& weights);
  absl::Status check_f16(const Stream& stream, const WeightMatrix& weights);
  absl::Status fill_f16(const Stream& stream, const WeightMatrix& weights, const Buffer& to);
  absl::Status fill_e4m3(const Stream& stream, const WeightMatrix& weights, const Buffer& to);

  absl::Status multiply(const Stream& stream, const LibraryProduct& p, LtMultiplier& by, LtProduct whole,
                        u64 scratch, const Layout& at, std::vector<std::string>& kernels);
  absl::Status multiply_parts(const Stream& stream, const LibraryProduct& p, LtMultiplier& by,
                              LtProduct whole, u64 scratch, const Layout& at,
                              std::vector<std::string>& kernels);
  absl::Status dequantise(const Stream& stream, const WeightMatrix& weights, Part part, ElementType type,
                          u64 to, std::vector<std::string>& kernels);
  absl::Status zero(const Stream& stream, u64 address, u64 bytes) const;
  template <class D>
  absl::Status launch(const Stream& stream, const D& kernel, const typename D::Args& args,
                      std::vector<std::string>& kernels);

  KernelCache& cache_;
  const std::string library_;
  const absl::StatusOr<u64> copies_max_bytes_;
  const bool dependent_;
  WeightCopies copies_;
  ScratchPool& scratch_;
  std::mutex mutex_;  // guards the next
  std::shared_ptr<LtMultiplier> multiplier_;
  Buffer zero_;  // beta of products with alpha on the device
};

}  // namespace ptxgen::internal
