#include "src/builder/schedule.h"

#include <utility>
#include <vector>

#include "src/builder/instruction_table.h"

namespace ptxgen {
namespace {

class Scheduler {
 public:
  explicit Scheduler(Kernel& kernel) : kernel_(kernel), placed_(kernel.instructions.size(), false) {}

  void walk(u32 region) {
    for (u32 i = kernel_.regions[region].first; i != kNone; i = kernel_.instructions[i].next) {
      visit_operands(i);
      for_each_inner(kernel_.instructions[i], [&](u32 inner) { walk(inner); });
    }
  }

 private:
  static bool is_pure(const Instruction& instruction) {
    return instruction.op == Op::kVarRead ||
           (static_cast<u32>(instruction.op) < kNumRows && !is_effect(row(instruction.op).kind));
  }

  // Depth first without recursion: a chain of values may be thousands long.
  void visit_operands(u32 root) {
    stack_.emplace_back(root, u8{0});
    while (!stack_.empty()) {
      auto& [index, position] = stack_.back();
      const Instruction& instruction = kernel_.instructions[index];
      if (position == instruction.num_operands) {
        if (index != root) place(index);
        stack_.pop_back();
        continue;
      }
      const Operand& operand = kernel_.operands[instruction.operands + position++];
      if (operand.form != Operand::Form::kValue || operand.value == kNoValue) continue;
      Value& value = kernel_.values[operand.value];
      ++value.uses;
      if (placed_[value.definition] || !is_pure(kernel_.instructions[value.definition])) continue;
      placed_[value.definition] = true;
      stack_.emplace_back(value.definition, u8{0});
    }
  }

  void place(u32 index) {
    Gap& gap = kernel_.gaps[kernel_.instructions[index].gap];
    (gap.last == kNone ? gap.first : kernel_.instructions[gap.last].next) = index;
    gap.last = index;
  }

  Kernel& kernel_;
  std::vector<bool> placed_;
  std::vector<std::pair<u32, u8>> stack_;  // instruction, next operand
};

}  // namespace

void schedule(Kernel& kernel) {
  Scheduler(kernel).walk(0);
}

}  // namespace ptxgen
