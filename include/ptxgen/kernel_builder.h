// Writes one kernel. A kernel is a C++ function that calls instructions.h over the values of value.h; plain
// C++ `if` and `for` run while the kernel is generated, `if_`, `for_` and `while_` become branches in it.
//
// A mistake (a barrier in divergent control flow, a value used outside its region, a shared array over the
// limit, an instruction that the target lacks) is recorded with its source location and returned by finish().
// Nothing throws.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/arguments.h"
#include "ptxgen/instructions.h"
#include "ptxgen/strings.h"

namespace ptxgen {

// What code is generated for: the device's target, and the highest PTX ISA its driver accepts.
struct BuildOptions {
  Target target = kBaseTarget;
  PtxIsa max_isa = kNewestIsa;
};

class PTXGEN_API KernelBuilder {
 public:
  // `name` becomes the entry point: a PTX identifier, [a-zA-Z][a-zA-Z0-9_$]*.
  KernelBuilder(std::string name, const BuildOptions& options,
                SourceLocation where = SourceLocation::current());
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  // A kernel may choose its instructions by what the target has.
  Target target() const { return options_.target; }
  PtxIsa max_isa() const { return options_.max_isa; }

  // Declares one kernel parameter per field of Args, in order.
  template <class Args>
  void declare_parameters(SourceLocation where = SourceLocation::current());

  // The value of an argument: a GlobalPtr for a DevicePtr, a TensorMapPtr for a TensorMap, else a Reg.
  template <class Args, class T>
  auto param(T Args::*member, SourceLocation where = SourceLocation::current());

  // Declares one more parameter, the TensorMap of what the descriptor's tensor() is (kernel_type.h). Called
  // once, before shared memory is declared.
  TensorMapPtr tensor_map(SourceLocation where = SourceLocation::current());

  // Shared memory for `count` elements, aligned to Align bytes; its content is undefined until written.
  template <class T, std::size_t Align = alignof(T)>
  requires(DeviceType<T> || std::same_as<T, MBarrier>) SharedPtr<T, Align> shared(
      u32 count, SourceLocation where = SourceLocation::current()) {
    if (count == 0) mistake(where, "shared memory for 0 elements; give a count, or use dynamic_shared()");
    return {this, shared_array(static_cast<u64>(count) * sizeof(T), Align, where)};
  }
  // The dynamic shared memory that the launch sizes (LaunchShape::dynamic_shared_bytes).
  template <DeviceType T, std::size_t Align = 16>
  SharedPtr<T, Align> dynamic_shared(SourceLocation where = SourceLocation::current()) {
    return {this, shared_array(0, Align, where)};
  }

  template <DeviceType T>
  Var<T> var(const std::type_identity_t<In<T>>& initial) {
    return Var<T>(this, initial);
  }
  template <class T>
  requires requires {
    typename detail::DeviceOf<T>::type;
  } &&(!std::is_void_v<typename detail::DeviceOf<T>::type>)auto var(const T& initial) {
    return Var<typename detail::DeviceOf<T>::type>(this, initial);
  }

  // A literal as a value.
  template <DeviceType T>
  Reg<T> constant(const std::type_identity_t<In<T>>& value) {
    return Reg<T>(this,
                  detail::emit(Op::mov, type_of<T>, Type::kNone, {}, &value.input(), 1, value.where(), this));
  }

  // Control flow. Values made inside a body end with it; carry results out in a Var.
  void if_(const Pred& condition, absl::FunctionRef<void()> then,
           SourceLocation where = SourceLocation::current());
  void if_(const Pred& condition, absl::FunctionRef<void()> then, absl::FunctionRef<void()> otherwise,
           SourceLocation where = SourceLocation::current());
  // for (i = begin; i < end; i += step); the step is a positive constant, so i + step must not overflow T at
  // the end.
  template <class B, class E, class Body>
  void for_(const B& begin, const E& end, u32 step, Body&& body,
            SourceLocation where = SourceLocation::current());
  // while (condition()) body(); the condition's code runs before each iteration.
  void while_(absl::FunctionRef<Pred()> condition, absl::FunctionRef<void()> body,
              SourceLocation where = SourceLocation::current());

