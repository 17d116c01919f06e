// The part of KernelBuilder that follows wgmma in straight-line code: which variables one in flight still
// accumulates in or reads.
#include <algorithm>

#include "ptxgen/kernel_builder.h"

namespace ptxgen {

void KernelBuilder::check_not_in_flight(u32 variable, bool written, SourceLocation where) {
  if (variable >= variables_.size()) return;
  const Variable& v = variables_[variable];
  if (v.written_by >= wgmma_.pending) {
    mistake(where, str_cat("a Var is ", written ? "written" : "read",
                           " while a wgmma may still accumulate in it; commit its group and wait for it "
                           "(wgmma_wait_group) first"));
  } else if (written && v.read_by >= wgmma_.pending) {
    mistake(
        where,
        "a Var is written while a wgmma may still read it; wait for its group (wgmma_wait_group) first, or "
        "keep a in two sets of registers by turns");
  }
}

void KernelBuilder::follow_wgmma(const Instruction& instruction) {
  ++wgmma_.instructions;
  if (instruction.op == Op::wgmma_commit_group) {
    ++wgmma_.open;
  } else if (instruction.op == Op::wgmma_wait_group) {
    const s64 kept = kernel_.operands[instruction.operands].bits;
    if (kept < wgmma_.open) wgmma_.pending = std::max(wgmma_.pending, wgmma_.open - static_cast<u32>(kept));
  }
  for (u8 i = 0; i < instruction.num_operands; ++i) {
    const Operand& operand = kernel_.operands[instruction.operands + i];
    if (operand.form == Operand::Form::kVariable) {
      const auto index = static_cast<std::size_t>(operand.bits);
      if (index >= variables_.size()) continue;  // after a mistake
      ++variables_[index].version;
      variables_[index].written_by = wgmma_.open;
    } else if (operand.form == Operand::Form::kValue && operand.value != kNoValue) {
      const Value& value = kernel_.values[operand.value];
      const Instruction& definition = kernel_.instructions[value.definition];
      if (definition.op != Op::kVarRead || value.copied) continue;
      variables_[static_cast<std::size_t>(kernel_.operands[definition.operands].bits)].read_by = wgmma_.open;
    }
  }
}

}  // namespace ptxgen
