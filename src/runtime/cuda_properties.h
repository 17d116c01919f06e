// What the driver says about a device.
#pragma once

#include "absl/status/statusor.h"
#include "ptxgen/device.h"
#include "src/runtime/driver.h"

namespace ptxgen::internal {

// kNotFound: no code of ptxgen's runs there.
absl::StatusOr<DeviceProperties> read_properties(const Driver& driver, CUdevice device, int index);

}  // namespace ptxgen::internal
