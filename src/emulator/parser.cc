// Modules, variables, entries and instructions.
#include <bit>

#include "absl/strings/ascii.h"
#include "src/emulator/operand_parser.h"

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 32;
constexpr std::uint32_t kMaxParamBytes = 32764;  // PTX ISA, "Kernel Function Parameters"

struct LabelUse {
  std::size_t instruction, operand;
  std::uint32_t scope;
};

class Parser : public OperandParser {
 public:
  using OperandParser::OperandParser;

  absl::Status run() {
    RETURN_IF_ERROR(header());
    while (token().kind != Kind::kEnd) RETURN_IF_ERROR(module_statement());
    return absl::OkStatus();
  }

 private:
  // ---- module ----

  absl::Status header() {
    if (!accept(".version")) return expected(".version");
    const std::string_view version = token().text;
    const std::size_t dot = std::min(version.find('.'), version.size() - 1);
    std::uint32_t major, minor;
    if (token().kind != Kind::kFloat64 || !parse_decimal(version.substr(0, dot), major) ||
        !parse_decimal(version.substr(dot + 1), minor) || major > 99 || minor > 99) {
      return expected("a version such as 7.8");
    }
    module_.version = {static_cast<std::uint8_t>(major), static_cast<std::uint8_t>(minor)};
    ++at_;
    if (!accept(".target")) return expected(".target");
    RETURN_IF_ERROR(target());
    if (accept(".address_size") && !(token().kind == Kind::kInteger && token().bits == 64)) {
      return expected("64, the only address size here,");
    } else if (token().kind == Kind::kInteger) {
      ++at_;
    }
    return absl::OkStatus();
  }

  absl::Status target() {
    std::string_view name = token().text;
    const bool specific = name.ends_with('a') || name.ends_with('f');
    if (specific) name.remove_suffix(1);
    std::uint32_t sm;
    if (token().kind != Kind::kName || !name.starts_with("sm_") || !parse_decimal(name.substr(3), sm) ||
        sm < 50 || sm > 999) {
      return expected("a target such as sm_75 (sm_50 is the oldest here)");
    }
    module_.target = {static_cast<std::uint16_t>(sm), specific};
    for (const TargetInfo& row : kTargets) {
      if (row.target == module_.target && module_.version < row.since) {
        return error(str_cat(".target ", token().text, " needs .version ", row.since.major, ".",
                             row.since.minor, " or higher, not ", module_.version.major, ".",
                             module_.version.minor));
      }
    }
    ++at_;
    while (accept(',')) {
      if (!accept("debug") && !accept("texmode_independent")) return expected("debug or texmode_independent");
    }
    return absl::OkStatus();
  }

  absl::Status module_statement() {
    bool external = false;
    for (;;) {
      if (accept(".extern")) {
        external = true;
      } else if (!accept(".visible") && !accept(".weak") && !accept(".common")) {
        break;
      }
    }
    if (accept(".entry")) return entry();
    if (is_space(token())) return variables(external, nullptr);
    if (skip_debug_directive()) return absl::OkStatus();
    if (accept(".section")) return skip_section();
    if (accept(';')) return absl::OkStatus();
    return expected(".entry, .global, .const or .shared (the emulator takes no .func)");
  }

  static bool is_space(const Token& t) {
    return t.is(".global") || t.is(".const") || t.is(".shared") || t.is(".local");
  }

  // .file, .loc and .pragma: for debuggers and ptxas; they end with their line or semicolon.
  bool skip_debug_directive() {
    if (token().is(".pragma")) {
      while (token().kind != Kind::kEnd && !accept(';')) ++at_;
      return true;
    }
    if (!token().is(".file") && !token().is(".loc")) return false;
    const std::uint32_t line = token().line;
    while (token().kind != Kind::kEnd && token().line == line) ++at_;
    return true;
  }

  absl::Status skip_section() {
    while (token().kind != Kind::kEnd && !token().is('{')) ++at_;
    while (token().kind != Kind::kEnd && !token().is('}')) ++at_;
    return expect('}');
  }

