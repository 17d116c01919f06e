// The instructions as typed functions, generated from the table: `fma_rn(a, b, c)`, `cvt<f32>(x)`, `ld_global_v4(p)`.
//
// Each function takes Reg<T>, Var<T> or literals, at least one of them not a literal, and returns Reg<T>, a std::pair
// of two results, or a std::array for vector loads. An instruction that the kernel's target or PTX ISA does not have is
// a mistake that KernelBuilder::finish() reports. Read instruction_table.inc for the list.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "ptxgen/fragment.h"
#include "ptxgen/matrix_descriptor.h"
#include "ptxgen/value.h"

namespace ptxgen {
namespace detail {

template <Rule... Rs>
struct RuleList {};

// A rule as a C++ type, given T and D.
template <Rule R, class T, class D>
struct Resolve;
#define PTXGEN_RESOLVE(rule, ...)    \
  template <class T, class D>        \
  struct Resolve<Rule::rule, T, D> { \
    using type = __VA_ARGS__;        \
  };
PTXGEN_RESOLVE(T, T)
PTXGEN_RESOLVE(V, T)
PTXGEN_RESOLVE(P, packed_t<T>)
PTXGEN_RESOLVE(D, D)
PTXGEN_RESOLVE(pred, ::ptxgen::pred)
PTXGEN_RESOLVE(u16, ::ptxgen::u16)
PTXGEN_RESOLVE(u32, ::ptxgen::u32)
PTXGEN_RESOLVE(s32, ::ptxgen::s32)
PTXGEN_RESOLVE(u64, ::ptxgen::u64)
PTXGEN_RESOLVE(f16, ::ptxgen::f16)
PTXGEN_RESOLVE(bf16, ::ptxgen::bf16)
PTXGEN_RESOLVE(f16x2, ::ptxgen::f16x2)
PTXGEN_RESOLVE(f32, ::ptxgen::f32)
PTXGEN_RESOLVE(arrivals, ::ptxgen::u32)
PTXGEN_RESOLVE(tx_bytes, ::ptxgen::u32)
PTXGEN_RESOLVE(bulk_bytes, ::ptxgen::u32)
PTXGEN_RESOLVE(parity, ::ptxgen::u32)
PTXGEN_RESOLVE(upto4, ::ptxgen::u32)
PTXGEN_RESOLVE(upto8, ::ptxgen::u32)
PTXGEN_RESOLVE(upto16, ::ptxgen::u32)
PTXGEN_RESOLVE(cta_rank, ::ptxgen::u32)
#undef PTXGEN_RESOLVE
#define PTXGEN_WIDEN(narrow, wide)         \
  template <class D>                       \
  struct Resolve<Rule::W, narrow, D> {     \
    using type = wide;                     \
  };
PTXGEN_WIDEN(u16, u32)
PTXGEN_WIDEN(s16, s32)
PTXGEN_WIDEN(u32, u64)
PTXGEN_WIDEN(s32, s64)
#undef PTXGEN_WIDEN
template <Rule R, class T, class D = void>
using resolve_t = typename Resolve<element_of(R), T, D>::type;

// The types of every row: detail::rows::fma_rn_row::Operands. In this namespace T, W, u32 ... are rules.
namespace rows {
using namespace type_sets;
using enum Rule;
inline constexpr TypeSet kNoTypes = {};
constexpr RowTypes to(TypeSet d, TypeSet t) { return {d, t}; }
#define PTXGEN_RULES(...) RuleList<__VA_ARGS__>
#define PTXGEN_ROW(form, id, method, kind, types, results, operands, ...) \
  struct id##_row {                                                       \
    static constexpr RowTypes kRowTypes = types;                          \
    static constexpr TypeSet kTypes = kRowTypes.t;                        \
    static constexpr TypeSet kTo = kRowTypes.d;                           \
    using Results = PTXGEN_RULES results;                                 \
    using Operands = PTXGEN_RULES operands;                               \
  };
#include "ptxgen/instruction_table.inc"
#undef PTXGEN_RULES
}  // namespace rows

// The device type of an argument; void for a literal.
template <class X>
struct DeviceOf {
  using type = void;
};
template <class T>
struct DeviceOf<Reg<T>> {
  using type = T;
};
template <class T>
struct DeviceOf<Var<T>> {
  using type = T;
};

// T of a call: the device type of the first argument in a T position that is no literal. A row whose operands all have
// fixed types takes the first one's.
template <class Rules, class... Xs>
struct FirstDevice {
  using type = void;
};
template <Rule R, Rule... Rs, class X, class... Xs>
struct FirstDevice<RuleList<R, Rs...>, X, Xs...> {
  using own = typename DeviceOf<X>::type;
  using type = typename std::conditional_t<R == Rule::T && !std::is_void_v<own>, DeviceOf<X>,
                                           FirstDevice<RuleList<Rs...>, Xs...>>::type;
};
template <class Rules, class... Xs>
struct Deduce : FirstDevice<Rules, Xs...> {};
template <Rule R, Rule... Rs, class... Xs>
  requires(R != Rule::T && ((Rs != Rule::T) && ...))
struct Deduce<RuleList<R, Rs...>, Xs...> : Resolve<R, void, void> {};
template <class Row, class... Xs>
using deduce_t = typename Deduce<typename Row::Operands, Xs...>::type;

// What a function takes for an operand: In<type>; a literal where PTX takes nothing else; for a group as many registers.
class Literal {
 public:
  template <std::integral H>
    requires(!std::same_as<H, bool>)
  Literal(H value) : input_(literal<u32>(value)) {}  // NOLINT: implicit, as In is
  void append_to(Input*& out) const { *out++ = input_; }

