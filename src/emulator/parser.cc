// Modules, functions and instructions.
#include "absl/strings/ascii.h"
#include "src/emulator/declaration_parser.h"

namespace ptxgen::emulator {
namespace {

// A label that is named before or after it is defined: by a branch, or in a table of targets.
struct LabelUse {
  std::string_view name;
  std::uint32_t line, scope;
  bool in_table;
  std::size_t index;    // of the instruction, or of the table
  std::size_t element;  // its operand, or its target
};

class Parser : public DeclarationParser {
 public:
  using DeclarationParser::DeclarationParser;

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
    if (token().is(".entry") || token().is(".func")) return function(external);
    if (is_space(token())) return variables(external, nullptr);
    if (skip_debug_directive()) return absl::OkStatus();
    if (accept(".section")) return skip_section();
    if (accept(".alias")) return alias();
    if (accept(';')) return absl::OkStatus();
    return expected(".entry, .func, .global, .const or .shared");
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

  // ---- functions ----

  // `.alias a, b;`: a is declared, and b its definition.
  absl::Status alias() {
    std::uint32_t indices[2];
    for (std::uint32_t& index : indices) {
      Operand o;
      RETURN_IF_ERROR(operand(o));
      if (o.kind != Operand::Kind::kFunction) return error(str_cat("'", o.name, "' is no .func"));
      index = o.index;
      if (&index == indices) RETURN_IF_ERROR(expect(','));
    }
    Function& from = *module_.functions[indices[0]];
    const Function& to = *module_.functions[indices[1]];
    if (from.defined || !to.defined) {
      return error(str_cat("'", from.info.name, "' must be declared only, and '", to.info.name, "' defined"));
    }
    from.alias = indices[1];
    return expect(';');
  }

  absl::Status function(bool external) {
    auto made = std::make_unique<Function>();
    made->is_entry = token().is(".entry");
    ++at_;
    begin_function(*made);
    if (!made->is_entry && token().is('(')) RETURN_IF_ERROR(formals(made->signature.results, made.get()));
    std::string_view name;
    RETURN_IF_ERROR(expect_name(name, "the name of the function"));
    made->info.name = std::string(name);
    if (token().is('(')) {
      RETURN_IF_ERROR(made->is_entry ? entry_parameters() : formals(made->signature.parameters, made.get()));
    }
    while (token().kind == Kind::kDotted) RETURN_IF_ERROR(function_directive());
    made->defined = token().is('{');
    if (!made->defined && !token().is(';')) return expected("the '{' of the body, or ';'");
    if (made->defined && external) return error(str_cat("'", name, "' is .extern and has a body"));
    RETURN_IF_ERROR(declare(name, std::move(made)));
    if (accept(';')) {
      end_function();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(body());
    RETURN_IF_ERROR(resolve_labels());
    end_function();
    return absl::OkStatus();
  }

  // Makes the name known before the body, which may call itself. A definition takes the place of the
  // declarations before it.
  absl::Status declare(std::string_view name, std::unique_ptr<Function> made) {
    const std::optional<Binding> known = lookup(0, name);
    if (!known) {
      const auto index = static_cast<std::uint32_t>(module_.functions.size());
      RETURN_IF_ERROR(bind_in_module(name, {Operand::Kind::kFunction, index}));
      module_.functions.push_back(std::move(made));
      return absl::OkStatus();
    }
    if (known->kind != Operand::Kind::kFunction)
      return error(str_cat("a second declaration of '", name, "'"));
    std::unique_ptr<Function>& before = module_.functions[known->index];
    if (before->is_entry != made->is_entry || (before->defined && made->defined)) {
      return error(str_cat("a second ", made->is_entry ? "entry '" : "function '", name, "'"));
    }
    if (made->defined) before = std::move(made);
    return absl::OkStatus();
  }

  absl::Status entry_parameters() {
    RETURN_IF_ERROR(expect('('));
    while (token().is(".param")) {
      RETURN_IF_ERROR(entry_parameter());
      if (!accept(',')) break;
    }
    return expect(')');
  }

  absl::Status function_directive() {
    EntryInfo& info = function_->info;
    if (skip_debug_directive()) return absl::OkStatus();
    const std::string_view directive = tokens_[at_++].text;
    if (directive == ".explicitcluster") info.explicit_cluster = true;
    if (directive == ".noreturn" || directive == ".explicitcluster") return absl::OkStatus();
    if (directive == ".blocksareclusters") return error(".blocksareclusters is not emulated");
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
    } else if (directive == ".reqnctapercluster") {
      if (!within_cluster(extent)) {
        return error(str_cat(".reqnctapercluster must be of 1 to ", kMaxClusterCtas, " CTAs"));
      }
      info.required_cluster = extent;
    } else if (directive == ".maxclusterrank") {
      if (!within_cluster({extent.x})) {
        return error(str_cat(".maxclusterrank must be from 1 to ", kMaxClusterCtas));
      }
      info.max_cluster_ctas = static_cast<std::uint32_t>(extent.x);
    } else if (directive != ".maxnctapersm") {
      return error(str_cat("unknown directive ", directive));
    }
    return absl::OkStatus();
  }

