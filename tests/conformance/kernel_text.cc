#include "tests/conformance/kernel_text.h"

#include <algorithm>

namespace ptxgen::testing {
namespace {

std::string_view memory_type(Type type) {
  return bytes_of(type) == 1 ? type == Type::kS8 ? "s8" : "u8" : info(type).bits;
}

std::string list(const Piece& piece, unsigned vector, const std::vector<std::string>& names) {
  const unsigned count = piece.count ? piece.count : vector;
  if (count == 1) return names[piece.first];
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) str_append(&text, i ? ", " : "", names[piece.first + i]);
  return text + "}";
}

}  // namespace

std::string KernelText::fresh(Type type) {
  if (type == Type::kPred) return str_cat("%p", ++predicates_);
  switch (bytes_of(type)) {
    case 8: return str_cat("%rd", ++longs_);
    case 4: return str_cat("%r", ++words_);
    default: return str_cat("%rs", ++halves_);
  }
}

std::string KernelText::loaded(Type type, Type element, unsigned per) {
  const std::string name = fresh(type), at = str_cat("[%in+", case_.input_bytes, "]");
  case_.registers.push_back({element, per});
  case_.input_bytes += 8;
  if (type == Type::kPred) {
    const std::string word = fresh(Type::kU32);
    line(str_cat("ld.global.u32 ", word, ", ", at));
    line(str_cat("setp.ne.u32 ", name, ", ", word, ", 0"));
  } else {
    line(str_cat("ld.global.", memory_type(type), " ", name, ", ", at));
  }
  return name;
}

void KernelText::stored(Type type, std::string_view name) {
  const unsigned bytes = type == Type::kPred ? 4 : std::max(2u, bytes_of(type));
  case_.output_bytes = (case_.output_bytes + bytes - 1) / bytes * bytes;
  output_alignment_ = std::max(output_alignment_, bytes);
  const std::string at = str_cat("[%out+", case_.output_bytes, "]");
  case_.output_bytes += bytes;
  if (type == Type::kPred) {
    const std::string word = fresh(Type::kU32);
    line(str_cat("selp.u32 ", word, ", 1, 0, ", name));
    line(str_cat("st.global.b32 ", at, ", ", word));
  } else {
    line(str_cat("st.global.", info(type).bits, " ", at, ", ", name));
  }
}

void KernelText::copy16(std::string_view from_space, std::string_view from, std::string_view to_space,
                        std::string_view to) {
  std::string words;
  for (int i = 0; i < 4; ++i) str_append(&words, i ? ", " : "", fresh(Type::kU32));
  line(str_cat("ld.", from_space, ".v4.b32 {", words, "}, ", from));
  line(str_cat("st.", to_space, ".v4.b32 ", to, ", {", words, "}"));
  if (to == "[%out]") output_alignment_ = 16;
  if (from == "[%in]") input_alignment_ = 16;
}

void KernelText::use_shared(unsigned pieces) {
  shared_ = pieces;
  line("mov.u32 %s, tile");
  line("mad.lo.u32 %s, %t, 16, %s");
}

std::string KernelText::entry() {
  case_.input_bytes = (case_.input_bytes + input_alignment_ - 1) / input_alignment_ * input_alignment_;
  case_.output_bytes = (case_.output_bytes + output_alignment_ - 1) / output_alignment_ * output_alignment_;
  std::string text =
      str_cat("\n.visible .entry ", case_.entry_name, "(.param .u64 in, .param .u64 out)\n{\n");
  str_append(&text, "  .reg .pred %p<", predicates_ + 1, ">; .reg .b16 %rs<", halves_ + 1, ">; .reg .b32 %r<",
             words_ + 1, ">; .reg .b64 %rd<", longs_ + 1,
             ">;\n  .reg .b64 %in, %out; .reg .b32 %i, %t, %s;\n");
  if (shared_) str_append(&text, "  .shared .align 128 .b8 tile[", shared_ * kPieceBytes, "];\n");
  str_append(&text, "  mov.u32 %t, %tid.x;\n  mov.u32 %i, %ctaid.x;\n  mad.lo.u32 %i, %i, ",
             ConformanceCase::kCta,
             ", %t;\n  ld.param.u64 %in, [in];\n  ld.param.u64 %out, [out];\n  mad.wide.u32 %in, %i, ",
             case_.input_bytes, ", %in;\n  mad.wide.u32 %out, %i, ", case_.output_bytes, ", %out;\n", body_,
             "  ret;\n}\n");
  return text;
}

std::string text_of(const Call& call) {
  const auto layout = [](Layout l) { return l == Layout::kRow ? ".row" : ".col"; };
  std::string text;
  for (const Piece* piece = call.row.pieces->data(); piece->kind != Piece::Kind::kEnd; ++piece) {
    switch (piece->kind) {
      case Piece::Kind::kText: text.append(piece->text.bytes.data(), piece->text.size); break;
      case Piece::Kind::kType: text += info(call.type).name; break;
      case Piece::Kind::kBits: text += info(call.type).bits; break;
      case Piece::Kind::kMemory: text += info(call.type).memory; break;
      case Piece::Kind::kTo: text += info(call.to).name; break;
      case Piece::Kind::kVector:
        if (call.modifiers.vector > 1) str_append(&text, ".v", unsigned{call.modifiers.vector});
        break;
      case Piece::Kind::kScope: text += call.modifiers.scope == Scope::kCta ? ".cta" : ".gpu"; break;
      case Piece::Kind::kSpace: text += call.modifiers.space == Space::kGlobal ? ".global" : ".shared"; break;
      case Piece::Kind::kLayout: text += layout(call.modifiers.layout); break;
      case Piece::Kind::kLayoutB: text += layout(call.modifiers.layout_b); break;
      case Piece::Kind::kColumns: str_append(&text, piece->count * call.modifiers.vector); break;
      case Piece::Kind::kScaleA: str_append(&text, static_cast<int>(call.modifiers.scale_a)); break;
      case Piece::Kind::kScaleB: str_append(&text, static_cast<int>(call.modifiers.scale_b)); break;
      case Piece::Kind::kTransA: str_append(&text, int{call.modifiers.major_a == Major::kMn}); break;
      case Piece::Kind::kTransB: str_append(&text, int{call.modifiers.major_b == Major::kMn}); break;
      case Piece::Kind::kResults: text += list(*piece, call.modifiers.vector, call.results); break;
      case Piece::Kind::kOperands: text += list(*piece, call.modifiers.vector, call.operands); break;
      case Piece::Kind::kAddress: text += call.operands[piece->first]; break;
      default: break;  // hints, which change no result; labels, which no case has
    }
  }
  return text;
}

}  // namespace ptxgen::testing
