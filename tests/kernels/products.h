// Launches kernels with any number of arguments on data of a reference's, and compares what comes out.
#pragma once

#include <vector>

#include "ptxgen/gemv.h"
#include "src/reference/operation.h"
#include "tests/kernels/harness.h"

namespace ptxgen::testing {

// The arguments of one launch: scalars by value, inputs as bytes.
struct LaunchData {
  KernelType kernel;
  std::vector<u64> values;                     // as ArgValues; buffers' addresses do not matter
  std::vector<std::vector<std::byte>> inputs;  // by argument; empty for what is no input
};

// Random input by the reference, for a kernel with these values of its scalars.
LaunchData random_launch(const KernelType& kernel, std::vector<u64> values, std::uint64_t seed);

// By argument, empty for what is no output.
using Results = std::vector<std::vector<std::byte>>;

// Runs it between guards. Inputs end where their allocations end.
Results run(const LaunchData& launch, KernelCache& kernels = test_kernels());

// The same for PTX that was generated already, and that may be faulty.
absl::StatusOr<Results> run_text(const GeneratedKernel& text, const LaunchData& launch, const Device& device);

// Runs it and checks every output against the reference.
void check(const LaunchData& launch);
void check_text(const GeneratedKernel& text, const LaunchData& launch);

template <class T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace ptxgen::testing
