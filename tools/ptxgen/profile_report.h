// What the emulator counted in a launch, as tables.
#pragma once

#include <string>

#include "ptxgen/emulator.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {

Json profile_json(const emulator::LaunchStats& stats);
// For people: totals, instructions by kind, bytes by space, and the instructions with conflicts, with more
// sectors than their bytes fill, or with divergence.
std::string profile_text(const emulator::LaunchStats& stats);

}  // namespace ptxgen::tool
