// What an executor is made of.
#pragma once

#include <algorithm>
#include <bit>

#include "ptxgen/executor.h"
#include "ptxgen/strings.h"
#include "src/runtime/decisions.h"

namespace ptxgen {
namespace internal {

// The refusal of a kernel that a recording would have to compile says what to do.
inline absl::Status unprepared(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return absl::FailedPreconditionError(str_cat(status.message(), ", with Executor::prepare()"));
}

// Whether a matrix product of so few rows is one of gemv_batch(): unless somebody asks for another, or the
// activations are f16.
inline bool runs_as_gemv(const DevicePolicy& policy, Activations a_type, u32 m,
                         const std::optional<GemmVariant>& call) {
  return a_type != Activations::kF16 && m <= kMostGemvRows && !policy.asks_for_gemm(call);
}

// One m stands for all whose kernel is chosen alike: tiles grow with it, and then their number.
inline u32 bucket_rows(u32 m) {
  constexpr u32 kFewest = 8, kMost = 65536;
  return std::clamp(std::bit_ceil(std::min(m, kMost)), kFewest, kMost);
}

}  // namespace internal

struct Executor::State {
  State(KernelCache& c, const ExecutorOptions& options);

  absl::StatusOr<internal::DecisionPtr> decide(const internal::ShapeKey& key);
  absl::StatusOr<internal::DecisionPtr> decide(const internal::FusedKey& key);
  absl::StatusOr<internal::DecisionPtr> decide(const internal::GemmKey& key);
  internal::DecisionPtr decision(CompiledKernel kernel, u32 rows, std::string path, std::string reason) const;

  // Whether a product of m rows can have them.
  absl::Status check(const PreparedActivations& prepared, const WeightMatrix& weights, u32 m,
                     bool takes_f16) const;
  absl::Status launch(const internal::Decision& decision, const Stream& stream, ArgValues values) const {
    return decision.kernel.launch(stream, values, {.programmatic_dependent_launch = decision.dependent});
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
};

}  // namespace ptxgen
