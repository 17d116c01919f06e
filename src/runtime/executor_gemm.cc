// Matrix products, and activations that are prepared for several.
#include <optional>

#include "ptxgen/kernels.h"
#include "src/runtime/executor_state.h"

namespace ptxgen {

using internal::Decision;
using internal::DecisionPtr;
using internal::GemmKey;

namespace {

// What is taken in place of a path that cannot be had; nothing: the product is refused.
std::optional<GemmPath> in_place_of(GemmPath path, const absl::Status& why) {
  if (absl::IsOutOfRange(why)) return GemmPath::kSgemm;  // weights beyond f16
  if (!absl::IsResourceExhausted(why) && !absl::IsUnimplemented(why)) return std::nullopt;
  const bool keeps_copy = path == GemmPath::kHgemm || path == GemmPath::kFp8;
  return keeps_copy ? GemmPath::kDequantHgemm : GemmPath::kFused;
}

// Whether a path reads such activations.
bool reads(GemmPath path, Activations type) {
  return type == Activations::kF32 || (type == Activations::kF16Rows && path == GemmPath::kDequantHgemm);
}

}  // namespace

absl::StatusOr<GemmReport> Executor::State::by_kernel(const Stream& stream,
                                                      const internal::LibraryProduct& product,
                                                      const GemmKey& key, const Decision& decision) {
  if (!decision.stage) {
    std::array<u64, 4> values = {product.weights.address(), product.a, product.c, product.m};
    if (absl::Status s = launch(decision, stream, values); !s.ok()) return s;
    return GemmReport{decision.path, decision.reason, {decision.name}};
  }
  absl::StatusOr<internal::Scratch> room =
      scratch.take(stream, staged_f16_bytes(product.weights.k(), product.m));
  if (room.ok()) return staged_in(stream, product, decision, *room);
  if (!absl::IsResourceExhausted(room.status())) return room.status();
  const GemmVariant without = {.schedule = GemmSchedule::kWmmaMultiWarp};
  const absl::StatusOr<DecisionPtr> instead = decide(GemmKey{key.shape, key.aligned, without});
  if (!instead.ok()) return instead.status();
  absl::StatusOr<GemmReport> report = by_kernel(stream, product, key, **instead);
  if (report.ok()) {  // what is decided about `without` is kept, and is not to blame for this once
    report->reason =
        str_cat(decision.reason, "; ", decision.path, " cannot be had: ", room.status().message());
  }
  return report;
}

absl::StatusOr<GemmReport> Executor::State::staged_in(const Stream& stream,
                                                      const internal::LibraryProduct& product,
                                                      const Decision& decision,
                                                      internal::Scratch& room) const {
  std::array<u64, 4> values = {product.weights.address(), room.address(), product.c, product.m};
  absl::Status s = stage(stream, *decision.stage, product.a, room.address(), product.m);
  if (s.ok()) s = launch(decision, stream, values);
  s.Update(room.done(stream));  // even of one that failed, a part may have been added
  if (!s.ok()) return s;
  return GemmReport{decision.path,
                    decision.reason,
                    {decision.stage->descriptor().text(), decision.name},
                    staged_f16_bytes(product.weights.k(), product.m)};
}

absl::Status Executor::State::stage(const Stream& stream, const CompiledKernel& kernel, u64 from, u64 to,
                                    u32 m) const {
  const bool early = dependent && kernel.generated().waits_for_predecessor;
  const std::array<u64, 3> values = {from, to, m};
  return kernel.launch(stream, values, {.programmatic_dependent_launch = early});
}

absl::StatusOr<GemmReport> Executor::State::by_library(const Stream& stream, internal::LibraryProduct product,
                                                       const GemmKey& key, const Decision& decision) {
  product.path = decision.library;
  std::string reason = decision.reason;
  while (product.path != GemmPath::kFused) {
    absl::StatusOr<GemmReport> report = library.run(stream, product);
    if (report.ok()) {
      report->reason = std::move(reason);
      return report;
    }
    std::optional<GemmPath> next = in_place_of(product.path, report.status());
    if (!next && !decision.asked) next = GemmPath::kFused;
    if (!next || !reads(*next, product.a_type)) return report;
    str_append(&reason, "; ", detail::field_text(product.path),
               " cannot be had: ", report.status().message());
    product.path = *next;
  }
  const GemmKey by_fused = {key.shape, key.aligned, {}, true};
  const absl::StatusOr<DecisionPtr> instead = decide(by_fused);
  if (!instead.ok()) return instead.status();
  absl::StatusOr<GemmReport> report = by_kernel(stream, product, by_fused, **instead);
  if (report.ok()) report->reason = str_cat(reason, "; ", report->reason);
  return report;
}

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
  const GemmShape shape = {weights.format(), weights.n(), weights.k(), bucket_rows(m), type};
  const u32 few_rows = state_->policy->most_gemv_rows(shape, weights.aligned(), call.variant);
  if (m <= few_rows) {
    absl::StatusOr<GemvReport> few = gemv_batch(stream, weights, a, m, c);
    if (!few.ok()) return few.status();
    return GemmReport{std::move(few->path), str_cat("m is at most ", few_rows, ": ", few->reason),
                      std::move(few->kernels)};
  }
  const GemmKey key = {shape, weights.aligned(), call.variant};
  const absl::StatusOr<DecisionPtr> decided = state_->decide(key);
  if (!decided.ok()) return decided.status();
  const internal::LibraryProduct product = {
      GemmPath::kFused, weights, type, prepared ? prepared->data_.address() : a.address_, m, c.address};
  if ((*decided)->kernel) return state_->by_kernel(stream, product, key, **decided);
  return state_->by_library(stream, product, key, **decided);
}

