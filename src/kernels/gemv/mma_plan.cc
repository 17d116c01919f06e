#include <algorithm>
#include <tuple>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemv/mma.h"
#include "src/kernels/gemv/mma_layout.h"

namespace ptxgen::gemv {
namespace {

constexpr u32 round_up(u32 value, u32 multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// From row to row in a stage: so that lanes that read `width` bytes each, four neighbours side by side, meet
// different banks. A load of 4 bytes serves eight rows at once, one of 8 bytes four.
constexpr u32 row_pitch(u32 bytes, u32 width) {
  const u32 step = 4 * width;
  const u32 steps = round_up(bytes, step) / step;
  return (steps | 1) * step;
}

}  // namespace

MmaGeometry mma_geometry(const Mma& s) {
  return formats::with_format(s.format, [&]<class F>(std::type_identity<F>) {
    using L = MmaLayout<F>;
    constexpr FormatInfo kInfo = info(F::kFormat);
    MmaGeometry g;
    g.threads = s.mma.warps * 32;
    g.groups = s.mma.columns / kMmaColumns;
    g.row_blocks = s.k / kInfo.block_values;
    g.row_bytes = g.row_blocks * kInfo.block_bytes;
    g.chunk_blocks = std::min(s.mma.chunk, g.row_blocks);
    g.chunk_bytes = g.chunk_blocks * kInfo.block_bytes;
    g.chunks = (g.row_blocks + g.chunk_blocks - 1) / g.chunk_blocks;
    g.whole_vectors = g.row_bytes % 16 == 0;
    // Ragged rows begin and end within 16 bytes.
    g.pitch = row_pitch(g.chunk_bytes + (g.whole_vectors ? 0 : 32), L::kWidth);
    g.stage_bytes = kMmaRows * g.pitch;
    g.least_rows = s.n / s.plan.ctas;
    g.most_rows = s.n % s.plan.ctas ? g.least_rows + 1 : g.least_rows;
    g.ring_bytes = s.direct ? 0 : s.plan.stages * g.stage_bytes;
    const u32 steps = g.row_blocks * L::kSteps * g.groups;
    g.word_bytes = steps * L::kStepBytes;
    g.entry_bytes = steps * L::kStepEntryBytes;
    g.partial_bytes = s.mma.warps * g.groups * kMmaRows * kMmaColumns * 4;
    g.shared_bytes = g.ring_bytes + g.word_bytes + g.entry_bytes + 2 * g.partial_bytes;
    return g;
  });
}

void default_mma_plan(Mma& s, u32 sm_count) {
  constexpr Target kLeastShared = {86, false};  // of the targets that mma_direct is for
  const u64 whole = limits(s.direct ? kLeastShared : kHopper).shared_bytes_per_cta();
  const u32 tiles = (s.n + kMmaRows - 1) / kMmaRows;
  const u32 span_blocks = info(s.format).block_values == 256 ? 1 : 4;
  s.plan = {};
  s.plan.ctas = std::min(tiles, s.direct ? 2 * sm_count : sm_count);
  s.plan.stages = 1;
  // Shared memory without the ring, and a stage.
  const auto choose = [&](u32 columns, u32 warps) {
    s.mma = {.columns = columns, .warps = warps, .chunk = warps * span_blocks};
    const MmaGeometry g = mma_geometry(s);
    return std::pair(u64{g.shared_bytes} - g.ring_bytes, u64{g.stage_bytes});
  };
  // A CTA of 16 warps fills an SM. 16 rows of x at once where their activations leave room for two stages,
  // else 8; where these leave none for two either, fewer warps and so shorter stages. Measured on an H200 at
  // 14336 x 4096, q4_K, m = 8: three stages, of which two are on their way at a time, 11.1 us; four 11.7; one
  // on its way 13.2.
  auto [rest, stage] = choose(s.max_m <= kMmaColumns ? 8 : 16, 16);
  if (rest + 2 * stage > whole) std::tie(rest, stage) = choose(8, s.direct ? 8 : 16);
  if (rest + 2 * stage > whole) std::tie(rest, stage) = choose(8, 8);
  s.plan.ctas_per_sm = 1;
  if (s.direct) return;
  const MmaGeometry g = mma_geometry(s);
  const u64 most = std::min(g.tiles(g.most_rows) * g.chunks, 3u);
  s.plan.stages = static_cast<u32>(std::clamp<u64>((whole - std::min(rest, whole)) / stage, 1, most));
  s.plan.in_flight = 2;
}

absl::Status check_mma(const Mma& s) {
  const auto refuse = [](std::string message) { return absl::InvalidArgumentError(std::move(message)); };
  const std::string_view name = s.direct ? "mma_direct" : "mma";
  if (s.plan.row_lanes || s.plan.groups || s.plan.rows)
    return refuse(str_cat("row_lanes, groups or rows is given with schedule ", name,
                          "; they belong to stream: leave them out"));
  for (const auto& [field, value] : {std::pair("columns", s.mma.columns), std::pair("warps", s.mma.warps),
                                     std::pair("chunk", s.mma.chunk), std::pair("stages", s.plan.stages)}) {
    if (value == 0)
      return refuse(str_cat(field, " is 0 while ctas is ", s.plan.ctas, "; give a whole plan, or none"));
  }
  if (kMmaSlices % s.mma.warps != 0)
    return refuse(str_cat("warps is ", s.mma.warps, "; it must be 4, 8 or 16"));
  if (s.plan.ctas > s.n)
    return refuse(str_cat("ctas is ", s.plan.ctas, " and n ", s.n, "; give a CTA at least one row"));
  const MmaGeometry g = mma_geometry(s);
  const u32 together = s.mma.warps * (info(s.format).block_values == 256 ? 1 : 4);
  if (g.chunks > 1 && (s.mma.chunk % together != 0 || g.chunk_bytes % 16 != 0)) {
    return refuse(str_cat("chunk is ", s.mma.chunk, "; with ", s.mma.warps,
                          " warps it must be a multiple of ", together,
                          " blocks, and of 16 bytes, or a whole row of ", g.row_blocks));
  }
  const u64 limit = limits(kHopper).shared_bytes_per_cta();
  const u64 bytes = u64{g.ring_bytes} + g.word_bytes + g.entry_bytes + 2 * g.partial_bytes;
  if (bytes > limit) {
    return refuse(str_cat("k is ", s.k, ", so ", s.mma.columns, " rows of activations and ", s.plan.stages,
                          " stages take ", bytes, " bytes of shared memory; there are ", limit,
                          ": choose fewer columns, stages or chunk, or another schedule"));
  }
  return absl::OkStatus();
}

LaunchShape mma_shape(const Mma& s, u32 m) {
  const MmaGeometry g = mma_geometry(s);
  LaunchShape shape;
  shape.grid = {s.plan.ctas, (m + s.mma.columns - 1) / s.mma.columns};
  shape.block = {u64{g.threads} + (s.direct ? 0 : 32)};
  shape.dynamic_shared_bytes = g.shared_bytes;
  return shape;
}

}  // namespace ptxgen::gemv
