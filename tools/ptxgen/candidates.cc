#include "tools/ptxgen/candidates.h"

#include <algorithm>
#include <functional>

namespace ptxgen::tool {
namespace {

GemvVariant with_plan(const GemvShape& shape, Schedule schedule, u32 sm_count) {
  const KernelType kernel = kernel_of(shape, {.schedule = schedule});
  if (const Gemv* gemv = kernel.get_if<Gemv>())
    return {.schedule = schedule, .plan = planned(*gemv, sm_count).plan};
  const BatchedGemv whole = planned(*kernel.get_if<BatchedGemv>(), sm_count);
  return {.schedule = schedule, .plan = whole.plan, .mma_plan = whole.mma_plan};
}

// Constants to vary, each with the values to try; every combination of them is a variant.
using Setter = std::function<void(GemvVariant&, u32)>;
using Axis = std::pair<Setter, std::vector<u32>>;

Axis axis(u32 StreamPlan::*member, std::vector<u32> values) {
  return {[=](GemvVariant& variant, u32 value) { variant.plan.*member = value; }, std::move(values)};
}
Axis axis(u32 MmaPlan::*member, std::vector<u32> values) {
  return {[=](GemvVariant& variant, u32 value) { variant.mma_plan.*member = value; }, std::move(values)};
}
// A value, half of it and twice as much.
std::vector<u32> around(u32 value) {
  return {value, value / 2, value * 2};
}

std::vector<Axis> axes(const GemvVariant& base, u32 sm_count) {
  const StreamPlan& plan = base.plan;
  const Axis ctas = axis(&StreamPlan::ctas, {plan.ctas, sm_count, plan.ctas * 2});
  const Axis ctas_per_sm = axis(&StreamPlan::ctas_per_sm, {1, 2});
  if (base.schedule == Schedule::kMmaDirect)
    return {axis(&MmaPlan::columns, {8, 16}), axis(&MmaPlan::warps, {4, 8, 16}), ctas_per_sm, ctas};
  const Axis stages = axis(&StreamPlan::stages, around(plan.stages));
  const Axis in_flight = axis(&StreamPlan::in_flight, {plan.in_flight, plan.in_flight * 2, 0});
  const Axis trigger = axis(&StreamPlan::trigger, {0, 2});
  if (base.schedule == Schedule::kMma) {
    return {axis(&MmaPlan::columns, {8, 16}),
            axis(&MmaPlan::warps, {8, 16}),
            axis(&MmaPlan::chunk, around(base.mma_plan.chunk)),
            stages,
            in_flight,
            trigger};
  }
  return {axis(&StreamPlan::groups, around(plan.groups)),
          axis(&StreamPlan::rows, {1, 2}),
          stages,
          in_flight,
          trigger,
          ctas_per_sm,
          ctas};
}

// Around the default plan of a schedule.
std::vector<GemvVariant> plans(const GemvShape& shape, Schedule schedule, u32 sm_count) {
  const GemvVariant base = with_plan(shape, schedule, sm_count);
  std::vector<GemvVariant> all = {base};
  for (const auto& [set, values] : axes(base, sm_count)) {
    std::vector<GemvVariant> more;
    for (const GemvVariant& variant : all) {
      for (const u32 value : values) {
        more.push_back(variant);
        set(more.back(), value);
      }
    }
    all = std::move(more);
  }
  // Twice the CTAs without room for two on an SM is one after the other. Zeros are for the kernel to choose.
  std::erase_if(all, [&](const GemvVariant& variant) {
    const StreamPlan& plan = variant.plan;
    return plan.stages == 0 || plan.in_flight > plan.stages ||
           (plan.ctas > std::max(base.plan.ctas, sm_count) && plan.ctas_per_sm < 2) ||
           (schedule == Schedule::kStream ? plan.groups : variant.mma_plan.chunk) == 0;
  });
  return all;
}

std::vector<GemvVariant> row_schedules() {
  std::vector<GemvVariant> all;
  for (std::size_t s = 0; s < kEnumNames<Schedule>.size(); ++s) {
    const Schedule schedule = static_cast<Schedule>(s);
    if (takes_rows(schedule)) continue;
    all.push_back({.schedule = schedule});
    for (const u32 count : {1u, 2u, 4u, 8u, 16u}) {  // validate() knows to whom they belong
      all.push_back({.schedule = schedule, .num_warps = count});
      all.push_back({.schedule = schedule, .outputs_per_block = count});
    }
  }
  return all;
}

bool has_kernel(const GemvShape& shape, const GemvVariant& variant) {
  return kernel_of(shape, variant)->validate().ok();
}
bool has_kernel(const GemmShape& shape, const GemmVariant& variant) {
  if (variant.path != GemmPath::kFused) return true;
  const KernelType kernel = kernel_of(shape, variant);
  return kernel->validate().ok();
}

// Those that validate() admits, each once.
template <class Shape, class Variant>
std::vector<Variant> legal(const Shape& shape, const std::vector<Variant>& wanted) {
  std::vector<Variant> all;
  for (const Variant& variant : wanted) {
    if (has_kernel(shape, variant) && std::find(all.begin(), all.end(), variant) == all.end())
      all.push_back(variant);
  }
  return all;
}

}  // namespace

std::vector<GemvVariant> candidates(const GemvShape& shape, const GemvVariant& by_default, u32 sm_count) {
  std::vector<GemvVariant> wanted = {by_default};
  for (const Schedule schedule : {Schedule::kStream, Schedule::kMma, Schedule::kMmaDirect}) {
    const bool takes = schedule == Schedule::kStream ? shape.m <= kMostStreamRows : shape.m > 1;
    if (!takes) continue;
    for (const GemvVariant& variant : plans(shape, schedule, sm_count)) wanted.push_back(variant);
  }
  if (shape.m == 1) {
    for (const GemvVariant& variant : row_schedules()) wanted.push_back(variant);
  }
  return legal(shape, wanted);
}

std::vector<GemmVariant> candidates(const GemmShape& shape, const GemmVariant& by_default, u32 sm_count,
                                    const std::vector<GemmVariant>& on_device) {
  std::vector<GemmVariant> wanted = {by_default};
  for (const GemmVariant& base : on_device) {
    wanted.push_back(base);
    if (base.path != GemmPath::kFused) continue;
    // Powers of two, and what holds all rows; none where there is nothing to choose.
    const u32 widest = narrowest_tile(base.schedule, shape.m);
    std::vector<u32> tiles;
    for (u32 tile_m = info(base.schedule).least_tile_m; tile_m < widest; tile_m *= 2) tiles.push_back(tile_m);
    if (widest > 0) tiles.push_back(widest);
    for (const u32 tile_m : tiles) {
      for (const u32 tile_n : {0u, 32u, 64u, 128u}) {
        // Only some schedules have a width to choose, and need not.
        const bool is_mma = base.schedule == GemmSchedule::kMma;
        if (is_mma ? !tile_n : tile_n && base.schedule != GemmSchedule::kWgmma) continue;
        for (const u32 split_k : {0u, 2u, 3u, 4u, 8u})
          wanted.push_back({base.schedule, tile_m, tile_n, split_k});
        // More tiles than SMs in turn: by a CTA an SM, and by the fewest whose turns are no longer.
        GemmVariant in_turn = {.schedule = base.schedule, .tile_m = tile_m, .tile_n = tile_n};
        const Gemm kernel = kernel_of(shape, in_turn);
        if (!kernel.takes_ctas()) continue;
        Gemm::Args args;
        args.m = shape.m;
        const u64 tiles = kernel.launch_shape(args).grid.x;
        const u64 turns = (tiles + sm_count - 1) / sm_count;
        if (turns < 2) continue;
        for (const u64 ctas : {u64{sm_count}, (tiles + turns - 1) / turns}) {
          in_turn.ctas = static_cast<u32>(ctas);
          wanted.push_back(in_turn);
        }
      }
    }
  }
  return legal(shape, wanted);
}

}  // namespace ptxgen::tool