absl::Status Executor::prepare_weights(const Stream& stream, const WeightMatrix& weights, GemmPath path) {
  return state_->library.prepare_weights(stream, weights, path);
}

void Executor::release_weights(const WeightMatrix& weights) {
  state_->library.release_weights(weights);
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

absl::StatusOr<PreparedActivations> Executor::make_activations(u32 k, u32 max_m, Activations type) const {
  if (type == Activations::kQ8_1) return make_activations(k, max_m);
  if (type != Activations::kF16Rows && type != Activations::kE4m3) {
    return absl::InvalidArgumentError(str_cat("activations of type ", detail::field_text(type),
                                              type == Activations::kF16
                                                  ? " have an order: give it in place of the type"
                                                  : " are not prepared; give them as they are"));
  }
  const Dequant rows = {.format = Format::kQ8_0, .k = k};  // what all formats have in common
  if (absl::Status s = check_fields(rows); !s.ok()) return s;
  absl::StatusOr<Buffer> data =
      state_->cache.device().allocate(internal::scaled_rows_bytes(type, k, max_m), "activations");
  if (!data.ok()) return data.status();
  return PreparedActivations(k, max_m, type, {}, *std::move(data));
}

absl::Status Executor::prepare_activations(const Stream& stream, DevicePtr<const f32, 16> x, u32 m,
                                           PreparedActivations& into) {
  into.m_ = 0;  // whatever goes wrong, nothing takes the old ones for these
  if (m > into.max_m_) {
    return absl::InvalidArgumentError(
        str_cat("m is ", m, "; these activations have room for ", into.max_m_, " rows"));
  }
  if (into.type_ == Activations::kF16Rows || into.type_ == Activations::kE4m3) {
    std::vector<std::string> kernels;
    const absl::Status scaled = state_->library.scale_rows(stream, x.address, u64{m} * into.k_, into.type_,
                                                           into.data_.address(), kernels);
    if (scaled.ok()) into.m_ = m;
    return scaled;
  }
  const KernelType type = into.type_ == Activations::kF16 ? KernelType(StageF16{into.k_, into.order_})
                                                          : KernelType(QuantizeQ8_1{into.k_});
  const absl::StatusOr<CompiledKernel> kernel = state_->cache.get(type);
  if (!kernel.ok()) return internal::unprepared(kernel.status());
  const absl::Status launched = state_->stage(stream, *kernel, x.address, into.data_.address(), m);
  if (launched.ok()) into.m_ = m;
  return launched;
}

}  // namespace ptxgen
