#include "ptxgen/gemm_variant.h"

#include <algorithm>
#include <bit>

#include "src/runtime/field_text.h"

namespace ptxgen {

absl::StatusOr<GemmVariant> GemmVariant::parse(std::string_view text) {
  for (const GemmPath path : {GemmPath::kSgemm, GemmPath::kHgemm, GemmPath::kDequantHgemm, GemmPath::kFp8}) {
    if (text == detail::field_text(path)) return GemmVariant{.path = path};
  }
  absl::StatusOr<GemmVariant> variant = internal::parse_variant<GemmVariant>(
      text, "wgmma tile_m=64", [](const GemmVariant& v) { return check_fields(v); });
  if (variant.ok()) return variant;
  return absl::InvalidArgumentError(
      str_cat(variant.status().message(), "; or a path of cuBLASLt alone: sgemm, hgemm, dequant_hgemm, fp8"));
}

std::string GemmVariant::to_string() const {
  return path == GemmPath::kFused ? internal::text_of_variant(*this) : detail::field_text(path);
}

absl::Status GemmShape::validate() const {
  return check_fields(*this);
}

bool stages(const GemmShape& shape, const GemmVariant& variant) {
  const bool takes_staged =
      variant.schedule == GemmSchedule::kWgmma || variant.schedule == GemmSchedule::kMma;
  return shape.a_type == Activations::kF32 && variant.path == GemmPath::kFused && takes_staged;
}

Gemm kernel_of(const GemmShape& shape, const GemmVariant& variant) {
  return {.format = shape.format,
          .k = shape.k,
          .n = shape.n,
          .schedule = variant.schedule,
          .a_type = stages(shape, variant) ? Activations::kF16 : shape.a_type,
          .tile_m = variant.tile_m,
          .tile_n = variant.tile_n,
          .split_k = variant.split_k,
          .ctas = variant.ctas};
}

u32 narrowest_tile(GemmSchedule schedule, u32 m) {
  const GemmScheduleInfo takes = info(schedule);
  m = std::clamp(m, takes.least_tile_m, takes.most_tile_m);
  if (takes.tile_step) return (m + takes.tile_step - 1) / takes.tile_step * takes.tile_step;
  return std::min(std::bit_ceil(m), takes.most_tile_m);
}

}  // namespace ptxgen
