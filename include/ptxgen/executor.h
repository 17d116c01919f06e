// Products of an engine, on handles: which kernel runs is the DevicePolicy's business, and every call says
// which one it was and why.
//
//   Executor executor(cache);
//   auto weights = WeightMatrix::borrow(Format::kQ4_K, 4096, 4096, address, bytes);
//   executor.prepare({GemvShape{Format::kQ4_K, 4096, 4096, 1}});
//   auto report = executor.gemv(stream, *weights, x.ptr<const f32>(), y.ptr<f32>());
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/device_policy.h"
#include "ptxgen/gemm.h"
#include "ptxgen/kernel_cache.h"

namespace ptxgen {

// A matrix [n][k] of quantised blocks on a device; a shared handle. Kernels read weights before those ahead
// of them in the stream have ended (programmatic dependent launch), so no kernel that is still in the stream
// may write them: synchronise after such a one, or launch plainly. An address must be a multiple of what the
// format needs (FormatInfo::alignment); at multiples of 16 it can have every schedule.
class PTXGEN_API WeightMatrix {
 public:
  // `bytes` at `address` stay the caller's, and there until the last launch with them is done.
  static absl::StatusOr<WeightMatrix> borrow(Format format, u32 n, u32 k, u64 address, u64 bytes);
  // Matrix and buffer end with the last handle; several matrices may lie in one buffer.
  static absl::StatusOr<WeightMatrix> own(Format format, u32 n, u32 k, std::shared_ptr<const Buffer> buffer,
                                          u64 offset = 0);

  Format format() const { return format_; }
  u32 n() const { return n_; }
  u32 k() const { return k_; }
  u64 address() const { return address_; }
  u64 bytes() const;
  bool aligned() const { return address_ % 16 == 0; }
  // The same for all copies of this handle, and for no other matrix's: what an executor keeps for a matrix is
  // found by it.
  const std::shared_ptr<const void>& identity() const { return identity_; }

 private:
  WeightMatrix(Format format, u32 n, u32 k, u64 address);

  Format format_;
  u32 n_, k_;
  u64 address_;
  std::shared_ptr<const void> identity_;
  std::shared_ptr<const Buffer> owner_;  // nothing: borrowed
};

// Activations prepared once for several products: as int8 (BlockQ8_1), or for matrix products as f16
// (StageF16), as rows of f16 for the paths hgemm and dequant_hgemm, or as e4m3 for fp8. They are what x was
// when prepare_activations() ran on its stream, whatever becomes of x afterwards: what a product reads is
// decided by the handle alone, never by an address. Not for use by several threads at once.
class PTXGEN_API PreparedActivations {
 public:
  u32 k() const { return k_; }
  u32 max_m() const { return max_m_; }
  u32 m() const { return m_; }  // rows that were prepared last; 0 before the first time
  Activations type() const { return type_; }
  StagedOrder order() const { return order_; }  // of type f16

 private:
  friend class Executor;
  PreparedActivations(u32 k, u32 max_m, Activations type, StagedOrder order, Buffer data)
      : k_(k), max_m_(max_m), type_(type), order_(order), data_(std::move(data)) {}

  u32 k_, max_m_, m_ = 0;
  Activations type_;
  StagedOrder order_;
  Buffer data_;
};

// The activations of a product: f32 where they lie, at a multiple of 16 bytes, or prepared ones.
class ProductInput {
 public:
  template <std::size_t Align>
  ProductInput(DevicePtr<const f32, Align> x) : address_(x.address) {}  // NOLINT: stands for either
  template <std::size_t Align>
  ProductInput(DevicePtr<f32, Align> x) : address_(x.address) {}               // NOLINT
  ProductInput(const PreparedActivations& prepared) : prepared_(&prepared) {}  // NOLINT

 private:
  friend class Executor;
  u64 address_ = 0;
  const PreparedActivations* prepared_ = nullptr;
};

// What ran.
struct GemvReport {
  std::string path;                  // schedule and plan: "stream ctas=132 row_lanes=32 ..."
  std::string reason;                // why
  std::vector<std::string> kernels;  // the descriptor of each launch, in order
};

struct GemmReport {
  std::string path;                  // "wgmma tile_m=64", "hgemm"; of few rows what gemv_batch() reports
  std::string reason;                // why
  std::vector<std::string> kernels;  // the descriptor of each launch, in order; "cublaslt m=... n=... k=..."
  u64 scratch_bytes = 0;             // of the executor's, that the call wrote to
};

// Wishes of one call.
struct GemmCall {
  std::optional<GemmVariant> variant = {};
};
struct GemvCall {
  std::optional<GemvVariant> variant = {};
};

// Up to three products of one vector, with what comes before and after them, in one launch: as FusedGemv has
// it. Of `weights`, two with combine swiglu are gate and up.
struct FusedProducts {
  std::vector<WeightMatrix> weights = {};
  DevicePtr<const f32, 16> gamma = {};  // given: RMSNorm of x with it
  f32 epsilon = 1e-5f;
  Combine combine = Combine::kNone;
  DevicePtr<const f32> residual = {};  // given: added to the first product; may be its y
  std::array<DevicePtr<f32>, 3> y = {};
  std::optional<StreamPlan> plan = {};  // instead of the policy's
};

struct ExecutorOptions {
  std::optional<GemvVariant> gemv = {};  // for every product that does not ask for another; fused ones have
                                         // schedule stream alone, and take no notice
  std::optional<GemmVariant> gemm = {};  // for every matrix product that does not ask for another
  // The library behind the paths of cuBLASLt; empty: PTXGEN_CUBLASLT_LIBRARY, else the first of
  // libcublasLt.so.13 and .12 that is found.
  std::string cublaslt = {};
  // What the copies of weights that its paths hgemm and fp8 keep may have together; nothing:
  // PTXGEN_COPIES_MAX_BYTES, else half of the device's memory.
  std::optional<u64> copies_max_bytes = {};
  std::optional<TuneRecords> tuned =
      {};  // nothing: those in the cache directory; an emulated device has none
  CacheDirectoryOptions directory = {};
  // Launch kernels that wait for their predecessor before that has ended, where the device can.
  bool programmatic_dependent_launch = true;
};

// What prepare() makes ready: products of any m up to shape.m, a fused product (whose plan, when it has none,
// is the policy's), or the preparation of activations.
struct Preparation {
  std::variant<GemvShape, FusedGemv, QuantizeQ8_1, GemmShape, StageF16> product;
  bool aligned = true;                      // the weights lie at multiples of 16 bytes
  std::optional<GemvVariant> variant = {};  // as the call asks for
  std::optional<GemmVariant> gemm_variant = {};

