// Schedule `stream`: weights flow through shared memory ahead of the activations. stream.cc has the
// algorithm.
#pragma once

#include <optional>
#include <vector>

#include "ptxgen/gemv.h"

namespace ptxgen::gemv {

// What one launch computes, whatever descriptor asks for it.
struct Stream {
  // One output y[m][n], from one matrix, or from two of the same shape whose rows an epilogue combines.
  struct Job {
    Format format;
    u32 n;
    u32 matrices = 1;
  };
  std::vector<Job> jobs;
  u32 k = 0;
  u32 max_m = 1;  // rows of x at most
  Activations x_type = Activations::kF32;
  bool norm = false;      // RMSNorm before the product
  bool residual = false;  // added to the first job's output
  StreamPlan plan = {};   // complete
};

// Where a launch's data lies. `weights` are those of all jobs in order.
struct StreamPointers {
  std::vector<GlobalPtr<const std::byte, 16>> weights;
  GlobalPtr<const std::byte, 16> x;
  std::vector<GlobalPtr<f32>> y;
  std::optional<GlobalPtr<const f32, 16>> gamma = {};
  std::optional<Reg<f32>> epsilon = {};
  std::optional<GlobalPtr<const f32>> residual = {};
  std::optional<Reg<u32>> m = {};  // rows of x; nothing: all max_m
};

// Of the L2 cache. A copy whose target does not lie as its source does within a line is up to a tenth slower.
inline constexpr u32 kLineBytes = 128;

// What follows from a plan, for one job.
struct StreamGeometry {
  u32 first_cta, ctas;            // of the launch, that have this job
  u32 row_bytes, row_parts;       // of a row of weights; a part is what one lane takes
  u32 slices, sets;               // warps that share a row; rows that a warp takes at once
  u32 tile_rows, stage_bytes;     // a tile: so many rows of each matrix
  u32 matrix_bytes;               // of a stage, for each matrix
  u32 kept_bits;                  // of a tile's address, in its place within the stage
  u32 least_rows, most_rows;      // of a CTA
  u32 consumers;                  // warps
  bool whole_vectors;             // rows are multiples of 16 bytes
  u32 q_bytes, activation_bytes;  // of a row of x
  u32 partials;                   // sums in shared memory
  u32 shared_bytes;

  u32 tiles(u32 rows) const { return (rows + tile_rows - 1) / tile_rows; }
};
StreamGeometry stream_geometry(const Stream& s, std::size_t job);

// A complete plan for the work, of which `s.plan` is none.
StreamPlan default_plan(const Stream& s, u32 sm_count = kMeasuredSmCount);

absl::Status check_stream(const Stream& s);
LaunchShape stream_shape(const Stream& s);
void build_stream(KernelBuilder& k, const Stream& s, const StreamPointers& pointers);

}  // namespace ptxgen::gemv
