#include "src/codegen/llvm/function.h"

#include <algorithm>
#include <utility>

namespace ptxgen::llvm {
namespace {

std::string variable(const Operand& o) {
  return str_cat("%var.", o.bits);
}

// "declare i32 @llvm.ctpop.i32(i32)" of "call i32 @llvm.ctpop.i32(i32 %x)": LLVM before 18 asks for it.
std::string declaration(std::string_view call) {
  const std::size_t space = call.find(' '), open = call.find('(');
  std::string text = str_cat("declare", call.substr(space, open + 1 - space));
  std::string_view arguments = call.substr(open + 1);
  while (arguments.size() > 1) {  // more than the parenthesis
    str_append(&text, text.back() == '(' ? "" : ", ", arguments.substr(0, arguments.find(' ')));
    const std::size_t comma = std::min(arguments.find(", "), arguments.size());
    arguments.remove_prefix(std::min(comma + 2, arguments.size()));
  }
  return text + ")";
}

}  // namespace

IrType ir_type(Type type) {
  switch (type) {
    case Type::kPred: return {"i1", "b"};
    case Type::kF32: return {"float", "f"};
    case Type::kF64: return {"double", "d"};
    default: break;
  }
  switch (info(type).bytes) {
    case 1: return {"i8", "h"};  // in a register of 16 bits
    case 2: return {"i16", "h"};
    case 4: return {"i32", "r"};
    default: return {"i64", "l"};
  }
}

bool is_signed(Type type) {
  return (type_sets::kSigned | type_sets::kS8).contains(type);
}

u32 bits_of(Type type) {
  return type == Type::kPred ? 1 : 8u * info(type).bytes;
}

std::string shared_name(const Kernel& kernel, const SharedArray& array) {
  return array.bytes ? str_cat("_", kernel.name, array.name) : array.name;
}

std::string Function::made_by_intrinsic(const std::string& call) {
  declarations_.insert(declaration(call));
  return made(call);
}

std::string Function::converted(std::string value, Type from, Type to) {
  const std::string_view a = ir_type(from).name, b = ir_type(to).name;
  if (a == b) return value;
  const bool floating = type_sets::kFloat.contains(from) || type_sets::kFloat.contains(to);
  const std::string_view how = floating                      ? "bitcast"
                               : bits_of(from) > bits_of(to) ? "trunc"
                               : is_signed(from)             ? "sext"
                                                             : "zext";
  return made(how, " ", a, " ", value, " to ", b);
}

std::string Function::literal(const Operand& o, Type type) const {
  const u32 unused = 64 - bits_of(type);
  const s64 value = static_cast<s64>(static_cast<u64>(o.bits) << unused) >> unused;
  if (type == Type::kPred) return value ? "true" : "false";
  if (!type_sets::kFloat.contains(type)) return str_cat(value);
  return str_cat("bitcast (i", bits_of(type), " ", value, " to ", ir_type(type).name, ")");
}

std::string Function::use(const Operand& o, Type type) {
  switch (o.form) {
    case Operand::Form::kValue: return converted(values_[o.value], kernel_.values[o.value].type, type);
    case Operand::Form::kInteger:
    case Operand::Form::kF32:
    case Operand::Form::kF64: return literal(o, type);
    case Operand::Form::kSymbol: return symbol(static_cast<std::size_t>(o.bits));
    case Operand::Form::kVariable: return made("load ", ir_type(type).name, ", ptr ", variable(o));
  }
  return {};
}

// A parameter, or the address of a shared array.
std::string Function::symbol(std::size_t index) const {
  const std::size_t parameters = kernel_.parameters.size();
  if (index < parameters) return str_cat("%", kernel_.parameters[index].name);
  const std::string name = shared_name(kernel_, kernel_.shared[index - parameters]);
  return str_cat("ptrtoint (ptr addrspace(3) @", name, " to i32)");
}

std::string Function::name_in_ptx(const Operand& symbol) const {
  const auto index = static_cast<std::size_t>(symbol.bits), parameters = kernel_.parameters.size();
  return index < parameters ? str_cat(kernel_.name, "_param_", index)
                            : shared_name(kernel_, kernel_.shared[index - parameters]);
}

std::vector<Type> Function::types(const Slots& slots, const Instruction& i) {
  std::vector<Type> types;
  for (const Rule rule : slots.rules) {
    if (rule == Rule::None) break;
    const bool narrow = rule == Rule::addr && i.modifiers.space != Space::kGlobal;
    types.insert(types.end(), is_vector(rule) ? i.modifiers.vector : count_of(rule),
                 narrow ? Type::kU32 : resolve(rule, i.type, i.to));
  }
  return types;
}

void Function::declare_variables() {
  for (std::size_t i = 0; i < kernel_.variables.size(); ++i)
    line("%var.", i, " = alloca ", ir_type(kernel_.variables[i]).name);
}

void Function::assign(const Operand& o, const std::string& value) {
  line("store ", ir_type(variable_type(o)).name, " ", value, ", ptr ", variable(o));
}

}  // namespace ptxgen::llvm
