#include "ptxgen/executor.h"

#include <algorithm>
#include <utility>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/executor_state.h"
#include "src/runtime/gemv_rows.h"

namespace ptxgen {

using internal::Decision;
using internal::DecisionPtr;
using internal::FusedKey;
using internal::GemmKey;
using internal::ShapeKey;
using internal::unprepared;

namespace {

std::string path_of_plan(const StreamPlan& plan) {
  return GemvVariant{.plan = plan}.to_string();
}

// A plan that is left to the kernel, as it will be.
std::string path_of(const GemvChoice& choice, const KernelType& kernel) {
  GemvVariant variant = choice.variant;
  if (variant.plan.ctas != 0) return variant.to_string();
  if (const Gemv* gemv = kernel.get_if<Gemv>()) {
    variant.plan = planned(*gemv).plan;
  } else {
    const BatchedGemv whole = planned(*kernel.get_if<BatchedGemv>());
    variant.plan = whole.plan;
    variant.mma_plan = whole.mma_plan;
  }
  return variant.to_string();
}

// What a report says once more is not repeated.
void append_once(std::string* text, std::string_view part) {
  if (text->empty()) {
    *text = part;
  } else if (!std::string_view(*text).ends_with(part)) {
    str_append(text, "; then ", part);
  }
}

void add_to(GemvReport& report, const Decision& decision) {
  append_once(&report.path, decision.path);
  append_once(&report.reason, decision.reason);
  report.kernels.push_back(decision.name);
}

// What the environment asks for, in the words of a variant.
template <class Variant>
absl::StatusOr<std::optional<Variant>> asked_by(const EnvironmentVariable& variable) {
  const std::string text = env::text(variable);
  if (text.empty()) return std::optional<Variant>();
  absl::StatusOr<Variant> variant = Variant::parse(text);
  if (variant.ok()) return std::optional<Variant>(*std::move(variant));
  return absl::InvalidArgumentError(str_cat(variable.name, "=", variant.status().message(), "; or unset it"));
}

absl::StatusOr<DevicePolicy> make_policy(const Device& device, const ExecutorOptions& options) {
  const auto gemv = asked_by<GemvVariant>(env::kGemv);
  if (!gemv.ok()) return gemv.status();
  const auto gemm = asked_by<GemmVariant>(env::kGemm);
  if (!gemm.ok()) return gemm.status();
  TuneRecords records;
  if (options.tuned) {
    records = *options.tuned;
  } else if (device.kind() == DeviceKind::kCuda) {
    records = TuneRecords::read(options.directory);
  }
  return DevicePolicy(device.properties(), {options.gemv, *gemv}, records, {options.gemm, *gemm});
}

}  // namespace

Executor::State::State(KernelCache& c, const ExecutorOptions& options)
    : cache(c),
      policy(make_policy(c.device(), options)),
      dependent(options.programmatic_dependent_launch && c.device().target().supports(kHopper)),
      scratch(c.device()),
      library(c, scratch, options.cublaslt, options.copies_max_bytes, dependent) {}

Executor::Executor(KernelCache& cache, const ExecutorOptions& options)
    : state_(std::make_unique<State>(cache, options)) {}
Executor::~Executor() = default;

const absl::StatusOr<DevicePolicy>& Executor::policy() const {
  return state_->policy;
}

Decision Executor::State::decision(CompiledKernel kernel, u32 rows, std::string path,
                                   std::string reason) const {
  const bool waits = kernel.generated().waits_for_predecessor;
  std::string name = kernel.descriptor().text();
  return {std::move(kernel), rows, dependent && waits, std::move(path), std::move(reason), std::move(name)};
}

absl::StatusOr<DecisionPtr> Executor::State::decide(const ShapeKey& key) {
  if (DecisionPtr found = shapes.find(key)) return found;
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<GemvChoice> choice = policy->choose(key.shape, key.aligned, key.call);
  if (!choice.ok()) return choice.status();
  GemvShape rows = key.shape;
  rows.m = choice->rows;
  const KernelType type = kernel_of(rows, choice->variant);
  absl::StatusOr<CompiledKernel> kernel = cache.get(type);
  if (!kernel.ok()) return unprepared(kernel.status());
  return shapes.add(key, std::make_shared<const Decision>(decision(*std::move(kernel), choice->rows,
                                                                   path_of(*choice, type), choice->reason)));
}

absl::StatusOr<DecisionPtr> Executor::State::decide(const FusedKey& key) {
  if (DecisionPtr found = fused.find(key)) return found;
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<FusedGemv> planned = policy->plan(key.product, key.aligned);
  if (!planned.ok()) return planned.status();
  absl::StatusOr<CompiledKernel> kernel = cache.get(KernelType(*planned));
  if (!kernel.ok()) return unprepared(kernel.status());
  return fused.add(
      key, std::make_shared<const Decision>(decision(
               *std::move(kernel), 1,
               path_of_plan(planned->plan.ctas ? planned->plan : ptxgen::planned(*planned).plan),
               key.product.plan.ctas ? std::string("the call asks for it") : policy->shipped_reason())));
}

absl::StatusOr<DecisionPtr> Executor::State::decide(const GemmKey& key) {
  if (DecisionPtr found = gemms.find(key)) return found;
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<GemmChoice> choice =
      key.fused ? policy->fused(key.shape, key.aligned) : policy->choose(key.shape, key.aligned, key.call);
  if (!choice.ok()) return choice.status();
  const GemmPath path = choice->variant.path;
  if (path != GemmPath::kFused) {
    return gemms.add(key, std::make_shared<const Decision>(
                              Decision{{}, 0, false, "", choice->reason, "", path, choice->asked}));
  }
  absl::StatusOr<CompiledKernel> kernel = cache.get(KernelType(kernel_of(key.shape, choice->variant)));
  if (!kernel.ok()) return unprepared(kernel.status());
  Decision decided = decision(*std::move(kernel), 0, choice->variant.to_string(), choice->reason);
  if (stages(key.shape, choice->variant)) {
    absl::StatusOr<CompiledKernel> stage =
        cache.get(KernelType(internal::stage_of(key.shape, choice->variant)));
    if (!stage.ok()) return unprepared(stage.status());
    decided.stage = *std::move(stage);
  }
  return gemms.add(key, std::make_shared<const Decision>(std::move(decided)));
}

absl::Status Executor::State::check(const PreparedActivations& prepared, const WeightMatrix& weights, u32 m,
                                    bool for_gemm) const {
  if (prepared.k() != weights.k() || prepared.m() < m) {
    return absl::InvalidArgumentError(str_cat("prepared activations have ", prepared.m(), " rows of ",
                                              prepared.k(), " values; the product takes ", m, " of ",
                                              weights.k(), ": prepare_activations() first"));
  }
  if (prepared.type() != Activations::kQ8_1 && !for_gemm) {
    return absl::InvalidArgumentError(str_cat("the activations are prepared as ",
                                              detail::field_text(prepared.type()),
                                              ", which gemm() takes; prepare them as q8_1 for gemv()"));
  }
  if (prepared.type() != Activations::kF16) return absl::OkStatus();
  if (prepared.m() != m) {  // fewer rows would lie otherwise
    return absl::InvalidArgumentError(str_cat("m is ", m, ", and the activations were staged with ",
                                              prepared.m(), " rows; as f16 they serve all of them only"));
  }
  if (prepared.order() == staged_order(weights.format())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      str_cat("the activations are staged in the order ", detail::field_text(prepared.order()),
              ", and weights of ", info(weights.format()).ggml_name, " take ",
              detail::field_text(staged_order(weights.format())), ": prepare them in that"));
}

absl::StatusOr<GemvReport> Executor::gemv_batch(const Stream& stream, const WeightMatrix& weights,
                                                const ProductInput& x, u32 m, DevicePtr<f32> y,
                                                const GemvCall& call) {
  const PreparedActivations* prepared = x.prepared_;
  if (prepared) {
    if (absl::Status s = state_->check(*prepared, weights, m, false); !s.ok()) return s;
  }
  if (m == 0) return GemvReport{"nothing", "m is 0", {}};
  const Activations x_type = prepared ? Activations::kQ8_1 : Activations::kF32;
  ShapeKey key = {{weights.format(), weights.n(), weights.k(), 1, x_type}, weights.aligned(), call.variant};
  const u64 begin = prepared ? prepared->data_.address() : x.address_;
  const u64 row_bytes = activation_bytes(x_type, weights.k());
  GemvReport report;
  for (u32 done = 0; done < m;) {
    // One key for all m that one kernel serves.
    const u32 left = std::min(m - done, kMostGemvRows);
    key.shape.m = internal::bucket_gemv_rows(left);
    const absl::StatusOr<DecisionPtr> decided = state_->decide(key);
    if (!decided.ok()) return decided.status();
    const Decision& decision = **decided;
    const u32 rows = std::min(left, decision.rows);
    std::array<u64, 4> values = {weights.address(), begin + done * row_bytes,
                                 y.address + u64{done} * weights.n() * sizeof(f32), rows};
    const std::size_t count = decision.kernel->descriptor().num_arguments();  // m is one where it may vary
    if (absl::Status s = state_->launch(decision, stream, ArgValues(values).first(count)); !s.ok()) return s;
    add_to(report, decision);
    done += rows;
  }
  return report;
}

// ---- Fused products

namespace {

FusedGemv fused_product(const FusedProducts& products, Activations x_type) {
  const std::vector<WeightMatrix>& w = products.weights;
  FusedGemv fused;
  fused.format = fused.format_b = fused.format_c = w[0].format();
  fused.k = w[0].k();
  fused.n = w[0].n();
  if (w.size() > 1) fused.format_b = w[1].format(), fused.n_b = w[1].n();
  if (w.size() > 2) fused.format_c = w[2].format(), fused.n_c = w[2].n();
  if (products.gamma.address) fused.norm = Norm::kRms;
  fused.combine = products.combine;
  if (products.residual.address) fused.residual = Residual::kAdd;
  fused.x_type = x_type;
  if (products.plan) fused.plan = *products.plan;
  return fused;
}

absl::Status check(const FusedProducts& products) {
  const std::size_t count = products.weights.size();
  if (count < 1 || count > 3)
    return absl::InvalidArgumentError(str_cat(count, " matrices are given; a fused product has 1 to 3"));
  for (const WeightMatrix& w : products.weights) {
    if (w.k() == products.weights[0].k()) continue;
    return absl::InvalidArgumentError(str_cat("the rows of one matrix have ", w.k(), " values, of the first ",
                                              products.weights[0].k(), "; they multiply the same vector"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GemvReport> Executor::fused(const Stream& stream, const FusedProducts& products,
                                           const ProductInput& x) {
  if (absl::Status s = check(products); !s.ok()) return s;
  const PreparedActivations* prepared = x.prepared_;
  const std::vector<WeightMatrix>& w = products.weights;
  if (prepared) {
    if (absl::Status s = state_->check(*prepared, w[0], 1, false); !s.ok()) return s;
  }
  const bool aligned = std::all_of(w.begin(), w.end(), [](const WeightMatrix& m) { return m.aligned(); });
  const FusedKey key = {fused_product(products, prepared ? Activations::kQ8_1 : Activations::kF32), aligned};
  if (!state_->policy.ok()) return state_->policy.status();
  if (!state_->fused.find(key) && !key.product.plan.ctas && internal::only_products(key.product)) {
    const absl::StatusOr<FusedGemv> planned = state_->policy->plan(key.product, aligned);
    if (!planned.ok()) return state_->one_by_one(*this, stream, products, x, planned.status());
  }
  const absl::StatusOr<DecisionPtr> decided = state_->decide(key);
  if (!decided.ok()) return decided.status();
  FusedGemv::Args args;
  args.weights = {w[0].address()};
  if (w.size() > 1) args.weights_b = {w[1].address()};
  if (w.size() > 2) args.weights_c = {w[2].address()};
  args.x = {prepared ? prepared->data_.address() : x.address_};
  args.gamma = products.gamma;
  args.residual = products.residual;
  args.y = products.y[0], args.y_b = products.y[1], args.y_c = products.y[2];
  args.epsilon = products.epsilon;
  if (absl::Status s = state_->launch(**decided, stream, detail::to_values(args)); !s.ok()) return s;
  GemvReport report;
  add_to(report, **decided);
  return report;
}

absl::StatusOr<GemvReport> Executor::State::one_by_one(Executor& executor, const Stream& stream,
                                                       const FusedProducts& products, const ProductInput& x,
                                                       const absl::Status& why) {
  GemvReport report;
  for (std::size_t i = 0; i < products.weights.size(); ++i) {
    absl::StatusOr<GemvReport> one = executor.gemv(stream, products.weights[i], x, products.y[i]);
    if (!one.ok()) return one;
    append_once(&report.path, one->path);
    append_once(&report.reason, one->reason);
    report.kernels.insert(report.kernels.end(), one->kernels.begin(), one->kernels.end());
  }
  report.reason = str_cat("one after the other: ", why.message(), "; ", report.reason);
  return report;
}

}  // namespace ptxgen