 private:
  Input input_;
};
template <class T, u32 N>
class Group {
 public:
  Group(const std::array<Reg<T>, N>& registers) : registers_(registers) {}  // NOLINT: implicit, as In is
  void append_to(Input*& out) const {
    for (const Reg<T>& r : registers_) *out++ = {{0, r.id(), Operand::Form::kValue}, r.kernel()};
  }

 private:
  std::array<Reg<T>, N> registers_;
};

// A pointer of an asynchronous copy: what it points to does not matter, space and alignment do.
template <Space S, std::size_t Align, bool kWritten>
class CopyAddress {
 public:
  template <class T, std::size_t A>
  requires(A >= Align && !(kWritten && std::is_const_v<T>) &&
           !std::same_as<std::remove_const_t<T>, MBarrier>)
      CopyAddress(const Ptr<S, T, A>& p)  // NOLINT: implicit, as In is
      : input_(p.input()) {}
  KernelBuilder* kernel() const { return input_.kernel; }
  void append_to(Input*& out) const { *out++ = input_; }

 private:
  Input input_;
};

template <Rule R, class T, class D>
struct Parameter {};
#define PTXGEN_COPY_ADDRESS(rule, space, alignment, written)       \
  template <class T, class D>                                      \
  struct Parameter<Rule::rule, T, D> {                             \
    using type = CopyAddress<Space::space, alignment, written>;    \
  };
PTXGEN_COPY_ADDRESS(global_in4, kGlobal, 4, false)
PTXGEN_COPY_ADDRESS(global_in8, kGlobal, 8, false)
PTXGEN_COPY_ADDRESS(global_in16, kGlobal, 16, false)
PTXGEN_COPY_ADDRESS(global_out16, kGlobal, 16, true)
PTXGEN_COPY_ADDRESS(shared_in16, kShared, 16, false)
PTXGEN_COPY_ADDRESS(shared_out4, kShared, 4, true)
PTXGEN_COPY_ADDRESS(shared_out8, kShared, 8, true)
PTXGEN_COPY_ADDRESS(shared_out16, kShared, 16, true)
PTXGEN_COPY_ADDRESS(shared_in128, kShared, 128, false)
PTXGEN_COPY_ADDRESS(shared_out128, kShared, 128, true)
PTXGEN_COPY_ADDRESS(cluster_out16, kSharedCluster, 16, true)
#undef PTXGEN_COPY_ADDRESS
template <class T, class D>
struct Parameter<Rule::mbarrier, T, D> {
  using type = SharedPtr<MBarrier>;
};
template <class T, class D>
struct Parameter<Rule::cluster_mbarrier, T, D> {
  using type = ClusterSharedPtr<MBarrier>;
};
template <class T, class D>
struct Parameter<Rule::tensor_map, T, D> {
  using type = TensorMapPtr;
};
template <Rule R, class T, class D>
  requires(count_of(R) == 1) && requires { typename resolve_t<R, T, D>; }
struct Parameter<R, T, D> {
  using type = In<resolve_t<R, T, D>>;
};
template <Rule R, class T, class D>
  requires(count_of(R) > 1)
struct Parameter<R, T, D> {
  using type = Group<resolve_t<R, T, D>, count_of(R)>;
};
template <Rule R, class T, class D>
  requires(R == Rule::imm || R == Rule::maxnreg)
struct Parameter<R, T, D> {
  using type = Literal;
};
template <Rule R, class T, class D = void>
using parameter_t = typename Parameter<R, T, D>::type;

template <Rule R, class X, class T>
concept Accepts = requires { typename parameter_t<R, T>; } && std::convertible_to<const X&, parameter_t<R, T>>;

template <class T, class... Xs, Rule... Rs>
consteval bool accepts_all(RuleList<Rs...>) {
  return (Accepts<Rs, Xs, T> && ...);
}

template <class Row, class... Xs>
concept Callable = Row::kTypes.contains(type_of<deduce_t<Row, Xs...>>) &&
                   accepts_all<deduce_t<Row, Xs...>, Xs...>(typename Row::Operands{});

template <class Row, class D, class... Xs>
concept Convertible = Row::kTo.contains(type_of<D>) && Callable<Row, Xs...>;

// The results of an instruction as typed values: one, a std::pair, or a std::tuple of more; a group is a std::array.
template <Rule R, class T, class D>
auto make_result(KernelBuilder* kernel, ValueId& next) {
  using Value = Reg<resolve_t<R, T, D>>;
  if constexpr (count_of(R) == 1) {
    return Value(kernel, next++);
  } else {
    return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      return std::array<Value, sizeof...(Index)>{((void)Index, Value(kernel, next++))...};
    }(std::make_index_sequence<count_of(R)>{});
  }
}