  // ---- variables ----

  // The dotted parts of a declaration: `.global .align 16 .v4 .f32`.
  struct Declaration {
    std::string_view space;
    std::uint64_t alignment = 0, vector = 1;
    std::optional<Type> type;
  };

  absl::Status declaration(Declaration& d) {
    d.space = tokens_[at_++].text.substr(1);
    for (; token().kind == Kind::kDotted; ++at_) {
      const std::string_view part = token().text.substr(1);
      if (part == "align") {
        ++at_;
        if (token().kind != Kind::kInteger || !std::has_single_bit(token().bits) || token().bits > 4096) {
          return expected("an alignment, a power of two up to 4096,");
        }
        d.alignment = token().bits;
      } else if (part == "v2" || part == "v4" || part == "v8") {
        d.vector = static_cast<std::uint64_t>(part[1] - '0');
      } else if (part == "ptr" || is_space(token())) {
        continue;  // of a parameter: what it points to; advice to ptxas
      } else if (std::optional<Type> type = find_type(part); type && *type != Type::kPred) {
        d.type = type;
      } else {
        return expected("a type such as .b32, .align or .v4");
      }
    }
    if (!d.type) return expected("a type such as .b32");
    const std::uint64_t natural = bits(*d.type) / 8 * d.vector;
    if (d.alignment == 0) d.alignment = natural;
    return absl::OkStatus();
  }

