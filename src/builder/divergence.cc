#include "src/builder/divergence.h"

#include <algorithm>
#include <optional>

#include "src/builder/instruction_table.h"
#include "src/builder/schedule.h"

namespace ptxgen {
namespace {

enum class Group : u8 { kWarp, kWarpgroup, kCta };

// How a value spreads over the threads of a group: a multiple of a power of two plus the upper bits of the
// thread's place in the group, as many as the power has. So 1 is one value in all threads, and tid_x() has 32
// in a warp, 128 in a warpgroup; tid_x() >> 5 there has 4, one for each warp. 0 is anything else.
using Spread = s64;
constexpr Spread kUniform = 1, kDiffers = 0;

// Of a value that is now this, now that.
Spread join(Spread a, Spread b) {
  if (a == b || b == kUniform) return a;
  return a == kUniform ? b : kDiffers;
}

constexpr s64 kWarpSize = 32, kWarpgroupSize = 128;

// Forward data flow over values and variables. A variable spreads as what is assigned to it, and differs once
// that happens in differing control flow; loops are walked until nothing changes.
//
// In a warp (warpgroup), tid_y() and tid_z() count as uniform and tid_x() as its place unless maxntid says
// that rows of the block are no whole warps (warpgroups): a kernel that counts them has such blocks.
class Divergence {
 public:
  Divergence(const Kernel& kernel, Group group)
      : kernel_(kernel),
        group_(group),
        size_(group == Group::kWarp ? kWarpSize : kWarpgroupSize),
        whole_groups_(kernel.bounds.maxntid[0] % size_ == 0),
        values_(kernel.values.size(), kUniform),
        variables_(kernel.variables.size(), kUniform),
        reached_divergently_(kernel.instructions.size()),
        yields_(kernel.regions.size(), kUniform) {
    do {
      changed_ = false;
      walk(0, false);
    } while (changed_);
  }

  bool reached_divergently(u32 instruction) const { return reached_divergently_[instruction]; }

 private:
  Spread spread(const Operand& operand) const {
    return operand.form == Operand::Form::kValue && operand.value != kNoValue ? values_[operand.value]
                                                                              : kUniform;
  }
  bool differs(const Operand& operand) const { return spread(operand) != kUniform; }

  void walk(u32 region, bool divergent) {
    for (u32 i = kernel_.regions[region].first; i != kNone; i = kernel_.instructions[i].next) {
      const Instruction& effect = kernel_.instructions[i];
      for (u32 v = kernel_.gaps[effect.gap].first; v != kNone; v = kernel_.instructions[v].next) evaluate(v);
      evaluate(i);
      reached_divergently_[i] = divergent;
      if (effect.op == Op::kVarWrite) {
        const Operand* operands = &kernel_.operands[effect.operands];
        raise(variables_[static_cast<std::size_t>(operands[0].bits)],
              divergent ? kDiffers : spread(operands[1]));
      } else if (effect.op < Op::kVarRead && row(effect.op).kind == Kind::Warpgroup) {
        for (u8 o = 0; o < effect.num_operands; ++o) {
          const Operand& operand = kernel_.operands[effect.operands + o];
          if (operand.form == Operand::Form::kVariable)
            raise(variables_[static_cast<std::size_t>(operand.bits)], kDiffers);
        }
      } else if (effect.op == Op::kYield) {
        raise(yields_[region], spread(kernel_.operands[effect.operands]));
      }
      bool inside = divergent || (effect.num_operands > 0 && differs(kernel_.operands[effect.operands]));
      for_each_inner(effect, [&](u32 inner) { inside |= yields_[inner] != kUniform; });
      for_each_inner(effect, [&](u32 inner) { walk(inner, inside); });
    }
  }

  void evaluate(u32 index) {
    const Instruction& instruction = kernel_.instructions[index];
    const Operand* operands = kernel_.operands.data() + instruction.operands;
    Spread result = kUniform;
    if (instruction.op == Op::kVarRead) {
      result = variables_[static_cast<std::size_t>(operands[0].bits)];
    } else if (static_cast<u32>(instruction.op) < kNumRows) {
      result = group_ == Group::kCta    ? across_cta(instruction, operands)
               : group_ == Group::kWarp ? across_warp(instruction, operands)
                                        : across_warpgroup(instruction, operands);
    }
    for (u8 i = 0; i < instruction.num_results; ++i) raise(values_[instruction.results + i], result);
  }

  // A shuffle gives back what is one value.
  Spread across_cta(const Instruction& instruction, const Operand* operands) const {
    if (instruction.op == Op::shfl_sync_idx && !differs(operands[0]) && shuffles_from_one_lane(operands))
      return kUniform;
    return of_kind(row(instruction.op).kind).value_or(of_operands(instruction, operands));
  }