  Preparation(const GemvShape& shape, bool aligned_ = true, std::optional<GemvVariant> variant_ = {})
      : product(shape), aligned(aligned_), variant(std::move(variant_)) {}  // NOLINT: a list names them all
  Preparation(const FusedGemv& fused, bool aligned_ = true) : product(fused), aligned(aligned_) {}  // NOLINT
  Preparation(const QuantizeQ8_1& quantize) : product(quantize) {}                                  // NOLINT
  Preparation(const GemmShape& shape, bool aligned_ = true, std::optional<GemmVariant> variant_ = {})
      : product(shape), aligned(aligned_), gemm_variant(std::move(variant_)) {}  // NOLINT
  Preparation(const StageF16& stage) : product(stage) {}                         // NOLINT
};

// The kernels that prepare() compiles for this product on a device of this policy, so that a pack can hold
// them.
PTXGEN_API absl::StatusOr<std::vector<KernelType>> kernels_of(const DevicePolicy& policy,
                                                              const Preparation& product);

// Runs products on the cache's device; the cache must outlive it. Any number of threads may use one.
//
// A product that was neither prepared nor run before is compiled, except while the calling thread records a
// stream: then it is refused (kFailedPrecondition), and the recording goes on. What was prepared compiles,
// loads and allocates nothing on the device.
class PTXGEN_API Executor {
 public:
  explicit Executor(KernelCache& cache, const ExecutorOptions& options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Compiles what the products need, several kernels at once. One status a product, in their order.
  std::vector<absl::Status> prepare(absl::Span<const Preparation> products,
                                    const PrepareOptions& options = {});

  // y[n] = W x
  absl::StatusOr<GemvReport> gemv(const Stream& stream, const WeightMatrix& weights, const ProductInput& x,
                                  DevicePtr<f32> y, const GemvCall& call = {}) {
    return gemv_batch(stream, weights, x, 1, y, call);
  }
  // y[m][n] = x[m][k] W^T, for any m; of prepared activations the first m rows. m = 0 launches nothing.
  absl::StatusOr<GemvReport> gemv_batch(const Stream& stream, const WeightMatrix& weights,
                                        const ProductInput& x, u32 m, DevicePtr<f32> y,
                                        const GemvCall& call = {});
  // Where the kernel cannot be had (a target below sm_90, weights not at a multiple of 16, blocks of
  // different sizes), products without norm, combine and residual run one after the other; others are
  // refused.
  absl::StatusOr<GemvReport> fused(const Stream& stream, const FusedProducts& products,
                                   const ProductInput& x);

  // c[m][n] = a[m][k] W^T, for any m; of prepared activations the first m rows, of staged f16 all. m = 0
  // launches nothing. Few rows that are not staged, at most kMostGemvRows, are gemv_batch()'s. Activations staged in
  // the order of the weights' format have the fastest kernels.
  absl::StatusOr<GemmReport> gemm(const Stream& stream, const WeightMatrix& weights, const ProductInput& a,
                                  u32 m, DevicePtr<f32> c, const GemmCall& call = {});

  // Room for max_m rows of k values, as int8, as f16 for weights of that order (staged_order()), or as
  // f16_rows or e4m3; allocates.
  absl::StatusOr<PreparedActivations> make_activations(u32 k, u32 max_m) const;
  absl::StatusOr<PreparedActivations> make_activations(u32 k, u32 max_m, StagedOrder order) const;
  absl::StatusOr<PreparedActivations> make_activations(u32 k, u32 max_m, Activations type) const;
  // Quantises or stages x[m][k], f32, on the stream; products with them belong on the same, or behind it.
  absl::Status prepare_activations(const Stream& stream, DevicePtr<const f32, 16> x, u32 m,
                                   PreparedActivations& into);

  // Makes ready what a path of cuBLASLt needs of these weights, and waits for it: of hgemm and fp8 the copy,
  // of hgemm and dequant_hgemm the knowledge that f16 has their values. The first product does it otherwise,
  // but none that is recorded. Weights that are written anew have their copies released first.
  absl::Status prepare_weights(const Stream& stream, const WeightMatrix& weights, GemmPath path);
  // Frees their copies, when the products that read them are done. Graphs that do must not run again.
  void release_weights(const WeightMatrix& weights);

  // Or why PTXGEN_GEMV or PTXGEN_GEMM cannot be read, with which every product is refused.
  const absl::StatusOr<DevicePolicy>& policy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptxgen
