// What a CUDA driver's version and a device's compute capability say about the code that may be given to
// them.
#pragma once

#include <optional>
#include <string>

#include "ptxgen/target.h"

namespace ptxgen::internal {

// 12040 is "12.4".
std::string driver_version_text(int driver_version);

// The highest PTX ISA that the JIT of a driver accepts, from cuDriverGetVersion(). A driver newer than the
// table has the table's last.
PtxIsa highest_isa(int driver_version);

// The newest of kTargets whose code a device of this compute capability runs and whose `.target` a JIT for
// `isa` accepts. Later architectures run code for earlier ones, so a device that the table does not know has
// a target all the same; nothing when the device is older than kBaseTarget.
std::optional<Target> device_target(int compute_major, int compute_minor, PtxIsa isa);

}  // namespace ptxgen::internal
