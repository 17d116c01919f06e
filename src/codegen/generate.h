// generate() for who knows some of LLVM's results.
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "ptxgen/kernel_type.h"

namespace ptxgen::internal {

// The PTX that LLVM made of this IR, where that is known.
using KnownPtx = absl::FunctionRef<std::optional<std::string>(const std::string& ir)>;

// With the code generator llvm, what is known is taken as it is, and needs no LLVM.
absl::StatusOr<GeneratedKernel> generate(const Descriptor& descriptor, const CodegenOptions& options,
                                         KnownPtx known);

}  // namespace ptxgen::internal
