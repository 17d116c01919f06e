// Lowers kernels to LLVM IR, as text: any LLVM from 16 on reads it and brings older spellings up to date.
//
// Addresses are integers, as in the builder, and become pointers where memory is accessed. Variables are
// stack slots, which the optimiser turns into registers.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ptxgen/codegen.h"
#include "src/codegen/llvm/assembly.h"
#include "src/codegen/llvm/function.h"
#include "src/codegen/llvm/native.h"

namespace ptxgen {
namespace {

using llvm::ir_type;

class Lowering {
 public:
  Lowering(const Kernel& kernel, std::string& out, std::set<std::string>& declarations)
      : kernel_(kernel), function_(kernel, out, declarations) {}

  void print() {
    function_.text("\ndefine ptx_kernel void @", kernel_.name, "(");
    for (const Parameter& p : kernel_.parameters)
      function_.text(&p == kernel_.parameters.data() ? "" : ", ", parameter_type(p), " %", p.name);
    function_.text(")", llvm::kFunction, " {\n");
    function_.declare_variables();
    walk(0);
    function_.line("ret void");
    function_.text("}\n");
  }

 private:
  // A TensorMap is memory; who uses it takes its address by name, in assembly.
  static std::string parameter_type(const Parameter& p) {
    if (p.type != Type::kNone) return std::string(ir_type(p.type).name);
    return str_cat("ptr byval([", sizeof(TensorMap), " x i8]) align ", alignof(TensorMap));
  }

  // ---- Regions ----

  void walk(u32 region) {
    for (u32 i = kernel_.regions[region].first; i != kNone; i = kernel_.instructions[i].next) {
      const Instruction& effect = kernel_.instructions[i];
      for (u32 v = kernel_.gaps[effect.gap].first; v != kNone; v = kernel_.instructions[v].next)
        instruction(kernel_.instructions[v]);
      instruction(effect);
    }
  }

  void label(std::string_view name, u32 id) { function_.text(name, ".", id, ":\n"); }
  void jump(std::string_view name, u32 id) { function_.line("br label %", name, ".", id); }
  void jump(const Operand& condition, std::string_view then, std::string_view otherwise, u32 id) {
    const std::string taken = function_.use(condition, Type::kPred);
    function_.line("br i1 ", taken, ", label %", then, ".", id, ", label %", otherwise, ".", id);
  }

  void branch(const Instruction& effect) {
    const u32 id = ++labels_;
    const bool has_else = effect.inner[1] != kNone;
    jump(*function_.operands(effect), "then", has_else ? "else" : "end", id);
    label("then", id);
    walk(effect.inner[0]);
    jump("end", id);
    if (has_else) {
      label("else", id);
      walk(effect.inner[1]);
      jump("end", id);
    }
    label("end", id);
  }

  void loop(const Instruction& effect) {
    const u32 id = ++labels_;
    jump(*function_.operands(effect), "loop", "end", id);
    label("loop", id);
    walk(effect.inner[0]);
    jump(yielded_, "loop", "end", id);
    label("end", id);
  }

  void while_loop(const Instruction& effect) {
    const u32 id = ++labels_;
    jump("test", id);
    label("test", id);
    walk(effect.inner[0]);
    jump(yielded_, "loop", "end", id);
    label("loop", id);
    walk(effect.inner[1]);
    jump("test", id);
    label("end", id);
  }

  // ---- Instructions ----

  void instruction(const Instruction& i) {
    const Operand* operands = function_.operands(i);
    switch (i.op) {
      case Op::kIf: return branch(i);
      case Op::kLoop: return loop(i);
      case Op::kWhile: return while_loop(i);
      case Op::kYield: yielded_ = operands[0]; return;
      case Op::kVarWrite: return function_.assign(operands[0], function_.use(operands[1], i.type));
      case Op::kVarRead:
      case Op::mov:
      case Op::mov_symbol:
      case Op::ld_param: return function_.set(i.results, function_.use(operands[0], i.type));
      case Op::cvt_int:
      case Op::cvt_byte:
        return function_.set(i.results,
                             function_.converted(function_.use(operands[0], i.type), i.type, i.to));
      case Op::ld_global:
      case Op::ld_shared:
        if (i.modifiers.hints == MemoryHints{}) return load(i, operands);
        break;
      case Op::st_global:
      case Op::st_shared:
        if (i.modifiers.hints == MemoryHints{}) return store(i, operands);
        break;
      default: break;
    }
    llvm::is_native(i, operands) ? llvm::print_native(function_, i) : llvm::print_assembly(function_, i);
  }

  // ---- Memory: one element, or a vector of them ----

