// The instructions that LLVM IR has words for. All others are inline assembly.
#pragma once

#include <string_view>

#include "src/codegen/llvm/function.h"

namespace ptxgen::llvm {

// Whether IR can say the instruction with these operands; print_native() says it, and sets its results.
bool is_native(const Instruction& i, const Operand* operands);
void print_native(Function& function, const Instruction& i);

}  // namespace ptxgen::llvm
