#include "tools/ptxgen/occupancy.h"

#include <algorithm>

namespace ptxgen::tool {
namespace {

// An SM has four parts, each with its own registers, given to warps 256 at a time.
constexpr u64 kParts = 4, kRegistersPerPart = kRegistersPerSm / kParts, kRegisterUnit = 256, kWarp = 32;

constexpr u64 round_up(u64 value, u64 unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

u32 ctas_per_sm(const TargetLimits& limits, u64 threads, u32 registers, u64 shared_bytes) {
  const u64 warps = std::max<u64>(1, (threads + kWarp - 1) / kWarp);
  u64 ctas = std::min<u64>(limits.ctas_per_sm, limits.warps_per_sm / warps);
  if (registers > 0) {
    const u64 warps_by_registers = kRegistersPerPart / round_up(registers * kWarp, kRegisterUnit) * kParts;
    ctas = std::min(ctas, warps_by_registers / warps);
  }
  // Shared memory is given 128 bytes at a time.
  const u64 shared = round_up(shared_bytes + limits.reserved_shared_bytes, 128);
  if (shared > 0) ctas = std::min(ctas, limits.shared_bytes_per_sm / shared);
  return static_cast<u32>(ctas);
}

}  // namespace ptxgen::tool