  void load(const Instruction& i, const Operand* operands) {
    const std::string type = type_of(i), loaded = function_.made("load ", type, ", ", place(i, operands[0]));
    const u32 width = i.modifiers.vector;
    if (width == 1) return function_.set(i.results, loaded);
    for (u32 n = 0; n < width; ++n)
      function_.set(i.results + n, function_.made("extractelement ", type, " ", loaded, ", i32 ", n));
  }

  void store(const Instruction& i, const Operand* operands) {
    const std::string type = type_of(i), at = place(i, operands[0]);
    const u32 width = i.modifiers.vector;
    std::string value = width == 1 ? function_.use(operands[1], i.type) : "undef";
    for (u32 n = 0; width > 1 && n < width; ++n) {
      const std::string element = function_.use(operands[1 + n], i.type);
      value = function_.made("insertelement ", type, " ", value, ", ", ir_type(i.type).name, " ", element,
                             ", i32 ", n);
    }
    function_.line("store ", type, " ", value, ", ", at);
  }

  static std::string type_of(const Instruction& i) {
    const std::string_view element = ir_type(i.type).name;
    return i.modifiers.vector == 1 ? std::string(element)
                                   : str_cat("<", i.modifiers.vector, " x ", element, ">");
  }

  // "ptr addrspace(3) %p, align 16"
  std::string place(const Instruction& i, const Operand& address) {
    const bool shared = i.op == Op::ld_shared || i.op == Op::st_shared;
    const std::string_view type = shared ? "ptr addrspace(3)" : "ptr addrspace(1)";
    const Type integer = shared ? Type::kU32 : Type::kU64;
    const std::string base = function_.use(address, integer);
    std::string pointer = function_.made("inttoptr ", ir_type(integer).name, " ", base, " to ", type);
    if (address.bits != 0)
      pointer = function_.made("getelementptr i8, ", type, " ", pointer, ", i64 ", address.bits);
    return str_cat(type, " ", pointer, ", align ", i.modifiers.vector * info(i.type).bytes);
  }

  const Kernel& kernel_;
  llvm::Function function_;
  Operand yielded_;
  u32 labels_ = 0;
};

// Static arrays that nothing uses are kept: the layout of shared memory is the builder's.
void print_shared(absl::Span<const Kernel> kernels, std::string& out) {
  std::string used;
  u32 count = 0;
  for (const Kernel& kernel : kernels) {
    for (const SharedArray& array : kernel.shared) {
      const std::string name = llvm::shared_name(kernel, array);
      str_append(&out, "@", name, " = ", array.bytes ? "internal" : "external", " addrspace(3) global [",
                 array.bytes, " x i8]", array.bytes ? " undef" : "", ", align ", array.alignment, "\n");
      if (array.bytes)
        str_append(&used, count++ ? ", " : "", "ptr addrspacecast (ptr addrspace(3) @", name, " to ptr)");
    }
  }
  if (count) {
    str_append(&out, "@llvm.compiler.used = appending global [", count, " x ptr] [", used,
               "], section \"llvm.metadata\"\n");
  }
}

// Performance directives, by the names that NVPTX has for them. For a cluster it has none before LLVM 20.
std::vector<std::pair<std::string_view, u32>> annotations(const LaunchBounds& bounds) {
  return {{"maxntidx", bounds.maxntid[0]},
          {"maxntidy", bounds.maxntid[1]},
          {"maxntidz", bounds.maxntid[2]},
          {"minctasm", bounds.minnctapersm},
          {"maxnreg", bounds.maxnreg}};
}

}  // namespace

std::string print_llvm_ir(absl::Span<const Kernel> kernels) {
  std::string out = "target triple = \"nvptx64-nvidia-cuda\"\n\n";
  print_shared(kernels, out);
  std::set<std::string> declarations;
  for (const Kernel& kernel : kernels) Lowering(kernel, out, declarations).print();
  str_append(&out, "\n");
  for (const std::string& line : declarations) str_append(&out, line, "\n");
  str_append(&out, "\n", llvm::kAttributeGroups);
  std::string nodes, list;
  u32 count = 0;
  for (const Kernel& kernel : kernels) {
    const auto annotate = [&](std::string_view name, u32 value) {
      str_append(&list, count ? ", " : "", "!", count);
      str_append(&nodes, "!", count++, " = !{ptr @", kernel.name, ", !\"", name, "\", i32 ", value, "}\n");
    };
    annotate("kernel", 1);
    for (const auto& [name, value] : annotations(kernel.bounds)) {
      if (value) annotate(name, value);
    }
  }
  str_append(&out, "\n!nvvm.annotations = !{", list, "}\n", nodes);
  return out;
}

}  // namespace ptxgen
