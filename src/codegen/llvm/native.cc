#include "src/codegen/llvm/native.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace ptxgen::llvm {
namespace {

// IR instructions, separated by semicolons. The last of them are the results.
//
//   $T $D        the IR types of the instruction's T and D; $W an integer twice as wide as T
//   $S           T as the suffix of an overloaded intrinsic: "i32"
//   $a $b $c     the operands
//   $0 $1 $2     the values of earlier instructions
//   $s           "s" or "u", as T is signed or not; $x "s" or "z", $h "a" or "l" (shifts right)
//   $n           the bits of T
struct Native {
  Op op;
  std::string_view integer, floating;  // where T is no f32 or f64, and where it is one; empty: none
};

// Only what means the same bit for bit, for every operand. So no conversion to an integer (PTX clamps what IR
// leaves open), no half precision, no shift by a register (IR wants it below the width), no division by one
// (IR leaves that by zero open), no floating-point arithmetic with a literal (LLVM drops x * 1 and x + -0,
// and with them the one NaN that PTX makes of all). Floating-point instructions carry no fast-math flag: each
// is rounded to nearest even on its own (LLVM Language Reference, "Floating-Point Environment").
constexpr Native kNative[] = {
    {Op::add, "add $T $a, $b", {}},
    {Op::sub, "sub $T $a, $b", {}},
    {Op::mul_lo, "mul $T $a, $b", {}},
    {Op::mul_hi,
     "$xext $T $a to $W; $xext $T $b to $W; mul $W $0, $1; lshr $W $2, $n; trunc $W $3 to $T",
     {}},
    {Op::mul_wide, "$xext $T $a to $W; $xext $T $b to $W; mul $W $0, $1", {}},
    {Op::mad_lo, "mul $T $a, $b; add $T $0, $c", {}},
    {Op::mad_wide, "$xext $T $a to $W; $xext $T $b to $W; mul $W $0, $1; add $W $2, $c", {}},
    {Op::div, "$sdiv $T $a, $b", {}},
    {Op::rem, "$srem $T $a, $b", {}},
    {Op::abs, "call $T @llvm.abs.$S($T $a, i1 false)", {}},
    {Op::neg, "sub $T 0, $a", {}},
    {Op::min, "call $T @llvm.$smin.$S($T $a, $T $b)", {}},
    {Op::max, "call $T @llvm.$smax.$S($T $a, $T $b)", {}},
    {Op::popc, "call $T @llvm.ctpop.$S($T $a)", {}},
    {Op::clz, "call $T @llvm.ctlz.$S($T $a, i1 false)", {}},
    {Op::brev, "call $T @llvm.bitreverse.$S($T $a)", {}},

    {Op::add_rn, {}, "fadd $T $a, $b"},
    {Op::sub_rn, {}, "fsub $T $a, $b"},
    {Op::mul_rn, {}, "fmul $T $a, $b"},
    {Op::fma_rn, {}, "call $T @llvm.fma.$S($T $a, $T $b, $T $c)"},
    {Op::div_rn, {}, "fdiv $T $a, $b"},
    {Op::abs_f, {}, "call $T @llvm.fabs.$S($T $a)"},
    {Op::neg_f, {}, "fneg $T $a"},
    {Op::min_f, {}, "call $T @llvm.minnum.$S($T $a, $T $b)"},
    {Op::max_f, {}, "call $T @llvm.maxnum.$S($T $a, $T $b)"},
    {Op::sqrt_rn, {}, "call $T @llvm.sqrt.$S($T $a)"},

    {Op::setp_eq, "icmp eq $T $a, $b", "fcmp oeq $T $a, $b"},
    {Op::setp_ne, "icmp ne $T $a, $b", "fcmp one $T $a, $b"},
    {Op::setp_lt, "icmp $slt $T $a, $b", "fcmp olt $T $a, $b"},
    {Op::setp_le, "icmp $sle $T $a, $b", "fcmp ole $T $a, $b"},
    {Op::setp_gt, "icmp $sgt $T $a, $b", "fcmp ogt $T $a, $b"},
    {Op::setp_ge, "icmp $sge $T $a, $b", "fcmp oge $T $a, $b"},
    {Op::setp_equ, {}, "fcmp ueq $T $a, $b"},
    {Op::setp_neu, {}, "fcmp une $T $a, $b"},
    {Op::setp_ltu, {}, "fcmp ult $T $a, $b"},
    {Op::setp_leu, {}, "fcmp ule $T $a, $b"},
    {Op::setp_gtu, {}, "fcmp ugt $T $a, $b"},
    {Op::setp_geu, {}, "fcmp uge $T $a, $b"},
    {Op::setp_num, {}, "fcmp ord $T $a, $b"},
    {Op::setp_nan, {}, "fcmp uno $T $a, $b"},
    {Op::selp, "select i1 $c, $T $a, $T $b", "select i1 $c, $T $a, $T $b"},

    {Op::and_, "and $T $a, $b", {}},
    {Op::or_, "or $T $a, $b", {}},
    {Op::xor_, "xor $T $a, $b", {}},
    {Op::not_, "xor $T $a, -1", {}},
    {Op::shl, "shl $T $a, $b", {}},
    {Op::shr, "$hshr $T $a, $b", {}},
    {Op::shf_l_wrap, "call $T @llvm.fshl.$S($T $b, $T $a, $T $c)", {}},
    {Op::shf_r_wrap, "call $T @llvm.fshr.$S($T $b, $T $a, $T $c)", {}},
    {Op::unpack_u32, "lshr $T $a, 16; trunc $T $a to i16; trunc $T $0 to i16", {}},

    {Op::cvt_rn_int_float, "$sitofp $T $a to $D", {}},
    {Op::cvt_f64_f32, {}, "fpext $T $a to $D"},
    {Op::cvt_rn_f32_f64, {}, "fptrunc $T $a to $D"},
    {Op::cvt_rni_float, {}, "call $T @llvm.rint.$S($T $a)"},
    {Op::cvt_rzi_float, {}, "call $T @llvm.trunc.$S($T $a)"},
    {Op::cvt_rmi_float, {}, "call $T @llvm.floor.$S($T $a)"},
    {Op::cvt_rpi_float, {}, "call $T @llvm.ceil.$S($T $a)"},
};

// By op, so that finding one is an access.
constexpr auto kByOp = [] {
  std::array<const Native*, kNumRows> rows = {};
  for (const Native& native : kNative) rows[static_cast<u32>(native.op)] = &native;
  return rows;
}();

// Whether IR says what the instruction does with these operands.
bool is_defined(const Instruction& instruction, const Operand* operands) {
  const bool literal = operands[1].form == Operand::Form::kInteger;
  switch (instruction.op) {
    case Op::shl:
    case Op::shr:
      return literal && operands[1].bits >= 0 && operands[1].bits < 8 * info(instruction.type).bytes;
    case Op::div:
    case Op::rem: return literal && operands[1].bits != 0 && operands[1].bits != -1;
    default: return true;
  }
}

// Whether the operand is 0, 1, their negatives, or NaN.
bool is_identity(const Operand& o) {
  double value = 0.5;
  if (o.form == Operand::Form::kF32) value = std::bit_cast<float>(static_cast<u32>(o.bits));
  if (o.form == Operand::Form::kF64) value = std::bit_cast<double>(o.bits);
  return value == 0 || std::abs(value) == 1 || std::isnan(value);
}

// What is said of T, or "".
std::string_view template_of(const Instruction& i, const Operand* operands) {
  const Native* found = i.op < Op::kVarRead ? kByOp[static_cast<u32>(i.op)] : nullptr;
  if (!found || !is_defined(i, operands)) return {};
  if (!type_sets::kFloat.contains(i.type)) return found->integer;
  const std::string_view text = found->floating;
  const bool is_arithmetic = !text.starts_with("fcmp") && !text.starts_with("select");
  return is_arithmetic && std::any_of(operands, operands + i.num_operands, is_identity) ? std::string_view()
                                                                                        : text;
}

// The special registers whose intrinsics all LLVM from 16 on have (LLVM, "User Guide for NVPTX Back-end").
constexpr std::string_view kRegisters[] = {
    "tid.x",   "tid.y",       "tid.z",       "ntid.x",      "ntid.y",      "ntid.z",
    "ctaid.x", "ctaid.y",     "ctaid.z",     "nctaid.x",    "nctaid.y",    "nctaid.z",
    "laneid",  "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt"};

// "tid.x" of "mov.u32 d, %tid.x", if it is one of them.
std::string_view special_register(Op op) {
  if (op >= Op::kVarRead) return {};
  const Row& r = row(op);
  const std::size_t percent = r.spelling.find('%');
  if (!r.section.starts_with("10 ") || percent == r.spelling.npos) return {};
  const auto found = std::find(std::begin(kRegisters), std::end(kRegisters), r.spelling.substr(percent + 1));
  return found == std::end(kRegisters) ? std::string_view() : *found;
}

std::string intrinsic_of(std::string_view name) {
  std::string call = str_cat("call i32 @llvm.nvvm.read.ptx.sreg.", name, "()");
  std::replace(call.begin(), call.end(), '_', '.');  // lanemask_eq
  return call;
}

class Filler {
 public:
  Filler(Function& function, const Instruction& i)
      : function_(function), i_(i), types_(Function::types(row(i.op).operands, i)) {}