template <class T, class D, Rule... Rs>
auto make_results(RuleList<Rs...>, KernelBuilder* kernel, ValueId first) {
  if constexpr (sizeof...(Rs) == 1) {
    return (make_result<Rs, T, D>(kernel, first), ...);
  } else if constexpr (sizeof...(Rs) == 2) {
    return std::pair{make_result<Rs, T, D>(kernel, first)...};  // braces: left to right
  } else if constexpr (sizeof...(Rs) > 2) {
    return std::tuple{make_result<Rs, T, D>(kernel, first)...};
  }
}

// What a method of the builder takes.
template <Rule... Rs>
std::tuple<parameter_t<Rs, void>...> inputs_of(RuleList<Rs...>);
template <class Row>
using inputs_t = decltype(inputs_of(typename Row::Operands{}));

template <class D>
constexpr Type to_type() {
  if constexpr (std::is_void_v<D>) {
    return Type::kNone;
  } else {
    return type_of<D>;
  }
}

template <Op O, class Row, class T, class D, Rule... Rs, class... Xs>
auto call_typed(RuleList<Rs...>, SourceLocation where, KernelBuilder* kernel, const Xs&... xs) {
  constexpr u32 kCount = (count_of(Rs) + ... + 0);
  Input inputs[kCount + 1];
  [[maybe_unused]] Input* end = inputs;
  (parameter_t<Rs, T, D>(xs).append_to(end), ...);
  for (u32 i = 0; i < kCount && !kernel; ++i) kernel = inputs[i].kernel;
  return make_results<T, D>(typename Row::Results{}, kernel,
                            emit(O, to_type<T>(), to_type<D>(), {}, inputs, kCount, where, kernel));
}

template <Op O, class Row, class D = void, class... Xs>
auto call(SourceLocation where, const Xs&... xs) {
  return call_typed<O, Row, deduce_t<Row, Xs...>, D>(typename Row::Operands{}, where, nullptr, xs...);
}

// A method of the builder: no operand has type T.
template <Op O, class Row, class... Ins>
auto call_on(SourceLocation where, KernelBuilder* kernel, const Ins&... ins) {
  return call_typed<O, Row, void, void>(typename Row::Operands{}, where, kernel, ins...);
}

// The state space of a row's first operand.
template <Rule R, Rule... Rs>
consteval Space space_of(RuleList<R, Rs...>) {
  static_assert(R == Rule::global || R == Rule::shared || R == Rule::shared_cluster);
  return R == Rule::global ? Space::kGlobal : R == Rule::shared ? Space::kShared : Space::kSharedCluster;
}
template <class Row>
struct SpaceOf {
  static constexpr Space value = space_of(typename Row::Operands{});
};

// Whether `N` elements of T can be moved at once through a pointer of this alignment: at most 16 bytes.
template <class T, std::size_t Align, std::size_t N>
concept Movable = DeviceType<std::remove_const_t<T>> && type_sets::kMemory.contains(type_of<std::remove_const_t<T>>) &&
                  Align % (N * sizeof(T)) == 0 && N * sizeof(T) <= 16;

template <Op O, u8 N, class P>
auto load(const P& p, Modifiers modifiers, SourceLocation where) {
  using T = std::remove_const_t<typename P::element_type>;
  modifiers.vector = N;
  const Input address = p.input();
  const ValueId first = emit(O, type_of<T>, Type::kNone, modifiers, &address, 1, where, p.kernel());
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    return std::array<Reg<T>, N>{Reg<T>(p.kernel(), first + static_cast<u32>(Index))...};
  }(std::make_index_sequence<N>{});
}

template <class T>
using Pair = std::array<Reg<T>, 2>;
template <class T>
using Quad = std::array<Reg<T>, 4>;

template <Op O, class P, std::size_t N>
void store(const P& p, const std::array<Reg<typename P::element_type>, N>& values, Modifiers modifiers,
           SourceLocation where) {
  modifiers.vector = N;
  Input inputs[N + 1] = {p.input()};
  for (std::size_t i = 0; i < N; ++i) inputs[i + 1] = {{0, values[i].id(), Operand::Form::kValue}, values[i].kernel()};
  emit(O, type_of<typename P::element_type>, Type::kNone, modifiers, inputs, N + 1, where, p.kernel());
}

template <Op O, class P>
void store(const P& p, const In<typename P::element_type>& value, Modifiers modifiers, SourceLocation where) {
  const Input inputs[] = {p.input(), value.input()};
  emit(O, type_of<typename P::element_type>, Type::kNone, modifiers, inputs, 2, where, p.kernel());
}

template <Op O, class Row, class P, class... Ins>
auto atomic(const P& p, Scope scope, SourceLocation where, const Ins&... values) {
  using T = typename P::element_type;
  const Input inputs[] = {p.input(), values.input()...};
  Modifiers modifiers;
  modifiers.scope = scope;
  modifiers.space = P::kSpace;
  return make_results<T, void>(typename Row::Results{}, p.kernel(),
                               emit(O, type_of<T>, Type::kNone, modifiers, inputs, sizeof...(Ins) + 1, where, p.kernel()));
}

