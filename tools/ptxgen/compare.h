// Kernels on a device, compared with the reference.
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"

namespace ptxgen::tool {

struct Verified {
  u64 values = 0;
  u64 mismatches = 0;
  std::string difference = {};  // the first one; empty when all agree
  float ms = 0;                 // on the device
};

// Gives `use` the blocks [first, first + count). Each piece is asked for twice, before and after the launch.
using UseBlocks = absl::FunctionRef<absl::Status(absl::Span<const std::byte> blocks)>;
using BlockSource = absl::FunctionRef<absl::Status(u64 first, u64 count, UseBlocks use)>;

// Dequantises the blocks and compares every value, bit for bit. Host memory stays bounded whatever the shape.
absl::StatusOr<Verified> verify_dequant(KernelCache& cache, const Dequant& kernel, BlockSource blocks);

// Runs the kernel on data made from `seed`. A kernel that has no reference is refused.
absl::StatusOr<Verified> verify_generated(KernelCache& cache, const KernelType& kernel, u64 seed);

}  // namespace ptxgen::tool
