#include "ptxgen/device_policy.h"

#include <algorithm>
#include <bit>

#include "ptxgen/strings.h"

namespace ptxgen {
namespace {

// The most that a kernel takes of shared memory beside launch_shape(): schedule `stream` two mbarriers of 8
// bytes a stage, of which there are at most 32.
constexpr u64 kBarrierBytes = 512;

std::string_view view(absl::string_view text) {
  return {text.data(), text.size()};
}

// Of x, that one kernel takes of m rows.
u32 bucket_of(u32 m) {
  return std::min(std::bit_ceil(std::max(m, 1u)), kMostGemvRows);
}

// Rows of int8 activations have 36 bytes for 32 values; schedule `stream` takes one row at a multiple of 16.
bool rows_are_aligned(const GemvShape& shape) {
  return shape.x_type == Activations::kF32 || activation_bytes(shape.x_type, shape.k) % 16 == 0;
}

}  // namespace

DevicePolicy::DevicePolicy(const DeviceProperties& device, GemvOverrides overrides,
                           const TuneRecords& records)
    : device_(device), overrides_(std::move(overrides)), ignored_(records.ignored) {
  for (const TuneRecord& record : records.records) {
    if (absl::Status s = record.belongs_to(device); s.ok()) {
      records_.push_back(record);
    } else {
      ignored_.push_back(str_cat(text_of_fields(record.shape), ": ", view(s.message())));
    }
  }
}

absl::StatusOr<GemvChoice> DevicePolicy::choose(const GemvShape& shape, bool aligned,
                                                const std::optional<GemvVariant>& call) const {
  if (absl::Status s = shape.validate(); !s.ok()) return s;
  const std::pair<std::string_view, const std::optional<GemvVariant>*> asked[] = {
      {"the call", &call}, {"the executor", &overrides_.executor}, {"PTXGEN_GEMV", &overrides_.environment}};
  for (const auto& [by, variant] : asked) {
    if (!variant->has_value()) continue;
    const GemvVariant& wanted = **variant;  // clang 14 captures no structured bindings
    absl::StatusOr<GemvChoice> choice =
        with_most_rows(shape, aligned, [&](const GemvShape&) { return wanted; });
    if (choice.ok()) {
      choice->reason = str_cat(by, " asks for it", choice->reason);
      return choice;
    }
    return absl::InvalidArgumentError(str_cat(by, " asks for ", wanted.to_string(), ", which ",
                                              text_of_fields(shape),
                                              " cannot have: ", view(choice.status().message())));
  }
  absl::StatusOr<GemvChoice> measured = tuned(shape, aligned);
  if (measured.ok()) return measured;
  absl::StatusOr<GemvChoice> choice = shipped(shape, aligned);
  if (choice.ok() && !absl::IsNotFound(measured.status()))
    str_append(&choice->reason,
               "; a record of ptxgen tune does not fit: ", view(measured.status().message()));
  return choice;
}

// The reason of a choice that takes fewer rows than it could begins with ", "; otherwise it is empty.
absl::StatusOr<GemvChoice> DevicePolicy::with_most_rows(GemvShape shape, bool aligned,
                                                        const VariantOf& variant_of) const {
  const u32 m = shape.m;
  absl::Status why_not_more;
  for (u32 rows = bucket_of(m); rows > 0; rows /= 2) {
    shape.m = rows;
    const GemvVariant variant = variant_of(shape);
    if (rows > 1 && variant.schedule != Schedule::kStream) continue;  // which take one at a time
    absl::Status status = fits(shape, aligned, variant);
    if (status.ok() && rows == 1 && m > 1 && variant.schedule == Schedule::kStream &&
        !rows_are_aligned(shape)) {
      status = absl::InvalidArgumentError(
          str_cat("k is ", shape.k, "; int8 rows one by one must be multiples of 16 bytes: of 128 values"));
    }
    if (status.ok()) {
      GemvChoice choice = {variant, rows, ""};
      if (!why_not_more.ok()) {
        choice.reason = str_cat(", ", rows == 1 ? "one row" : "few rows",
                                " of x at a time: ", view(why_not_more.message()));
      }
      return choice;
    }
    why_not_more = status;
  }
  return why_not_more;
}

absl::StatusOr<GemvChoice> DevicePolicy::tuned(const GemvShape& shape, bool aligned) const {
  GemvShape wanted = shape;
  wanted.m = bucket_of(shape.m);
  for (const TuneRecord& record : records_) {
    if (!(record.shape == wanted)) continue;
    if (absl::Status s = fits(wanted, aligned, record.variant); !s.ok())
      return absl::FailedPreconditionError(s.message());
    // Schedules of one row at a time can be the fastest for several.
    const u32 rows = record.variant.schedule == Schedule::kStream ? wanted.m : 1;
    std::string reason = str_cat("ptxgen tune measured it on ", record.date, ": ");
    str_append(&reason, record.microseconds, " us");
    return GemvChoice{record.variant, rows, std::move(reason)};
  }
  return absl::NotFoundError("there is no record");
}

absl::StatusOr<GemvChoice> DevicePolicy::shipped(const GemvShape& shape, bool aligned) const {
  absl::StatusOr<GemvChoice> stream = with_most_rows(shape, aligned, [&](const GemvShape& rows) {
    const KernelType kernel = kernel_of(rows, {});
    const BatchedGemv* batched = kernel.get_if<BatchedGemv>();
    return GemvVariant{.plan = batched ? plan_of(*batched) : plan_of(*kernel.get_if<Gemv>())};
  });
  if (stream.ok()) {
    stream->reason = str_cat(shipped_reason(), stream->reason);
    return stream;
  }
  // Of the others, int8 dot products with the widest loads; then what keeps nothing in shared memory.
  absl::Status status;
  for (const Schedule schedule : {Schedule::kHalfWarpDp4a, Schedule::kMultiWarp}) {
    absl::StatusOr<GemvChoice> choice =
        with_most_rows(shape, aligned, [&](const GemvShape&) { return GemvVariant{.schedule = schedule}; });
    if (choice.ok()) {
      choice->reason = str_cat("the first that fits of half_warp_dp4a and multi_warp; stream does not: ",
                               view(stream.status().message()), choice->reason);
      return choice;
    }
    status = choice.status();
  }
  return status;
}

std::string DevicePolicy::shipped_reason() const {
  if (device_.kind == DeviceKind::kEmulator)
    return str_cat("shipped default, measured on ", kMeasuredSmCount, " SMs");
  if (device_.sm_count == kMeasuredSmCount && device_.target.sm == kHopper.sm)
    return "shipped default, measured on such a device";
  return str_cat("shipped default, measured on ", kMeasuredSmCount, " SMs of sm_90 and scaled to the ",
                 device_.sm_count, " of this device; ptxgen tune may find a better one");
}

absl::Status DevicePolicy::has_stream(bool aligned) const {
  if (!device_.target.supports(kHopper)) {
    return absl::FailedPreconditionError(
        str_cat("schedule stream needs sm_90, and the device is ", device_.target.to_string()));
  }
  if (!aligned) {
    return absl::FailedPreconditionError(
        "schedule stream needs weights at a multiple of 16 bytes, and these are not");
  }
  return absl::OkStatus();
}

absl::Status DevicePolicy::fits(const GemvShape& shape, bool aligned, const GemvVariant& variant) const {
  const bool stream = variant.schedule == Schedule::kStream;
  if (stream) {
    if (absl::Status s = has_stream(aligned); !s.ok()) return s;
  }
  GemvShape rows = shape;
  if (!stream) rows.m = 1;
  const KernelType kernel = kernel_of(rows, variant);
  if (absl::Status s = kernel->validate(); !s.ok()) return s;
  return has_shared(kernel->launch_shape(kernel->default_arguments()));
}

absl::Status DevicePolicy::has_shared(const LaunchShape& shape) const {
  const u64 needed = shape.dynamic_shared_bytes + kBarrierBytes;
  if (needed <= device_.shared_bytes_per_block_optin) return absl::OkStatus();
  return absl::FailedPreconditionError(str_cat("it takes ", needed, " bytes of shared memory, and a CTA of ",
                                               device_.name, " has ", device_.shared_bytes_per_block_optin));
}

// No plan where the one that the kernel has by itself is meant for this device.
template <class D>
StreamPlan DevicePolicy::plan_of(const D& product) const {
  D planned = product;
  planned.plan = {};
  const u32 sms = device_.kind == DeviceKind::kCuda && device_.sm_count ? device_.sm_count : kMeasuredSmCount;
  if (sms != kMeasuredSmCount) planned.plan = default_plan(product, sms);
  if (!planned.validate().ok()) return planned.plan;
  const auto too_large = [&] { return !has_shared(planned.launch_shape({})).ok(); };
  if (!too_large()) return planned.plan;
  planned.plan = default_plan(product, sms);
  while (planned.plan.stages > 1 && too_large()) --planned.plan.stages;
  planned.plan.in_flight = std::min(planned.plan.in_flight, planned.plan.stages);
  return planned.plan;
}

absl::StatusOr<FusedGemv> DevicePolicy::plan(const FusedGemv& product, bool aligned) const {
  if (absl::Status s = has_stream(aligned); !s.ok()) return s;
  FusedGemv planned = product;
  if (planned.plan.ctas == 0) planned.plan = plan_of(product);
  const DescriptorOf<FusedGemv> descriptor(planned);
  if (absl::Status s = descriptor.validate(); !s.ok()) return s;
  if (absl::Status s = has_shared(planned.launch_shape({})); !s.ok()) return s;
  return planned;
}

}  // namespace ptxgen
