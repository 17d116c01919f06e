#include "tools/ptxgen/occupancy.h"

#include <algorithm>

namespace ptxgen::tool {
namespace {

constexpr SmLimits kLimits[] = {{75, 32, 16, 64 << 10},   {80, 64, 32, 164 << 10},  {86, 48, 16, 100 << 10},
                                {87, 48, 16, 164 << 10},  {89, 48, 24, 100 << 10},  {90, 64, 32, 228 << 10},
                                {100, 64, 32, 228 << 10}, {103, 64, 32, 228 << 10}, {110, 48, 24, 228 << 10},
                                {120, 48, 24, 100 << 10}, {121, 48, 24, 100 << 10}};

// The same on all of these: an SM has four parts, each with its own registers, given to warps 256 at a time.
constexpr u64 kParts = 4, kRegistersPerPart = 16384, kRegisterUnit = 256, kWarp = 32;

constexpr u64 round_up(u64 value, u64 unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::optional<SmLimits> sm_limits(Target target) {
  const auto* found = std::find_if(std::begin(kLimits), std::end(kLimits),
                                   [&](const SmLimits& l) { return l.sm == target.sm; });
  if (found == std::end(kLimits)) return std::nullopt;
  return *found;
}

u32 ctas_per_sm(const SmLimits& limits, u64 threads, u32 registers, u64 shared_bytes) {
  const u64 warps = std::max<u64>(1, (threads + kWarp - 1) / kWarp);
  u64 ctas = std::min<u64>(limits.ctas, limits.warps / warps);
  if (registers > 0) {
    const u64 warps_by_registers = kRegistersPerPart / round_up(registers * kWarp, kRegisterUnit) * kParts;
    ctas = std::min(ctas, warps_by_registers / warps);
  }
  // From compute capability 8.0 on, the system keeps 1 KiB of each CTA's shared memory; it is given 128 bytes
  // at a time.
  const u64 reserved = limits.sm >= 80 ? 1 << 10 : 0;
  const u64 shared = round_up(shared_bytes + reserved, 128);
  if (shared > 0) ctas = std::min(ctas, limits.shared_bytes / shared);
  return static_cast<u32>(ctas);
}

}  // namespace ptxgen::tool
