#include "src/builder/divergence.h"

#include "src/builder/instruction_table.h"
#include "src/builder/schedule.h"

namespace ptxgen {
namespace {

// Forward data flow over values and variables. A variable differs between threads once a differing value is
// assigned to it, or any value in differing control flow; loops are walked until nothing changes.
class Divergence {
 public:
  explicit Divergence(const Kernel& kernel)
      : kernel_(kernel),
        values_(kernel.values.size()),
        variables_(kernel.variables.size()),
        reached_divergently_(kernel.instructions.size()),
        yields_(kernel.regions.size()) {
    do {
      changed_ = false;
      walk(0, false);
    } while (changed_);
  }

  bool reached_divergently(u32 instruction) const { return reached_divergently_[instruction]; }

 private:
  bool differs(const Operand& operand) const {
    return operand.form == Operand::Form::kValue && operand.value != kNoValue && values_[operand.value];
  }

  void walk(u32 region, bool divergent) {
    for (u32 i = kernel_.regions[region].first; i != kNone; i = kernel_.instructions[i].next) {
      const Instruction& effect = kernel_.instructions[i];
      for (u32 v = kernel_.gaps[effect.gap].first; v != kNone; v = kernel_.instructions[v].next) evaluate(v);
      evaluate(i);
      reached_divergently_[i] = divergent;
      if (effect.op == Op::kVarWrite) {
        const Operand* operands = &kernel_.operands[effect.operands];
        set(variables_, static_cast<std::size_t>(operands[0].bits), divergent || differs(operands[1]));
      } else if (effect.op == Op::kYield) {
        set(yields_, region, differs(kernel_.operands[effect.operands]));
      }
      bool inside = divergent || (effect.num_operands > 0 && differs(kernel_.operands[effect.operands]));
      for_each_inner(effect, [&](u32 inner) { inside |= yields_[inner]; });
      for_each_inner(effect, [&](u32 inner) { walk(inner, inside); });
    }
  }

  void evaluate(u32 index) {
    const Instruction& instruction = kernel_.instructions[index];
    const Operand* operands = kernel_.operands.data() + instruction.operands;
    bool different = false;
    if (instruction.op == Op::kVarRead) {
      different = variables_[static_cast<std::size_t>(operands[0].bits)];
    } else if (static_cast<u32>(instruction.op) < kNumRows) {
      const Kind kind = row(instruction.op).kind;
      different = kind == Kind::Thread || kind == Kind::StrongLoad || kind == Kind::Atomic ||
                  kind == Kind::MBarrier || kind == Kind::Convergent || kind == Kind::Clock;
      // What a barrier returns (bar.red) is one value for all.
      for (u8 i = 0; i < instruction.num_operands && kind != Kind::Barrier; ++i)
        different |= differs(operands[i]);
    }
    for (u8 i = 0; i < instruction.num_results; ++i) set(values_, instruction.results + i, different);
  }

  void set(std::vector<bool>& flags, std::size_t index, bool value) {
    changed_ |= value && !flags[index];
    if (value) flags[index] = true;
  }

  const Kernel& kernel_;
  std::vector<bool> values_, variables_, reached_divergently_;
  std::vector<bool> yields_;  // of each region: whether its final predicate differs
  bool changed_ = false;
};

}  // namespace

std::vector<u32> divergent_barriers(const Kernel& kernel,
                                    const std::vector<std::pair<u32, SourceLocation>>& barriers) {
  std::vector<u32> found;
  if (barriers.empty()) return found;
  const Divergence divergence(kernel);
  for (u32 i = 0; i < barriers.size(); ++i) {
    if (divergence.reached_divergently(barriers[i].first)) found.push_back(i);
  }
  return found;
}

}  // namespace ptxgen
