// PTX text as tokens (PTX ISA, "Syntax").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ptxgen::emulator {

struct Token {
  enum class Kind : std::uint8_t {
    kName,     // identifier: register, label, symbol, opcode
    kDotted,   // ".global", ".L1::no_allocate", ".x"; text includes the dot
    kInteger,  // bits holds the value
    kFloat32,  // 0f...; bits holds the f32 pattern
    kFloat64,  // 0d... or decimal; bits holds the f64 pattern
    kString,   // text without the quotes
    kSymbol,   // one punctuation character
    kEnd,
  };
  Kind kind;
  std::string_view text;
  std::uint32_t line;  // 1-based
  std::uint64_t bits = 0;

  bool is(char symbol) const { return kind == Kind::kSymbol && text[0] == symbol; }
  bool is(std::string_view word) const {
    return (kind == Kind::kName || kind == Kind::kDotted) && text == word;
  }
};

// The tokens of `source`, ended by kEnd. Texts are views into `source`.
absl::StatusOr<std::vector<Token>> tokenize(std::string_view source);

// The line numbered `line` of `source`, without surrounding blanks.
std::string_view line_text(std::string_view source, std::uint32_t line);

}  // namespace ptxgen::emulator
