// Kernels on a device, compared with the reference.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/kernel_cache.h"
#include "src/reference/operation.h"

namespace ptxgen::tool {

struct Verified {
  u64 values = 0;
  u64 mismatches = 0;
  std::string difference = {};  // of the first output that differs; empty when all agree
  bool bounded = false;         // an output was compared within bounds, not bit for bit
  double worst = 0;             // then the largest error, as a share of its bound
  float ms = 0;                 // on the device
};

// Compares a buffer that holds an output with what the inputs give, and adds to `verified`.
absl::Status compare_output(const reference::Operation& operation, std::size_t argument,
                            reference::ReadInput read, const Buffer& buffer, Verified& verified);

// Launches the kernel with these values of its scalars on what `read` gives for its inputs, and compares
// every output. Each piece of an input is read at least twice, before and after the launch; host memory stays
// bounded whatever the shape. A kernel that has no reference is refused.
absl::StatusOr<Verified> verify_with(KernelCache& cache, const KernelType& kernel,
                                     const std::vector<u64>& values, reference::ReadInput read);

// The same on input made from `seed`.
absl::StatusOr<Verified> verify_generated(KernelCache& cache, const KernelType& kernel,
                                          const std::vector<u64>& values, u64 seed);

}  // namespace ptxgen::tool
