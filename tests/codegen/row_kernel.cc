#include "tests/codegen/row_kernel.h"

#include <algorithm>
#include <limits>

#include "ptxgen/strings.h"
#include "tests/builder/building.h"

namespace ptxgen::testing {
namespace {

// A literal for every operand of its form but the first.
struct Literal {
  Operand::Form form = Operand::Form::kValue;  // none
  s64 bits = 0;
};

// What an optimiser knows identities of, besides a whole number.
std::vector<Literal> literals_of(Type type) {
  using Form = Operand::Form;
  const auto floats = [](Form form, std::initializer_list<s64> bits) {
    std::vector<Literal> literals;
    for (const s64 b : bits) literals.push_back({form, b});
    return literals;
  };
  switch (type) {
    case Type::kF32:
      return floats(Form::kF32, {0, 0x80000000, 0x3f800000, 0xbf800000, 0x40000000, 0x7fc00000});
    case Type::kF64: return floats(Form::kF64, {0, std::numeric_limits<s64>::min(), 0x3ff0000000000000});
    default:
      return type_sets::kInt.contains(type) ? std::vector<Literal>{{Form::kInteger, 5}}
                                            : std::vector<Literal>{};
  }
}

bool is_memory_address(Rule rule) {
  return (rule >= Rule::global && rule <= Rule::addr) || (rule >= Rule::global_in4 && rule <= Rule::mbarrier);
}
bool is_shared(Rule rule) {
  return rule == Rule::shared || rule == Rule::shared_cluster ||
         (rule >= Rule::shared_in16 && rule <= Rule::mbarrier && rule != Rule::tensor_map);
}

// What PTX takes as a literal, or what must be one to be legal.
std::optional<s64> required_literal(Rule rule) {
  if (rule == Rule::imm) return 1;
  if (rule == Rule::cta_rank) return 0;  // a CTA that is its cluster
  const LiteralRange* range = literal_range(rule);
  if (!range) return std::nullopt;
  return std::max(range->low, range->multiple);
}

class Writer {
 public:
  Writer(KernelBuilder& k, RowKernel& row, Literal literal)
      : k_(k), row_(row), literal_(literal), shared_(k.shared<u64, 16>(64)), thread_(k.tid_x()) {}

  void write(Type d) {
    const Row& r = row(row_.op);
    Modifiers modifiers;
    std::vector<detail::Input> inputs;
    for (const Rule rule : r.operands.rules) {
      if (rule == Rule::None) break;
      if (rule == Rule::maxnreg) k_.maxnreg(64);
      if (is_in_out(rule)) {
        modifiers.vector = element_of(rule) == Rule::f16x2 ? 2 : 4;  // 8 columns
        for (u32 n = 0; n < modifiers.vector; ++n) inputs.push_back(variable(resolve(rule, row_.type, d)));
        continue;
      }
      for (u32 n = 0; n < count_of(rule); ++n) {
        inputs.push_back(
            input(static_cast<Rule>(element_of(rule)), resolve(rule, row_.type, d), inputs.empty()));
      }
    }
    row_.results = r.results.count(modifiers.vector);
    const ValueId first = emit(row_.op, row_.type, d, modifiers, inputs);
    u32 result = 0;
    for (const Rule rule : r.results.rules) {
      if (rule == Rule::None) break;
      for (u32 n = 0; n < count_of(rule); ++n, ++result)
        store(result, resolve(rule, row_.type, d), first + result);
    }
  }

 private:
  static Operand::Form form_of(Type type) {
    using Form = Operand::Form;
    return type == Type::kF32               ? Form::kF32
           : type == Type::kF64             ? Form::kF64
           : type_sets::kInt.contains(type) ? Form::kInteger
                                            : Form::kSymbol;
  }
  static detail::Input literal(s64 bits, Operand::Form form = Operand::Form::kInteger) {
    detail::Input input;
    input.operand = {bits, kNoValue, form};
    return input;
  }
  detail::Input value(ValueId id, s64 offset = 0) {
    detail::Input input;
    input.operand = {offset, id, Operand::Form::kValue};
    input.kernel = &k_;
    return input;
  }
  ValueId emit(Op op, Type t, Type d, const Modifiers& modifiers, const std::vector<detail::Input>& inputs) {
    return detail::emit(op, t, d, modifiers, inputs.data(), static_cast<u32>(inputs.size()),
                        SourceLocation::current(), &k_);
  }

