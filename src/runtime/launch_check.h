// Whether a launch fits the device and the kernel, before a driver sees it.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ptxgen/device.h"

namespace ptxgen::internal {

// The bounds are the device's (CUDA Driver API, CUdevice_attribute) and the kernel's own. An error names
// field, value and bound.
absl::Status check_launch(const DeviceProperties& device, const FunctionInfo& function,
                          const LaunchShape& shape, const LaunchOptions& options);

// Whether the arguments have the number and sizes of the kernel's parameters, where those are known.
absl::Status check_args(const FunctionInfo& function, absl::Span<const KernelArg> args);

}  // namespace ptxgen::internal
