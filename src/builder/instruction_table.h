// The instruction table as data, for the builder, the printer, the verifier and the tests of its floors.
#pragma once

#include <array>
#include <string_view>

#include "ptxgen/ir.h"

namespace ptxgen {

struct Row {
  std::string_view id;
  std::string_view method;
  Kind kind;
  TypeSet types;
  std::array<Rule, 2> results;
  std::string_view spelling;
  PtxIsa isa;
  Target target;
  std::string_view section;

  constexpr u8 num_results() const {
    return static_cast<u8>((results[0] != Rule::None) + (results[1] != Rule::None));
  }
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

Type resolve(Rule rule, Type t, Type d);

}  // namespace ptxgen