// 16 bytes of each row of tiles in shared memory (ldmatrix, stmatrix).
template <class Row, class T, std::size_t Align>
concept Tile = DeviceType<std::remove_const_t<T>> && Row::kTypes.contains(type_of<std::remove_const_t<T>>) &&
               Align % 16 == 0;

template <Op O, class Row, class P>
auto load_tiles(const P& p, SourceLocation where) {
  using T = std::remove_const_t<typename P::element_type>;
  const Input address = p.input();
  return make_results<T, void>(typename Row::Results{}, p.kernel(),
                               emit(O, type_of<T>, Type::kNone, {}, &address, 1, where, p.kernel()));
}

template <class Row, class T, Rule Address, Rule Values>
auto stored_tiles(RuleList<Address, Values>) -> parameter_t<Values, T>;
template <class Row, class T>
using stored_tiles_t = decltype(stored_tiles<Row, std::remove_const_t<T>>(typename Row::Operands{}));

template <Op O, class P, class Values>
void store_tiles(const P& p, const Values& values, SourceLocation where) {
  Input inputs[5] = {p.input()};
  Input* end = inputs + 1;
  values.append_to(end);
  emit(O, type_of<typename P::element_type>, Type::kNone, {}, inputs, static_cast<u32>(end - inputs), where,
       p.kernel());
}

// The element type of an mma row's accumulators.
template <Rule R>
auto accumulated(RuleList<R>) {
  if constexpr (element_of(R) == Rule::f16x2) {
    return f16{};
  } else {
    return resolve_t<R, void>{};
  }
}
template <class Row>
using accumulated_t = decltype(accumulated(typename Row::Results{}));

// Whether a row multiplies elements of types A and B: T of the table is B, D is A, or the same where there is no D.
template <class Row, class A, class B>
concept Multiplies = Row::kTypes.contains(type_of<B>) &&
                     (Row::kTo.bits == 0 ? std::same_as<A, B> : Row::kTo.contains(type_of<A>));

template <Op O, class Row, class A, class B, class C>
C multiply(const A& a, const B& b, const C& c, const Modifiers& modifiers, SourceLocation where) {
  Input inputs[A::kRegisters + B::kRegisters + C::kRegisters];
  Input* end = inputs;
  a.append_to(end);
  b.append_to(end);
  c.append_to(end);
  constexpr Type kTo = Row::kTo.bits == 0 ? Type::kNone : type_of<typename A::value_type>;
  return C(make_results<void, void>(
      typename Row::Results{}, a.kernel(),
      emit(O, type_of<typename B::value_type>, kTo, modifiers, inputs, static_cast<u32>(end - inputs), where,
           a.kernel())));
}

// wmma: shape(spelling) tiles of T in global or shared memory, rows (columns) `stride` elements apart.
template <Op O, class Row, class F, class P>
F load_fragment(const P& p, const In<u32>& stride, Layout layout, SourceLocation where) {
  const Input inputs[] = {p.input(), stride.input()};
  Modifiers modifiers;
  modifiers.space = P::kSpace;
  modifiers.layout = layout;
  using T = typename F::value_type;
  return F(make_results<T, void>(typename Row::Results{}, p.kernel(),
                                 emit(O, type_of<T>, Type::kNone, modifiers, inputs, 2, where, p.kernel())));
}

template <Op O, class P, class F>
void store_fragment(const P& p, const F& fragment, const In<u32>& stride, Layout layout, SourceLocation where) {
  Input inputs[F::kRegisters + 2] = {p.input()};
  Input* end = inputs + 1;
  fragment.append_to(end);
  *end++ = stride.input();
  Modifiers modifiers;
  modifiers.space = P::kSpace;
  modifiers.layout = layout;
  emit(O, type_of<typename F::value_type>, Type::kNone, modifiers, inputs, F::kRegisters + 2, where, p.kernel());
}

template <class Row, class F, Space S, class T, std::size_t Align>
concept FragmentMemory = S != Space::kSharedCluster &&
                         std::same_as<typename F::value_type, std::remove_const_t<T>> &&
                         Row::kTypes.contains(type_of<std::remove_const_t<T>>) && Align % F::kAlign == 0;

constexpr Modifiers with_layouts(Layout a, Layout b) {
  Modifiers modifiers;
  modifiers.layout = a;
  modifiers.layout_b = b;
  return modifiers;
}

// ---- wgmma ----

// What a fragment of accumulators of 64 x n holds.
template <class D>
struct WarpgroupAccumulator {};
template <class T, u32 N>
struct WarpgroupAccumulator<Accumulator<T, 64, N>> {
  using type = T;
  static constexpr u32 n = N;
};

// What an operand of wgmma holds: a matrix in shared memory, or as a a fragment of 64 x 32 bytes.
template <class X>
struct WarpgroupOperand {};
template <class T, Major M>
struct WarpgroupOperand<MatrixDescriptor<T, M>> {
  using type = T;
  static constexpr Major kMajor = M;
  static constexpr u32 kRegisters = 1;
};
template <class T, u32 K>
  requires(K * sizeof(T) == 32)
struct WarpgroupOperand<Fragment<Matrix::kA, T, 64, K>> {
  using type = T;
  static constexpr Major kMajor = Major::kK;
  static constexpr u32 kRegisters = 4;
};