  // One that is read and written in place.
  detail::Input variable(Type type) {
    detail::Input input = literal(detail::add_variable(k_, type));
    input.operand.form = Operand::Form::kVariable;
    input.kernel = &k_;
    detail::write_variable(k_, static_cast<u32>(input.operand.bits), literal(0), SourceLocation::current());
    return input;
  }

  detail::Input input(Rule rule, Type type, bool first) {
    if (is_memory_address(rule)) return is_shared(rule) ? shared_.input() : k_.param(&Args::out).input();
    if (const std::optional<s64> required = required_literal(rule)) return literal(*required);
    if (!first && literal_.form == form_of(type)) return literal(literal_.bits, literal_.form);
    const u32 slot = static_cast<u32>(row_.inputs.size());
    row_.inputs.push_back(type);
    if (type != Type::kPred)
      return value(emit(Op::ld_global, type, Type::kNone, {}, {slot_of(&Args::in, slot)}));
    const ValueId word = emit(Op::ld_global, Type::kU32, Type::kNone, {}, {slot_of(&Args::in, slot)});
    return value(emit(Op::setp_ne, Type::kU32, Type::kNone, {}, {value(word), literal(0)}));
  }

  void store(u32 slot, Type type, ValueId id) {
    if (type == Type::kPred) {
      id = emit(Op::selp, Type::kU32, Type::kNone, {}, {literal(1), literal(0), value(id)});
      type = Type::kU32;
    }
    emit(Op::st_global, type, Type::kNone, {}, {slot_of(&Args::out, slot), value(id)});
  }

  // Slots are 8 bytes, 64 of them a thread.
  template <class Member>
  detail::Input slot_of(Member member, u32 slot) {
    const auto address = k_.param(member) + thread_ * (2 * kSlots);
    return value(address.base(), address.offset() + 8 * slot);
  }

 public:
  static constexpr u32 kSlots = 32;

 private:
  KernelBuilder& k_;
  RowKernel& row_;
  const Literal literal_;
  const SharedPtr<u64, 16> shared_;
  const Reg<u32> thread_;
};

// What a call in a kernel cannot make: what the builder writes by itself, around regions or symbols.
bool is_structural(Op op) {
  constexpr Op kWritten[] = {Op::mov, Op::mov_symbol, Op::ld_param, Op::mov_param, Op::cvta_param};
  return row(op).kind == Kind::Control ||
         std::find(std::begin(kWritten), std::end(kWritten), op) != std::end(kWritten);
}

template <class F>
void for_each(TypeSet set, F&& f) {
  if (set.bits == 0) return f(Type::kNone);
  for (std::size_t i = 0; i < kTypeInfo.size(); ++i) {
    if (set.contains(static_cast<Type>(i))) f(static_cast<Type>(i));
  }
}

}  // namespace

std::vector<RowKernel> row_kernels(const BuildOptions& options) {
  std::vector<RowKernel> kernels;
  const auto add = [&](Op op, Type t, Type d, Literal literal) {
    RowKernel& made = kernels.emplace_back();
    made.name = str_cat("row_", row(op).id);
    for (const Type type : {t, d}) {
      if (type != Type::kNone) str_append(&made.name, "_", info(type).name);
    }
    if (literal.form != Operand::Form::kValue)
      str_append(&made.name, "_literal_", static_cast<u64>(literal.bits));
    made.op = op;
    made.type = t;
    KernelBuilder k(made.name, options);
    k.declare_parameters<Args>();
    Writer(k, made, literal).write(d);
    absl::StatusOr<Kernel> kernel = k.finish();
    made.status = kernel.status();
    if (kernel.ok()) made.kernel = *std::move(kernel);
  };
  for (u32 i = 0; i < kNumRows; ++i) {
    const Op op = static_cast<Op>(i);
    if (is_structural(op)) continue;
    const bool several = row(op).kind == Kind::Pure && row(op).operands.rules[1] != Rule::None;
    for_each(row(op).types.t, [&](Type t) {
      for_each(row(op).types.d, [&](Type d) {
        add(op, t, d, {});
        if (!several) return;
        for (const Literal literal : literals_of(t)) add(op, t, d, literal);
      });
    });
  }
  return kernels;
}

}  // namespace ptxgen::testing
