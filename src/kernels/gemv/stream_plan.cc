#include <algorithm>

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemv/stream.h"
#include "src/kernels/gemv/stream_layout.h"

namespace ptxgen::gemv {
namespace {

constexpr u32 round_up(u32 value, u32 multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

u64 job_bytes(const Stream& s, const Stream::Job& job) {
  const FormatInfo& f = info(job.format);
  return u64{job.n} * job.matrices * s.k / f.block_values * f.block_bytes;
}

// The CTAs are dealt to the jobs by their bytes: job j has those from cta_end(j - 1) to cta_end(j).
u32 cta_end(const Stream& s, std::size_t job) {
  u64 all = 0, before = 0;
  for (std::size_t j = 0; j < s.jobs.size(); ++j) {
    all += job_bytes(s, s.jobs[j]);
    if (j <= job) before += job_bytes(s, s.jobs[j]);
  }
  return static_cast<u32>((before * s.plan.ctas + all / 2) / all);
}

// As many CTAs, up to `most`, as give every job one and none more than it has rows.
u32 most_ctas(Stream s, u32 most) {
  const auto suits = [&](std::size_t j) {
    const u32 ctas = cta_end(s, j) - (j == 0 ? 0 : cta_end(s, j - 1));
    return ctas > 0 && ctas <= s.jobs[j].n;
  };
  for (s.plan.ctas = most; s.plan.ctas > s.jobs.size(); --s.plan.ctas) {
    bool all = true;
    for (std::size_t j = 0; j < s.jobs.size(); ++j) all = all && suits(j);
    if (all) break;
  }
  return s.plan.ctas;
}

// That a thread needs with one row of x, so that ptxas spills none.
u32 registers_of(Format format) {
  if (info(format).block_values == 32) return 52;
  return format == Format::kQ4_K ? 52 : 80;
}

Stream with(Stream s, const StreamPlan& plan) {
  s.plan = plan;
  return s;
}

u32 parts_of_row(Format format, u32 k) {
  return formats::with_format(format, [&]<class F>(std::type_identity<F>) {
    return k / info(F::kFormat).block_values * kBlockParts<F>;
  });
}

// Warps of a CTA that registers have room for: a thread holds the activations of all rows of x for its part
// of a row, and the parts of formats with four runs are the largest. ptxas counts in four warps.
u32 most_warps(const Stream& s) {
  const Format format = s.jobs[0].format;
  const u32 runs = formats::with_format(format, []<class F>(std::type_identity<F>) { return F::kRuns; });
  if (s.max_m < 3) return s.max_m > 1 && runs == 4 ? 16 : 32;
  return runs == 4 ? 12 : info(format).block_values == 256 ? 16 : 28;
}

}  // namespace

StreamGeometry stream_geometry(const Stream& s, std::size_t index) {
  const Stream::Job& job = s.jobs[index];
  return formats::with_format(job.format, [&]<class F>(std::type_identity<F>) {
    constexpr FormatInfo kInfo = info(F::kFormat);
    StreamGeometry g;
    g.first_cta = index == 0 ? 0 : cta_end(s, index - 1);
    g.ctas = cta_end(s, index) - g.first_cta;
    g.row_bytes = s.k / kInfo.block_values * kInfo.block_bytes;
    g.row_parts = parts_of_row(job.format, s.k);
    g.slices = (g.row_parts + s.plan.row_lanes - 1) / s.plan.row_lanes;
    g.sets = 32 / s.plan.row_lanes;
    g.tile_rows = s.plan.groups * s.plan.rows * g.sets;
    g.whole_vectors = g.row_bytes % 16 == 0;
    g.least_rows = g.ctas ? job.n / g.ctas : 0;
    g.most_rows = g.ctas && job.n % g.ctas ? g.least_rows + 1 : g.least_rows;
    // Nothing is gained where the ring holds all of a CTA's tiles.
    const bool in_lines = g.row_bytes % kLineBytes != 0 && g.tiles(g.most_rows) > s.plan.stages;
    g.kept_bits = in_lines ? kLineBytes - 1 : g.whole_vectors ? 0 : 15;
    // Ragged tiles begin and end within 16 bytes; words at odd halves read one word more.
    g.matrix_bytes = round_up(g.tile_rows * g.row_bytes, 16) + (g.whole_vectors ? 0 : 32);
    if (in_lines) g.matrix_bytes = round_up(g.matrix_bytes + kLineBytes - 16, kLineBytes);
    g.stage_bytes = job.matrices * g.matrix_bytes;
    g.consumers = g.slices * s.plan.groups;
    const u32 plane_groups = round_up(g.row_parts, 32) / 32;
    g.q_bytes = plane_groups * kPlanes<F> * kPlanePitch;
    g.activation_bytes = g.q_bytes + plane_groups * F::kRuns * kHeaderPitch<F> * 4;
    g.partials = g.slices * g.most_rows * job.matrices * s.max_m;
    g.shared_bytes = s.plan.stages * g.stage_bytes + s.max_m * g.activation_bytes + 4 * g.partials;
    return g;
  });
}

// Measured on an H200: tiles of about 18 KB, or half a CTA's share where that is less, so that the first is
// there sooner; three of them on their way keep the memory busy, two where the ring holds the whole share,
// and more in a share of many tiles; a ring of 8, or, where such a share lets SMs come apart, of all the
// memory there is; 8 to 18 consumer warps. q6_K takes long to decode: 12 warps on tiles of 20 KB. Three or
// four vectors leave the memory time: two tiles on their way for six groups; and where the CTA quantises them
// too, a ring of 6, and four groups where it has so few rows that its last tile should be a whole one. Three
// vectors of many rows of q4_K take three on their way; fewer rows and other formats are slower with them.
StreamPlan default_plan(const Stream& s, u32 sm_count) {
  constexpr u32 kTileBytes = 18 << 10, kRingBytes = 148 << 10;
  constexpr u32 kFewSets = 32, kManySets = 96, kTilesOfSome = 6;
  constexpr u32 kManyTiles = 64, kBytesOfMany = 84 << 10, kRingOfMany = 200 << 10;
  const Stream::Job& first = s.jobs[0];
  const FormatInfo& f = info(first.format);
  u64 rows_of_all = 0;
  for (const Stream::Job& job : s.jobs) rows_of_all += job.n;
  StreamPlan plan;
  plan.ctas = most_ctas(s, static_cast<u32>(std::min<u64>(rows_of_all, sm_count)));
  // As many lanes a row as leave few of them idle in the last slice.
  const u32 parts = parts_of_row(first.format, s.k);
  const auto lanes_used = [&](u32 lanes) { return (parts + lanes - 1) / lanes * lanes; };
  plan.row_lanes = 32;
  for (u32 lanes = 32; lanes >= 4 && lanes_used(plan.row_lanes) * 20 > parts * 21; lanes /= 2) {
    if (lanes_used(lanes) < lanes_used(plan.row_lanes)) plan.row_lanes = lanes;
  }
  const u32 slices = lanes_used(plan.row_lanes) / plan.row_lanes;

  const u32 row_bytes = first.matrices * (s.k / f.block_values * f.block_bytes);
  const u32 set_bytes = row_bytes * (32 / plan.row_lanes);
  const u32 rows = static_cast<u32>((rows_of_all + plan.ctas - 1) / plan.ctas);
  const u32 sets_of_cta = (rows * plan.row_lanes + 31) / 32;
  const bool slow = first.format == Format::kQ6_K && s.max_m == 1 && rows * row_bytes > kRingBytes;
  const u32 tile_wanted = std::min(slow ? 20u << 10 : kTileBytes, rows * row_bytes / 2);
  const u32 sets = std::clamp((tile_wanted + set_bytes / 2) / set_bytes, 1u, sets_of_cta);  // of a tile
  const bool some = s.max_m >= 3, some_f32 = some && s.x_type == Activations::kF32;
  const u32 most_groups = some           ? (some_f32 && sets_of_cta <= kFewSets ? 4 : 6)
                          : slices <= 2  ? (slow ? 6 : 4)
                          : slices <= 4  ? 3
                          : slices <= 15 ? 2
                                         : 1;
  plan.groups = std::min({sets, most_groups, std::max(1u, (most_warps(s) - 1) / slices)});
  const u32 sums = first.matrices * s.max_m;
  plan.rows = !some && 2 * sets >= 3 * plan.groups && 2 * sums <= plan.row_lanes ? 2 : 1;

  const u32 tiles = (sets_of_cta + plan.groups * plan.rows - 1) / (plan.groups * plan.rows);
  u32 beside_ring = 0, tile_bytes = 0;
  for (std::size_t j = 0; j < s.jobs.size(); ++j) {
    const StreamGeometry g = stream_geometry(with(s, plan), j);
    beside_ring = std::max(beside_ring, g.shared_bytes);
    tile_bytes = std::max(tile_bytes, g.stage_bytes);
  }
  constexpr u32 kStaticBytes = 1 << 10;  // mbarriers, and what RMSNorm needs
  const u32 all_bytes = static_cast<u32>(limits(kHopper).shared_bytes_per_cta()) - kStaticBytes;
  const bool many = tiles > kManyTiles && s.max_m == 1;
  const u32 ring_bytes =
      std::min(many || slow ? kRingOfMany : kRingBytes, all_bytes - std::min(all_bytes, beside_ring));
  plan.stages = std::clamp(ring_bytes / tile_bytes, 1u, std::min(tiles, 32u));
  const u32 bytes_in_flight = many ? kBytesOfMany : (tiles <= plan.stages || some ? 2 : 3) * tile_wanted;
  plan.in_flight = std::clamp((bytes_in_flight + tile_bytes / 2) / tile_bytes, 1u, plan.stages);
  if (some_f32) {
    plan.stages = std::min(plan.stages, kTilesOfSome);
    const bool soon = s.max_m == 3 && first.format == Format::kQ4_K && sets_of_cta > kManySets;
    plan.in_flight = std::min(plan.stages, soon ? 3u : 2u);
  }
  // Where shared memory has room for several CTAs, registers shall have it too.
  if (sums <= 3) {
    const StreamGeometry g = stream_geometry(with(s, plan), 0);
    const u32 registers = registers_of(first.format) + 28 * (sums - 1);
    const u32 by_registers = kRegistersPerSm / (registers * (g.consumers + 1) * 32);
    const u32 by_shared = limits(kHopper).shared_bytes_per_sm / (g.shared_bytes + (1u << 10));
    plan.ctas_per_sm = std::clamp(std::min(by_registers, by_shared), 1u, 3u);
  }
  // A few CTAs fewer, if all have as many rows then and none waits for a last short tile. But where two are
  // on an SM, that of the next kernel needs one of this on each.
  constexpr u32 kLeastPercent = 95;
  const u32 alike = static_cast<u32>(rows_of_all / rows);
  const bool equal = s.jobs.size() == 1 && rows_of_all % rows == 0;
  if (equal && plan.ctas_per_sm <= 1 && alike * 100 >= plan.ctas * kLeastPercent) plan.ctas = alike;
  return plan;
}

absl::Status check_stream(const Stream& s) {
  const StreamPlan& plan = s.plan;
  const auto refuse = [](std::string message) { return absl::InvalidArgumentError(std::move(message)); };
  for (const auto& [name, value] : {std::pair("row_lanes", plan.row_lanes), std::pair("groups", plan.groups),
                                    std::pair("rows", plan.rows), std::pair("stages", plan.stages)}) {
    if (value == 0)
      return refuse(str_cat(name, " is 0 while ctas is ", plan.ctas, "; give a whole plan, or none"));
  }
  if ((plan.row_lanes & (plan.row_lanes - 1)) != 0)
    return refuse(str_cat("row_lanes is ", plan.row_lanes, "; it must be 4, 8, 16 or 32"));
  const u32 sums = s.jobs[0].matrices * s.max_m;  // of a row
  if ((plan.rows & (plan.rows - 1)) != 0 || plan.rows * sums > plan.row_lanes) {
    return refuse(str_cat("rows is ", plan.rows, "; it must be a power of two, and at most ",
                          plan.row_lanes / sums, " with ", plan.row_lanes, " lanes a row and ", sums,
                          " sums of each"));
  }
  for (std::size_t j = 0; j < s.jobs.size(); ++j) {
    const StreamGeometry g = stream_geometry(s, j);
    if (g.ctas == 0 || g.ctas > s.jobs[j].n) {
      return refuse(str_cat("ctas is ", plan.ctas, ", of which ", g.ctas, " fall to a matrix of ",
                            s.jobs[j].n, " rows; give every matrix at least one, and none more than rows"));
    }
    constexpr u32 kMaxConsumers = kMaxThreadsPerCta / 32 - 1;
    if (g.consumers > kMaxConsumers) {
      return refuse(str_cat("k is ", s.k, ", so a row takes ", g.slices, " warps, in ", plan.groups,
                            " groups ", g.consumers, " of at most ", kMaxConsumers,
                            ": choose more row_lanes, fewer groups, or another schedule"));
    }
    const u64 limit = limits(kHopper).shared_bytes_per_cta();
    if (g.shared_bytes > limit) {
      return refuse(str_cat("stages is ", plan.stages, ", which takes ", g.shared_bytes,
                            " bytes of shared memory with everything else; there are ", limit,
                            ": choose fewer stages, groups or rows, or another schedule"));
    }
  }
  return absl::OkStatus();
}

LaunchShape stream_shape(const Stream& s) {
  LaunchShape shape;
  shape.grid = {s.plan.ctas};
  for (std::size_t j = 0; j < s.jobs.size(); ++j) {
    const StreamGeometry g = stream_geometry(s, j);
    shape.block = {(u64{g.consumers} + 1) * 32};
    shape.dynamic_shared_bytes = std::max<u64>(shape.dynamic_shared_bytes, g.shared_bytes);
  }
  return shape;
}

}  // namespace ptxgen::gemv
