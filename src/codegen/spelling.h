// The spelling column of the instruction table, split once into literal text and placeholders.
#pragma once

#include <array>
#include <string_view>

#include "ptxgen/ir.h"

namespace ptxgen {

struct Piece {
  enum class Kind : u8 {
    kText,
    kType,     // $T
    kBits,     // $B
    kMemory,   // $M
    kTo,       // $D
    kVector,   // $V
    kCacheOp,  // $O
    kHints,    // $H
    kScope,    // $C
    kSpace,    // $A
    kResult,   // d, d0, d1
    kResults,  // {d}
    kOperand,  // a, b, c, e
    kAddress,  // [a]
    kStored,   // {v}
    kSymbol,   // s
    kEnd,
  };
  Kind kind = Kind::kEnd;
  u8 index = 0;           // of the result or operand
  std::string_view text;  // of kText
};

using Spelling = std::array<Piece, 16>;  // ends with kEnd

// The pieces of a row's spelling.
const Spelling& spelling(Op op);

}  // namespace ptxgen
