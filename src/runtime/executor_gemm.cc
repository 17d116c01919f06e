// Matrix products, and activations that are prepared for several.
#include "src/runtime/executor_state.h"

namespace ptxgen {

using internal::Decision;
using internal::DecisionPtr;
using internal::GemmKey;

absl::StatusOr<GemmReport> Executor::gemm(const Stream& stream, const WeightMatrix& weights,
                                          const ProductInput& a, u32 m, DevicePtr<f32> c,
                                          const GemmCall& call) {
  const PreparedActivations* prepared = a.prepared_;
  if (prepared) {
    if (absl::Status s = state_->check(*prepared, weights, m, true); !s.ok()) return s;
  }
  if (m == 0) return GemmReport{"nothing", "m is 0", {}};
  if (!state_->policy.ok()) return state_->policy.status();
  const Activations type = prepared ? prepared->type() : Activations::kF32;
  if (internal::runs_as_gemv(*state_->policy, type, m, call.variant)) {
    absl::StatusOr<GemvReport> few = gemv_batch(stream, weights, a, m, c);
    if (!few.ok()) return few.status();
    return GemmReport{std::move(few->path), str_cat("m is at most ", kMostGemvRows, ": ", few->reason),
                      std::move(few->kernels)};
  }
  const GemmShape shape = {weights.format(), weights.n(), weights.k(), internal::bucket_rows(m), type};
  const absl::StatusOr<DecisionPtr> decided = state_->decide(GemmKey{shape, weights.aligned(), call.variant});
  if (!decided.ok()) return decided.status();
  const Decision& decision = **decided;
  std::array<u64, 4> values = {weights.address(), prepared ? prepared->data_.address() : a.address_,
                               c.address, m};
  if (absl::Status s = state_->launch(decision, stream, values); !s.ok()) return s;
  return GemmReport{decision.path, decision.reason, {decision.name}};
}

absl::StatusOr<PreparedActivations> Executor::make_activations(u32 k, u32 max_m) const {
  const QuantizeQ8_1 quantize = {.k = k};
  if (absl::Status s = check_fields(quantize); !s.ok()) return s;
  QuantizeQ8_1::Args args;
  args.m = max_m;
  absl::StatusOr<Buffer> data = state_->cache.device().allocate(quantize.dst_bytes(args), "activations");
  if (!data.ok()) return data.status();
  return PreparedActivations(k, max_m, Activations::kQ8_1, {}, *std::move(data));
}

absl::StatusOr<PreparedActivations> Executor::make_activations(u32 k, u32 max_m, StagedOrder order) const {
  const StageF16 stage = {.k = k, .order = order};
  if (absl::Status s = check_fields(stage); !s.ok()) return s;
  absl::StatusOr<Buffer> data = state_->cache.device().allocate(staged_f16_bytes(k, max_m), "activations");
  if (!data.ok()) return data.status();
  return PreparedActivations(k, max_m, Activations::kF16, order, *std::move(data));
}

absl::Status Executor::prepare_activations(const Stream& stream, DevicePtr<const f32, 16> x, u32 m,
                                           PreparedActivations& into) {
  into.m_ = 0;  // whatever goes wrong, nothing takes the old ones for these
  if (m > into.max_m_) {
    return absl::InvalidArgumentError(
        str_cat("m is ", m, "; these activations have room for ", into.max_m_, " rows"));
  }
  const KernelType type = into.type_ == Activations::kF16 ? KernelType(StageF16{into.k_, into.order_})
                                                          : KernelType(QuantizeQ8_1{into.k_});
  const absl::StatusOr<CompiledKernel> kernel = state_->cache.get(type);
  if (!kernel.ok()) return internal::unprepared(kernel.status());
  const std::array<u64, 3> values = {x.address, into.data_.address(), m};
  const bool dependent = state_->dependent && kernel->generated().waits_for_predecessor;
  const absl::Status launched = kernel->launch(stream, values, {.programmatic_dependent_launch = dependent});
  if (launched.ok()) into.m_ = m;
  return launched;
}

}  // namespace ptxgen
