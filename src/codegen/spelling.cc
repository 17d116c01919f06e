#include "src/codegen/spelling.h"

#include "src/builder/instruction_table.h"

namespace ptxgen {
namespace {

Piece::Kind placeholder(char letter) {
  switch (letter) {
    case 'T': return Piece::Kind::kType;
    case 'B': return Piece::Kind::kBits;
    case 'M': return Piece::Kind::kMemory;
    case 'D': return Piece::Kind::kTo;
    case 'V': return Piece::Kind::kVector;
    case 'O': return Piece::Kind::kCacheOp;
    case 'H': return Piece::Kind::kHints;
    case 'C': return Piece::Kind::kScope;
    default: return Piece::Kind::kSpace;
  }
}

// Reads one placeholder at the start of `rest`; its length, or 0 when `rest` starts with text.
std::size_t read_placeholder(std::string_view rest, char before, Piece& piece) {
  if (rest[0] == '$') {
    piece = {placeholder(rest[1]), 0, {}};
    return 2;
  }
  if (rest.substr(0, 3) == "[a]") {
    piece = {Piece::Kind::kAddress, 0, {}};
    return 3;
  }
  if (rest.substr(0, 3) == "{d}") {
    piece = {Piece::Kind::kResults, 0, {}};
    return 3;
  }
  if (rest.substr(0, 3) == "{v}") {
    piece = {Piece::Kind::kStored, 0, {}};
    return 3;
  }
  // A letter that stands alone after one of these is an operand; anywhere else it is part of a name.
  constexpr std::string_view kBefore = " {[|@!";
  constexpr std::string_view kAfter = " ,}]|";
  if (kBefore.find(before) == std::string_view::npos) return 0;
  if (rest.size() > 1 && rest[0] == 'd' && (rest[1] == '0' || rest[1] == '1')) {
    piece = {Piece::Kind::kResult, static_cast<u8>(rest[1] - '0'), {}};
    return 2;
  }
  if (rest.size() > 1 && kAfter.find(rest[1]) == std::string_view::npos) return 0;
  constexpr std::string_view kOperands = "abce";
  if (const std::size_t index = kOperands.find(rest[0]); index != std::string_view::npos) {
    piece = {Piece::Kind::kOperand, static_cast<u8>(index), {}};
  } else if (rest[0] == 'd') {
    piece = {Piece::Kind::kResult, 0, {}};
  } else if (rest[0] == 's') {
    piece = {Piece::Kind::kSymbol, 0, {}};
  } else {
    return 0;
  }
  return 1;
}

Spelling split(std::string_view text) {
  Spelling pieces;
  std::size_t count = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    Piece piece;
    const std::size_t length = read_placeholder(text.substr(i), i ? text[i - 1] : '\n', piece);
    if (length == 0) {
      ++i;
      continue;
    }
    // The state space symbol of ld.param is written [s]; its bracket is text.
    if (i > start) pieces[count++] = {Piece::Kind::kText, 0, text.substr(start, i - start)};
    pieces[count++] = piece;
    i += length;
    start = i;
  }
  if (start < text.size()) pieces[count++] = {Piece::Kind::kText, 0, text.substr(start)};
  return pieces;
}

}  // namespace

const Spelling& spelling(Op op) {
  static const std::array<Spelling, kNumRows>& table = *[] {
    auto* all = new std::array<Spelling, kNumRows>;
    for (u32 i = 0; i < kNumRows; ++i) (*all)[i] = split(row(static_cast<Op>(i)).spelling);
    return all;
  }();
  return table[static_cast<u32>(op)];
}

}  // namespace ptxgen
