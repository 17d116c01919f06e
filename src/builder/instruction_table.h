// The instruction table as data, for the builder, the printer, the verifier and the tests of its floors.
#pragma once

#include <array>
#include <string_view>

#include "ptxgen/ir.h"
#include "src/builder/spelling.h"

namespace ptxgen {

// The operands, or the results, of a row.
struct Slots {
  static constexpr std::size_t kMax = 6;

  std::array<Rule, kMax> rules = {};  // up to the first None
  u8 registers = 0;                   // that they stand for ...
  bool vector = false;                // ... and with is_vector() as many more as the vector modifier says
  bool ranged = false;  // whether literals of one of them have a range; each is one register then

  constexpr u32 count(u8 vector_width) const { return registers + (vector ? vector_width : 0u); }
};

struct Row {
  std::string_view id;
  std::string_view method;
  Kind kind;
  RowTypes types;
  Slots results, operands;
  std::string_view spelling;
  PtxIsa isa;
  Target target;
  std::string_view section;
  const Spelling* pieces;  // of `spelling`
};

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
const ModifierRow& row(Space space);

Type resolve(Rule rule, Type t, Type d);

// What a literal in the place of an operand may be: `low` to `high`, a multiple of `multiple`.
struct LiteralRange {
  s64 low, high, multiple;
  std::string_view what;

  constexpr bool contains(s64 value) const { return value >= low && value <= high && value % multiple == 0; }
};
// Null where every value of the type will do.
const LiteralRange* literal_range(Rule rule);

}  // namespace ptxgen