template <Rule A, Rule B, Rule C, Rule E>
constexpr Rule accumulated_in(RuleList<A, B, C, E>) {
  return element_of(E);
}
template <Rule A, Rule... Rs>
constexpr u32 first_count(RuleList<A, Rs...>) {
  return count_of(A);
}

// PTX ISA, "Asynchronous wgmma.mma_async operation": the shapes.
constexpr bool warpgroup_columns(u32 n, bool integer) {
  return n % 8 == 0 && n >= 8 && n <= 256 && (!integer || n <= 32 || n % 16 == 0);
}

// Whether a row multiplies these into these accumulators.
template <class Row, class D, class A, class B>
concept WarpgroupMultiplies = requires {
  typename WarpgroupAccumulator<D>::type;
  typename WarpgroupOperand<A>::type;
  typename WarpgroupOperand<B>::type;
} && std::same_as<packed_t<typename WarpgroupAccumulator<D>::type>,
                  resolve_t<accumulated_in(typename Row::Operands{}), void>> &&
    warpgroup_columns(WarpgroupAccumulator<D>::n, std::same_as<typename WarpgroupAccumulator<D>::type, s32>) &&
    WarpgroupOperand<A>::kRegisters == first_count(typename Row::Operands{}) && WarpgroupOperand<B>::kRegisters == 1 &&
    Multiplies<Row, typename WarpgroupOperand<A>::type, typename WarpgroupOperand<B>::type>;

template <Op O, class Row, class D, class A, class B>
void multiply_in_place(const D& d, const A& a, const B& b, const In<pred>& scale_d, ImmScale scale_a,
                       ImmScale scale_b, SourceLocation where) {
  constexpr u32 kAccumulators = D::kRegisters;
  Input inputs[WarpgroupOperand<A>::kRegisters + 2 + kAccumulators];
  Input* end = inputs;
  a.append_to(end);
  b.append_to(end);
  scale_d.append_to(end);
  d.append_variables(end);
  Modifiers modifiers;
  modifiers.vector = kAccumulators;
  modifiers.major_a = WarpgroupOperand<A>::kMajor;
  modifiers.major_b = WarpgroupOperand<B>::kMajor;
  modifiers.scale_a = scale_a;
  modifiers.scale_b = scale_b;
  constexpr Type kTo = Row::kTo.bits == 0 ? Type::kNone : type_of<typename WarpgroupOperand<A>::type>;
  emit(O, type_of<typename WarpgroupOperand<B>::type>, kTo, modifiers, inputs, static_cast<u32>(end - inputs), where,
       b.kernel());
}

constexpr Modifiers with_hints(MemoryHints hints) {
  Modifiers modifiers;
  modifiers.hints = hints;
  return modifiers;
}
constexpr Modifiers with_scope(Scope scope) {
  Modifiers modifiers;
  modifiers.scope = scope;
  return modifiers;
}

}  // namespace detail

// Names in parentheses, so that a `min` macro of the including program does not apply.
#define PTXGEN_FN1(id, method, ...)                                                                 \
  template <class A>                                                                         \
    requires detail::Callable<detail::rows::id##_row, A>                                     \
  auto(method)(const A& a, SourceLocation where = SourceLocation::current()) {               \
    return detail::call<Op::id, detail::rows::id##_row>(where, a);                           \
  }
