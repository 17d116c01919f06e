#include "tests/codegen/row_kernel.h"

#include "ptxgen/strings.h"
#include "tests/builder/building.h"

namespace ptxgen::testing {
namespace {

constexpr s64 kLiteral = 5;

bool is_memory_address(Rule rule) {
  return (rule >= Rule::global && rule <= Rule::addr) || (rule >= Rule::global_in4 && rule <= Rule::mbarrier);
}
bool is_shared(Rule rule) {
  return rule == Rule::shared || (rule >= Rule::shared_in16 && rule <= Rule::mbarrier);
}

// What PTX takes as a literal, or what must be one to be legal.
std::optional<s64> required_literal(Rule rule) {
  if (rule == Rule::imm) return 1;
  const LiteralRange* range = literal_range(rule);
  if (!range) return std::nullopt;
  return std::max(range->low, range->multiple);
}

class Writer {
 public:
  Writer(KernelBuilder& k, RowKernel& row, bool literals)
      : k_(k), row_(row), literals_(literals), shared_(k.shared<u64, 16>(64)), thread_(k.tid_x()) {}

  void write(Type d) {
    const Row& r = row(row_.op);
    Modifiers modifiers;
    std::vector<detail::Input> inputs;
    for (const Rule rule : r.operands.rules) {
      if (rule == Rule::None) break;
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
  static detail::Input literal(s64 bits) {
    detail::Input input;
    input.operand = {bits, kNoValue, Operand::Form::kInteger};
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
    if (literals_ && !first && type_sets::kInt.contains(type)) return literal(kLiteral);
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
  const bool literals_;
  const SharedPtr<u64, 16> shared_;
  const Reg<u32> thread_;
};

// What a call in a kernel cannot make: what the builder writes by itself, around regions or symbols.
bool is_structural(Op op) {
  return row(op).kind == Kind::Control || op == Op::mov_symbol || op == Op::ld_param || op == Op::mov;
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
  const auto add = [&](Op op, Type t, Type d, bool literals) {
    RowKernel& made = kernels.emplace_back();
    made.name = str_cat("row_", row(op).id, t == Type::kNone ? "" : "_", t == Type::kNone ? "" : info(t).name,
                        d == Type::kNone ? "" : "_", d == Type::kNone ? "" : info(d).name,
                        literals ? "_literal" : "");
    made.op = op;
    made.type = t;
    KernelBuilder k(made.name, options);
    k.declare_parameters<Args>();
    Writer(k, made, literals).write(d);
    absl::StatusOr<Kernel> kernel = k.finish();
    made.status = kernel.status();
    if (kernel.ok()) made.kernel = *std::move(kernel);
  };
  for (u32 i = 0; i < kNumRows; ++i) {
    const Op op = static_cast<Op>(i);
    if (is_structural(op)) continue;
    for_each(row(op).types.t, [&](Type t) {
      for_each(row(op).types.d, [&](Type d) {
        add(op, t, d, false);
        const bool more = row(op).operands.rules[1] != Rule::None;
        if (row(op).kind == Kind::Pure && more && type_sets::kInt.contains(t)) add(op, t, d, true);
      });
    });
  }
  return kernels;
}

}  // namespace ptxgen::testing
