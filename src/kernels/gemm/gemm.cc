#include "ptxgen/gemm.h"

#include <algorithm>

#include "src/kernels/gemm/schedules.h"
#include "src/kernels/parts/requires.h"

namespace ptxgen {
namespace {

gemm::Shape shape_of(const Gemm& g) {
  switch (g.schedule) {
    case GemmSchedule::kTiled:
    case GemmSchedule::kDp4a: return gemm::row_shape(g);
    case GemmSchedule::kWmma:
    case GemmSchedule::kWmmaMultiWarp: return gemm::wmma_shape(g);
    case GemmSchedule::kMma: return gemm::mma_shape(g);
    case GemmSchedule::kWgmma: break;
  }
  return gemm::wgmma_shape(g);
}

}  // namespace

std::string Gemm::name() const {
  return str_cat(info(format).name, "_gemm");
}

absl::Status Gemm::validate() const {
  const auto refuse = [](std::string message) { return absl::InvalidArgumentError(std::move(message)); };
  const std::string_view chosen = kEnumNames<GemmSchedule>[static_cast<std::size_t>(schedule)];
  const bool is_mma = schedule == GemmSchedule::kMma, is_wgmma = schedule == GemmSchedule::kWgmma;
  if (a_type == Activations::kQ8_1 && schedule != GemmSchedule::kDp4a)
    return refuse(str_cat("a_type is q8_1 with schedule ", chosen, "; int8 activations belong to dp4a"));
  if (a_type == Activations::kF16 && !is_mma && !is_wgmma)
    return refuse(
        str_cat("a_type is f16 with schedule ", chosen, "; staged activations belong to mma and wgmma"));
  if (a_type != Activations::kF16 && is_wgmma)
    return refuse(
        "a_type is f32 with schedule wgmma, which takes staged activations: a_type f16 (stage_f16)");
  if (tile_n && !is_mma && !is_wgmma)
    return refuse(
        str_cat("tile_n is given with schedule ", chosen, "; it belongs to mma and wgmma: leave it out"));
  if (tile_n && is_wgmma && (tile_n != gemm::kFewRows || tile_m == 0 || tile_m > gemm::kMostOfFew))
    return refuse(str_cat("tile_n is ", tile_n, " with schedule wgmma and tile_m ", tile_m, "; there it is ",
                          gemm::kFewRows, " with tile_m 8 or 16, and 128 where it is left out"));
  if (split_k && !is_wgmma && !is_mma)
    return refuse(
        str_cat("split_k is ", split_k, " with schedule ", chosen, "; it belongs to mma and wgmma"));
  if (split_k > 2 && is_mma)
    return refuse(str_cat("split_k is ", split_k, " with schedule mma; there it is 2"));
  if (split_k && tile_m > 128)
    return refuse(
        str_cat("split_k is ", split_k, " with tile_m ", tile_m, "; it goes with tiles up to 128 rows"));
  if (ctas && !takes_ctas()) {
    return refuse(
        str_cat("ctas is ", ctas, " with schedule ", chosen, ", k ", k, ", tile_m ", tile_m, ", tile_n ",
                tile_n, " and split_k ", split_k,
                "; it belongs to wgmma with a tile_m, no tile_n and no split_k, and to narrow tiles, "
                "whose k two teams share, where k is a multiple of 512 and shared memory has room for "
                "two chunks of each: leave ctas out"));
  }
  if (tile_n == 96) return refuse("tile_n is 96; it must be 32, 64 or 128");
  if (tile_m == 0) return absl::OkStatus();
  const GemmScheduleInfo takes = info(schedule);
  if (takes.most_tile_m == 0)
    return refuse(
        str_cat("tile_m is given with schedule ", chosen, "; it belongs to tiled, dp4a, mma and wgmma"));
  if (takes.takes_tile(tile_m)) return absl::OkStatus();
  const std::string which = takes.tile_step == 1   ? ""
                            : takes.tile_step == 0 ? ", a power of two"
                                                   : str_cat(", a multiple of ", takes.tile_step);
  return refuse(str_cat("tile_m is ", tile_m, " with schedule ", chosen, "; there it is ", takes.least_tile_m,
                        " to ", takes.most_tile_m, which));
}

bool Gemm::takes_ctas() const {
  return schedule == GemmSchedule::kWgmma && info(schedule).takes_tile(tile_m) &&
         gemm::wgmma_takes_turns(*this);
}

LaunchShape Gemm::launch_shape(const Args& args) const {
  const gemm::Shape tile = shape_of(*this);
  LaunchShape shape;
  const u64 tiles =
      ((u64{n} + tile.tile_n - 1) / tile.tile_n) * ((u64{args.m} + tile.tile_m - 1) / tile.tile_m);
  shape.grid = {ctas ? std::min<u64>(tiles, ctas) : tiles * tile.split_k};
  shape.block = {tile.threads};
  shape.cluster = {tile.split_k};
  shape.dynamic_shared_bytes = tile.dynamic_shared_bytes;
  return shape;
}

std::optional<TiledTensor> Gemm::tensor(const Args& args) const {
  if (schedule != GemmSchedule::kWgmma) return std::nullopt;
  return gemm::wgmma_tensor(*this, args.weights.address);
}

void Gemm::build(KernelBuilder& b) const {
  const std::string_view chosen = kEnumNames<GemmSchedule>[static_cast<std::size_t>(schedule)];
  if (!parts::requires_target(b, chosen, info(schedule).lowest)) return;
  switch (schedule) {
    case GemmSchedule::kTiled:
    case GemmSchedule::kDp4a: return gemm::build_rows(b, *this);
    case GemmSchedule::kWmma:
    case GemmSchedule::kWmmaMultiWarp: return gemm::build_wmma(b, *this);
    case GemmSchedule::kMma: return gemm::build_mma(b, *this);
    case GemmSchedule::kWgmma: return gemm::build_wgmma(b, *this);
  }
}

}  // namespace ptxgen
