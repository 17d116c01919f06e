#include "ptxgen/gemv_variant.h"

#include "src/runtime/field_text.h"

namespace ptxgen {

absl::StatusOr<GemvVariant> GemvVariant::parse(std::string_view text) {
  return internal::parse_variant<GemvVariant>(text, "multi_warp num_warps=8",
                                              [](const GemvVariant& v) { return v.validate(); });
}

std::string GemvVariant::to_string() const {
  return internal::text_of_variant(*this);
}

absl::Status GemvVariant::validate() const {
  const bool on_tensor_cores = schedule == Schedule::kMma || schedule == Schedule::kMmaDirect;
  const auto not_of = [&](std::string_view constants, std::string_view owners) {
    return absl::InvalidArgumentError(str_cat(constants, " given with schedule ",
                                              detail::field_text(schedule), "; they belong to ", owners));
  };
  if (takes_rows(schedule) && (num_warps || outputs_per_block))
    return not_of("num_warps or outputs_per_block", "schedules of one row of x");
  if (!takes_rows(schedule) && !equal_fields(plan, StreamPlan{}))
    return not_of("a plan (ctas, stages ...)", "stream, mma and mma_direct");
  if (!on_tensor_cores && !equal_fields(mma_plan, MmaPlan{}))
    return not_of("columns, warps or chunk", "mma and mma_direct");
  return check_fields(*this);
}

absl::Status GemvShape::validate() const {
  return check_fields(*this);
}

KernelType kernel_of(const GemvShape& shape, const GemvVariant& variant) {
  if (shape.m > 1 || variant.schedule > Schedule::kStream) {
    return BatchedGemv{.format = shape.format,
                       .k = shape.k,
                       .n = shape.n,
                       .max_m = shape.m,
                       .schedule = variant.schedule,
                       .x_type = shape.x_type,
                       .plan = variant.plan,
                       .mma_plan = variant.mma_plan};
  }
  return Gemv{.format = shape.format,
              .k = shape.k,
              .n = shape.n,
              .schedule = variant.schedule,
              .x_type = shape.x_type,
              .num_warps = variant.num_warps,
              .outputs_per_block = variant.outputs_per_block,
              .plan = variant.plan};
}

}  // namespace ptxgen
