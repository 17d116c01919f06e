#include "ptxgen/gemv.h"

#include <bit>

#include "src/kernels/gemv/mma.h"
#include "src/kernels/gemv/rows.h"
#include "src/kernels/gemv/stream.h"

namespace ptxgen {
namespace {

// What a descriptor asks for, without its plan.
gemv::Stream work_of(const Gemv& g) {
  gemv::Stream s;
  s.jobs = {{g.format, g.n}};
  s.k = g.k;
  s.x_type = g.x_type;
  return s;
}

gemv::Stream work_of(const BatchedGemv& g) {
  gemv::Stream s;
  s.jobs = {{g.format, g.n}};
  s.k = g.k;
  s.max_m = g.max_m;
  s.x_type = g.x_type;
  return s;
}

gemv::Mma mma_of(const BatchedGemv& g) {
  gemv::Mma s{g.format, g.n, g.k, g.max_m, g.x_type, g.schedule == Schedule::kMmaDirect, g.plan, g.mma_plan};
  if (g.plan.ctas == 0) gemv::default_mma_plan(s, kMeasuredSmCount);
  return s;
}

gemv::Stream work_of(const FusedGemv& g) {
  const bool pairs = g.combine == Combine::kSwiglu;
  gemv::Stream s;
  s.jobs = {{g.format, g.n, pairs ? 2u : 1u}};
  if (g.n_b && !pairs) s.jobs.push_back({g.format_b, g.n_b});
  if (g.n_c) s.jobs.push_back({g.format_c, g.n_c});
  s.k = g.k;
  s.x_type = g.x_type;
  s.norm = g.norm == Norm::kRms;
  s.residual = g.residual == Residual::kAdd;
  return s;
}

// With the plan given, or else one for the work.
template <class D>
gemv::Stream stream_of(const D& descriptor) {
  gemv::Stream s = work_of(descriptor);
  s.plan = descriptor.plan.ctas ? descriptor.plan : gemv::default_plan(s);
  return s;
}

}  // namespace

std::string Gemv::name() const {
  return str_cat(info(format).name, "_gemv");
}

Bounds Gemv::k_bounds() const {
  const FormatInfo& f = info(format);
  return {.min = f.block_values, .max = 1u << 24, .multiple = f.block_values, .block_of = f.ggml_name};
}

absl::Status Gemv::validate() const {
  const std::string_view chosen = kEnumNames<Schedule>[static_cast<std::size_t>(schedule)];
  const auto not_of = [&](std::string_view field, std::string_view owners) {
    return absl::InvalidArgumentError(str_cat(field, " is given with schedule ", chosen, "; it belongs to ",
                                              owners, ": leave it out, or choose one of these"));
  };
  const bool has_warps = schedule == Schedule::kMultiWarp || schedule == Schedule::kMultiWarpDp4a ||
                         schedule == Schedule::kHalfWarpDp4a;
  const bool has_outputs = schedule == Schedule::kTiled || schedule == Schedule::kChunkedTiled;
  const bool has_q8_1 = schedule == Schedule::kMultiWarpDp4a || schedule == Schedule::kHalfWarpDp4a ||
                        schedule == Schedule::kStream;
  if (num_warps && !has_warps) return not_of("num_warps", "multi_warp, multi_warp_dp4a and half_warp_dp4a");
  if (outputs_per_block && !has_outputs) return not_of("outputs_per_block", "tiled and chunked_tiled");
  if (x_type == Activations::kQ8_1 && !has_q8_1)
    return not_of("x_type q8_1", "multi_warp_dp4a, half_warp_dp4a and stream");
  if (schedule == Schedule::kStream) return gemv::check_stream(stream_of(*this));
  if (!equal_fields(plan, StreamPlan{})) return not_of("a plan (ctas, row_lanes ...)", "stream");
  return gemv::check_rows(*this);
}

LaunchShape Gemv::launch_shape(const Args&) const {
  if (schedule == Schedule::kStream) return gemv::stream_shape(stream_of(*this));
  const gemv::RowPlan rows = gemv::row_plan(*this);
  LaunchShape shape;
  shape.grid = {(u64{n} + rows.rows_per_cta - 1) / rows.rows_per_cta};
  shape.block = {rows.threads()};
  shape.dynamic_shared_bytes = gemv::row_shared_bytes(*this);
  return shape;
}

void Gemv::build(KernelBuilder& b) const {
  if (schedule == Schedule::kStream) {
    gemv::build_stream(b, stream_of(*this),
                       {.weights = {assume_aligned<16>(b.param(&Args::weights))},
                        .x = assume_aligned<16>(b.param(&Args::x)),
                        .y = {b.param(&Args::y)}});
  } else {
    gemv::build_rows(b, *this);
  }
}

std::string BatchedGemv::name() const {
  return str_cat(info(format).name, "_batched_gemv");
}

absl::Status BatchedGemv::validate() const {
  const auto refuse = [](std::string message) { return absl::InvalidArgumentError(std::move(message)); };
  if (!std::has_single_bit(max_m) && (max_m != 3 || schedule != Schedule::kStream)) {
    return refuse(str_cat("max_m is ", max_m, "; it must be a power of two, or 3 with schedule stream"));
  }
  if (schedule != Schedule::kStream) return gemv::check_mma(mma_of(*this));
  if (!equal_fields(mma_plan, MmaPlan{}))
    return refuse("columns, warps or chunk is given with schedule stream; they belong to mma and mma_direct");
  if (max_m > kMostStreamRows) {
    return refuse(str_cat("max_m is ", max_m, "; schedule stream takes up to ", kMostStreamRows,
                          ", mma and mma_direct up to 16"));
  }
  return gemv::check_stream(stream_of(*this));
}

LaunchShape BatchedGemv::launch_shape(const Args& args) const {
  LaunchShape shape = schedule == Schedule::kStream ? gemv::stream_shape(stream_of(*this))
                                                    : gemv::mma_shape(mma_of(*this), args.m);
  if (args.m == 0) shape.grid = {0};
  if (args.m > max_m) shape.grid = {kMaxGrid.x + 1};
  return shape;
}

void BatchedGemv::build(KernelBuilder& b) const {
  const auto weights = b.param(&Args::weights);
  const auto x = b.param(&Args::x);
  const auto y = b.param(&Args::y);
  const Reg<u32> m = b.param(&Args::m);
  if (schedule == Schedule::kStream) {
    gemv::build_stream(b, stream_of(*this), {.weights = {weights}, .x = x, .y = {y}, .m = m});
  } else {
    gemv::build_mma(b, mma_of(*this), {weights, x, y, m});
  }
}

std::string FusedGemv::name() const {
  return str_cat(info(format).name, "_fused_gemv");
}

absl::Status FusedGemv::validate() const {
  const auto refuse = [](std::string message) { return absl::InvalidArgumentError(std::move(message)); };
  if (combine == Combine::kSwiglu && (n_b != n || format_b != format)) {
    return refuse(str_cat("n_b is ", n_b, " and format_b ", kEnumNames<Format>[static_cast<u32>(format_b)],
                          "; combine swiglu takes two matrices of the same shape and format: ", n,
                          " rows of ", info(format).name));
  }
  if (n_c && !n_b) return refuse(str_cat("n_c is ", n_c, " and n_b 0; give the second matrix first"));
  if (norm == Norm::kRms && x_type == Activations::kQ8_1)
    return refuse("norm is rms and x_type q8_1; the normalisation takes x_type f32");
  const auto same_blocks = [&](Format other) {
    return info(other).block_values == info(format).block_values;
  };
  if ((n_b && !same_blocks(format_b)) || (n_c && !same_blocks(format_c))) {
    return refuse(str_cat("format_b is ", kEnumNames<Format>[static_cast<u32>(format_b)], " and format_c ",
                          kEnumNames<Format>[static_cast<u32>(format_c)], "; with ", info(format).name,
                          " all must have blocks of ", info(format).block_values, " values"));
  }
  return gemv::check_stream(stream_of(*this));
}

LaunchShape FusedGemv::launch_shape(const Args&) const {
  return gemv::stream_shape(stream_of(*this));
}

void FusedGemv::build(KernelBuilder& b) const {
  gemv::StreamPointers pointers{.weights = {b.param(&Args::weights)},
                                .x = b.param(&Args::x),
                                .y = {b.param(&Args::y)},
                                .gamma = b.param(&Args::gamma),
                                .epsilon = b.param(&Args::epsilon),
                                .residual = b.param(&Args::residual)};
  if (n_b) pointers.weights.push_back(b.param(&Args::weights_b));
  if (n_c) pointers.weights.push_back(b.param(&Args::weights_c));
  if (n_b && combine == Combine::kNone) pointers.y.push_back(b.param(&Args::y_b));
  if (n_c) pointers.y.push_back(b.param(&Args::y_c));
  gemv::build_stream(b, stream_of(*this), pointers);
}

Gemv planned(Gemv product, u32 sm_count) {
  if (product.schedule == Schedule::kStream) product.plan = gemv::default_plan(work_of(product), sm_count);
  return product;
}

BatchedGemv planned(BatchedGemv product, u32 sm_count) {
  if (product.schedule == Schedule::kStream) {
    product.plan = gemv::default_plan(work_of(product), sm_count);
  } else {
    gemv::Mma s = mma_of(product);
    gemv::default_mma_plan(s, sm_count);
    product.plan = s.plan;
    product.mma_plan = s.mma;
  }
  return product;
}

FusedGemv planned(FusedGemv product, u32 sm_count) {
  product.plan = gemv::default_plan(work_of(product), sm_count);
  return product;
}

}  // namespace ptxgen
