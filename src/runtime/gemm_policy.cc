// The policy of matrix products.
#include <algorithm>
#include <bit>
#include <initializer_list>

#include "ptxgen/device_policy.h"
#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/asked.h"

namespace ptxgen {
namespace {

// The schedules to take by default, best first: what activations have been made for, else f16 on tensor
// cores, else what every target has.
std::vector<GemmSchedule> shipped_order(Activations a_type) {
  switch (a_type) {
    case Activations::kF16: return {GemmSchedule::kWgmma, GemmSchedule::kMma};
    case Activations::kQ8_1: return {GemmSchedule::kDp4a};
    case Activations::kF32:  // staged first, for the first two
      return {GemmSchedule::kWgmma, GemmSchedule::kMma, GemmSchedule::kWmmaMultiWarp};
    case Activations::kF16Rows:
    case Activations::kE4m3: break;
  }
  return {};
}

// From how many rows on a path of cuBLASLt is faster than the kernels, which round as it does, on a device
// with so many SMs. The first that holds counts. Path fp8, which rounds more, is for those who ask.
struct Crossover {
  std::string_view where;
  u32 sm, sm_count;
  Activations a_type;
  u32 least_m;  // m counts as the next power of two
  GemmPath path;

  bool holds_for(const DeviceProperties& device, const GemmShape& shape) const {
    return device.kind == DeviceKind::kCuda && device.target.sm == sm && device.sm_count == sm_count &&
           shape.a_type == a_type && shape.m >= least_m;
  }
};
constexpr Crossover kCrossovers[] = {
    // 14336 x 4096 and 4096 x 14336: equal at 2048 rows, 4 to 15 % faster at 4096.
    {"an H200", 90, 132, Activations::kF32, 4096, GemmPath::kDequantHgemm},
};

bool is_one_of(Activations type, std::initializer_list<Activations> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// Tiles of schedule mma where the variant has none: 128 rows of weights and as many of a as hold all of them,
// up to 128, since wide tiles load the fewest bytes; narrower ones where that makes less than one and a half
// tiles an SM.
GemmVariant with_mma_tiles(u32 sms, const GemmShape& shape, GemmVariant variant) {
  constexpr u32 kWide = 128, kNarrow = 64;
  const bool any_m = variant.tile_m == 0, any_n = variant.tile_n == 0;
  if (any_m) variant.tile_m = narrowest_tile(variant.schedule, shape.m);
  if (any_n) variant.tile_n = kWide;
  const auto fills = [&] {
    const u64 rows = (u64{shape.n} + variant.tile_n - 1) / variant.tile_n;
    return rows * ((shape.m - 1) / variant.tile_m + 1) * 2 >= u64{sms} * 3;
  };
  if (any_n && !fills()) variant.tile_n = kNarrow;
  if (any_m && !fills()) variant.tile_m = std::min(variant.tile_m, kNarrow);
  return variant;
}

}  // namespace

// Tiles of schedule wgmma that give three quarters of the SMs work: the narrowest that holds all rows, up to
// 128, since that decodes weights the fewest times (of 256 rows it was never faster on an H200, whose driver
// spills registers there); narrower where it makes too few tiles and a narrower one enough; else, of at most
// 64 rows, a cluster of several CTAs to a tile, each with 2048 values of k or more: with fewer they cost more
// than they save. The clusters must run at once. They lie within a GPC each, so not all SMs are in one: an
// H200 of 132 SMs has room for 39 of 3 CTAs, 30 of 4, 22 of 5 and 15 of 8, and one more doubles the time.
GemmVariant DevicePolicy::with_wgmma_tiles(const GemmShape& shape, GemmVariant variant) const {
  constexpr u32 kRows = 128, kWidest = 128;                            // rows of weights, of a
  constexpr u32 kMostShared = 64, kMostCtas = 8, kLeastValues = 2048;  // rows of a; CTAs of a cluster
  const auto tiles_of = [&](u32 tile_m) {
    return (u64{shape.n} + kRows - 1) / kRows * ((shape.m - 1) / tile_m + 1);
  };
  const auto fills = [&](u64 ctas) { return ctas * 4 >= u64{sms()} * 3; };
  variant.tile_m = std::bit_ceil(std::clamp(shape.m, info(variant.schedule).least_tile_m, kWidest));
  while (variant.tile_m > kMostShared && !fills(tiles_of(variant.tile_m))) variant.tile_m /= 2;
  if (variant.split_k != 0) return variant;
  const u32 most = variant.tile_m > kMostShared ? 1 : std::min(kMostCtas, shape.k / kLeastValues);
  const u64 tiles = tiles_of(variant.tile_m);
  const auto run_at_once = [&](u32 ctas) { return tiles * ctas <= (ctas > 2 ? u64{sms()} * 5 / 6 : sms()); };
  u32 split = 1;
  while (split < most && !fills(tiles * split) && run_at_once(split + 1)) ++split;
  if (split > 1) variant.split_k = split;
  return variant;
}

// The variant with its tiles, those asked for or else the policy's, where the device and the weights have
// what it needs.
absl::StatusOr<GemmVariant> DevicePolicy::fitted(const GemmShape& shape, bool aligned,
                                                 GemmVariant variant) const {
  if (variant.path != GemmPath::kFused) {
    if (absl::Status s = takes(variant.path, shape.a_type); !s.ok()) return s;
    return variant;
  }
  const std::string name = detail::field_text(variant.schedule);
  if (!device_.target.supports(info(variant.schedule).lowest)) {
    return absl::FailedPreconditionError(str_cat("schedule ", name, " needs ",
                                                 info(variant.schedule).lowest.to_string(),
                                                 ", and the device is ", device_.target.to_string()));
  }
  if (kernel_of(shape, variant).copies_pieces() && !aligned) {
    return absl::FailedPreconditionError(
        str_cat("schedule ", name, " needs weights at a multiple of 16 bytes, and these are not"));
  }
  const bool any_tile_n = variant.schedule == GemmSchedule::kMma && variant.tile_n == 0;
  if (variant.schedule == GemmSchedule::kMma) variant = with_mma_tiles(sms(), shape, variant);
  if (variant.schedule == GemmSchedule::kWgmma && variant.tile_m == 0)
    variant = with_wgmma_tiles(shape, variant);
  while (true) {
    const Gemm kernel = kernel_of(shape, variant);
    if (absl::Status s = DescriptorOf<Gemm>(kernel).validate(); !s.ok()) return s;
    const absl::Status shared = has_shared(kernel.launch_shape({}));
    if (shared.ok()) return variant;
    if (!any_tile_n || variant.tile_n == 32) return shared;
    variant.tile_n /= 2;
  }
}

u32 DevicePolicy::most_gemv_rows(const GemmShape& shape, bool aligned,
                                 const std::optional<GemmVariant>& call) const {
  constexpr u32 kFewestWeights = 4096, kMostStaged = 8192;  // rows; values that leave room to read ahead
  const bool reads = shape.a_type == Activations::kF32 || shape.a_type == Activations::kQ8_1;
  if (!reads || asks_for_gemm(call)) return 0;
  const bool has_wgmma = aligned && device_.target.supports(info(GemmSchedule::kWgmma).lowest);
  if (shape.a_type != Activations::kF32 || !has_wgmma || shape.n < kFewestWeights) return kMostGemvRows;
  return shape.k > kMostStaged ? 4 : 8;
}

// Whether a path of cuBLASLt has products of such activations on this device.
absl::Status DevicePolicy::takes(GemmPath path, Activations a_type) const {
  const std::string name = detail::field_text(path);
  const bool fp8 = path == GemmPath::kFp8, f32 = path == GemmPath::kSgemm;
  const Activations own = fp8 ? Activations::kE4m3 : Activations::kF16Rows;
  if (!is_one_of(a_type, {Activations::kF32, f32 ? Activations::kF32 : own})) {
    return absl::InvalidArgumentError(str_cat("path ", name, " takes activations of type f32",
                                              f32 ? "" : str_cat(" or ", detail::field_text(own)),
                                              ", and these are ", detail::field_text(a_type)));
  }
  constexpr Target kHasE4m3 = {89, false};
  if (!fp8 || device_.target.supports(kHasE4m3)) return absl::OkStatus();
  return absl::FailedPreconditionError(str_cat("path ", name, " needs ", kHasE4m3.to_string(),
                                               ", and the device is ", device_.target.to_string()));
}

std::vector<GemmVariant> DevicePolicy::gemm_variants(const GemmShape& shape, bool aligned) const {
  std::vector<GemmVariant> all;
  for (std::size_t i = 0; i < kEnumNames<GemmSchedule>.size(); ++i) {
    const absl::StatusOr<GemmVariant> whole =
        fitted(shape, aligned, {.schedule = static_cast<GemmSchedule>(i)});
    if (whole.ok()) all.push_back(*whole);
  }
  for (const GemmPath path : {GemmPath::kSgemm, GemmPath::kHgemm, GemmPath::kDequantHgemm, GemmPath::kFp8}) {
    if (takes(path, shape.a_type).ok()) all.push_back({.path = path});
  }
  return all;
}

absl::StatusOr<GemmChoice> DevicePolicy::choose(const GemmShape& shape, bool aligned,
                                                const std::optional<GemmVariant>& call) const {
  if (absl::Status s = shape.validate(); !s.ok()) return s;
  if (const auto asked = internal::asked_for(call, gemm_overrides_, env::kGemm.name)) {
    const absl::StatusOr<GemmVariant> whole = fitted(shape, aligned, *asked->variant);
    if (!whole.ok()) return internal::refused(*asked, shape, whole.status());
    return GemmChoice{*whole, str_cat(asked->by, " asks for it"), true};
  }
  absl::StatusOr<GemmChoice> measured = tuned(shape, aligned);
  if (measured.ok()) return measured;
  absl::StatusOr<GemmChoice> choice = shipped(shape, aligned);
  if (choice.ok() && !absl::IsNotFound(measured.status()))
    str_append(&choice->reason, "; a record of ptxgen tune does not fit: ", measured.status().message());
  return choice;
}

absl::StatusOr<GemmChoice> DevicePolicy::tuned(const GemmShape& shape, bool aligned) const {
  GemmShape wanted = shape;
  wanted.m = bucket_rows(shape.m);
  for (const GemmTuneRecord& record : gemm_records_) {
    if (!(record.shape == wanted)) continue;
    absl::StatusOr<GemmVariant> whole = fitted(wanted, aligned, record.variant);
    if (whole.ok() && whole->path == GemmPath::kFp8 && shape.a_type == Activations::kF32)
      whole = absl::FailedPreconditionError("path fp8 rounds more than others: it is for those who ask");
    if (!whole.ok()) return absl::FailedPreconditionError(whole.status().message());
    return GemmChoice{*whole, internal::measured_reason(record)};
  }
  return absl::NotFoundError("there is no record");
}

absl::StatusOr<GemmChoice> DevicePolicy::shipped(const GemmShape& shape, bool aligned) const {
  const std::string type = detail::field_text(shape.a_type);
  if (is_one_of(shape.a_type, {Activations::kF16Rows, Activations::kE4m3})) {
    const GemmPath path = shape.a_type == Activations::kE4m3 ? GemmPath::kFp8 : GemmPath::kHgemm;
    if (absl::Status s = takes(path, shape.a_type); !s.ok()) return s;
    return GemmChoice{{.path = path}, str_cat("it is what activations of type ", type, " are for")};
  }
  for (const Crossover& measured : kCrossovers) {
    if (!measured.holds_for(device_, shape)) continue;
    return GemmChoice{{.path = measured.path},
                      str_cat("from m = ", measured.least_m, " on it was faster on ", measured.where)};
  }
  return fused(shape, aligned);
}

absl::StatusOr<GemmChoice> DevicePolicy::fused(const GemmShape& shape, bool aligned) const {
  std::string refused;
  for (const GemmSchedule schedule : shipped_order(shape.a_type)) {
    const absl::StatusOr<GemmVariant> whole = fitted(shape, aligned, {.schedule = schedule});
    if (whole.ok()) {
      return GemmChoice{*whole, str_cat("shipped default for activations of type ",
                                        detail::field_text(shape.a_type), refused)};
    }
    str_append(&refused, "; ", detail::field_text(schedule), " does not fit: ", whole.status().message());
  }
  return absl::FailedPreconditionError(
      str_cat("no schedule takes activations of type ", detail::field_text(shape.a_type), refused));
}

}  // namespace ptxgen
