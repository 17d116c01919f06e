// A kernel's LLVM IR function as it grows: its instructions, and the names of its values.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ir.h"
#include "ptxgen/strings.h"
#include "src/builder/instruction_table.h"

namespace ptxgen::llvm {

struct IrType {
  std::string_view name;
  std::string_view constraint;  // of inline assembly (LLVM, NVPTXISelLowering "getRegForInlineAsmConstraint")
};
IrType ir_type(Type type);
bool is_signed(Type type);
u32 bits_of(Type type);

// Attribute groups.
inline constexpr std::string_view kPureCall = " #0", kLoadCall = " #1", kEffectCall = " #2",
                                  kFunction = " #2";
inline constexpr std::string_view kAttributeGroups =
    "attributes #0 = { nounwind willreturn memory(none) }\n"
    "attributes #1 = { nounwind willreturn memory(read) }\n"
    "attributes #2 = { convergent nounwind }\n";

// Names are the module's, not the entry's. That of a dynamic array is both already.
std::string shared_name(const Kernel& kernel, const SharedArray& array);

class Function {
 public:
  // Adds the intrinsics that it calls to `declarations`.
  Function(const Kernel& kernel, std::string& out, std::set<std::string>& declarations)
      : kernel_(kernel), out_(out), declarations_(declarations), values_(kernel.values.size()) {}

  const Kernel& kernel() const { return kernel_; }
  const Operand* operands(const Instruction& i) const { return kernel_.operands.data() + i.operands; }

  // ---- Text ----

  template <class... Parts>
  void text(const Parts&... parts) {
    str_append(&out_, parts...);
  }
  template <class... Parts>
  void line(const Parts&... parts) {
    str_append(&out_, "  ", parts..., "\n");
  }
  // Appends an instruction that makes a value, and returns its name.
  template <class... Parts>
  std::string made(const Parts&... parts) {
    std::string name = str_cat("%t.", temporaries_++);
    line(name, " = ", parts...);
    return name;
  }
  // The same for "call i32 @llvm.ctpop.i32(i32 %x)".
  std::string made_by_intrinsic(const std::string& call);

  // ---- Values ----

  // What the value is from now on: a name or a literal, of its type.
  void set(ValueId id, std::string name) { values_[id] = std::move(name); }

  // An operand as a value of `type`.
  std::string use(const Operand& o, Type type);

  // `value` of type `from` as one of type `to`: other bits of the same size, or an integer made wider or
  // narrower.
  std::string converted(std::string value, Type from, Type to);

  // The types of an instruction's operands or results, one a register, as its row has them.
  static std::vector<Type> types(const Slots& slots, const Instruction& i);

  // ---- Variables: stack slots ----

  void declare_variables();
  Type variable_type(const Operand& o) const { return kernel_.variables[static_cast<std::size_t>(o.bits)]; }
  void assign(const Operand& variable, const std::string& value);

  // ---- Symbols ----

  // A parameter or shared array as the back-end will call it.
  std::string name_in_ptx(const Operand& symbol) const;

 private:
  std::string literal(const Operand& o, Type type) const;
  std::string symbol(std::size_t index) const;

  const Kernel& kernel_;
  std::string& out_;
  std::set<std::string>& declarations_;
  std::vector<std::string> values_;
  u32 temporaries_ = 0;
};

}  // namespace ptxgen::llvm