#define PTXGEN_FN2(id, method, ...)                                                                 \
  template <class A, class B>                                                                \
    requires detail::Callable<detail::rows::id##_row, A, B>                                  \
  auto(method)(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {   \
    return detail::call<Op::id, detail::rows::id##_row>(where, a, b);                        \
  }
#define PTXGEN_FN3(id, method, ...)                                                                 \
  template <class A, class B, class C>                                                       \
    requires detail::Callable<detail::rows::id##_row, A, B, C>                               \
  auto(method)(const A& a, const B& b, const C& c,                                           \
               SourceLocation where = SourceLocation::current()) {                           \
    return detail::call<Op::id, detail::rows::id##_row>(where, a, b, c);                     \
  }
#define PTXGEN_FN4(id, method, ...)                                                                 \
  template <class A, class B, class C, class E>                                              \
    requires detail::Callable<detail::rows::id##_row, A, B, C, E>                            \
  auto(method)(const A& a, const B& b, const C& c, const E& e,                               \
               SourceLocation where = SourceLocation::current()) {                           \
    return detail::call<Op::id, detail::rows::id##_row>(where, a, b, c, e);                  \
  }
#define PTXGEN_FD1(id, method, ...)                                                                 \
  template <DeviceType D, class A>                                                           \
    requires detail::Convertible<detail::rows::id##_row, D, A>                               \
  auto(method)(const A& a, SourceLocation where = SourceLocation::current()) {               \
    return detail::call<Op::id, detail::rows::id##_row, D>(where, a);                        \
  }
#define PTXGEN_FD2(id, method, ...)                                                                 \
  template <DeviceType D, class A, class B>                                                  \
    requires detail::Convertible<detail::rows::id##_row, D, A, B>                            \
  auto(method)(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {   \
    return detail::call<Op::id, detail::rows::id##_row, D>(where, a, b);                     \
  }
#define PTXGEN_LOAD(id, method, n, first, modifiers, ...)                             \
  template <class T, std::size_t Align>                                                      \
    requires detail::Movable<T, Align, n>                                                    \
  auto method(const Ptr<detail::SpaceOf<detail::rows::id##_row>::value, T, Align>& p __VA_OPT__(, ) __VA_ARGS__,               \
              SourceLocation where = SourceLocation::current()) {                            \
    return detail::load<Op::id, n>(p, modifiers, where) first;                               \
  }
#define PTXGEN_LOADS(id, method, modifiers, ...)                                      \
  PTXGEN_LOAD(id, method, 1, [0], modifiers __VA_OPT__(, ) __VA_ARGS__)               \
  PTXGEN_LOAD(id, method##_v2, 2, , modifiers __VA_OPT__(, ) __VA_ARGS__)             \
  PTXGEN_LOAD(id, method##_v4, 4, , modifiers __VA_OPT__(, ) __VA_ARGS__)
#define PTXGEN_LD(id, method, ...) \
  PTXGEN_LOADS(id, method, detail::with_hints(hints), MemoryHints hints = {})
#define PTXGEN_LD_PLAIN(id, method, ...) PTXGEN_LOADS(id, method, Modifiers{})
#define PTXGEN_LD_SCOPED(id, method, ...) PTXGEN_LOADS(id, method, detail::with_scope(scope), Scope scope)
#define PTXGEN_STORE(id, method, n, value_type, modifiers, ...)                                         \
  template <class T, std::size_t Align>                                                                       \
    requires(!std::is_const_v<T>) && detail::Movable<T, Align, n>                                             \
  void method(const Ptr<detail::SpaceOf<detail::rows::id##_row>::value, T, Align>& p, const value_type& value __VA_OPT__(, ) __VA_ARGS__,       \
              SourceLocation where = SourceLocation::current()) {                                             \
    detail::store<Op::id>(p, value, modifiers, where);                                                        \
  }
#define PTXGEN_STORES(id, method, modifiers, ...)                                                      \
  PTXGEN_STORE(id, method, 1, std::type_identity_t<In<T>>, modifiers __VA_OPT__(, ) __VA_ARGS__)       \
  PTXGEN_STORE(id, method##_v2, 2, detail::Pair<T>, modifiers __VA_OPT__(, ) __VA_ARGS__)              \
  PTXGEN_STORE(id, method##_v4, 4, detail::Quad<T>, modifiers __VA_OPT__(, ) __VA_ARGS__)
#define PTXGEN_ST(id, method, ...) \
  PTXGEN_STORES(id, method, detail::with_hints(hints), MemoryHints hints = {})
#define PTXGEN_ST_PLAIN(id, method, ...) PTXGEN_STORES(id, method, Modifiers{})
#define PTXGEN_ST_SCOPED(id, method, ...) PTXGEN_STORES(id, method, detail::with_scope(scope), Scope scope)
#define PTXGEN_ATOMIC(id, method, space)                                                                      \
  template <class T, std::size_t Align>                                                                       \
    requires(detail::rows::id##_row::kTypes.contains(type_of<T>)) && detail::Movable<T, Align, 1>             \
  auto method(const Ptr<Space::space, T, Align>& p, const std::type_identity_t<In<T>>& value,                 \
              Scope scope = Scope::kGpu, SourceLocation where = SourceLocation::current()) {                  \
    return detail::atomic<Op::id, detail::rows::id##_row>(p, scope, where, value);                            \
  }
#define PTXGEN_ATOM(id, method, ...)               \
  PTXGEN_ATOMIC(id, atom_global_##method, kGlobal) \
  PTXGEN_ATOMIC(id, atom_shared_##method, kShared) \
  PTXGEN_ATOMIC(id, atom_shared_cluster_##method, kSharedCluster)
#define PTXGEN_RED(id, method, ...)               \
  PTXGEN_ATOMIC(id, red_global_##method, kGlobal) \
  PTXGEN_ATOMIC(id, red_shared_##method, kShared) \
  PTXGEN_ATOMIC(id, red_shared_cluster_##method, kSharedCluster)
#define PTXGEN_ATOMIC2(id, method, space)                                                                     \
  template <class T, std::size_t Align>                                                                       \
    requires(detail::rows::id##_row::kTypes.contains(type_of<T>)) && detail::Movable<T, Align, 1>             \
  auto method(const Ptr<Space::space, T, Align>& p, const std::type_identity_t<In<T>>& compare,               \
              const std::type_identity_t<In<T>>& value, Scope scope = Scope::kGpu,                            \
              SourceLocation where = SourceLocation::current()) {                                             \
    return detail::atomic<Op::id, detail::rows::id##_row>(p, scope, where, compare, value);                   \
  }
#define PTXGEN_ATOM2(id, method, ...)               \
  PTXGEN_ATOMIC2(id, atom_global_##method, kGlobal) \
  PTXGEN_ATOMIC2(id, atom_shared_##method, kShared) \
  PTXGEN_ATOMIC2(id, atom_shared_cluster_##method, kSharedCluster)
#define PTXGEN_PREFETCH(id, method, ...)                                                                             \
  template <class T, std::size_t Align>                                                                       \
  void method(const GlobalPtr<T, Align>& p, SourceLocation where = SourceLocation::current()) {               \
    const detail::Input address = p.input();                                                                  \
    detail::emit(Op::id, Type::kNone, Type::kNone, {}, &address, 1, where, p.kernel());                       \
  }
#define PTXGEN_IN(id, i) const std::tuple_element_t<i, detail::inputs_t<detail::rows::id##_row>>&
#define PTXGEN_AD1(id, method, ...)                                                          \
  inline auto method(PTXGEN_IN(id, 0) a, SourceLocation where = SourceLocation::current()) { \
    return detail::call_on<Op::id, detail::rows::id##_row>(where, a.kernel(), a);            \
  }
#define PTXGEN_AD2(id, method, ...)                                                  \
  inline auto method(PTXGEN_IN(id, 0) a, PTXGEN_IN(id, 1) b,                         \
                     SourceLocation where = SourceLocation::current()) {             \
    return detail::call_on<Op::id, detail::rows::id##_row>(where, a.kernel(), a, b); \
  }
#define PTXGEN_AD3(id, method, ...)                                                     \
  inline auto method(PTXGEN_IN(id, 0) a, PTXGEN_IN(id, 1) b, PTXGEN_IN(id, 2) c,        \
                     SourceLocation where = SourceLocation::current()) {                \
    return detail::call_on<Op::id, detail::rows::id##_row>(where, a.kernel(), a, b, c); \
  }
#define PTXGEN_AD4(id, method, ...)                                                                  \
  inline auto method(PTXGEN_IN(id, 0) a, PTXGEN_IN(id, 1) b, PTXGEN_IN(id, 2) c, PTXGEN_IN(id, 3) e, \
                     SourceLocation where = SourceLocation::current()) {                             \
    return detail::call_on<Op::id, detail::rows::id##_row>(where, a.kernel(), a, b, c, e);           \
  }
#define PTXGEN_AD5(id, method, ...)                                                                  \
  inline auto method(PTXGEN_IN(id, 0) a, PTXGEN_IN(id, 1) b, PTXGEN_IN(id, 2) c, PTXGEN_IN(id, 3) e, \
                     PTXGEN_IN(id, 4) f, SourceLocation where = SourceLocation::current()) {         \
    return detail::call_on<Op::id, detail::rows::id##_row>(where, a.kernel(), a, b, c, e, f);        \
  }
#define PTXGEN_AD6(id, method, ...)                                                                  \
  inline auto method(PTXGEN_IN(id, 0) a, PTXGEN_IN(id, 1) b, PTXGEN_IN(id, 2) c, PTXGEN_IN(id, 3) e, \
                     PTXGEN_IN(id, 4) f, PTXGEN_IN(id, 5) g,                                         \
                     SourceLocation where = SourceLocation::current()) {                             \
    return detail::call_on<Op::id, detail::rows::id##_row>(where, a.kernel(), a, b, c, e, f, g);     \
  }
// The same address in another CTA of the cluster.
#define PTXGEN_MAPA(id, method, ...)                                                                       \
  template <class T, std::size_t Align>                                                                    \
  ClusterSharedPtr<T, Align> method(const SharedPtr<T, Align>& p, const In<u32>& rank,                     \
                                    SourceLocation where = SourceLocation::current()) {                    \
    const detail::Input inputs[] = {{{0, p.base(), Operand::Form::kValue}, p.kernel()}, rank.input()};     \
    return {p.kernel(),                                                                                    \
            detail::emit(Op::id, Type::kNone, Type::kNone, {}, inputs, 2, where, p.kernel()), p.offset()}; \
  }
#define PTXGEN_LDMATRIX(id, method, ...)                                                               \
  template <class T, std::size_t Align>                                                                \
    requires detail::Tile<detail::rows::id##_row, T, Align>                                            \
  auto method(const SharedPtr<T, Align>& p, SourceLocation where = SourceLocation::current()) {        \
    return detail::load_tiles<Op::id, detail::rows::id##_row>(p, where);                               \
  }
#define PTXGEN_STMATRIX(id, method, ...)                                                               \
  template <class T, std::size_t Align>                                                                \
    requires(!std::is_const_v<T>) && detail::Tile<detail::rows::id##_row, T, Align>                    \
  void method(const SharedPtr<T, Align>& p, const detail::stored_tiles_t<detail::rows::id##_row, T>& values, \
              SourceLocation where = SourceLocation::current()) {                                      \
    detail::store_tiles<Op::id>(p, values, where);                                                     \
  }
// a[m][k] * b[k][n] + c[m][n]
#define PTXGEN_MMA(id, method, kind, types, results, operands, spelling, ...)                                       \
  template <class A, class B>                                                                                       \
    requires detail::Multiplies<detail::rows::id##_row, A, B>                                                       \
  auto method(const Fragment<Matrix::kA, A, detail::matrix_shape(spelling).m, detail::matrix_shape(spelling).k>& a, \
              const Fragment<Matrix::kB, B, detail::matrix_shape(spelling).k, detail::matrix_shape(spelling).n>& b, \
              const Fragment<Matrix::kC, detail::accumulated_t<detail::rows::id##_row>,                             \
                             detail::matrix_shape(spelling).m, detail::matrix_shape(spelling).n>& c,                \
              SourceLocation where = SourceLocation::current()) {                                                   \
    return detail::multiply<Op::id, detail::rows::id##_row>(a, b, c, {}, where);                                    \
  }
// Fragments of one shape, in the layouts they were loaded in.
#define PTXGEN_WMMA(id, method, kind, types, results, operands, spelling, ...)                                         \
  template <class A, class B, Layout LA, Layout LB>                                                                    \
    requires detail::Multiplies<detail::rows::id##_row, A, B>                                                          \
  auto method(const WmmaFragment<Matrix::kA, A, PTXGEN_SHAPE(spelling), LA>& a,                                        \
              const WmmaFragment<Matrix::kB, B, PTXGEN_SHAPE(spelling), LB>& b,                                        \
              const WmmaFragment<Matrix::kC, detail::accumulated_t<detail::rows::id##_row>, PTXGEN_SHAPE(spelling)>& c,\
              SourceLocation where = SourceLocation::current()) {                                                      \
    return detail::multiply<Op::id, detail::rows::id##_row>(a, b, c, detail::with_layouts(LA, LB), where);             \
  }
#define PTXGEN_SHAPE(spelling) \
  detail::matrix_shape(spelling).m, detail::matrix_shape(spelling).n, detail::matrix_shape(spelling).k
#define PTXGEN_WMMA_LOAD(matrix, element, id, method, spelling, ...)                                             \
  template <Layout L, Space S, class T, std::size_t Align,                                                       \
            class F = WmmaFragment<Matrix::matrix, element, PTXGEN_SHAPE(spelling) __VA_OPT__(, ) __VA_ARGS__>>  \
    requires detail::FragmentMemory<detail::rows::id##_row, F, S, T, Align>                                      \
  F method(const Ptr<S, T, Align>& p, const In<u32>& stride, SourceLocation where = SourceLocation::current()) { \
    return detail::load_fragment<Op::id, detail::rows::id##_row, F>(p, stride, L, where);                        \
  }
#define PTXGEN_WMMA_LOAD_A(id, method, kind, types, results, operands, spelling, ...) \
  PTXGEN_WMMA_LOAD(kA, std::remove_const_t<T>, id, method, spelling, L)
#define PTXGEN_WMMA_LOAD_B(id, method, kind, types, results, operands, spelling, ...) \
  PTXGEN_WMMA_LOAD(kB, std::remove_const_t<T>, id, method, spelling, L)
#define PTXGEN_WMMA_LOAD_C(id, method, kind, types, results, operands, spelling, ...) \
  PTXGEN_WMMA_LOAD(kC, std::remove_const_t<T>, id, method, spelling)
#define PTXGEN_WMMA_STORE(id, method, kind, types, results, operands, spelling, ...)                   \
  template <Layout L, Space S, class T, std::size_t Align,                                             \
            class F = WmmaFragment<Matrix::kC, T, PTXGEN_SHAPE(spelling)>>                             \
    requires(!std::is_const_v<T>) && detail::FragmentMemory<detail::rows::id##_row, F, S, T, Align>    \
  void method(const Ptr<S, T, Align>& p, const WmmaFragment<Matrix::kC, T, PTXGEN_SHAPE(spelling)>& d, \
              const In<u32>& stride, SourceLocation where = SourceLocation::current()) {               \
    detail::store_fragment<Op::id>(p, d, stride, L, where);                                            \
  }
// d = a[64][k] * b[k][n] + d, without + d where scale_d is false; k is 32 bytes. d and a's registers may not be used, nor
// the shared memory changed, until wgmma_wait_group has waited for it.
#define PTXGEN_WGMMA(id, method, ...)                                                                               \
  template <class D, class A, class B>                                                                              \
    requires detail::WarpgroupMultiplies<detail::rows::id##_row, D, A, B>                                           \
  void method(D& d, const A& a, const B& b, const In<pred>& scale_d, ImmScale scale_a = ImmScale::kOne,             \
              ImmScale scale_b = ImmScale::kOne, SourceLocation where = SourceLocation::current()) {                \
    detail::multiply_in_place<Op::id, detail::rows::id##_row>(d, a, b, scale_d, scale_a, scale_b, where);           \
  }
#define PTXGEN_WGMMA_INT(id, method, ...)                                                                           \
  template <class D, class A, class B>                                                                              \
    requires detail::WarpgroupMultiplies<detail::rows::id##_row, D, A, B>                                           \
  void method(D& d, const A& a, const B& b, const In<pred>& scale_d,                                                \
              SourceLocation where = SourceLocation::current()) {                                                   \
    detail::multiply_in_place<Op::id, detail::rows::id##_row>(d, a, b, scale_d, ImmScale::kOne, ImmScale::kOne, where); \
  }
#include "ptxgen/instruction_table.inc"
#undef PTXGEN_IN
#undef PTXGEN_LOAD
#undef PTXGEN_LOADS
#undef PTXGEN_STORE
#undef PTXGEN_STORES
#undef PTXGEN_ATOMIC
#undef PTXGEN_ATOMIC2
#undef PTXGEN_SHAPE
#undef PTXGEN_WMMA_LOAD

}  // namespace ptxgen
