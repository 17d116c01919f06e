// The direct code generator: walks the regions and prints each instruction by its row's spelling.
//
// Registers are untyped (.pred, .b16, .b32, .b64) and numbered in print order, so bits can be seen as another
// type without an instruction. A variable has one register; its reads are that register unless they were
// copied.

#include <algorithm>
#include <array>

#include "ptxgen/codegen.h"
#include "ptxgen/strings.h"
#include "src/codegen/spell.h"

namespace ptxgen {
namespace {

// Register classes by width, as PTX names them.
enum class RegisterClass : u8 { kPred, kB16, kB32, kB64 };
struct RegisterClassInfo {
  ShortText prefix;
  std::string_view type;
};
constexpr std::array<RegisterClassInfo, 4> kRegisterClasses = {{{std::string_view("%p"), ".pred"},
                                                                {std::string_view("%rs"), ".b16"},
                                                                {std::string_view("%r"), ".b32"},
                                                                {std::string_view("%rd"), ".b64"}}};

RegisterClass class_of(Type type) {
  if (type == Type::kPred) return RegisterClass::kPred;
  switch (info(type).bytes) {
    case 8: return RegisterClass::kB64;
    case 4: return RegisterClass::kB32;
    default: return RegisterClass::kB16;
  }
}

// A register by its name, which is written far more often than made: "%r12". Empty: none yet.
using Register = ShortText;

Register make_register(RegisterClass kind, u32 number) {
  Register name = kRegisterClasses[static_cast<std::size_t>(kind)].prefix;
  char* const end = std::to_chars(&name.bytes[name.size], name.bytes.end(), number).ptr;
  name.size = static_cast<u8>(end - name.bytes.data());
  return name;
}

class EntryPrinter {
 public:
  EntryPrinter(const Kernel& kernel, Writer& out)
      : kernel_(kernel), out_(out), values_(kernel.values.size()), variables_(kernel.variables.size()) {}

  void print() {
    Writer body;
    std::swap(out_, body);
    walk(0);
    instruction(Instruction{});  // ret
    std::swap(out_, body);
    header();
    out_.text(body.view());
    out_.text("}\n");
  }

 private:
  // ---- Declarations ----

  void header() {
    out_.text("\n.visible .entry ");
    out_.text(kernel_.name);
    out_.text("(");
    for (const Parameter& p : kernel_.parameters) {
      out_.text(&p == kernel_.parameters.data() ? "\n  .param ." : ",\n  .param .");
      parameter(p);
    }
    out_.text(kernel_.parameters.empty() ? ")\n" : "\n)\n");
    bounds();
    out_.text("{\n");
    for (std::size_t i = 0; i < kRegisterClasses.size(); ++i) {
      if (counts_[i] == 0) continue;
      out_.text("  .reg ");
      out_.text(kRegisterClasses[i].type);
      out_.character(' ');
      out_.text(kRegisterClasses[i].prefix);
      out_.character('<');
      out_.number(counts_[i] + 1);
      out_.text(">;\n");
    }
    for (const SharedArray& array : kernel_.shared) {
      if (array.bytes) shared(array, "  .shared .align ");
    }
  }

  void parameter(const Parameter& p) {
    if (p.type == Type::kNone) {  // a TensorMap
      return out_.text(str_cat("align ", alignof(TensorMap), " .b8 ", p.name, "[", sizeof(TensorMap), "]"));
    }
    out_.text(info(p.type).memory);
    out_.character(' ');
    out_.text(p.name);
  }

  void bounds() {
    const LaunchBounds& b = kernel_.bounds;
    if (b.maxntid[0]) print_directive(out_, ".maxntid", b.maxntid);
    if (b.minnctapersm) print_directive(out_, ".minnctapersm", absl::MakeConstSpan(&b.minnctapersm, 1));
    if (b.maxnreg) print_directive(out_, ".maxnreg", absl::MakeConstSpan(&b.maxnreg, 1));
    if (b.cluster[0]) print_cluster(out_, b);
  }

