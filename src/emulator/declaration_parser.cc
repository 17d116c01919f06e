#include "src/emulator/declaration_parser.h"

#include <bit>

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 32;
constexpr std::uint32_t kMaxParamBytes = 32764;  // PTX ISA, "Kernel Function Parameters"

Space space_named(std::string_view name) {
  return name == "global"   ? Space::kGlobal
         : name == "const"  ? Space::kConst
         : name == "shared" ? Space::kShared
                            : Space::kLocal;
}

}  // namespace

absl::Status DeclarationParser::declaration(Declaration& d) {
  d.space = tokens_[at_++].text.substr(1);
  while (token().kind == Kind::kDotted) {
    const std::string_view part = token().text.substr(1);
    if (part == "attribute") {
      RETURN_IF_ERROR(attributes());
      continue;
    }
    if (part == "align") {
      ++at_;
      if (token().kind != Kind::kInteger || !std::has_single_bit(token().bits) || token().bits > 4096) {
        return expected("an alignment, a power of two up to 4096,");
      }
      d.alignment = token().bits;
    } else if (part == "v2" || part == "v4" || part == "v8") {
      d.vector = static_cast<std::uint64_t>(part[1] - '0');
    } else if (part == "ptr" || is_space(token())) {
      // of a parameter: what it points to; advice to ptxas
    } else if (std::optional<Type> type = find_type(part); type && *type != Type::kPred) {
      d.type = type;
    } else {
      return expected("a type such as .b32, .align or .v4");
    }
    ++at_;
  }
  if (!d.type) return expected("a type such as .b32");
  if (d.alignment == 0) d.alignment = d.bytes();
  return absl::OkStatus();
}

// `.attribute(.managed)`: how the host sees a variable, nothing that a kernel could tell.
absl::Status DeclarationParser::attributes() {
  ++at_;
  RETURN_IF_ERROR(expect('('));
  if (!accept(".managed")) return expected(".managed, the only attribute here,");
  return expect(')');
}

absl::Status DeclarationParser::dimensions(std::uint64_t& bytes, bool& unsized) {
  unsized = false;
  while (accept('[')) {
    std::uint64_t count = 0;
    if (token().is(']')) {
      unsized = true;
    } else {
      RETURN_IF_ERROR(expect_integer(count, "an array size"));
      if (count > kMaxVariableBytes || (count != 0 && bytes > kMaxVariableBytes / count)) {
        return error("an array of more than 4 GiB");
      }
      bytes *= count;
    }
    RETURN_IF_ERROR(expect(']'));
  }
  return absl::OkStatus();
}

absl::Status DeclarationParser::variables(bool external, Function* function) {
  Declaration d;
  RETURN_IF_ERROR(declaration(d));
  if ((d.space == "local" || d.space == "param") && !function) {
    return error(str_cat(".", d.space, " variables belong into an .entry or a .func"));
  }
  do {
    RETURN_IF_ERROR(variable(d, external, function));
  } while (accept(','));
  return expect(';');
}

absl::Status DeclarationParser::variable(const Declaration& d, bool external, Function* function) {
  Variable v;
  v.line = token().line;
  RETURN_IF_ERROR(expect_name(v.name, "a variable name"));
  v.space = space_named(d.space);
  v.alignment = d.alignment;
  v.bytes = d.bytes();
  if (token().is('<')) return error("a range of variables; declare each by its name");
  bool unsized;
  RETURN_IF_ERROR(dimensions(v.bytes, unsized));
  if (accept('=')) {
    if (v.space != Space::kGlobal && v.space != Space::kConst)
      return error("only .global and .const variables have initialisers");
    if (external) return error("a variable that another module defines has no initialiser");
    RETURN_IF_ERROR(initialiser(v, *d.type, 0));
    if (unsized) v.bytes = v.initial.size();
    if (v.initial.size() > v.bytes) return error("more initialisers than elements");
  } else if (external) {
    v.external = v.space != Space::kShared || unsized;
    if (unsized) v.bytes = 0;
  } else if (unsized) {
    return error("an array without a size must be .extern .shared");
  }
  return place(std::move(v), function);
}

// Shared variables are placed for each entry that uses them, once it is known which those are.
absl::Status DeclarationParser::place(Variable v, Function* function) {
  const auto index = static_cast<std::uint32_t>(module_.variables.size());
  if (!(v.external && v.space != Space::kShared)) {
    std::uint64_t* end = v.space == Space::kGlobal  ? &module_.global_bytes
                         : v.space == Space::kConst ? &module_.const_bytes
                         : v.space == Space::kLocal ? &function->local_bytes
                                                    : nullptr;
    if (end) {
      v.offset = (*end + v.alignment - 1) & ~(v.alignment - 1);
      *end = v.offset + v.bytes;
    }
    if (v.space == Space::kLocal) v.owner = function;
  }
  if (v.name != "_") RETURN_IF_ERROR(bind(v.name, {Operand::Kind::kVariable, index}));
  module_.variables.push_back(std::move(v));
  return absl::OkStatus();
}

absl::Status DeclarationParser::initialiser(Variable& v, Type type, int depth) {
  if (depth > kMaxNesting) return error("initialiser nested too deeply");
  if (accept('{')) {
    if (accept('}')) return absl::OkStatus();
    do {
      RETURN_IF_ERROR(initialiser(v, type, depth + 1));
    } while (accept(','));
    return expect('}');
  }
  const bool masked = token().kind == Kind::kInteger && token(1).is('(');
  return token().kind == Kind::kName || masked ? address(v, type) : number(v, type);
}