  // Dimensions after a name. `unsized` is set for `[]`.
  absl::Status dimensions(std::uint64_t& bytes, bool& unsized) {
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

  absl::Status variables(bool external, Function* function) {
    Declaration d;
    RETURN_IF_ERROR(declaration(d));
    do {
      Variable v;
      v.line = token().line;
      RETURN_IF_ERROR(expect_name(v.name, "a variable name"));
      v.space = d.space == "global"   ? Space::kGlobal
                : d.space == "const"  ? Space::kConst
                : d.space == "shared" ? Space::kShared
                                      : Space::kLocal;
      v.alignment = d.alignment;
      v.bytes = bits(*d.type) / 8 * d.vector;
      bool unsized;
      RETURN_IF_ERROR(dimensions(v.bytes, unsized));
      if (accept('=')) {
        if (v.space != Space::kGlobal && v.space != Space::kConst)
          return error("only .global and .const variables have initialisers");
        RETURN_IF_ERROR(initialiser(v, *d.type, 0));
        if (unsized) v.bytes = v.initial.size();
        if (v.initial.size() > v.bytes) return error("more initialisers than elements");
      } else if (unsized) {
        if (v.space != Space::kShared || !external)
          return error("an array without a size must be .extern .shared");
        v.external = true;
        v.bytes = 0;
      }
      if (v.space == Space::kLocal && !function) return error(".local variables belong into an .entry");
      place(v, function);
      RETURN_IF_ERROR(
          bind(v.name, {Operand::Kind::kVariable, static_cast<std::uint32_t>(module_.variables.size())}));
      module_.variables.push_back(std::move(v));
    } while (accept(','));
    return expect(';');
  }

  // Shared variables are placed for each entry that uses them, once it is known which those are.
  void place(Variable& v, Function* function) {
    std::uint64_t* end = v.space == Space::kGlobal  ? &module_.global_bytes
                         : v.space == Space::kConst ? &module_.const_bytes
                         : v.space == Space::kLocal ? &function->local_bytes
                                                    : nullptr;
    if (!end) return;
    v.offset = (*end + v.alignment - 1) & ~(v.alignment - 1);
    *end = v.offset + v.bytes;
  }

  absl::Status initialiser(Variable& v, Type type, int depth) {
    if (depth > kMaxNesting) return error("initialiser nested too deeply");
    if (accept('{')) {
      if (accept('}')) return absl::OkStatus();
      do {
        RETURN_IF_ERROR(initialiser(v, type, depth + 1));
      } while (accept(','));
      return expect('}');
    }
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

  // ---- entries ----

  absl::Status entry() {
    auto function = std::make_unique<Function>();
    std::string_view name;
    RETURN_IF_ERROR(expect_name(name, "the name of the entry"));
    for (const auto& other : module_.functions) {
      if (other->info.name == name) return error(str_cat("a second entry '", name, "'"));
    }
    function->info.name = std::string(name);
    begin_function(*function);
    if (accept('(')) {
      while (token().is(".param")) {
        RETURN_IF_ERROR(parameter());
        if (!accept(',')) break;
      }
      RETURN_IF_ERROR(expect(')'));
    }
    while (token().kind == Kind::kDotted) RETURN_IF_ERROR(entry_directive());
    if (!token().is('{')) return expected("the '{' of the entry's body");
    RETURN_IF_ERROR(body());
    RETURN_IF_ERROR(resolve_labels());
    module_.functions.push_back(std::move(function));
    return absl::OkStatus();
  }

  absl::Status parameter() {
    Declaration d;
    RETURN_IF_ERROR(declaration(d));
    std::string_view name;
    RETURN_IF_ERROR(expect_name(name, "a parameter name"));
    std::uint64_t bytes = bits(*d.type) / 8 * d.vector;
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

  absl::Status entry_directive() {
    EntryInfo& info = function_->info;
    if (skip_debug_directive()) return absl::OkStatus();
    const std::string_view directive = tokens_[at_++].text;
    if (directive == ".noreturn" || directive == ".explicitcluster" || directive == ".blocksareclusters") {
      return absl::OkStatus();
    }
    Dim3 extent;
    for (std::uint64_t* axis : {&extent.x, &extent.y, &extent.z}) {
      std::uint64_t& value = *axis;
      RETURN_IF_ERROR(expect_integer(value, str_cat("the number after ", directive)));
      if (value == 0 || value > 0x7fffffff) return error(str_cat(directive, " must be from 1 to 2147483647"));
      if (!accept(',')) break;
    }
    if (directive == ".maxntid") {
      info.max_threads = extent;
    } else if (directive == ".reqntid") {
      info.required_threads = extent;
    } else if (directive == ".minnctapersm") {
      info.min_ctas_per_sm = static_cast<std::uint32_t>(extent.x);
    } else if (directive == ".maxnreg") {
      info.max_registers = static_cast<std::uint32_t>(extent.x);
    } else if (directive == ".reqnctapercluster" || directive == ".maxclusterrank") {
      if (extent.count() != 1) return error("clusters of more than one CTA are not emulated");
    } else if (directive != ".maxnctapersm") {
      return error(str_cat("unknown directive ", directive));
    }
    return absl::OkStatus();
  }

  absl::Status body() {
    const std::uint32_t outer = scope_;
    std::vector<std::uint32_t> enclosing;
    do {
      if (accept('{')) {
        enclosing.push_back(scope_);
        open_scope(scope_);
      } else if (accept('}')) {
        scope_ = enclosing.back();
        enclosing.pop_back();
      } else if (token().kind == Kind::kEnd) {
        return expected("the '}' of the entry's body");
      } else {
        RETURN_IF_ERROR(statement());
      }
    } while (!enclosing.empty());
    scope_ = outer;
    return absl::OkStatus();
  }

  absl::Status statement() {
    if (accept(';') || skip_debug_directive()) return absl::OkStatus();
    if (token().is(".reg")) return registers();
    if (is_space(token())) return variables(false, function_);
    if (token().kind == Kind::kName && token(1).is(':')) return label();
    if (token().kind == Kind::kDotted) return error(str_cat("unknown directive ", token().text));
    return instruction();
  }

  absl::Status registers() {
    ++at_;
    const std::optional<Type> type =
        token().kind == Kind::kDotted ? find_type(token().text.substr(1)) : std::nullopt;
    if (!type) return expected("a register type such as .b32");
    ++at_;
    do {
      std::string_view name;
      RETURN_IF_ERROR(expect_name(name, "a register name"));
      if (accept('<')) {
        std::uint64_t count = 0;
        RETURN_IF_ERROR(expect_integer(count, "a number of registers"));
        RETURN_IF_ERROR(expect('>'));
        add_registers(name, count, *type);
      } else {
        RETURN_IF_ERROR(bind(name, add_register(name, *type)));
      }
    } while (accept(','));
    return expect(';');
  }

  absl::Status label() {
    const Token& name = tokens_[at_];
    for (const Label& other : function_->labels) {
      if (other.name == name.text && other.scope == scope_)
        return error(str_cat("a second label '", name.text, "'"));
    }
    at_ += 2;
    function_->labels.push_back(
        {name.text, scope_, static_cast<std::uint32_t>(function_->instructions.size()), name.line});
    return absl::OkStatus();
  }

  absl::Status resolve_labels() {
    for (const LabelUse& use : label_uses_) {
      Instruction& instruction = function_->instructions[use.instruction];
      Operand& operand = instruction.operands[use.operand];
      const auto find = [&](std::uint32_t scope) {
        return std::find_if(function_->labels.begin(), function_->labels.end(),
                            [&](const Label& l) { return l.scope == scope && l.name == operand.name; });
      };
      std::uint32_t scope = use.scope;
      auto found = find(scope);
      while (found == function_->labels.end() && scope != 0) found = find(scope = parent(scope));
      if (found == function_->labels.end()) {
        return parse_error(module_, instruction.line, str_cat("no label '", operand.name, "' in this entry"));
      }
      operand.index = static_cast<std::uint32_t>(found - function_->labels.begin());
    }
    label_uses_.clear();
    return absl::OkStatus();
  }

  // ---- instructions ----

  absl::Status instruction() {
    Instruction in;
    in.line = token().line;
    const char* begin = token().text.data();
    if (accept('@')) {
      Operand guard;
      RETURN_IF_ERROR(operand(guard));
      if (guard.kind != Operand::Kind::kRegister || function_->registers[guard.index].type != Type::kPred) {
        return error("a guard must be a .pred register");
      }
      in.guard = std::move(guard);
    }
    RETURN_IF_ERROR(expect_name(in.opcode, "an instruction"));
    while (token().kind == Kind::kDotted) in.modifiers.push_back(tokens_[at_++].text.substr(1));
    if (!token().is(';')) {
      do {
        Operand o;
        if (in.opcode == "bra" && token().kind == Kind::kName) {
          o.kind = Operand::Kind::kLabel;
          o.name = tokens_[at_++].text;
          label_uses_.push_back({function_->instructions.size(), in.operands.size(), scope_});
        } else {
          RETURN_IF_ERROR(operand(o));
        }
        in.operands.push_back(std::move(o));
      } while (accept(','));
    }
    in.text = std::string_view(begin, static_cast<std::size_t>(token().text.data() - begin));
    while (absl::ascii_isspace(static_cast<unsigned char>(in.text.back()))) in.text.remove_suffix(1);
    if (!token().is(';')) return expected("',' or ';'");
    ++at_;
    function_->instructions.push_back(std::move(in));
    return absl::OkStatus();
  }

  std::vector<LabelUse> label_uses_;
};

}  // namespace

absl::Status parse_error(const Module& module, std::uint32_t line, std::string_view what) {
  return absl::InvalidArgumentError(
      str_cat("PTX line ", line, ": ", what, ": '", escaped(line_text(module.source, line)), "'"));
}

absl::StatusOr<std::unique_ptr<Module>> parse_module(std::string_view ptx) {
  auto module = std::make_unique<Module>();
  module->source = std::string(ptx);
  absl::StatusOr<std::vector<Token>> tokens = tokenize(module->source);
  if (!tokens.ok()) return tokens.status();
  if (absl::Status s = Parser(*module, *std::move(tokens)).run(); !s.ok()) return s;
  return module;
}

}  // namespace ptxgen::emulator