 public:
  void shared(const SharedArray& array, std::string_view prefix) {
    out_.text(prefix);
    out_.number(array.alignment);
    out_.text(" .b8 ");
    out_.text(array.name);
    out_.character('[');
    if (array.bytes) out_.number(array.bytes);
    out_.text("];\n");
  }

 private:
  // ---- Regions ----

  void walk(u32 region) {
    for (u32 i = kernel_.regions[region].first; i != kNone; i = kernel_.instructions[i].next) {
      const Instruction& effect = kernel_.instructions[i];
      gap(effect);
      print_effect(effect);
    }
  }

  // The values written before `effect`. The last one goes straight into the register of the variable it is
  // assigned to: nothing after it in the gap can still want the old content.
  void gap(const Instruction& effect) {
    const Gap& values = kernel_.gaps[effect.gap];
    for (u32 v = values.first; v != kNone; v = kernel_.instructions[v].next) {
      const Instruction& value = kernel_.instructions[v];
      if (value.op == Op::kVarRead) {
        read(value);
        continue;
      }
      if (v == values.last && effect.op == Op::kVarWrite) {
        const Operand& assigned = kernel_.operands[effect.operands + 1];
        if (assigned.form == Operand::Form::kValue && assigned.value == value.results &&
            value.num_results == 1 && kernel_.values[assigned.value].uses == 1) {
          values_[assigned.value] = variable(kernel_.operands[effect.operands]);
        }
      }
      instruction(value);
    }
  }

  void read(const Instruction& value) {
    const Register source = variable(kernel_.operands[value.operands]);
    if (kernel_.values[value.results].copied) {
      move(define(value.results), source, value.type);
    } else {
      values_[value.results] = source;
    }
  }

  void print_effect(const Instruction& effect) {
    switch (effect.op) {
      case Op::kVarWrite: return write(effect);
      case Op::kIf: return branch(effect);
      case Op::kLoop: return loop(effect);
      case Op::kWhile: return while_loop(effect);
      case Op::kYield: yielded_ = kernel_.operands[effect.operands]; return;
      default: return instruction(effect);
    }
  }

  void write(const Instruction& effect) {
    const Register target = variable(kernel_.operands[effect.operands]);
    const Operand& value = kernel_.operands[effect.operands + 1];
    if (value.form == Operand::Form::kValue) {
      const Register source = values_[value.value];
      if (source == target) return;
      return move(target, source, effect.type);
    }
    mov(target, effect.type, [&] { operand(value); });
  }

  void branch(const Instruction& effect) {
    const u32 id = ++labels_;
    const Operand& condition = kernel_.operands[effect.operands];
    const bool has_else = effect.inner[1] != kNone;
    jump(Op::bra_if_not, &condition, has_else ? "$else_" : "$end_", id);
    walk(effect.inner[0]);
    if (has_else) {
      jump(Op::bra, nullptr, "$end_", id);
      label("$else_", id);
      walk(effect.inner[1]);
    }
    label("$end_", id);
  }

  // Back edges are conditional: the test stands at the end.
  void loop(const Instruction& effect) {
    const u32 id = ++labels_;
    const Operand& first = kernel_.operands[effect.operands];
    const bool may_skip = first.form == Operand::Form::kValue;
    if (may_skip) jump(Op::bra_if_not, &first, "$end_", id);
    label("$loop_", id);
    walk(effect.inner[0]);
    const Operand again = yielded_;
    jump(Op::bra_if, &again, "$loop_", id);
    if (may_skip) label("$end_", id);
  }

  void while_loop(const Instruction& effect) {
    const u32 id = ++labels_;
    jump(Op::bra, nullptr, "$test_", id);
    label("$loop_", id);
    walk(effect.inner[1]);
    label("$test_", id);
    walk(effect.inner[0]);
    const Operand again = yielded_;
    jump(Op::bra_if, &again, "$loop_", id);
  }

  void label(std::string_view name, u32 id) {
    out_.text(name);
    out_.number(id);
    out_.text(":\n");
  }