absl::Status DeclarationParser::number(Variable& v, Type type) {
  const bool minus = accept('-');
  std::uint64_t value = token().bits;
  switch (token().kind) {
    case Kind::kInteger:
      if (is_float(type) && bits(type) >= 32) return expected("a floating-point constant");
      if (minus) value = -value;
      break;
    case Kind::kFloat32: value ^= minus ? 0x80000000u : 0u; break;
    case Kind::kFloat64:
      value ^= minus ? std::uint64_t{1} << 63 : 0;
      if (bits(type) == 32)
        value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
      break;
    default: return expected("a number");
  }
  ++at_;
  for (unsigned i = 0; i < bits(type) / 8; ++i)
    v.initial.push_back(static_cast<std::uint8_t>(i < 8 ? value >> (8 * i) : 0));
  return absl::OkStatus();
}

// `x`, `x+8`, `generic(x)+8`, `0xff00(x)`, `0xff00(generic(x))`: of a variable or a function.
absl::Status DeclarationParser::address(Variable& v, Type type) {
  Relocation r;
  r.at = v.initial.size();
  r.bytes = static_cast<std::uint8_t>(bits(type) / 8);
  std::uint64_t mask = 0xff;
  const bool masked = token().kind == Kind::kInteger;
  if (masked) {
    mask = tokens_[at_++].bits;
    r.shift = static_cast<std::uint8_t>(mask == 0 ? 0 : std::countr_zero(mask));
    if (mask >> r.shift != 0xff || r.shift % 8 != 0)
      return error("a mask of an address is one byte of it, such as 0xFF00");
    RETURN_IF_ERROR(expect('('));
  }
  if (!(masked ? r.bytes == 1 : r.bytes == 8 || r.bytes == 4) || is_float(type)) {
    return error("an address needs 8 bytes, or a mask such as 0xFF00 and one byte");
  }
  r.generic = accept("generic");
  if (r.generic) RETURN_IF_ERROR(expect('('));
  Operand o;
  RETURN_IF_ERROR(operand(o));
  if (r.generic) {
    RETURN_IF_ERROR(expect(')'));
    RETURN_IF_ERROR(offset(o));
  }
  if (masked) RETURN_IF_ERROR(expect(')'));
  r.index = o.index;
  r.addend = static_cast<std::uint64_t>(o.offset);
  r.function = o.kind == Operand::Kind::kFunction;
  if (!r.function) {
    if (o.kind != Operand::Kind::kVariable) return error("an address is that of a variable or a function");
    const Variable& target = module_.variables[o.index];
    if (target.space != Space::kGlobal && target.space != Space::kConst)
      return error(
          str_cat("'", target.name, "' is in .", name(target.space), "; its address is no constant"));
    if (target.external)
      return error(str_cat("'", target.name, "' is .extern, and this module does not define it"));
  }
  v.relocations.push_back(r);
  v.initial.resize(v.initial.size() + r.bytes);
  return absl::OkStatus();
}

absl::Status DeclarationParser::entry_parameter() {
  Declaration d;
  RETURN_IF_ERROR(declaration(d));
  std::string_view name;
  RETURN_IF_ERROR(expect_name(name, "a parameter name"));
  std::uint64_t bytes = d.bytes();
  bool unsized;
  RETURN_IF_ERROR(dimensions(bytes, unsized));
  EntryInfo& info = function_->info;
  const std::uint64_t offset = (info.param_bytes + d.alignment - 1) & ~(d.alignment - 1);
  if (unsized || bytes == 0 || offset + bytes > kMaxParamBytes) {
    return error(str_cat("parameters must have a size and may take ", kMaxParamBytes, " bytes in all"));
  }
  RETURN_IF_ERROR(bind(name, {Operand::Kind::kParam, static_cast<std::uint32_t>(info.params.size())}));
  info.params.push_back({std::string(name), bytes, d.alignment, offset});
  info.param_bytes = offset + bytes;
  return absl::OkStatus();
}

absl::Status DeclarationParser::formals(std::vector<Formal>& all, Function* function) {
  RETURN_IF_ERROR(expect('('));
  if (accept(')')) return absl::OkStatus();
  do {
    RETURN_IF_ERROR(formal(all.emplace_back(), function));
  } while (accept(','));
  return expect(')');
}

absl::Status DeclarationParser::formal(Formal& formal, Function* function) {
  if (!token().is(".param") && !token().is(".reg")) return expected(".param or .reg");
  Declaration d;
  RETURN_IF_ERROR(declaration(d));
  Variable v;
  v.line = token().line;
  RETURN_IF_ERROR(expect_name(v.name, "a name"));
  v.space = Space::kLocal;
  v.alignment = d.alignment;
  v.bytes = d.bytes();
  bool unsized;
  RETURN_IF_ERROR(dimensions(v.bytes, unsized));
  if (unsized || v.bytes == 0 || v.bytes > kMaxParamBytes) {
    return error(str_cat("a parameter has a size, of at most ", kMaxParamBytes, " bytes"));
  }
  const bool in_register = d.space == "reg";
  formal.bytes = in_register ? std::max<std::uint64_t>(v.bytes, 2) : v.bytes;  // of 8 bits: kept in 16
  if (!function) return absl::OkStatus();
  if (in_register) {
    const Binding binding = add_register(v.name, *d.type);
    formal.place.kind = binding.kind;
    formal.place.index = binding.index;
    formal.place.name = v.name;
    return bind(v.name, binding);
  }
  formal.place.kind = Operand::Kind::kVariable;
  formal.place.index = static_cast<std::uint32_t>(module_.variables.size());
  formal.place.name = v.name;
  return place(std::move(v), function);
}

}  // namespace ptxgen::emulator