  static bool within_cluster(const Dim3& extent) {
    constexpr std::uint64_t kMost = kMaxClusterCtas;
    return extent.x <= kMost && extent.y <= kMost && extent.z <= kMost && extent.count() <= kMost;
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
        return expected("the '}' of the body");
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
    if (token().kind == Kind::kName && token(1).is(':')) {
      return token(2).is(".branchtargets") || token(2).is(".calltargets") || token(2).is(".callprototype")
                 ? table()
                 : label();
    }
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

  // `ts: .branchtargets A, B;`, `cs: .calltargets f, g;`, `p: .callprototype (.param .b32 _) _ (...);`
  absl::Status table() {
    const std::string_view name = token().text;
    RETURN_IF_ERROR(
        bind(name, {Operand::Kind::kTable, static_cast<std::uint32_t>(function_->tables.size())}));
    at_ += 2;
    Table table;
    if (accept(".callprototype")) {
      RETURN_IF_ERROR(prototype(table));
    } else {
      table.kind = accept(".branchtargets") ? Table::Kind::kBranchTargets : Table::Kind::kCallTargets;
      if (table.kind == Table::Kind::kCallTargets) ++at_;
      do {
        RETURN_IF_ERROR(target(table));
      } while (accept(','));
    }
    function_->tables.push_back(std::move(table));
    return expect(';');
  }

  absl::Status prototype(Table& table) {
    table.kind = Table::Kind::kPrototype;
    if (token().is('(')) RETURN_IF_ERROR(formals(table.prototype.results, nullptr));
    if (!accept("_")) return expected("the '_' of a prototype");
    if (token().is('(')) RETURN_IF_ERROR(formals(table.prototype.parameters, nullptr));
    while (token().kind == Kind::kDotted) RETURN_IF_ERROR(function_directive());
    return absl::OkStatus();
  }

  absl::Status target(Table& table) {
    if (table.kind == Table::Kind::kCallTargets) {
      Operand o;
      RETURN_IF_ERROR(operand(o));
      if (o.kind != Operand::Kind::kFunction) return error(str_cat("'", o.name, "' is no .func"));
      table.targets.push_back(o.index);
      return absl::OkStatus();
    }
    const std::uint32_t line = token().line;
    std::string_view name;
    RETURN_IF_ERROR(expect_name(name, "a label"));
    label_uses_.push_back({name, line, scope_, true, function_->tables.size(), table.targets.size()});
    table.targets.push_back(0);
    return absl::OkStatus();
  }

  absl::Status resolve_labels() {
    for (const LabelUse& use : label_uses_) {
      const auto find = [&](std::uint32_t scope) {
        return std::find_if(function_->labels.begin(), function_->labels.end(),
                            [&](const Label& l) { return l.scope == scope && l.name == use.name; });
      };
      std::uint32_t scope = use.scope;
      auto found = find(scope);
      while (found == function_->labels.end() && scope != 0) found = find(scope = parent(scope));
      if (found == function_->labels.end()) {
        return parse_error(module_, use.line, str_cat("no label '", use.name, "' in this function"));
      }
      const auto index = static_cast<std::uint32_t>(found - function_->labels.begin());
      if (use.in_table) {
        function_->tables[use.index].targets[use.element] = index;
      } else {
        function_->instructions[use.index].operands[use.element].index = index;
      }
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
    if (!token().is(';')) RETURN_IF_ERROR(operands(in));
    in.text = std::string_view(begin, static_cast<std::size_t>(token().text.data() - begin));
    while (absl::ascii_isspace(static_cast<unsigned char>(in.text.back()))) in.text.remove_suffix(1);
    if (!token().is(';')) return expected("',' or ';'");
    ++at_;
    function_->instructions.push_back(std::move(in));
    return absl::OkStatus();
  }

  absl::Status operands(Instruction& in) {
    do {
      Operand o;
      if (in.opcode == "bra" && token().kind == Kind::kName) {
        o.kind = Operand::Kind::kLabel;
        o.name = tokens_[at_++].text;
        label_uses_.push_back(
            {o.name, in.line, scope_, false, function_->instructions.size(), in.operands.size()});
      } else if (in.opcode == "call" && token().is('(')) {
        o.name = token().text;
        ++at_;
        if (accept(')')) {
          o.kind = Operand::Kind::kList;
        } else {
          RETURN_IF_ERROR(list(o));
        }
      } else {
        RETURN_IF_ERROR(operand(o));
      }
      in.operands.push_back(std::move(o));
    } while (accept(','));
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
