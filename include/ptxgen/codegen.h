// Code generators: kernels to PTX.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/export.h"
#include "ptxgen/fields.h"
#include "ptxgen/ir.h"

namespace ptxgen {

enum class Codegen : u8 {
  kDirect,  // prints what was built, instruction for instruction
  kLlvm,    // LLVM's optimiser and NVPTX back-end, where an LLVM from 16 on is installed (docs/codegen.md)
};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Codegen> = {"direct", "llvm"};

// "direct", "llvm 19.1.7"; without the version where there is no LLVM.
PTXGEN_API std::string describe(Codegen codegen);

// A PTX module with one entry per kernel, in ASCII. `.version` and `.target` are the lowest that all of them
// need. The text depends on the kernels alone: two processes, two host compilers print the same bytes.
PTXGEN_API std::string print_ptx(absl::Span<const Kernel> kernels);
PTXGEN_API std::string print_ptx(const Kernel& kernel);

// The same kernels as LLVM IR, before any optimisation, in the text that LLVM 16 and later read. Needs no
// LLVM.
PTXGEN_API std::string print_llvm_ir(absl::Span<const Kernel> kernels);

// That IR through LLVM: PTX of `.version` isa for `.target` target, with the entries, parameters, launch
// bounds and shared memory that print_ptx() gives. The text also depends on the version of LLVM. Thread-safe.
// A status says what there is no LLVM for, and what to install.
PTXGEN_API absl::StatusOr<std::string> compile_with_llvm(absl::Span<const Kernel> kernels, Target target,
                                                         PtxIsa isa);

}  // namespace ptxgen