  // Where the kind alone tells.
  static std::optional<Spread> of_kind(Kind kind) {
    switch (kind) {
      case Kind::Thread:
      case Kind::StrongLoad:
      case Kind::Atomic:
      case Kind::MBarrier:
      case Kind::Convergent:
      case Kind::Aligned:
      case Kind::Warpgroup:
      case Kind::Clock: return kDiffers;
      case Kind::Barrier: return kUniform;  // what bar.red returns is one value for all
      default: return std::nullopt;
    }
  }

  // The warp being one segment: c is 31 (PTX ISA, shfl.sync).
  bool shuffles_from_one_lane(const Operand* operands) const {
    return !differs(operands[1]) && is_literal(operands[2], [](s64 c) { return c == kWarpSize - 1; });
  }

  Spread across_warp(const Instruction& instruction, const Operand* operands) const {
    switch (instruction.op) {
      case Op::laneid: return size_;
      case Op::vote_sync_all:
      case Op::vote_sync_any:
      case Op::vote_sync_uni:
      case Op::vote_sync_ballot:
      case Op::match_all_sync:
      case Op::redux_sync_add:
      case Op::redux_sync_min:
      case Op::redux_sync_max:
      case Op::redux_sync_and:
      case Op::redux_sync_or:
      case Op::redux_sync_xor:
      case Op::activemask: return kUniform;
      case Op::shfl_sync_idx: return shuffles_from_one_lane(operands) ? kUniform : kDiffers;
      default: return across_group(instruction, operands);
    }
  }

  // A shuffle from one lane gives back what is one value in each warp.
  Spread across_warpgroup(const Instruction& instruction, const Operand* operands) const {
    if (instruction.op != Op::shfl_sync_idx) return across_group(instruction, operands);
    const bool of_warps = spread(operands[0]) <= size_ / kWarpSize;
    return of_warps && shuffles_from_one_lane(operands) ? spread(operands[0]) : kDiffers;
  }

  Spread across_group(const Instruction& instruction, const Operand* operands) const {
    switch (instruction.op) {
      case Op::tid_x: return whole_groups_ ? size_ : kDiffers;
      case Op::tid_y:
      case Op::tid_z: return whole_groups_ ? kUniform : kDiffers;
      default: break;
    }
    if (const std::optional<Spread> known = of_kind(row(instruction.op).kind)) return *known;
    if (instruction.num_operands == 2 && spread(operands[0]) > kUniform && !differs(operands[1])) {
      return of_places(instruction.op, spread(operands[0]), operands[1]);
    }
    return of_operands(instruction, operands);
  }

  // `op` of a value that spreads with `period` and one that is uniform.
  static Spread of_places(Op op, Spread period, const Operand& b) {
    const bool whole = is_literal(b, [&](s64 value) { return value % period == 0; });
    switch (op) {
      case Op::shr:
        if (b.form != Operand::Form::kInteger) return kDiffers;
        return b.bits >= 32 ? kUniform : std::max(period >> b.bits, kUniform);
      case Op::and_:
      case Op::div:
      case Op::setp_lt:
      case Op::setp_ge: return whole ? kUniform : kDiffers;
      case Op::add: return whole ? period : kDiffers;
      default: return kDiffers;
    }
  }

  template <class Test>
  static bool is_literal(const Operand& operand, Test&& test) {
    return operand.form == Operand::Form::kInteger && test(operand.bits);
  }

  Spread of_operands(const Instruction& instruction, const Operand* operands) const {
    for (u8 i = 0; i < instruction.num_operands; ++i) {
      if (differs(operands[i])) return kDiffers;
    }
    return kUniform;
  }

  void raise(Spread& spread, Spread to) {
    const Spread joined = join(spread, to);
    changed_ |= joined != spread;
    spread = joined;
  }

  const Kernel& kernel_;
  const Group group_;
  const s64 size_;  // of a warp or warpgroup
  const bool whole_groups_;
  std::vector<Spread> values_, variables_;
  std::vector<bool> reached_divergently_;
  std::vector<Spread> yields_;  // of each region: its final predicate
  bool changed_ = false;
};

}  // namespace

std::vector<u32> reached_divergently(const Kernel& kernel,
                                     const std::vector<std::pair<u32, SourceLocation>>& together) {
  std::vector<u32> found;
  for (const Group group : {Group::kCta, Group::kWarp, Group::kWarpgroup}) {
    const auto concerns = [&](u32 i) {
      const Kind kind = row(kernel.instructions[together[i].first].op).kind;
      return group == (kind == Kind::Barrier     ? Group::kCta
                       : kind == Kind::Warpgroup ? Group::kWarpgroup
                                                 : Group::kWarp);
    };
    std::vector<u32> ours;
    for (u32 i = 0; i < together.size(); ++i) {
      if (concerns(i)) ours.push_back(i);
    }
    if (ours.empty()) continue;
    const Divergence divergence(kernel, group);
    for (const u32 i : ours) {
      if (divergence.reached_divergently(together[i].first)) found.push_back(i);
    }
  }
  return found;
}

}  // namespace ptxgen
