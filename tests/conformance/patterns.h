// The operands of conformance cases: for each thread, 8 bytes for each register. The same on every machine.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/conformance/cases.h"

namespace ptxgen::testing {

std::vector<std::byte> conformance_input(const ConformanceCase& c);

}  // namespace ptxgen::testing
