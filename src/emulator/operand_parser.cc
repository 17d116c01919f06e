#include "src/emulator/operand_parser.h"

namespace ptxgen::emulator {

absl::Status OperandParser::operand(Operand& o, int depth) {
  if (depth > kMaxNesting) return error("operand nested too deeply");
  const Token& first = token();
  o.name = first.text;
  if (accept('!')) {
    RETURN_IF_ERROR(operand(o, depth + 1));
    o.negated = !o.negated;
    return absl::OkStatus();
  }
  if (accept('{')) return elements(o, Operand::Kind::kVector, '}', depth);
  if (accept('[')) {
    RETURN_IF_ERROR(elements(o, Operand::Kind::kAddress, ']', depth));
    Operand& base = o.elements[0];
    if (base.kind == Operand::Kind::kInteger) return absl::OkStatus();
    o.offset = std::exchange(base.offset, 0);
    return absl::OkStatus();
  }
  if (first.kind == Kind::kName) {
    RETURN_IF_ERROR(named(o));
  } else {
    RETURN_IF_ERROR(constant(o));
  }
  if (!accept('|')) return absl::OkStatus();
  Operand second;
  RETURN_IF_ERROR(operand(second, depth + 1));
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.name = o.name;
  pair.elements = {std::move(o), std::move(second)};
  o = std::move(pair);
  return absl::OkStatus();
}

absl::Status OperandParser::elements(Operand& o, Operand::Kind kind, char close, int depth) {
  o.kind = kind;
  do {
    RETURN_IF_ERROR(operand(o.elements.emplace_back(), depth + 1));
  } while (accept(','));
  return expect(close);
}

absl::Status OperandParser::constant(Operand& o) {
  const bool minus = accept('-');
  o.bits = token().bits;
  switch (token().kind) {
    case Kind::kInteger:
      o.kind = Operand::Kind::kInteger;
      if (minus) o.bits = -o.bits;
      break;
    case Kind::kFloat32:
      o.kind = Operand::Kind::kFloat32;
      if (minus) o.bits ^= 0x80000000u;
      break;
    case Kind::kFloat64:
      o.kind = Operand::Kind::kFloat64;
      if (minus) o.bits ^= std::uint64_t{1} << 63;
      break;
    default: return expected("an operand");
  }
  ++at_;
  return absl::OkStatus();
}

absl::Status OperandParser::named(Operand& o) {
  const Token& name = tokens_[at_++];
  if (name.text == "_") {
    o.kind = Operand::Kind::kDiscard;
    return absl::OkStatus();
  }
  if (name.text == "WARP_SZ") {
    o.kind = Operand::Kind::kInteger;
    o.bits = 32;
    return absl::OkStatus();
  }
  if (std::optional<Binding> binding = lookup(scope_, name.text)) {
    o.kind = binding->kind;
    o.index = binding->index;
    return offset(o);
  }
  if (name.text[0] != '%') {
    --at_;
    return error(str_cat("'", name.text, "' is not declared"));
  }
  o.kind = Operand::Kind::kSpecial;
  if (token().kind == Kind::kDotted) {
    const Token& part = tokens_[at_++];
    o.name = std::string_view(
        name.text.data(), static_cast<std::size_t>(part.text.data() + part.text.size() - name.text.data()));
  }
  return absl::OkStatus();
}

// `+4` or `-4` after a symbol or an address register.
absl::Status OperandParser::offset(Operand& o) {
  while (token().is('+') || token().is('-')) {
    bool minus = accept('-');
    if (!minus) accept('+');
    if (accept('-')) minus = !minus;
    std::uint64_t value = 0;
    RETURN_IF_ERROR(expect_integer(value, "a constant offset"));
    o.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(o.offset) + (minus ? -value : value));
  }
  return absl::OkStatus();
}

void OperandParser::begin_function(Function& function) {
  function_ = &function;
  scopes_.resize(1);
  open_scope(0);
}

void OperandParser::open_scope(std::uint32_t parent) {
  scope_ = static_cast<std::uint32_t>(scopes_.size());
  scopes_.emplace_back().parent = parent;
}

absl::Status OperandParser::bind_in(std::uint32_t scope, std::string_view name, Binding binding) {
  if (!scopes_[scope].names.try_emplace(name, binding).second) {
    return error(str_cat("a second declaration of '", name, "'"));
  }
  return absl::OkStatus();
}

std::optional<OperandParser::Binding> OperandParser::lookup(std::uint32_t scope, std::string_view name) {
  for (;; scope = scopes_[scope].parent) {
    auto found = scopes_[scope].names.find(name);
    if (found != scopes_[scope].names.end()) return found->second;
    for (const RegisterRange& range : scopes_[scope].ranges) {
      if (!name.starts_with(range.prefix)) continue;
      const std::string_view digits = name.substr(range.prefix.size());
      std::uint64_t number = 0;
      if ((digits.starts_with('0') && digits.size() > 1) || !parse_decimal(digits, number) ||
          number >= range.count) {
        continue;
      }
      const Binding binding = add_register(name, range.type);
      scopes_[scope].names.emplace(name, binding);
      return binding;
    }
    if (scope == 0) return std::nullopt;
  }
}

OperandParser::Binding OperandParser::add_register(std::string_view name, Type type) {
  function_->registers.push_back({name, type});
  return {Operand::Kind::kRegister, static_cast<std::uint32_t>(function_->registers.size() - 1)};
}

}  // namespace ptxgen::emulator
