#include "ptxgen/device_policy.h"

#include <algorithm>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/asked.h"
#include "src/runtime/gemv_rows.h"

namespace ptxgen {
namespace {

// The most that a kernel takes of shared memory beside launch_shape(): schedule `stream` two mbarriers of 8
// bytes a stage, of which there are at most 32.
constexpr u64 kBarrierBytes = 512;

// Rows of int8 activations have 36 bytes for 32 values; kernels of schedule `stream` and of the tensor cores
// take theirs, so many at once, at multiples of 16.
bool rows_are_aligned(const GemvShape& rows) {
  return rows.m * activation_bytes(rows.x_type, rows.k) % 16 == 0;
}

// The schedules to take by default, best first. Measured on an H200: from five rows on the tensor cores win.
std::vector<Schedule> shipped_order(u32 m) {
  std::vector<Schedule> order;
  if (m > kMostStreamRows) order.push_back(Schedule::kMma);
  order.push_back(Schedule::kStream);
  if (m > 1) order.push_back(Schedule::kMmaDirect);
  // Int8 dot products with the widest loads; then what keeps nothing in shared memory.
  order.push_back(Schedule::kHalfWarpDp4a);
  order.push_back(Schedule::kMultiWarp);
  return order;
}

// What weights and device must have.
struct Needs {
  Target target = kBaseTarget;
  bool aligned = false;  // to 16 bytes
};
Needs needs_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::kStream:
    case Schedule::kMma: return {kHopper, true};
    case Schedule::kMmaDirect: return {{80, false}, true};
    default: return {};
  }
}

}  // namespace

DevicePolicy::DevicePolicy(const DeviceProperties& device, GemvOverrides overrides,
                           const TuneRecords& records, GemmOverrides gemm_overrides)
    : device_(device),
      overrides_(std::move(overrides)),
      gemm_overrides_(std::move(gemm_overrides)),
      ignored_(records.ignored) {
  const auto sort = [&](const auto& given, auto& counting) {
    for (const auto& record : given) {
      if (absl::Status s = record.belongs_to(device); s.ok()) {
        counting.push_back(record);
      } else {
        ignored_.push_back(str_cat(text_of_fields(record.shape), ": ", s.message()));
      }
    }
  };
  sort(records.records, records_);
  sort(records.gemms, gemm_records_);
}

absl::StatusOr<GemvChoice> DevicePolicy::choose(const GemvShape& shape, bool aligned,
                                                const std::optional<GemvVariant>& call) const {
  if (absl::Status s = shape.validate(); !s.ok()) return s;
  if (const auto asked = internal::asked_for(call, overrides_, env::kGemv.name)) {
    absl::StatusOr<GemvChoice> choice =
        with_most_rows(shape, aligned, [&](const GemvShape&) { return *asked->variant; });
    if (!choice.ok()) return internal::refused(*asked, shape, choice.status());
    choice->reason = str_cat(asked->by, " asks for it", choice->reason);
    return choice;
  }
  absl::StatusOr<GemvChoice> measured = tuned(shape, aligned);
  if (measured.ok()) return measured;
  absl::StatusOr<GemvChoice> choice = shipped(shape, aligned);
  if (choice.ok() && !absl::IsNotFound(measured.status()))
    str_append(&choice->reason, "; a record of ptxgen tune does not fit: ", measured.status().message());
  return choice;
}

// The reason of a choice that takes fewer rows than it could begins with ", "; otherwise it is empty.
absl::StatusOr<GemvChoice> DevicePolicy::with_most_rows(GemvShape shape, bool aligned,
                                                        const VariantOf& variant_of) const {
  const u32 m = shape.m;
  absl::Status why_not_more;
  for (u32 rows = internal::whole_gemv_rows(m); rows > 0; rows /= 2) {
    shape.m = rows;
    GemvVariant variant = variant_of(shape);
    if (variant.schedule == Schedule::kStream && rows > internal::bucket_gemv_rows(m)) {
      shape.m = internal::bucket_gemv_rows(m);
      variant = variant_of(shape);
    }
    if (rows > 1 && !takes_rows(variant.schedule)) continue;
    absl::Status status = fits(shape, aligned, variant);
    if (status.ok() && rows < m && takes_rows(variant.schedule) && !rows_are_aligned(shape)) {
      status = absl::InvalidArgumentError(
          str_cat("k is ", shape.k, "; ", rows,
                  " int8 rows at a time must be a multiple of 16 bytes: ", "k a multiple of ", 128 / rows));
    }
    if (status.ok()) {
      GemvChoice choice = {variant, shape.m, ""};
      if (!why_not_more.ok()) {
        choice.reason =
            str_cat(", ", rows == 1 ? "one row" : "few rows", " of x at a time: ", why_not_more.message());
      }
      return choice;
    }
    why_not_more = status;
  }
  return why_not_more;
}