  void jump(Op op, const Operand* condition, std::string_view target, u32 id) {
    Instruction jump;
    jump.op = op;
    spell(jump, condition, [&] {
      out_.text(target);
      out_.number(id);
    });
  }

  // ---- Instructions ----

  void instruction(const Instruction& i) {
    for (u8 r = 0; r < i.num_results; ++r) define(i.results + r);
    const Operand* operands = kernel_.operands.data() + i.operands;
    spell(i, operands, [] {});
  }

  template <class Label>
  void spell(const Instruction& i, const Operand* operands, Label&& print_label) {
    struct Sink {
      EntryPrinter& printer;
      const Instruction& i;
      const Operand* operands;
      Label& print_label;
      void result(u32 r) { printer.name(printer.values_[i.results + r]); }
      void operand(u32 o) { printer.operand(operands[o]); }
      void label() { print_label(); }
    };
    out_.text("  ");
    ptxgen::spell(out_, i, operands, Sink{*this, i, operands, print_label});
    out_.text(";\n");
  }

  void operand(const Operand& o) {
    switch (o.form) {
      case Operand::Form::kValue: return name(values_[o.value]);
      case Operand::Form::kInteger:
      case Operand::Form::kF32:
      case Operand::Form::kF64: return print_literal(out_, o);
      case Operand::Form::kSymbol: return symbol(o.bits);
      case Operand::Form::kVariable: return name(variables_[static_cast<std::size_t>(o.bits)]);
    }
  }

  void symbol(s64 index) {
    const auto i = static_cast<std::size_t>(index);
    const std::size_t parameters = kernel_.parameters.size();
    out_.text(i < parameters ? kernel_.parameters[i].name : kernel_.shared[i - parameters].name);
  }

  void move(const Register& target, const Register& source, Type type) {
    mov(target, type, [&] { name(source); });
  }

  template <class Source>
  void mov(const Register& target, Type type, Source&& source) {
    struct Sink {
      EntryPrinter& printer;
      const Register& target;
      Source& source;
      void result(u32) { printer.name(target); }
      void operand(u32) { source(); }
      void label() {}
    };
    Instruction move;
    move.op = Op::mov;
    move.type = type;
    out_.text("  ");
    ptxgen::spell(out_, move, nullptr, Sink{*this, target, source});
    out_.text(";\n");
  }

  // ---- Registers ----

  Register fresh(Type type) {
    const RegisterClass kind = class_of(type);
    return make_register(kind, ++counts_[static_cast<std::size_t>(kind)]);
  }

  const Register& define(ValueId id) {
    if (values_[id].size == 0) values_[id] = fresh(kernel_.values[id].type);
    return values_[id];
  }

  const Register& variable(const Operand& o) {
    const auto index = static_cast<std::size_t>(o.bits);
    if (variables_[index].size == 0) variables_[index] = fresh(kernel_.variables[index]);
    return variables_[index];
  }

  void name(const Register& r) { out_.text(r); }

  const Kernel& kernel_;
  Writer& out_;
  std::vector<Register> values_;
  std::vector<Register> variables_;
  std::array<u32, 4> counts_{};
  Operand yielded_;
  u32 labels_ = 0;
};

}  // namespace

std::string print_ptx(absl::Span<const Kernel> kernels) {
  PtxIsa isa = kBaseIsa;
  Target target = kBaseTarget;
  for (const Kernel& kernel : kernels) {
    isa = std::max(isa, kernel.isa);
    target = std::max(target, kernel.target);
  }
  Writer out;
  out.text(".version ");
  out.text(isa.to_string());
  out.text("\n.target ");
  out.text(target.to_string());
  out.text("\n.address_size 64\n");
  for (const Kernel& kernel : kernels) {
    EntryPrinter printer(kernel, out);
    for (const SharedArray& array : kernel.shared) {
      if (!array.bytes) printer.shared(array, "\n.extern .shared .align ");
    }
    printer.print();
  }
  return std::string(out.view());
}

std::string print_ptx(const Kernel& kernel) {
  return print_ptx(absl::MakeConstSpan(&kernel, 1));
}

}  // namespace ptxgen
