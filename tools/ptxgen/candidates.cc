#include "tools/ptxgen/candidates.h"

#include <algorithm>

namespace ptxgen::tool {
namespace {

StreamPlan stream_plan(const GemvShape& shape, u32 sm_count) {
  const KernelType kernel = kernel_of(shape, {});
  const BatchedGemv* batched = kernel.get_if<BatchedGemv>();
  return batched ? default_plan(*batched, sm_count) : default_plan(*kernel.get_if<Gemv>(), sm_count);
}

// Around the default plan: each axis with the values to try, every combination a plan.
std::vector<StreamPlan> plans(const GemvShape& shape, u32 sm_count) {
  const StreamPlan base = stream_plan(shape, sm_count);
  const auto around = [](u32 value) { return std::vector<u32>{value, value / 2, value * 2}; };
  const std::pair<u32 StreamPlan::*, std::vector<u32>> axes[] = {
      {&StreamPlan::groups, around(base.groups)},
      {&StreamPlan::rows, {1, 2}},
      {&StreamPlan::stages, around(base.stages)},
      {&StreamPlan::in_flight, {base.in_flight, base.in_flight * 2, 0}},
      {&StreamPlan::trigger, {0, 2}},
      {&StreamPlan::ctas_per_sm, {1, 2}},
      {&StreamPlan::ctas, {base.ctas, base.ctas * 2}},
  };
  std::vector<StreamPlan> all = {base};
  for (const auto& [member, values] : axes) {
    std::vector<StreamPlan> more;
    for (const StreamPlan& plan : all) {
      for (const u32 value : values) {
        more.push_back(plan);
        more.back().*member = value;
      }
    }
    all = std::move(more);
  }
  // Twice the CTAs without room for two on an SM is one after the other.
  std::erase_if(all, [&](const StreamPlan& plan) {
    return plan.groups == 0 || plan.stages == 0 || plan.in_flight > plan.stages ||
           (plan.ctas > base.ctas && plan.ctas_per_sm < 2);
  });
  return all;
}

std::vector<GemvVariant> row_schedules() {
  std::vector<GemvVariant> all;
  for (std::size_t s = 0; s < kEnumNames<Schedule>.size(); ++s) {
    const Schedule schedule = static_cast<Schedule>(s);
    if (schedule == Schedule::kStream) continue;
    all.push_back({.schedule = schedule});
    for (const u32 count : {1u, 2u, 4u, 8u, 16u}) {  // validate() knows to whom they belong
      all.push_back({.schedule = schedule, .num_warps = count});
      all.push_back({.schedule = schedule, .outputs_per_block = count});
    }
  }
  return all;
}

}  // namespace

std::vector<GemvVariant> candidates(const GemvShape& shape, const GemvVariant& by_default, u32 sm_count) {
  std::vector<GemvVariant> wanted = {by_default};
  for (const StreamPlan& plan : plans(shape, sm_count)) wanted.push_back({.plan = plan});
  if (shape.m == 1) {
    for (const GemvVariant& variant : row_schedules()) wanted.push_back(variant);
  }
  std::vector<GemvVariant> all;
  for (const GemvVariant& variant : wanted) {
    const bool legal = kernel_of(shape, variant)->validate().ok();
    if (legal && std::find(all.begin(), all.end(), variant) == all.end()) all.push_back(variant);
  }
  return all;
}

}  // namespace ptxgen::tool