  void print(std::string_view steps) {
    while (!steps.empty()) {
      const std::size_t end = std::min(steps.find(';'), steps.size());
      const std::string step = filled(steps.substr(0, end));
      made_.push_back(step.starts_with("call ") ? function_.made_by_intrinsic(step) : function_.made(step));
      steps.remove_prefix(std::min(steps.find_first_not_of(" ;", end), steps.size()));
    }
    for (u32 r = 0; r < i_.num_results; ++r)
      function_.set(i_.results + r, made_[made_.size() - i_.num_results + r]);
    if (i_.op == Op::popc || i_.op == Op::clz)  // as wide as T; PTX has a u32
      function_.set(i_.results, function_.converted(made_.back(), i_.type, Type::kU32));
  }

 private:
  std::string filled(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '$') {
        str_append(&out, meaning(text[++at]));
      } else {
        out.push_back(text[at]);
      }
    }
    return out;
  }

  std::string meaning(char what) {
    const bool is_signed = llvm::is_signed(i_.type);
    switch (what) {
      case 'T': return std::string(ir_type(i_.type).name);
      case 'D': return std::string(ir_type(i_.to).name);
      case 'W': return str_cat("i", 2 * bits_of(i_.type));
      case 'S': return str_cat(type_sets::kFloat.contains(i_.type) ? "f" : "i", bits_of(i_.type));
      case 's': return is_signed ? "s" : "u";
      case 'x': return is_signed ? "s" : "z";
      case 'h': return is_signed ? "a" : "l";
      case 'n': return str_cat(bits_of(i_.type));
      case 'a':
      case 'b':
      case 'c': {
        const std::size_t o = static_cast<std::size_t>(what - 'a');
        return function_.use(function_.operands(i_)[o], types_[o]);
      }
      default: return made_[static_cast<std::size_t>(what - '0')];
    }
  }

  Function& function_;
  const Instruction& i_;
  const std::vector<Type> types_;
  std::vector<std::string> made_;
};

}  // namespace

bool is_native(const Instruction& i, const Operand* operands) {
  return !template_of(i, operands).empty() || !special_register(i.op).empty();
}

void print_native(Function& function, const Instruction& i) {
  if (const std::string_view name = special_register(i.op); !name.empty())
    return function.set(i.results, function.made_by_intrinsic(intrinsic_of(name)));
  Filler(function, i).print(template_of(i, function.operands(i)));
}

}  // namespace ptxgen::llvm
