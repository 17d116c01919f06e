// Prints an instruction by its row's spelling: as PTX, or as the text of inline assembly.
#pragma once

#include <array>
#include <string_view>

#include "absl/types/span.h"
#include "src/builder/instruction_table.h"
#include "src/codegen/writer.h"

namespace ptxgen {

// The names of types, ready to copy.
struct TypeText {
  ShortText name, memory, bits;
};
constexpr auto kTypeText = [] {
  std::array<TypeText, kTypeInfo.size()> texts;
  for (std::size_t i = 0; i < texts.size(); ++i)
    texts[i] = {kTypeInfo[i].name, kTypeInfo[i].memory, kTypeInfo[i].bits};
  return texts;
}();
constexpr const TypeText& text_of(Type type) {
  return kTypeText[static_cast<std::size_t>(type)];
}

// A number, or the digits of a float: "0f3F800000".
inline void print_literal(Writer& out, const Operand& o) {
  constexpr s64 kLargestCount =
      0xffff;  // small numbers count something; large ones are masks and bit patterns
  switch (o.form) {
    case Operand::Form::kF32: out.text("0f"); return out.hex(static_cast<u64>(o.bits), 8);
    case Operand::Form::kF64: out.text("0d"); return out.hex(static_cast<u64>(o.bits), 16);
    default: return o.bits <= kLargestCount ? out.number(o.bits) : out.mask(o.bits);
  }
}

// Extents of a directive: ".maxntid 128, 1, 1".
inline void print_directive(Writer& out, std::string_view name, absl::Span<const u32> values) {
  out.text(name);
  for (const u32& value : values) {
    out.text(&value == values.data() ? " " : ", ");
    out.number(value);
  }
  out.character('\n');
}

// The cluster that every launch has.
inline void print_cluster(Writer& out, const LaunchBounds& bounds) {
  out.text(".explicitcluster\n");
  print_directive(out, ".reqnctapercluster", bounds.cluster);
}

namespace detail {

// The registers of one operand, in braces where they are several.
template <class Element>
void print_list(Writer& out, const Piece& piece, const Instruction& i, Element&& element) {
  const u32 count = piece.count ? piece.count : i.modifiers.vector;
  if (count == 1) return element(piece.first);
  for (u32 n = 0; n < count; ++n) {
    out.text(n == 0 ? "{" : ", ");
    element(piece.first + n);
  }
  out.character('}');
}

template <class Sink>
void print_address(Writer& out, const Operand& o, u32 index, Sink& sink) {
  out.character('[');
  sink.operand(index);
  if (o.form == Operand::Form::kValue && o.bits != 0) {
    out.character('+');  // "+-4": PTX has no [reg-4]
    out.number(o.bits);
  }
  out.character(']');
}

}  // namespace detail

// Without the semicolon. The sink prints what the instruction is about: result(r) and operand(o) by their
// places, label().
template <class Sink>
void spell(Writer& out, const Instruction& i, const Operand* operands, Sink&& sink) {
  const auto layout = [&](Layout l) { out.text(l == Layout::kRow ? ".row" : ".col"); };
  for (const Piece* piece = row(i.op).pieces->data(); piece->kind != Piece::Kind::kEnd; ++piece) {
    switch (piece->kind) {
      case Piece::Kind::kText: out.text(piece->text); break;
      case Piece::Kind::kType: out.text(text_of(i.type).name); break;
      case Piece::Kind::kBits: out.text(text_of(i.type).bits); break;
      case Piece::Kind::kMemory: out.text(text_of(i.type).memory); break;
      case Piece::Kind::kTo: out.text(text_of(i.to).name); break;
      case Piece::Kind::kVector:
        out.text(i.modifiers.vector == 1 ? "" : i.modifiers.vector == 2 ? ".v2" : ".v4");
        break;
      case Piece::Kind::kCacheOp: out.text(row(i.modifiers.hints.op).spelling); break;
      case Piece::Kind::kHints:
        out.text(row(i.modifiers.hints.l1).spelling);
        out.text(row(i.modifiers.hints.l2).spelling);
        break;
      case Piece::Kind::kScope: out.text(row(i.modifiers.scope).spelling); break;
      case Piece::Kind::kSpace: out.text(row(i.modifiers.space).spelling); break;
      case Piece::Kind::kLayout: layout(i.modifiers.layout); break;
      case Piece::Kind::kLayoutB: layout(i.modifiers.layout_b); break;
      case Piece::Kind::kColumns: out.number(piece->count * i.modifiers.vector); break;
      case Piece::Kind::kScaleA: out.number(static_cast<s64>(i.modifiers.scale_a)); break;
      case Piece::Kind::kScaleB: out.number(static_cast<s64>(i.modifiers.scale_b)); break;
      case Piece::Kind::kTransA: out.number(i.modifiers.major_a == Major::kMn); break;
      case Piece::Kind::kTransB: out.number(i.modifiers.major_b == Major::kMn); break;
      case Piece::Kind::kLabel: sink.label(); break;
      case Piece::Kind::kResults: detail::print_list(out, *piece, i, [&](u32 r) { sink.result(r); }); break;
      case Piece::Kind::kOperands: detail::print_list(out, *piece, i, [&](u32 o) { sink.operand(o); }); break;
      case Piece::Kind::kAddress:
        detail::print_address(out, operands[piece->first], piece->first, sink);
        break;
      case Piece::Kind::kEnd: break;
    }
  }
}

}  // namespace ptxgen
