// Code generators: kernels to PTX.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "ptxgen/export.h"
#include "ptxgen/fields.h"
#include "ptxgen/ir.h"

namespace ptxgen {

enum class Codegen : u8 { kDirect };
template <>
inline constexpr std::array<std::string_view, 1> kEnumNames<Codegen> = {"direct"};

// A PTX module with one entry per kernel, in ASCII. `.version` and `.target` are the lowest that all of them
// need. The text depends on the kernels alone: two processes, two host compilers print the same bytes.
PTXGEN_API std::string print_ptx(absl::Span<const Kernel> kernels);
PTXGEN_API std::string print_ptx(const Kernel& kernel);

}  // namespace ptxgen
