#include "src/codegen/llvm/assembly.h"

#include "src/codegen/spell.h"

namespace ptxgen::llvm {
namespace {

// What a register of the instruction is in IR. Registers of PTX have 16 bits at least, and tf32 wants untyped
// ones, while LLVM's are .f32 up to version 19.
Type in_register(Type type, const Instruction& i) {
  if (type == Type::kU8 || type == Type::kE4m3 || type == Type::kE5m2) return Type::kU16;
  if (type == Type::kS8) return Type::kS16;
  const bool tf32 = i.type == Type::kTf32 || i.op == Op::cvt_rna_tf32;
  return type == Type::kF32 && tf32 ? Type::kU32 : type;
}

// One call. Its registers are numbered, results first: those of the row, then the variables that it changes
// in place, which are inputs too. Literals and symbols stand in the text.
class Assembly {
 public:
  Assembly(Function& function, const Instruction& i)
      : function_(function),
        i_(i),
        operands_(function.operands(i)),
        results_(Function::types(row(i.op).results, i)),
        numbers_(i.num_operands) {}

  void print() {
    number_results();
    pass_operands();
    const Kind kind = row(i_.op).kind;
    const bool fixed = is_effect(kind) && kind != Kind::Load;
    if (fixed) constrain("", "~{memory}");
    const std::string call = str_cat("call ", result_type(), " asm ", fixed ? "sideeffect \"" : "\"", text(),
                                     ";\", \"", constraints_, "\"(", arguments_, ")",
                                     fixed             ? kEffectCall
                                     : is_effect(kind) ? kLoadCall
                                                       : kPureCall);
    if (results_.empty()) return function_.line(call);
    take_results(function_.made(call));
  }

 private:
  bool is_variable(u32 o) const { return operands_[o].form == Operand::Form::kVariable; }

  void constrain(std::string_view prefix, std::string_view constraint) {
    str_append(&constraints_, constraints_.empty() ? "" : ",", prefix, constraint);
  }
  void pass(const Operand& operand, Type type) {
    const Type wide = in_register(type, i_);
    str_append(&arguments_, arguments_.empty() ? "" : ", ", ir_type(wide).name, " ",
               function_.converted(function_.use(operand, type), type, wide));
  }

  void number_results() {
    for (u32 o = 0; o < i_.num_operands; ++o) {
      if (!is_variable(o)) continue;
      numbers_[o] = static_cast<u32>(results_.size());
      results_.push_back(function_.variable_type(operands_[o]));
    }
    for (const Type type : results_) constrain("=", ir_type(in_register(type, i_)).constraint);
  }

  void pass_operands() {
    const std::vector<Type> types = Function::types(row(i_.op).operands, i_);
    u32 next = static_cast<u32>(results_.size());
    for (u32 o = 0; o < i_.num_operands; ++o) {
      if (operands_[o].form != Operand::Form::kValue) continue;
      numbers_[o] = next++;
      constrain("", ir_type(in_register(types[o], i_)).constraint);
      pass(operands_[o], types[o]);
    }
    for (u32 o = 0; o < i_.num_operands; ++o) {
      if (!is_variable(o)) continue;
      constrain("", str_cat(numbers_[o]));  // the register of that result
      pass(operands_[o], results_[numbers_[o]]);
    }
  }

  std::string result_type() const {
    if (results_.empty()) return "void";
    std::string list;
    for (const Type type : results_)
      str_append(&list, list.empty() ? "" : ", ", ir_type(in_register(type, i_)).name);
    return results_.size() == 1 ? list : str_cat("{ ", list, " }");
  }

  void take_results(const std::string& all) {
    const auto result = [&](u32 n, Type as) {
      const std::string one =
          results_.size() == 1 ? all : function_.made("extractvalue ", result_type(), " ", all, ", ", n);
      return function_.converted(one, in_register(results_[n], i_), as);
    };
    for (u32 n = 0; n < i_.num_results; ++n)
      function_.set(i_.results + n, result(n, function_.kernel().values[i_.results + n].type));
    for (u32 o = 0; o < i_.num_operands; ++o) {
      if (is_variable(o)) function_.assign(operands_[o], result(numbers_[o], results_[numbers_[o]]));
    }
  }

  std::string text() {
    struct Sink {
      Assembly& assembly;
      Writer& out;
      void result(u32 r) {
        out.character('$');
        out.number(r);
      }
      void operand(u32 o) {
        const Operand& operand = assembly.operands_[o];
        switch (operand.form) {
          case Operand::Form::kValue:
          case Operand::Form::kVariable: return result(assembly.numbers_[o]);
          case Operand::Form::kSymbol: return out.text(assembly.function_.name_in_ptx(operand));
          default: return print_literal(out, operand);
        }
      }
      void label() {}
    };
    Writer out;
    spell(out, i_, operands_, Sink{*this, out});
    return std::string(out.view());
  }

  Function& function_;
  const Instruction& i_;
  const Operand* const operands_;
  std::vector<Type> results_;
  std::vector<u32> numbers_;  // of the operands that are registers
  std::string constraints_, arguments_;
};

}  // namespace

void print_assembly(Function& function, const Instruction& i) {
  Assembly(function, i).print();
}

}  // namespace ptxgen::llvm