absl::StatusOr<GemvChoice> DevicePolicy::tuned(const GemvShape& shape, bool aligned) const {
  GemvShape wanted = shape;
  const auto record_of = [&](u32 m) {
    wanted.m = m;
    return std::find_if(records_.begin(), records_.end(),
                        [&](const TuneRecord& record) { return record.shape == wanted; });
  };
  auto record = record_of(internal::bucket_gemv_rows(shape.m));
  if (record == records_.end()) record = record_of(internal::whole_gemv_rows(shape.m));
  if (record == records_.end()) return absl::NotFoundError("there is no record");
  if (absl::Status s = fits(wanted, aligned, record->variant); !s.ok())
    return absl::FailedPreconditionError(s.message());
  // Schedules of one row at a time can be the fastest for several.
  const u32 rows = takes_rows(record->variant.schedule) ? wanted.m : 1;
  return GemvChoice{record->variant, rows, internal::measured_reason(*record)};
}

absl::StatusOr<GemvChoice> DevicePolicy::shipped(const GemvShape& shape, bool aligned) const {
  const std::vector<Schedule> order = shipped_order(shape.m);
  std::string refused;  // the schedules before, and why
  absl::Status status;
  for (const Schedule schedule : order) {
    absl::StatusOr<GemvChoice> choice =
        with_most_rows(shape, aligned, [&](const GemvShape& rows) { return variant_of(rows, schedule); });
    if (choice.ok()) {
      const std::string reason = takes_rows(schedule) ? shipped_reason() : "shipped default";
      choice->reason = str_cat(reason, refused, choice->reason);
      return choice;
    }
    status = choice.status();
    str_append(&refused, "; ", detail::field_text(schedule), " does not fit: ", status.message());
  }
  return status;
}

GemvVariant DevicePolicy::variant_of(const GemvShape& rows, Schedule schedule) const {
  const GemvVariant variant = {.schedule = schedule};
  if (!takes_rows(schedule)) return variant;
  const KernelType kernel = kernel_of(rows, variant);
  if (const Gemv* gemv = kernel.get_if<Gemv>()) return {.schedule = schedule, .plan = with_plan(*gemv).plan};
  const BatchedGemv batched = with_plan(*kernel.get_if<BatchedGemv>());
  return {.schedule = schedule, .plan = batched.plan, .mma_plan = batched.mma_plan};
}

std::string DevicePolicy::shipped_reason() const {
  if (device_.kind == DeviceKind::kEmulator)
    return str_cat("shipped default, measured on ", kMeasuredSmCount, " SMs");
  if (device_.sm_count == kMeasuredSmCount && device_.target.sm == kHopper.sm)
    return "shipped default, measured on such a device";
  return str_cat("shipped default, measured on ", kMeasuredSmCount, " SMs of sm_90 and scaled to the ",
                 device_.sm_count, " of this device; ptxgen tune may find a better one");
}

absl::Status DevicePolicy::has(Schedule schedule, bool aligned) const {
  const Needs needs = needs_of(schedule);
  const std::string name = detail::field_text(schedule);
  if (!device_.target.supports(needs.target)) {
    return absl::FailedPreconditionError(str_cat("schedule ", name, " needs ", needs.target.to_string(),
                                                 ", and the device is ", device_.target.to_string()));
  }
  if (needs.aligned && !aligned) {
    return absl::FailedPreconditionError(
        str_cat("schedule ", name, " needs weights at a multiple of 16 bytes, and these are not"));
  }
  return absl::OkStatus();
}

absl::Status DevicePolicy::fits(const GemvShape& shape, bool aligned, const GemvVariant& variant) const {
  if (absl::Status s = variant.validate(); !s.ok()) return s;
  if (absl::Status s = has(variant.schedule, aligned); !s.ok()) return s;
  GemvShape rows = shape;
  if (!takes_rows(variant.schedule)) rows.m = 1;
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

// Of the device that plans are made for.
u32 DevicePolicy::sms() const {
  return device_.kind == DeviceKind::kCuda && device_.sm_count ? device_.sm_count : kMeasuredSmCount;
}

// No plan where the one that the kernel has by itself is meant for this device.
template <class D>
D DevicePolicy::with_plan(D product) const {
  const D whole = planned(product, sms());
  if (sms() != kMeasuredSmCount) product = whole;
  if (!product.validate().ok()) return product;
  const auto too_large = [&] { return !has_shared(product.launch_shape({})).ok(); };
  if (!too_large()) return product;
  product = whole;
  while (product.plan.stages > 1 && too_large()) --product.plan.stages;
  product.plan.in_flight = std::min(product.plan.in_flight, product.plan.stages);
  return product;
}

absl::StatusOr<FusedGemv> DevicePolicy::plan(const FusedGemv& product, bool aligned) const {
  if (absl::Status s = has(Schedule::kStream, aligned); !s.ok()) return s;
  const FusedGemv whole = product.plan.ctas == 0 ? with_plan(product) : product;
  const DescriptorOf<FusedGemv> descriptor(whole);
  if (absl::Status s = descriptor.validate(); !s.ok()) return s;
  if (absl::Status s = has_shared(whole.launch_shape({})); !s.ok()) return s;
  return whole;
}

}  // namespace ptxgen
