// What an executor is made of.
#pragma once

#include "ptxgen/executor.h"
#include "ptxgen/strings.h"
#include "src/runtime/decisions.h"
#include "src/runtime/library_products.h"
#include "src/runtime/unprepared.h"

namespace ptxgen {
namespace internal {

// What stages f32 activations for such products by `variant`. Measured on an H200: before a few long rows are
// multiplied a single CTA takes longest to convert them; but four need SMs that the product before leaves
// free, as one by tiles of fewer rows of weights, or by tiles in turn, does not.
inline StageF16 stage_of(const GemmShape& shape, const GemmVariant& variant) {
  constexpr u32 kFewRows = 16, kLongRow = 8192, kCtas = 4;
  const bool shared = variant.schedule == GemmSchedule::kWgmma && variant.tile_n == 0 && variant.ctas == 0 &&
                      shape.m <= kFewRows && shape.k > kLongRow;
  return {.k = shape.k, .order = staged_order(shape.format), .ctas = shared ? kCtas : 0};
}

// Nothing but several products of the same vector.
inline bool only_products(const FusedGemv& fused) {
  return fused.norm == Norm::kNone && fused.combine == Combine::kNone && fused.residual == Residual::kNone;
}

}  // namespace internal

struct Executor::State {
  State(KernelCache& c, const ExecutorOptions& options);

  absl::StatusOr<internal::DecisionPtr> decide(const internal::ShapeKey& key);
  absl::StatusOr<internal::DecisionPtr> decide(const internal::FusedKey& key);
  absl::StatusOr<internal::DecisionPtr> decide(const internal::GemmKey& key);
  internal::Decision decision(CompiledKernel kernel, u32 rows, std::string path, std::string reason) const;

  // A matrix product by a path of cuBLASLt, or where that cannot be had by another: the report says why.
  absl::StatusOr<GemmReport> by_library(const Stream& stream, internal::LibraryProduct product,
                                        const internal::GemmKey& key, const internal::Decision& decision);
  absl::StatusOr<GemmReport> by_kernel(const Stream& stream, const internal::LibraryProduct& product,
                                       const internal::GemmKey& key, const internal::Decision& decision);
  absl::StatusOr<GemmReport> staged_in(const Stream& stream, const internal::LibraryProduct& product,
                                       const internal::Decision& decision, internal::Scratch& scratch) const;

  // By a kernel that stages or quantises m rows of f32.
  absl::Status stage(const Stream& stream, const CompiledKernel& kernel, u64 from, u64 to, u32 m) const;

  // Whether a product of m rows can have them.
  absl::Status check(const PreparedActivations& prepared, const WeightMatrix& weights, u32 m,
                     bool for_gemm) const;
  absl::Status launch(const internal::Decision& decision, const Stream& stream, ArgValues values) const {
    return decision.kernel->launch(stream, values, {.programmatic_dependent_launch = decision.dependent});
  }
  absl::StatusOr<GemvReport> one_by_one(Executor& executor, const Stream& stream,
                                        const FusedProducts& products, const ProductInput& x,
                                        const absl::Status& why);

  KernelCache& cache;
  const absl::StatusOr<DevicePolicy> policy;
  const bool dependent;
  internal::Decisions<internal::ShapeKey> shapes;
  internal::Decisions<internal::FusedKey> fused;
  internal::Decisions<internal::GemmKey> gemms;
  internal::ScratchPool scratch;
  internal::LibraryProducts library;
};

}  // namespace ptxgen
