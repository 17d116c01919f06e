// Inline assembly: any instruction by its row's spelling.
#pragma once

#include "src/codegen/llvm/function.h"

namespace ptxgen::llvm {

// Appends a call of the instruction as inline assembly, and sets its results. A pure value has no side effect
// and may be moved or dropped; a load may be moved between writes; any other effect stays where it is, as if
// it touched all memory and were convergent.
void print_assembly(Function& function, const Instruction& i);

}  // namespace ptxgen::llvm
