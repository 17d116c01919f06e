// The policy of matrix products.
#include <algorithm>

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
    case Activations::kF32: break;
  }
  return {GemmSchedule::kMma, GemmSchedule::kWmmaMultiWarp};
}

}  // namespace

// Tiles of schedule wgmma that give three quarters of the SMs work: the narrowest that holds all rows, since
// that decodes weights the fewest times; narrower where it makes too few tiles and a narrower one enough;
// else, of at most 64 rows, several CTAs to a tile.
GemmVariant DevicePolicy::with_wgmma_tiles(const GemmShape& shape, GemmVariant variant) const {
  constexpr u32 kRows = 128, kMostShared = 64, kMostCtas = 8;  // rows of weights in a tile; CTAs of a cluster
  const auto fills = [&](u32 tile_m, u32 split) {
    const u64 tiles = (u64{shape.n} + kRows - 1) / kRows * ((shape.m - 1) / tile_m + 1);
    return tiles * split * 4 >= u64{sms()} * 3;
  };
  variant.tile_m = narrowest_tile(variant.schedule, shape.m);
  while (variant.tile_m > kMostShared && !fills(variant.tile_m, 1)) variant.tile_m /= 2;
  if (variant.split_k != 0) return variant;
  const u32 most = variant.tile_m > kMostShared ? 1 : std::min(kMostCtas, shape.k / 256);
  u32 split = 1;
  while (2 * split <= most && !fills(variant.tile_m, split)) split *= 2;
  if (split > 1) variant.split_k = split;
  return variant;
}

// The variant with its tiles, those asked for or else the policy's, where the device and the weights have
// what it needs.
absl::StatusOr<GemmVariant> DevicePolicy::fitted(const GemmShape& shape, bool aligned,
                                                 GemmVariant variant) const {
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
  if (any_tile_n) variant.tile_n = 128;
  if (variant.schedule == GemmSchedule::kMma && variant.tile_m == 0)
    variant.tile_m = narrowest_tile(variant.schedule, shape.m);
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

absl::StatusOr<GemmChoice> DevicePolicy::choose(const GemmShape& shape, bool aligned,
                                                const std::optional<GemmVariant>& call) const {
  if (absl::Status s = shape.validate(); !s.ok()) return s;
  if (const auto asked = internal::asked_for(call, gemm_overrides_, env::kGemm.name)) {
    const absl::StatusOr<GemmVariant> whole = fitted(shape, aligned, *asked->variant);
    if (!whole.ok()) return internal::refused(*asked, shape, whole.status());
    return GemmChoice{*whole, str_cat(asked->by, " asks for it")};
  }
  return shipped(shape, aligned);
}

absl::StatusOr<GemmChoice> DevicePolicy::shipped(const GemmShape& shape, bool aligned) const {
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
