// Which GPUs a piece of PTX runs on, and which PTX ISA it is written in.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ptxgen/export.h"

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

struct TargetInfo {
  Target target;
  PtxIsa since;  // the first PTX ISA whose `.target` accepts it (PTX ISA, release notes)
};

// Every target ptxgen generates code for, oldest first.
inline constexpr std::array<TargetInfo, 13> kTargets = {{
    {{75, false}, {6, 3}},
    {{80, false}, {7, 0}},
    {{86, false}, {7, 1}},
    {{87, false}, {7, 4}},
    {{89, false}, {7, 8}},
    {{90, false}, {7, 8}},
    {{90, true}, {8, 0}},
    {{100, false}, {8, 6}},
    {{100, true}, {8, 6}},
    {{103, false}, {8, 8}},
    {{110, false}, {9, 0}},
    {{120, false}, {8, 7}},
    {{121, false}, {8, 8}},
}};

// The least that any PTX of ptxgen asks for. A `.target` below sm_70 would select the thread scheduling of
// older GPUs.
inline constexpr Target kBaseTarget = {75, false};
inline constexpr PtxIsa kBaseIsa = {6, 3};

}  // namespace ptxgen
