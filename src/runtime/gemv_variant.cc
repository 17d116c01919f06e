#include "ptxgen/gemv_variant.h"

#include "src/runtime/field_text.h"

namespace ptxgen {

absl::StatusOr<GemvVariant> GemvVariant::parse(std::string_view text) {
  std::string fields(text);
  // The schedule stands first, without its name.
  const std::size_t first = fields.find_first_not_of(" ,");
  if (first != fields.npos && fields.find('=', first) >= fields.find_first_of(" ,", first))
    fields.insert(first, "schedule=");
  GemvVariant variant;
  absl::Status status = internal::parse_fields(variant, fields);
  if (status.ok() && fields.find("schedule=") == fields.npos)
    status = absl::InvalidArgumentError("no schedule is given");
  if (status.ok()) status = check_fields(variant);
  if (status.ok()) return variant;
  return absl::InvalidArgumentError(
      str_cat("'", text, "': ", std::string_view(status.message().data(), status.message().size()),
              "; write a schedule and, where wanted, its constants: 'multi_warp num_warps=8'"));
}

std::string GemvVariant::to_string() const {
  return text_of_fields(*this).substr(std::string_view("schedule=").size());
}

absl::Status GemvShape::validate() const {
  return check_fields(*this);
}

KernelType kernel_of(const GemvShape& shape, const GemvVariant& variant) {
  if (shape.m > 1) {
    return BatchedGemv{.format = shape.format,
                       .k = shape.k,
                       .n = shape.n,
                       .max_m = shape.m,
                       .x_type = shape.x_type,
                       .plan = variant.plan};
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
