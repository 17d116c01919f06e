// Why a kernel is or is not found on disk.
#pragma once

#include "absl/status/statusor.h"
#include "ptxgen/cubin_store.h"
#include "ptxgen/kernel_type.h"
#include "tools/ptxgen/command.h"

namespace ptxgen::tool {

// Whether the kernel is kept for the device, or what of its key and text differs from the nearest that is.
absl::StatusOr<Outcome> explain_miss(const CubinStore& store, const KernelType& kernel, const Device& device,
                                     bool json);

}  // namespace ptxgen::tool
