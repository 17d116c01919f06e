// The instruction table as data, for the builder, the printer, the verifier and the tests of its floors.
#pragma once

#include <array>
#include <string_view>

#include "ptxgen/ir.h"
#include "src/builder/spelling.h"

namespace ptxgen {

struct Row {
  static constexpr std::size_t kMaxSlots = 5;

  std::string_view id;
  std::string_view method;
  Kind kind;
  RowTypes types;
  std::array<Rule, kMaxSlots> results, operands;  // up to the first None
  std::string_view spelling;
  PtxIsa isa;
  Target target;
  std::string_view section;
  const Spelling* pieces;  // of `spelling`
};

// How many registers `rules` stand for.
constexpr u32 count_of(const std::array<Rule, Row::kMaxSlots>& rules, u8 vector) {
  u32 count = 0;
  for (const Rule rule : rules) count += rule == Rule::None ? 0 : rule == Rule::V ? vector : count_of(rule);
  return count;
}

const Row& row(Op op);

// A modifier is a row too: its spelling and its floors.
struct ModifierRow {
  std::string_view spelling;
  PtxIsa isa;
  Target target;
};
const ModifierRow& row(CacheOp op);
const ModifierRow& row(L1 hint);
const ModifierRow& row(L2 hint);
const ModifierRow& row(Scope scope);

Type resolve(Rule rule, Type t, Type d);

}  // namespace ptxgen