  // Waits until the barrier's phase of this parity is complete; its writes before that are visible then.
  // Threads may wait in control flow that differs between them. Where the target has it, the thread sleeps
  // (mbarrier.try_wait), else it polls (mbarrier.test_wait).
  void mbarrier_wait_parity(const SharedPtr<MBarrier>& barrier, const In<u32>& parity,
                            SourceLocation where = SourceLocation::current());
  // The same at cluster scope, where threads of other CTAs arrive.
  void mbarrier_wait_parity_cluster(const SharedPtr<MBarrier>& barrier, const In<u32>& parity,
                                    SourceLocation where = SourceLocation::current());

  // Performance directives (PTX ISA 11.4). Block extents beyond maxntid are refused at launch.
  void maxntid(u32 x, u32 y = 1, u32 z = 1, SourceLocation where = SourceLocation::current());
  void minnctapersm(u32 ctas, SourceLocation where = SourceLocation::current());
  void maxnreg(u32 registers, SourceLocation where = SourceLocation::current());
  // CTAs of a cluster, which run at the same time and reach each other's shared memory. A launch has these
  // (LaunchShape::cluster) or says nothing.
  void cluster(u32 x, u32 y = 1, u32 z = 1, SourceLocation where = SourceLocation::current());

  // Instructions without a value operand: tid_x(), bar_sync(0), activemask() ... see instruction_table.inc.
#define PTXGEN_TYPES(id) detail::rows::id##_row
#define PTXGEN_IN(id, i) std::tuple_element_t<i, detail::inputs_t<PTXGEN_TYPES(id)>>
#define PTXGEN_KB0(id, method, ...)                                \
  auto method(SourceLocation where = SourceLocation::current()) {  \
    return detail::call_on<Op::id, PTXGEN_TYPES(id)>(where, this); \
  }
#define PTXGEN_KB1(id, method, ...)                                                           \
  auto method(const PTXGEN_IN(id, 0) & a, SourceLocation where = SourceLocation::current()) { \
    return detail::call_on<Op::id, PTXGEN_TYPES(id)>(where, this, a);                         \
  }
#define PTXGEN_KB2(id, method, ...)                                      \
  auto method(const PTXGEN_IN(id, 0) & a, const PTXGEN_IN(id, 1) & b,    \
              SourceLocation where = SourceLocation::current()) {        \
    return detail::call_on<Op::id, PTXGEN_TYPES(id)>(where, this, a, b); \
  }
#include "ptxgen/instruction_table.inc"
#undef PTXGEN_TYPES
#undef PTXGEN_IN

  // Records a mistake of the kernel's author; the first one is what finish() returns.
  void mistake(SourceLocation where, std::string message);

  // The kernel, or the first mistake with its place. The builder is spent afterwards.
  absl::StatusOr<Kernel> finish();

 private:
  friend ValueId detail::emit(Op, Type, Type, const Modifiers&, const detail::Input*, u32, SourceLocation,
                              KernelBuilder*);
  friend ValueId detail::read_variable(KernelBuilder&, u32, SourceLocation);
  friend u32 detail::add_variable(KernelBuilder&, Type);
  friend void detail::write_variable(KernelBuilder&, u32, const detail::Input&, SourceLocation);

  ValueId append(Instruction& instruction, const Operand* operands, Kind kind);
  ValueId shared_array(u64 bytes, u32 alignment, SourceLocation where);
  ValueId load_parameter(u32 index, Type type, SourceLocation where);
  ValueId parameter_address(u32 index, SourceLocation where);
  u32 check_parameter(u32 index, SourceLocation where);
  void add_parameter(std::string_view name, Type type, SourceLocation where);
  void check_hints(const MemoryHints& hints, Kind kind, SourceLocation where);
  void check_literal(const Operand& operand, Rule rule, SourceLocation where);
  u32 check_variable(u32 variable, SourceLocation where);
  void check_not_in_flight(u32 variable, bool written, SourceLocation where);
  u32 in_place(const detail::Input& input, SourceLocation where);
  void follow_wgmma(const Instruction& instruction);
  Operand far_address(const Operand& address, SourceLocation where);
  bool check_input(const detail::Input& input, SourceLocation where);
  void use(ValueId value, SourceLocation where);
  void need(PtxIsa isa, Target target, std::string_view what, SourceLocation where);
  u32 open_region(bool loop);
  void close_region();
  u32 begin_control(Op op, const Operand* operands, u8 count);
  void yield(const Pred& again, SourceLocation where);
  void loop(const Operand& first, absl::FunctionRef<Pred()> body, SourceLocation where);

