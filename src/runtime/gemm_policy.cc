// The policy of matrix products.
#include <algorithm>
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

bool is_one_of(Activations type, std::initializer_list<Activations> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// What 256 values of all rows of weights of a tile of wgmma take beside their multiplication, in the units of
// wgmma_time().
u32 wgmma_decode_time(Format format) {
  switch (format) {
    case Format::kQ2_K:
    case Format::kQ4_K: return 48;
    case Format::kQ4_0:
    case Format::kQ4_1:
    case Format::kQ5_K: return 68;
    case Format::kQ3_K: return 80;
    default: return 115;  // a fifth bit or two high ones of each from elsewhere, or twice the bytes
  }
}

// Rows of weights of the tiles of schedule wgmma.
constexpr u32 kRows = 128, kFewRows = 64;

// Whether tiles of so few rows have been measured, two CTAs to each.
bool has_measured_few_rows(const GemmShape& shape) {
  return shape.format == Format::kQ4_K && shape.k >= 4096;
}

// How many CTAs take `tiles` tiles in turn: one an SM, of which there are fewer than tiles. But the CTAs that
// stage a before, if its rows are few, find no room beside them: they have SMs of their own, where that makes
// nobody's turn longer.
u32 ctas_in_turn(u64 tiles, const GemmShape& shape, bool staged, u32 sms) {
  constexpr u32 kFew = 64;
  if (!staged || shape.m > kFew) return sms;
  const u64 turns = (tiles + sms - 1) / sms;
  const u32 fewest = static_cast<u32>((tiles + turns - 1) / turns);
  StageF16::Args args;
  args.m = shape.m;
  const StageF16 stage = {.k = shape.k, .order = staged_order(shape.format)};
  const u32 staging = static_cast<u32>(stage.launch_shape(args).grid.x);
  return std::max(fewest, sms - std::min(sms, staging));
}

// What `parts` CTAs' work takes by schedule wgmma, tiles with all of k or a split_k-th of it, one an SM at a
// time: in 7.3 ns, in which an H200 multiplies a row of a with 256 values of all rows of weights of a tile.
u64 wgmma_time(const Gemm& kernel, u64 parts, u32 sms) {
  constexpr u32 kBegin = 320;   // for a CTA
  constexpr u32 kMemory = 24;   // for 256 values more where all SMs work, of which half do not mind
  constexpr u32 kHidden = 128;  // rows beyond which 50 cost 71
  // Of a cluster: for its barriers, where sums are not sent; for its sums of a row of a; where clusters
  // hardly find room.
  constexpr u32 kMeet = 50, kSent = 32, kAdd = 3, kLate = 200;
  if (kernel.ctas) sms = std::min(sms, kernel.ctas);
  const u64 at_once = std::min<u64>(parts, sms), of_sm = (parts + sms - 1) / sms;
  const u32 tile_m = kernel.tile_m, split_k = std::max(kernel.split_k, 1u);
  const u64 chunks = ((u64{kernel.k} + 255) / 256 + split_k - 1) / split_k;
  const u32 decode = wgmma_decode_time(kernel.format);
  // Of 64 rows of weights, whose four teams wait for memory more than for each other.
  if (kernel.tile_n) return of_sm * (80 + 16 * tile_m + chunks * (11 + decode / 2 + tile_m * 11 / 8));
  const u64 memory = at_once * 2 > sms ? kMemory * (at_once * 2 - sms) / sms : 0;
  const u64 wide = tile_m > kHidden ? (tile_m - kHidden) * 21 / 50 : 0;
  const u64 all_chunks = chunks * (tile_m + wide + decode + memory);
  if (kernel.ctas) return kBegin + of_sm * all_chunks;
  if (split_k == 1) return of_sm * (kBegin + all_chunks);
  const u32 late = parts * 6 > u64{sms} * 5 ? kLate : 0;
  return of_sm * (kBegin + all_chunks + (tile_m > kSent ? kMeet : 0) + kAdd * tile_m + late);
}

// The tiles of schedule mma that take the least time, and whether two teams share k, of those that have room.
// Where the variant has tile_m or tile_n, the other to go with it.
template <class HasRoom>
GemmVariant with_mma_tiles(const GemmShape& shape, const GemmVariant& variant, u32 sms, HasRoom&& has_room) {
  // An SM takes `alone` for one and kMore for each further one at least, and `busy` for each where it has
  // many: in 0.1 us, of q4_K and k = 4096 on an H200. Of narrower tiles, for fewer rows of a, all of these
  // shrink with them.
  struct Tile {
    u32 tile_m, tile_n, split_k, alone, busy;
  };
  constexpr Tile kTiles[] = {{128, 128, 0, 880, 430}, {64, 128, 0, 730, 239},  {128, 64, 0, 490, 265},
                             {64, 64, 0, 460, 140},   {128, 128, 2, 465, 465}, {64, 128, 2, 287, 278},
                             {128, 64, 2, 304, 288},  {64, 64, 2, 250, 136}};
  constexpr u32 kMore = 40, kLeastTileN = 32;
  const bool any = variant.tile_m == 0 && variant.tile_n == 0 && variant.split_k == 0;
  const u32 narrowest = narrowest_tile(variant.schedule, shape.m);
  GemmVariant best = variant;
  if (variant.tile_m == 0) best.tile_m = std::min(narrowest, 64u);
  if (variant.tile_n == 0) best.tile_n = kLeastTileN;
  u64 least = ~u64{0};
  for (const Tile& tile : kTiles) {
    GemmVariant tried = variant;
    if (variant.tile_m == 0) tried.tile_m = std::min(tile.tile_m, narrowest);
    if (variant.tile_n == 0) tried.tile_n = tile.tile_n;
    if (any) tried.split_k = tile.split_k;
    if ((tried.tile_m > 64) != (tile.tile_m > 64) || (tried.tile_n > 64) != (tile.tile_n > 64)) continue;
    if (tried.split_k != tile.split_k || !has_room(kernel_of(shape, tried))) continue;
    const u64 tiles = ((u64{shape.n} - 1) / tried.tile_n + 1) * ((shape.m - 1) / tried.tile_m + 1);
    const u64 of_sm = (tiles - 1) / sms + 1;
    const u64 time = std::max(tile.alone + kMore * (of_sm - 1), tile.busy * of_sm);
    if (time < least) least = time, best = tried;
  }
  return best;
}

}  // namespace

