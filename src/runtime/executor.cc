#include "ptxgen/executor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/executor_state.h"

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
      dependent(options.programmatic_dependent_launch && c.device().target().supports(kHopper)) {}

Executor::Executor(KernelCache& cache, const ExecutorOptions& options)
    : state_(std::make_unique<State>(cache, options)) {}
Executor::~Executor() = default;

const absl::StatusOr<DevicePolicy>& Executor::policy() const {
  return state_->policy;
}

DecisionPtr Executor::State::decision(CompiledKernel kernel, u32 rows, std::string path,
                                      std::string reason) const {
  const bool waits = kernel.generated().waits_for_predecessor;
  std::string name = kernel.descriptor().text();
  return std::make_shared<const Decision>(Decision{std::move(kernel), rows, dependent && waits,
                                                   std::move(path), std::move(reason), std::move(name)});
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
  return shapes.add(key, decision(*std::move(kernel), choice->rows, path_of(*choice, type), choice->reason));
}

absl::StatusOr<DecisionPtr> Executor::State::decide(const FusedKey& key) {
  if (DecisionPtr found = fused.find(key)) return found;
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<FusedGemv> planned = policy->plan(key.product, key.aligned);
  if (!planned.ok()) return planned.status();
  absl::StatusOr<CompiledKernel> kernel = cache.get(KernelType(*planned));
  if (!kernel.ok()) return unprepared(kernel.status());
  return fused.add(
      key, decision(*std::move(kernel), 1,
                    path_of_plan(planned->plan.ctas ? planned->plan : ptxgen::planned(*planned).plan),
                    key.product.plan.ctas ? std::string("the call asks for it") : policy->shipped_reason()));
}

absl::StatusOr<DecisionPtr> Executor::State::decide(const GemmKey& key) {
  if (DecisionPtr found = gemms.find(key)) return found;
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<GemmChoice> choice = policy->choose(key.shape, key.aligned, key.call);
  if (!choice.ok()) return choice.status();
  absl::StatusOr<CompiledKernel> kernel = cache.get(KernelType(kernel_of(key.shape, choice->variant)));
  if (!kernel.ok()) return unprepared(kernel.status());
  return gemms.add(key, decision(*std::move(kernel), 0, choice->variant.to_string(), choice->reason));
}