  BuildOptions options_;
  Kernel kernel_;
  struct Variable {
    u32 version = 0;     // assignments so far
    u32 region = 0;      // where it was made
    u32 written_by = 0;  // the last group of wgmma that accumulates in it ...
    u32 read_by = 0;     // ... or reads it as a
  };
  std::vector<Variable> variables_;
  // Groups of wgmma in straight-line code. The open one is the next to be committed; those from `pending` on
  // may be in flight. What control flow leaves in flight is not followed.
  struct WgmmaGroups {
    u32 open = 1, pending = 1;
    u32 instructions = 0;
  };
  WgmmaGroups wgmma_;
  std::vector<u32> wgmma_at_open_;  // of each open region
  u32 region_ = 0;
  u32 num_loops_ = 0;
  // The pure values of the current gap by hash, to share equal ones: the newest of each bucket, and for each
  // instruction the one before it. Nothing is evicted, or what is shared would depend on the order in which
  // the host compiler evaluates operands.
  std::array<u32, 256> newest_{};
  std::vector<u32> older_;
  std::vector<std::pair<u32, SourceLocation>>
      together_;                 // instructions that threads must reach together, inside regions
  SourceLocation bounds_where_;  // of minnctapersm
  bool adjusts_registers_ = false;
  absl::Status status_;
};

template <class Args>
void KernelBuilder::declare_parameters(SourceLocation where) {
  std::apply(
      [&](const auto&... argument) {
        (add_parameter(argument.name,
                       detail::ArgumentTraits<
                           std::remove_cvref_t<decltype(std::declval<Args>().*argument.member)>>::kType,
                       where),
         ...);
      },
      Args::fields());
}

template <class Args, class T>
auto KernelBuilder::param(T Args::*member, SourceLocation where) {
  u32 index = kNone;
  u32 position = 0;
  std::apply(
      [&](const auto&... argument) {
        const auto match = [&](const auto& a) {
          if constexpr (std::is_same_v<decltype(a.member), T Args::*>) {
            if (a.member == member) index = position;
          }
          ++position;
        };
        (match(argument), ...);
      },
      Args::fields());
  using Traits = detail::ArgumentTraits<T>;
  if constexpr (std::same_as<T, TensorMap>) {
    return TensorMapPtr(this, parameter_address(index, where));
  } else if constexpr (Traits::kIsPointer) {
    return GlobalPtr<typename T::element_type, T::kAlign>(this, load_parameter(index, Traits::kType, where));
  } else {
    return Reg<T>(this, load_parameter(index, Traits::kType, where));
  }
}

template <class B, class E, class Body>
void KernelBuilder::for_(const B& begin, const E& end, u32 step, Body&& body, SourceLocation where) {
  using T = std::conditional_t<std::is_void_v<typename detail::DeviceOf<B>::type>,
                               typename detail::DeviceOf<E>::type, typename detail::DeviceOf<B>::type>;
  using Counter = std::conditional_t<std::is_void_v<T>, u32, T>;  // two literals: unsigned
  static_assert(DeviceInt<Counter>, "a loop counts with an integer");
  const In<Counter> first(begin, where), last(end, where);
  if (!check_input(first.input(), where) || !check_input(last.input(), where)) return;
  if (step == 0 || !std::in_range<Counter>(step)) {
    mistake(where, str_cat("for_: the step is ", step,
                           "; a loop advances by a positive constant of the counter's type"));
  }
  Operand enter;
  enter.form = Operand::Form::kInteger;
  if (!first.kernel() && !last.kernel()) {
    const bool runs = std::is_signed_v<Counter> ? first.input().operand.bits < last.input().operand.bits
                                                : static_cast<u64>(first.input().operand.bits) <
                                                      static_cast<u64>(last.input().operand.bits);
    if (!runs) return;
    enter.bits = 1;
  } else {
    const auto value = [&](const In<Counter>& in) {
      return in.kernel() ? Reg<Counter>(in.kernel(), in.input().operand.value) : constant<Counter>(in);
    };
    enter.form = Operand::Form::kValue;
    enter.value = (first.kernel() ? value(first) < last : first < value(last)).id();
  }
  Var<Counter> i = var<Counter>(first);
  loop(
      enter,
      [&] {
        const Reg<Counter> counter = i;
        body(counter);
        i = counter + static_cast<Counter>(step);
        return Reg<Counter>(i) < last;
      },
      where);
}

}  // namespace ptxgen
