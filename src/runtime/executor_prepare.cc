// Executor::prepare(), and what it prepares.
#include <algorithm>
#include <utility>

#include "src/runtime/executor_state.h"
#include "src/runtime/gemv_rows.h"

namespace ptxgen {

using internal::FusedKey;
using internal::GemmKey;
using internal::ShapeKey;

namespace {

std::vector<GemvShape> shapes_of(const FusedGemv& fused) {
  std::vector<GemvShape> shapes;
  const std::pair<Format, u32> matrices[] = {
      {fused.format, fused.n}, {fused.format_b, fused.n_b}, {fused.format_c, fused.n_c}};
  for (const auto& [format, n] : matrices) {
    if (n) shapes.push_back({format, n, fused.k, 1, fused.x_type});
  }
  return shapes;
}

// Everything that one Preparation needs.
struct Needed {
  std::vector<ShapeKey> shapes;
  std::vector<FusedKey> fused;
  std::vector<GemmKey> gemms;
  std::vector<KernelType> kernels;
  struct Library {
    GemmPath path;
    GemmShape shape;
    bool asked;
  };
  std::vector<Library> library;
  u64 scratch_bytes = 0;  // of kernels
  absl::Status status;

  void add(const GemmShape& shape, const GemmVariant& variant) {
    kernels.push_back(kernel_of(shape, variant));
    if (!stages(shape, variant)) return;
    kernels.push_back(internal::stage_of(shape, variant));
    scratch_bytes = std::max(scratch_bytes, staged_f16_bytes(shape.k, shape.m));
  }
};

void need_shape(const DevicePolicy& policy, GemvShape shape, const Preparation& wanted, Needed& needed) {
  const u32 m = shape.m;
  for (shape.m = 1; needed.status.ok(); shape.m = internal::bucket_gemv_rows(shape.m + 1)) {
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
  } else if (internal::only_products(fused) && !fused.plan.ctas) {
    for (const GemvShape& shape : shapes_of(fused)) need_shape(policy, shape, wanted, needed);
  } else {
    needed.status = planned.status();
  }
}

// A path of cuBLASLt, and the kernel in its place that nobody asked to do without.
void need_library(const DevicePolicy& policy, const GemmShape& shape, bool aligned, const GemmChoice& choice,
                  Needed& needed) {
  const GemmPath path = choice.variant.path;
  for (KernelType& kernel : internal::library_kernels(policy.device(), path, shape))
    needed.kernels.push_back(std::move(kernel));
  needed.library.push_back({path, shape, choice.asked});
  if (choice.asked || shape.a_type != Activations::kF32) return;
  const absl::StatusOr<GemmChoice> instead = policy.fused(shape, aligned);
  if (!instead.ok()) return;
  needed.add(shape, instead->variant);
  needed.gemms.push_back({shape, aligned, {}, true});
}

// What gemm() runs for any m up to shape.m: what is chosen for every bucket_rows(), and for few rows the
// kernels of gemv_batch().
void need_gemm(const DevicePolicy& policy, GemmShape shape, const Preparation& wanted, Needed& needed) {
  const u32 most = bucket_rows(shape.m);
  u32 rows = bucket_rows(1);
  if (const u32 few = policy.most_gemv_rows(shape, wanted.aligned, wanted.gemm_variant)) {
    need_shape(policy, {shape.format, shape.n, shape.k, std::min(shape.m, few), shape.a_type}, wanted,
               needed);
    if (shape.m <= few) return;
    rows = bucket_rows(few + 1);
  }
  while (true) {
    shape.m = rows;
    const absl::StatusOr<GemmChoice> choice = policy.choose(shape, wanted.aligned, wanted.gemm_variant);
    needed.status.Update(choice.status());
    if (!choice.ok()) return;
    needed.gemms.push_back({shape, wanted.aligned, wanted.gemm_variant});
    if (choice->variant.path == GemmPath::kFused) {
      needed.add(shape, choice->variant);
    } else {
      need_library(policy, shape, wanted.aligned, *choice, needed);
    }
    if (rows == most || !needed.status.ok()) return;
    rows = bucket_rows(rows + 1);
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
      if (needed.scratch_bytes > 0) needed.status.Update(state.scratch.prepare(needed.scratch_bytes));
      for (const Needed::Library& product : needed.library) {
        const absl::Status s = state.library.prepare(product.path, product.shape);
        if (product.asked) needed.status.Update(s);  // else a kernel takes its place
      }
    }
    statuses.push_back(std::move(needed.status));
  }
  return statuses;
}

}  // namespace ptxgen
