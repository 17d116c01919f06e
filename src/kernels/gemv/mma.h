// Schedules `mma` and `mma_direct`: few rows of x on the tensor cores. mma.cc has the algorithm.
#pragma once

#include <optional>

#include "ptxgen/gemv.h"

namespace ptxgen::gemv {

struct Mma {
  Format format;
  u32 n, k, max_m;
  Activations x_type;
  bool direct;      // weights from global memory, not through a ring
  StreamPlan plan;  // complete, of what concerns this schedule
  MmaPlan mma;      // complete
};

struct MmaPointers {
  GlobalPtr<const std::byte, 16> weights, x;
  GlobalPtr<f32> y;
  Reg<u32> m;
};

inline constexpr u32 kMmaRows = 16, kMmaColumns = 8;  // of weights and of x in an mma

// The columns of a matrix are in so many slices, whose sums are added in one order for all plans.
inline constexpr u32 kMmaSlices = 16;

// What follows from a plan.
struct MmaGeometry {
  u32 threads;                              // consumers
  u32 groups;                               // of 8 rows of x in a CTA
  u32 row_blocks, row_bytes;                // of a row of weights
  u32 chunk_blocks, chunk_bytes;            // of a row in a stage
  u32 chunks;                               // of a row; the last may be shorter
  u32 pitch, stage_bytes;                   // from row to row in a stage
  u32 least_rows, most_rows;                // of weights in a CTA
  bool whole_vectors;                       // rows are multiples of 16 bytes
  u32 ring_bytes, word_bytes, entry_bytes;  // in shared memory: stages, quantised activations, their scales
  u32 partial_bytes;                        // a tile's sums of all warps, of which there are two
  u32 shared_bytes;

  u32 tiles(u32 rows) const { return (rows + kMmaRows - 1) / kMmaRows; }
};
MmaGeometry mma_geometry(const Mma& s);

// Makes the plan, for a device of so many SMs.
void default_mma_plan(Mma& s, u32 sm_count);

absl::Status check_mma(const Mma& s);
LaunchShape mma_shape(const Mma& s, u32 m);
void build_mma(KernelBuilder& k, const Mma& s, const MmaPointers& pointers);

}  // namespace ptxgen::gemv
