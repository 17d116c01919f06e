// Conformance cases on a device.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/device.h"
#include "tests/conformance/cases.h"

namespace ptxgen::testing {

struct CaseRun {
  std::vector<std::byte> input, output;
};

// In one module. The output of each thread is zeros before the kernel writes it.
absl::StatusOr<std::vector<CaseRun>> run_cases(const Device& device, absl::Span<const ConformanceCase> cases);

// The cases in spans of at most `count`, for modules of a size that compiles quickly.
std::vector<absl::Span<const ConformanceCase>> in_modules(const std::vector<ConformanceCase>& cases,
                                                          std::size_t count = 32);

}  // namespace ptxgen::testing