// The tiles of schedule wgmma, and CTAs to each, that take the least time: that of what an SM has, one after
// the other, in turn where it has several. Wide tiles decode weights fewer times; narrow ones, of 64 rows of
// weights too, and CTAs that share k, give more SMs work. CTAs of a cluster must run at once, and clusters
// lie within a GPC each, so not all SMs are in one: an H200 of 132 SMs has room for 39 of 3 CTAs, 30 of 4, 22
// of 5 and 15 of 8, and one more doubles the time.
GemmVariant DevicePolicy::with_wgmma_tiles(const GemmShape& shape, const GemmVariant& variant) const {
  constexpr u32 kMostCtas = 8, kLeastValues = 1024;  // of a cluster; of k for each
  const bool any_split = variant.split_k == 0;
  const u32 fewest = any_split ? 1 : variant.split_k;
  const u32 most = any_split ? std::clamp(shape.k / kLeastValues, 1u, kMostCtas) : fewest;
  const auto run_at_once = [&](u64 ctas, u32 split) {
    return split == 1 || ctas <= (split > 2 ? u64{sms()} * 5 / 6 : sms());
  };
  const GemmScheduleInfo takes = info(variant.schedule);
  const u32 widest = narrowest_tile(variant.schedule, shape.m);
  GemmVariant best = variant;
  u64 least = ~u64{0};
  const auto try_tile = [&](u32 tile_m, u32 tile_n, u32 split) {
    GemmVariant tried = variant;
    tried.tile_m = tile_m, tried.split_k = split > 1 ? split : 0;
    const u64 tiles = (u64{shape.n} - 1) / tile_n + 1, parts = tiles * ((shape.m - 1) / tile_m + 1) * split;
    if (tile_n == kFewRows) tried.tile_n = kFewRows;
    if (any_split && !run_at_once(parts, split)) return;
    if (parts > sms() && !tried.ctas && kernel_of(shape, tried).takes_ctas())
      tried.ctas = ctas_in_turn(parts, shape, stages(shape, tried), sms());
    const Gemm kernel = kernel_of(shape, tried);
    const u64 time = wgmma_time(kernel, parts, sms());
    if (time >= least || !DescriptorOf<Gemm>(kernel).validate().ok()) return;
    least = time, best = tried;
  };
  for (u32 tile_m = takes.least_tile_m; tile_m <= widest; tile_m += takes.tile_step) {
    for (u32 split = fewest; split <= most; ++split) {
      const bool few_rows = has_measured_few_rows(shape) && shape.m <= tile_m && split == 2;
      if (variant.tile_n != kFewRows) try_tile(tile_m, kRows, split);
      if (variant.tile_n ? variant.tile_n == kFewRows : few_rows) try_tile(tile_m, kFewRows, split);
    }
  }
  return best;
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
  if (variant.schedule == GemmSchedule::kMma && (variant.tile_m == 0 || variant.tile_n == 0)) {
    variant = with_mma_tiles(shape, variant, sms(),
                             [&](const Gemm& kernel) { return has_shared(kernel.launch_shape({})).ok(); });
  }
  if (variant.schedule == GemmSchedule::kWgmma && variant.tile_m == 0)
    variant = with_wgmma_tiles(shape, variant);
  const Gemm kernel = kernel_of(shape, variant);
  if (absl::Status s = DescriptorOf<Gemm>(kernel).validate(); !s.ok()) return s;
  if (absl::Status s = has_shared(kernel.launch_shape({})); !s.ok()) return s;
  return variant;
}

u32 DevicePolicy::most_gemv_rows(const GemmShape& shape, bool aligned,
                                 const std::optional<GemmVariant>& call) const {
  constexpr u32 kFewestWeights = 4096, kMostStaged = 8192;  // rows; values that leave room to read ahead
  const bool reads = shape.a_type == Activations::kF32 || shape.a_type == Activations::kQ8_1;
  if (!reads || asks_for_gemm(call)) return 0;
  const bool has_wgmma = aligned && device_.target.supports(info(GemmSchedule::kWgmma).lowest);
  if (shape.a_type != Activations::kF32 || !has_wgmma || shape.n < kFewestWeights) return kMostGemvRows;
  // Where two CTAs to each tile of few rows of weights leave no SM with two, they are as fast as five rows.
  const bool few_tiles = has_measured_few_rows(shape) && u64{shape.n} * 2 <= u64{sms()} * kFewRows;
  if (shape.k > kMostStaged || few_tiles) return 4;
  // And where CTAs take tiles in turn, faster than eight.
  const bool in_turn = shape.format == Format::kQ4_K && shape.n > sms() * kRows &&
                       kernel_of(shape, {.schedule = GemmSchedule::kWgmma, .tile_m = 8}).takes_ctas();
  return in_turn ? 4 : 8;
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
