// How a CTA of schedule wgmma divides its work and its memory.
#pragma once

#include <algorithm>

#include "src/kernels/gemm/schedules.h"
#include "src/kernels/gemm/weight_chunks.h"

namespace ptxgen::gemm {

inline constexpr u32 kWarpgroup = 128, kCopiers = 96;
inline constexpr u32 kRows = 128;                                             // of weights, of a tile
inline constexpr u32 kWarpgroupRows = 64, kRowsOfWarp = 16, kRowsOfLane = 2;  // of them
inline constexpr u32 kMostChunks = 8, kMostSets = 8, kFewestStages = 3;       // chunks of kRows

// In shared memory lie sets of slabs of activations, stages of weights, and sums: those that others of a
// cluster send, or that teams keep.
struct Geometry {
  u32 columns;  // rows of a
  u32 rows;     // of weights
  u32 teams;
  u32 stages, slab_sets;  // of weights, of activations
  u32 chunks_in_stage;
  u32 slabs_in_set;  // that come and go together; 4 are a chunk's
  u32 stage, slab;   // bytes
  u32 shared_bytes;
  u32 split;
  u32 received;  // bytes for sums that others of the cluster send; 0: each keeps its own until all have met
  u32 kept;      // bytes for sums that teams keep behind the stages, which hold another tile then; 0: in them

  u32 stage_step() const { return teams / chunks_in_stage; }  // from a team's stage to its next
  u32 set() const { return slabs_in_set * slab; }
  u32 sets_in_chunk() const { return kChunkSlabs / slabs_in_set; }
  u32 slab_bytes() const { return slab_sets * set(); }
  u32 team_warpgroups() const { return rows / kWarpgroupRows; }
  u32 team_warps() const { return rows / kRowsOfWarp; }
  u32 consumers() const { return teams * team_warpgroups() * kWarpgroup; }
  u32 sums_pitch() const { return rows + 4; }  // from one row of a to the next: stores meet in no bank
  u32 threads() const { return consumers() + kWarpgroup; }
  // Of the cluster, each adds and stores what so many warps of a team have, at most.
  u32 own_warps() const { return (team_warps() + split - 1) / split; }
  u32 sums_of_warp() const { return columns * kRowsOfWarp; }
  // What a team keeps, f32 [columns][sums_pitch()].
  u32 sums_of_team() const { return columns * sums_pitch(); }
};

// Registers of a thread, where the launch gives all of them less than consumers need and copiers can spare
// some. It has a price: the kernel is kept by the driver alone (docs/cache.md), and consumers begin when
// copiers have given theirs.
struct Registers {
  u32 copier = 0, consumer = 0;
};
inline Registers registers_of(const Geometry& s) {
  if (s.columns > 128) return {40, 232};  // 128 * 40 + 256 * 232 = 384 * 168
  return {};
}

// The widest tile of several teams, for whose accumulators and weights 96 registers must do.
constexpr u32 most_columns_of_teams(Format format) {
  switch (format) {
    case Format::kQ3_K:
    case Format::kQ5_K:
    case Format::kQ6_K: return 32;  // whose bits come from two places
    case Format::kQ4_K: return 48;
    default: return 64;
  }
}

inline Geometry geometry_of(const Gemm& g) {
  Geometry s;
  s.columns = g.tile_m ? g.tile_m : 64;
  s.rows = g.tile_n ? g.tile_n : kRows;
  s.teams = s.columns > most_columns_of_teams(g.format) ? 1 : s.rows == kFewRows ? 4 : 2;
  s.slabs_in_set = s.columns > 128 ? 1 : s.columns > 32 ? 2 : 4;
  s.slab = s.columns / kSlabGroupRows * kGroupBytes;
  // As many slabs as measured best on an H200, and for one team fewer where stages have many bytes: two stand
  // still without. A set is always the same team's, like a stage: else one might take the phase before the
  // last for its own.
  const u32 wanted_bytes = (s.columns > 128 ? 160 : s.columns > 32 ? 128 : 96) * 1024;
  const u32 turn = s.teams > 1 ? s.teams * s.sets_in_chunk() : 1;
  s.slab_sets = std::min(kMostSets * (kRows / s.rows), wanted_bytes / s.set() / turn * turn);
  const auto stage_bytes = [&] { return s.rows * ChunkLayout(g, s.chunks_in_stage).pitch; };
  constexpr u32 kBarrierBytes = 512;  // of the rings, and more
  s.kept = g.ctas ? (s.teams - 1) * s.sums_of_team() * u32{sizeof(f32)} : 0;
  const u32 room = static_cast<u32>(limits(kHopper).shared_bytes_per_cta()) - kBarrierBytes -
                   s.columns * u32{sizeof(f32)} - s.kept;
  const auto stages = [&] { return (room - s.slab_bytes()) / stage_bytes(); };
  // A chunk for each team, if a few such stages have room.
  s.chunks_in_stage = s.teams;
  while (!ChunkLayout(g, s.chunks_in_stage).fits_box()) s.chunks_in_stage /= 2;
  while (s.chunks_in_stage > 1 && stages() < kFewestStages) s.chunks_in_stage /= 2;
  while (s.teams == 1 && stages() < kFewestStages && s.slab_sets > kFewestStages) --s.slab_sets;
  s.stage = stage_bytes();
  const u32 most_stages = kMostChunks * (kRows / s.rows) / s.chunks_in_stage;
  s.stages = std::min(most_stages, stages()) / s.stage_step() * s.stage_step();
  s.shared_bytes = s.slab_bytes() + s.stages * s.stage;
  s.split = std::max(g.split_k, 1u);
  s.received = s.split * s.own_warps() * s.sums_of_warp() * u32{sizeof(f32)};
  if (s.split == 1 || s.shared_bytes + s.received > room) s.received = 0;
  s.shared_bytes += s.received + s.kept;
  return s;
}

}  // namespace ptxgen::gemm
