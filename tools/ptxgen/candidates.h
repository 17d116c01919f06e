// The kernels that tuning tries for a product.
#pragma once

#include <vector>

#include "ptxgen/gemm_variant.h"
#include "ptxgen/gemv_variant.h"

namespace ptxgen::tool {

// Every legal variant worth a measurement on a device of so many SMs, each once; what the library does by
// default stands first. Whether the device runs them all is left to compiler and launch.
std::vector<GemvVariant> candidates(const GemvShape& shape, const GemvVariant& by_default, u32 sm_count);

// The same for a matrix product, of which the device has these variants (DevicePolicy::gemm_variants()):
// their schedules with every tile that is not wider than m and every number of CTAs that share k, or as many
// as there are SMs that take tiles in turn, and paths of cuBLASLt as they are.
std::vector<GemmVariant> candidates(const GemmShape& shape, const GemmVariant& by_default, u32 sm_count,
                                    const std::vector<GemmVariant>& on_device);

}  // namespace ptxgen::tool
