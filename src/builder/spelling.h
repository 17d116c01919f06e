// The spelling column of the instruction table, split at compile time into literal text and placeholders.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "ptxgen/ir.h"

namespace ptxgen {

// A few characters that are copied as 16 bytes at once, whatever their number.
struct ShortText {
  static constexpr std::size_t kMax = 16;

  std::array<char, kMax> bytes = {};
  u8 size = 0;

  constexpr bool operator==(const ShortText&) const = default;
  constexpr ShortText() = default;
  constexpr ShortText(std::string_view text)
      : size(static_cast<u8>(text.size())) {  // NOLINT: implicit by design
    for (std::size_t i = 0; i < text.size(); ++i) bytes[i] = text[i];
  }
};

struct Piece {
  enum class Kind : u8 {
    kEnd,
    kText,
    kType,      // $T
    kBits,      // $B
    kMemory,    // $M
    kTo,        // $D
    kVector,    // $V
    kCacheOp,   // $O
    kHints,     // $H
    kScope,     // $C
    kSpace,     // $A
    kLayout,    // $R
    kLayoutB,   // $N
    kColumns,   // $W, $X: `count` for each register of the vector operand
    kScaleA,    // $E
    kScaleB,    // $F
    kTransA,    // $J
    kTransB,    // $K
    kLabel,     // $L
    kResults,   // d, d0, d1; {d}: in braces where they are several
    kOperands,  // a, b, c, e, f, g; {a}, {b}
    kAddress,   // [a], [b]
  };
  Kind kind = Kind::kEnd;
  u8 first = 0;    // register, of all the results or operands
  u8 count = 0;    // registers; 0: as many as the vector modifier says
  ShortText text;  // of kText
};

inline constexpr std::size_t kMaxPieces = 32;
using Spelling = std::array<Piece, kMaxPieces>;  // ends with kEnd

namespace detail {

// Reached only by a row whose spelling is wrong, which then is no constant expression.
inline void spelling_error(const char*) {}

constexpr Piece::Kind modifier_piece(char letter) {
  switch (letter) {
    case 'T': return Piece::Kind::kType;
    case 'B': return Piece::Kind::kBits;
    case 'M': return Piece::Kind::kMemory;
    case 'D': return Piece::Kind::kTo;
    case 'V': return Piece::Kind::kVector;
    case 'O': return Piece::Kind::kCacheOp;
    case 'H': return Piece::Kind::kHints;
    case 'C': return Piece::Kind::kScope;
    case 'A': return Piece::Kind::kSpace;
    case 'R': return Piece::Kind::kLayout;
    case 'N': return Piece::Kind::kLayoutB;
    case 'L': return Piece::Kind::kLabel;
    case 'W':
    case 'X': return Piece::Kind::kColumns;
    case 'E': return Piece::Kind::kScaleA;
    case 'F': return Piece::Kind::kScaleB;
    case 'J': return Piece::Kind::kTransA;
    case 'K': return Piece::Kind::kTransB;
    default: spelling_error("no such modifier"); return Piece::Kind::kEnd;
  }
}

constexpr bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

// The registers that slot `slot` of the row's results or operands stands for.
template <std::size_t N>
constexpr Piece slot_piece(Piece::Kind kind, const std::array<Rule, N>& rules, std::size_t slot) {
  if (slot >= N || rules[slot] == Rule::None) spelling_error("the row has no such result or operand");
  Piece piece;
  piece.kind = kind;
  for (std::size_t i = 0; i < slot; ++i) {
    if (is_vector(rules[i])) spelling_error("a vector operand stands last");
    piece.first = static_cast<u8>(piece.first + count_of(rules[i]));
  }
  piece.count = is_vector(rules[slot]) ? u8{0} : static_cast<u8>(count_of(rules[slot]));
  return piece;
}

}  // namespace detail

// A letter names a result or operand where it stands alone: after a separator and before one. Elsewhere it is
// text.
template <std::size_t N>
constexpr Spelling split(std::string_view text, const std::array<Rule, N>& results,
                         const std::array<Rule, N>& operands) {
  constexpr std::string_view kBefore = " ,{[|@!";
  constexpr std::string_view kAfter = " ,}]|";
  constexpr std::string_view kOperands = "abcefg";
  Spelling pieces;
  std::size_t count = 0;
  std::size_t start = 0;  // of text not yet put down
  const auto put = [&](std::size_t at, std::size_t length, Piece piece) {
    if (count + (at - start) / ShortText::kMax + 3 > kMaxPieces) detail::spelling_error("too many pieces");
    for (std::size_t chunk = 0; start < at; start += chunk) {
      chunk = std::min(at - start, ShortText::kMax);
      pieces[count++] = {Piece::Kind::kText, 0, 0, text.substr(start, chunk)};
    }
    if (length > 0) pieces[count++] = piece;
    start = at + length;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$') {
      const u8 columns = text[i + 1] == 'W' ? 2 : text[i + 1] == 'X' ? 4 : 0;
      put(i, 2, {detail::modifier_piece(text[i + 1]), 0, columns, {}});
      ++i;
      continue;
    }
    if (i == 0 || !detail::is_one_of(text[i - 1], kBefore)) continue;
    const bool numbered = text[i] == 'd' && i + 1 < text.size() && detail::is_one_of(text[i + 1], "0123");
    const std::size_t end = i + 1 + numbered;
    if (end < text.size() && !detail::is_one_of(text[end], kAfter)) continue;
    Piece piece;
    if (text[i] == 'd') {
      piece = detail::slot_piece(Piece::Kind::kResults, results,
                                 numbered ? static_cast<std::size_t>(text[i + 1] - '0') : 0);
    } else if (detail::is_one_of(text[i], kOperands)) {
      piece = detail::slot_piece(Piece::Kind::kOperands, operands, kOperands.find(text[i]));
    } else {
      continue;
    }
    // "[a]" and "{a}" are one piece with their brackets; "{a, b}" is text around two.
    const char before = text[i - 1];
    const char after = end < text.size() ? text[end] : ' ';
    if (before == '[' && after == ']') piece.kind = Piece::Kind::kAddress;
    const bool bracketed = (before == '[' && after == ']') || (before == '{' && after == '}');
    put(i - bracketed, end - i + 2u * bracketed, piece);
    i = end - !bracketed;
  }
  put(text.size(), 0, {});
  return pieces;
}

}  // namespace ptxgen
