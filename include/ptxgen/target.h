// Which GPUs a piece of PTX runs on, which PTX ISA it is written in, and what those GPUs have.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ptxgen/export.h"
#include "ptxgen/launch_shape.h"

namespace ptxgen {

// A version of the PTX ISA: {8, 1} prints as "8.1" after `.version`.
struct PtxIsa {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;

  auto operator<=>(const PtxIsa&) const = default;
  std::string to_string() const;
};

// A compile target: {90, true} is "sm_90a". Architecture-specific ("a") code runs on that architecture alone;
// other code runs on its own and every later architecture (PTX ISA, ".target").
struct Target {
  std::uint16_t sm = 0;
  bool arch_specific = false;

  auto operator<=>(const Target&) const = default;
  std::string to_string() const;

  // Whether a device or compile of this target accepts code that needs `needed`.
  constexpr bool supports(Target needed) const {
    return needed.arch_specific ? sm == needed.sm && arch_specific : sm >= needed.sm;
  }

  // Reads "sm_90a"; anything but a row of kTargets is refused with the list of them.
  PTXGEN_API static absl::StatusOr<Target> parse(std::string_view text);
};

// What one SM holds (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the same
// numbers are in cuda::arch_traits of libcu++). What all targets have alike stands below kTargets.
struct TargetLimits {
  std::uint32_t shared_bytes_per_sm = 0;
  std::uint32_t reserved_shared_bytes = 0;  // of each CTA, for the system
  std::uint32_t warps_per_sm = 0;
  std::uint32_t ctas_per_sm = 0;

  constexpr bool operator==(const TargetLimits&) const = default;
  constexpr std::uint32_t threads_per_sm() const { return 32 * warps_per_sm; }
  // Static and dynamic together, of a kernel that opts in
  // (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
  constexpr std::uint32_t shared_bytes_per_cta() const { return shared_bytes_per_sm - reserved_shared_bytes; }
};

struct TargetInfo {
  Target target;
  PtxIsa since;  // the first PTX ISA whose `.target` accepts it (PTX ISA, release notes)
  TargetLimits limits;
};

// Every target ptxgen generates code for, oldest first.
inline constexpr std::array<TargetInfo, 13> kTargets = {{
    {{75, false}, {6, 3}, {64 << 10, 0, 32, 16}},
    {{80, false}, {7, 0}, {164 << 10, 1 << 10, 64, 32}},
    {{86, false}, {7, 1}, {100 << 10, 1 << 10, 48, 16}},
    {{87, false}, {7, 4}, {164 << 10, 1 << 10, 48, 16}},
    {{89, false}, {7, 8}, {100 << 10, 1 << 10, 48, 24}},
    {{90, false}, {7, 8}, {228 << 10, 1 << 10, 64, 32}},
    {{90, true}, {8, 0}, {228 << 10, 1 << 10, 64, 32}},
    {{100, false}, {8, 6}, {228 << 10, 1 << 10, 64, 32}},
    {{100, true}, {8, 6}, {228 << 10, 1 << 10, 64, 32}},
    {{103, false}, {8, 8}, {228 << 10, 1 << 10, 64, 32}},
    {{110, false}, {9, 0}, {228 << 10, 1 << 10, 48, 24}},
    {{120, false}, {8, 7}, {100 << 10, 1 << 10, 48, 24}},
    {{121, false}, {8, 8}, {100 << 10, 1 << 10, 48, 24}},
}};

// The row of its sm. A target outside the table has the limits of the first row, the least of all in every
// column.
PTXGEN_API const TargetLimits& limits(Target target);

// The first PTX ISA that knows the target; of one outside the table nothing is known, and this is {}.
PTXGEN_API PtxIsa first_isa(Target target);

// Of every target alike (the same section of the guide).
inline constexpr Dim3 kMaxGrid = {2147483647, 65535, 65535};  // CTAs
inline constexpr Dim3 kMaxBlock = {1024, 1024, 64};           // threads of a CTA, and
inline constexpr std::uint32_t kMaxThreadsPerCta = 1024;      // so many in all
inline constexpr std::uint32_t kMaxPortableClusterCtas = 8;   // of a cluster; more where a GPU agrees, up to
inline constexpr std::uint32_t kMaxClusterCtas = 16;
inline constexpr std::uint32_t kMaxStaticSharedBytes = 48 << 10;  // of a CTA; more is dynamic (PTX ISA 5.1.7)
inline constexpr std::uint32_t kRegistersPerSm = 64 << 10;        // of 32 bits
inline constexpr std::uint32_t kMaxRegistersPerThread = 255;

// The least that any PTX of ptxgen asks for. A `.target` below sm_70 would select the thread scheduling of
// older GPUs.
inline constexpr Target kBaseTarget = {75, false};
// The first with thread-block clusters, bulk copies and programmatic dependent launch.
inline constexpr Target kHopper = {90, false};
inline constexpr PtxIsa kBaseIsa = {6, 3};
// The newest PTX ISA that ptxgen writes.
inline constexpr PtxIsa kNewestIsa = {9, 0};

}  // namespace ptxgen