absl::Status Executor::State::check(const PreparedActivations& prepared, const WeightMatrix& weights, u32 m,
                                    bool takes_f16) const {
  if (prepared.k() != weights.k() || prepared.m() < m) {
    return absl::InvalidArgumentError(str_cat("prepared activations have ", prepared.m(), " rows of ",
                                              prepared.k(), " values; the product takes ", m, " of ",
                                              weights.k(), ": prepare_activations() first"));
  }
  if (prepared.type() != Activations::kF16) return absl::OkStatus();
  if (!takes_f16) {
    return absl::InvalidArgumentError(
        "the activations are prepared as f16, which gemm() takes; prepare them as q8_1 for gemv()");
  }
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
    key.shape.m = std::bit_ceil(left);
    const absl::StatusOr<DecisionPtr> decided = state_->decide(key);
    if (!decided.ok()) return decided.status();
    const Decision& decision = **decided;
    const u32 rows = std::min(left, decision.rows);
    std::array<u64, 4> values = {weights.address(), begin + done * row_bytes,
                                 y.address + u64{done} * weights.n() * sizeof(f32), rows};
    const std::size_t count = decision.kernel.descriptor().num_arguments();  // m is one where it may vary
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

// Nothing but several products of the same vector.
bool only_products(const FusedGemv& fused) {
  return fused.norm == Norm::kNone && fused.combine == Combine::kNone && fused.residual == Residual::kNone;
}

std::vector<GemvShape> shapes_of(const FusedGemv& fused) {
  std::vector<GemvShape> shapes;
  const std::pair<Format, u32> matrices[] = {
      {fused.format, fused.n}, {fused.format_b, fused.n_b}, {fused.format_c, fused.n_c}};
  for (const auto& [format, n] : matrices) {
    if (n) shapes.push_back({format, n, fused.k, 1, fused.x_type});
  }
  return shapes;
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
  if (!state_->fused.find(key) && !key.product.plan.ctas && only_products(key.product)) {
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

// ---- prepare()

namespace {

// Everything that one Preparation needs.
struct Needed {
  std::vector<ShapeKey> shapes;
  std::vector<FusedKey> fused;
  std::vector<GemmKey> gemms;
  std::vector<KernelType> kernels;
  absl::Status status;
};

void need_shape(const DevicePolicy& policy, GemvShape shape, const Preparation& wanted, Needed& needed) {
  const u32 m = shape.m;
  for (shape.m = 1; needed.status.ok(); shape.m *= 2) {
    const absl::StatusOr<GemvChoice> choice = policy.choose(shape, wanted.aligned, wanted.variant);
    needed.status.Update(choice.status());
    if (!choice.ok()) return;
    GemvShape rows = shape;
    rows.m = choice->rows;
    needed.kernels.push_back(kernel_of(rows, choice->variant));
    needed.shapes.push_back({shape, wanted.aligned, wanted.variant});
    if (shape.m >= std::min(m, kMostGemvRows)) return;
  }
}

void need_fused(const DevicePolicy& policy, const FusedGemv& fused, const Preparation& wanted,
                Needed& needed) {
  const absl::StatusOr<FusedGemv> planned = policy.plan(fused, wanted.aligned);
  if (planned.ok()) {
    needed.kernels.push_back(*planned);
    needed.fused.push_back({fused, wanted.aligned});
  } else if (only_products(fused) && !fused.plan.ctas) {
    for (const GemvShape& shape : shapes_of(fused)) need_shape(policy, shape, wanted, needed);
  } else {
    needed.status = planned.status();
  }
}

// What gemm() runs for any m up to shape.m: a kernel for every tile, and for few rows those of gemv_batch().
void need_gemm(const DevicePolicy& policy, GemmShape shape, const Preparation& wanted, Needed& needed) {
  const u32 most = internal::bucket_rows(shape.m);
  u32 rows = internal::bucket_rows(1);
  if (internal::runs_as_gemv(policy, shape.a_type, 1, wanted.gemm_variant)) {
    const u32 few = std::min(shape.m, kMostGemvRows);
    need_shape(policy, {shape.format, shape.n, shape.k, few, shape.a_type}, wanted, needed);
    rows = 2 * kMostGemvRows;
  }
  for (; needed.status.ok() && rows <= most; rows *= 2) {
    shape.m = rows;
    const absl::StatusOr<GemmChoice> choice = policy.choose(shape, wanted.aligned, wanted.gemm_variant);
    needed.status.Update(choice.status());
    if (!choice.ok()) return;
    needed.kernels.push_back(kernel_of(shape, choice->variant));
    needed.gemms.push_back({shape, wanted.aligned, wanted.gemm_variant});
  }
}

Needed needed_for(const DevicePolicy& policy, const Preparation& wanted) {
  Needed needed;
  if (const auto* shape = std::get_if<GemvShape>(&wanted.product)) {
    need_shape(policy, *shape, wanted, needed);
  } else if (const auto* fused = std::get_if<FusedGemv>(&wanted.product)) {
    need_fused(policy, *fused, wanted, needed);
  } else if (const auto* gemm = std::get_if<GemmShape>(&wanted.product)) {
    need_gemm(policy, *gemm, wanted, needed);
  } else if (const auto* stage = std::get_if<StageF16>(&wanted.product)) {
    needed.kernels.push_back(*stage);
  } else {
    needed.kernels.push_back(std::get<QuantizeQ8_1>(wanted.product));
  }
  if (!needed.status.ok()) needed.kernels.clear();
  return needed;
}

}  // namespace

absl::StatusOr<std::vector<KernelType>> kernels_of(const DevicePolicy& policy, const Preparation& product) {
  Needed needed = needed_for(policy, product);
  if (!needed.status.ok()) return needed.status;
  return std::move(needed.kernels);
}

std::vector<absl::Status> Executor::prepare(absl::Span<const Preparation> products,
                                            const PrepareOptions& options) {
  State& state = *state_;
  if (!state.policy.ok()) return std::vector<absl::Status>(products.size(), state.policy.status());
  std::vector<Needed> all;
  std::vector<KernelType> kernels;
  for (const Preparation& product : products) {
    all.push_back(needed_for(*state.policy, product));
    kernels.insert(kernels.end(), all.back().kernels.begin(), all.back().kernels.end());
  }
  const std::vector<absl::Status> compiled = state.cache.prepare(kernels, options);
  std::vector<absl::Status> statuses;
  auto next = compiled.begin();
  for (Needed& needed : all) {
    for (std::size_t i = 0; i < needed.kernels.size(); ++i) needed.status.Update(*next++);
    if (needed.status.ok()) {
      for (const ShapeKey& key : needed.shapes) needed.status.Update(state.decide(key).status());
      for (const FusedKey& key : needed.fused) needed.status.Update(state.decide(key).status());
      for (const GemmKey& key : needed.gemms) needed.status.Update(state.decide(key).status());
    }
    statuses.push_back(std::move(needed.status));
  }
  return statuses;
}

}  // namespace ptxgen
