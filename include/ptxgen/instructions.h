// The instructions as typed functions, generated from the table: `fma_rn(a, b, c)`, `cvt<f32>(x)`, `ld_global_v4(p)`.
//
// Each function takes Reg<T>, Var<T> or literals, at least one of them not a literal, and returns Reg<T>, a std::pair
// of two results, or a std::array for vector loads. An instruction that the kernel's target or PTX ISA does not have is
// a mistake that KernelBuilder::finish() reports. Read instruction_table.inc for the list.
#pragma once

#include <array>
#include <tuple>
#include <utility>

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
PTXGEN_RESOLVE(D, D)
PTXGEN_RESOLVE(pred, ::ptxgen::pred)
PTXGEN_RESOLVE(u16, ::ptxgen::u16)
PTXGEN_RESOLVE(u32, ::ptxgen::u32)
PTXGEN_RESOLVE(s32, ::ptxgen::s32)
PTXGEN_RESOLVE(u64, ::ptxgen::u64)
PTXGEN_RESOLVE(f16, ::ptxgen::f16)
PTXGEN_RESOLVE(bf16, ::ptxgen::bf16)
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
using resolve_t = typename Resolve<R, T, D>::type;

// The types of every row: detail::rows::fma_rn_row::Operands. In this namespace T, W, u32 ... are rules.
namespace rows {
using namespace type_sets;
using enum Rule;
inline constexpr TypeSet kNoTypes = {};
#define R(...) decltype(RuleList<__VA_ARGS__>())
#define PTXGEN_ROW_TYPES(id, from, to, result_rules, ...)   \
  struct id##_row {                                         \
    static constexpr TypeSet kTypes = from;                 \
    static constexpr TypeSet kTo = to;                      \
    using Results = result_rules;                           \
    using Operands = RuleList<__VA_ARGS__>;                 \
  };
#define FN1(id, m, k, types, results, a, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, results, a)
#define FN2(id, m, k, types, results, a, b, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, results, a, b)
#define FN3(id, m, k, types, results, a, b, c, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, results, a, b, c)
#define FN4(id, m, k, types, results, a, b, c, e, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, results, a, b, c, e)
#define FD1(id, m, k, to, from, ...) PTXGEN_ROW_TYPES(id, from, to, R(D), T)
#define FD2(id, m, k, to, from, ...) PTXGEN_ROW_TYPES(id, from, to, R(D), T, T)
#define KB0(id, m, k, results, ...) PTXGEN_ROW_TYPES(id, kNoTypes, kNoTypes, results)
#define KB1(id, m, k, results, a, ...) PTXGEN_ROW_TYPES(id, kNoTypes, kNoTypes, results, a)
#define KB2(id, m, k, results, a, b, ...) PTXGEN_ROW_TYPES(id, kNoTypes, kNoTypes, results, a, b)
#define LD(...)
#define LD_PLAIN(...)
#define LD_VOLATILE(...)
#define LD_SCOPED(...)
#define ST(...)
#define ST_PLAIN(...)
#define ST_SCOPED(...)
#define ATOM(id, m, types, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, R(T), T)
#define ATOM2(id, m, types, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, R(T), T, T)
#define RED(id, m, types, ...) PTXGEN_ROW_TYPES(id, types, kNoTypes, R(), T)
#define PREFETCH(...)
#define INTERNAL(...)
#include "ptxgen/instruction_table.inc"
#include "ptxgen/instruction_table_undef.inc"
#undef PTXGEN_ROW_TYPES
#undef R
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

// What a function takes for an operand: In<type>, or a literal where PTX takes nothing else.
class Literal {
 public:
  template <std::integral H>
    requires(!std::same_as<H, bool>)
  Literal(H value) : input_(literal<u32>(value)) {}  // NOLINT: implicit, as In is
  const Input& input() const { return input_; }

 private:
  Input input_;
};
template <Rule R, class T, class D>
struct Parameter {};
template <Rule R, class T, class D>
  requires requires { typename resolve_t<R, T, D>; }
struct Parameter<R, T, D> {
  using type = In<resolve_t<R, T, D>>;
};
template <class T, class D>
struct Parameter<Rule::imm, T, D> {
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

// The results of an instruction as typed values.
template <class T, class D>
void make_results(RuleList<>, KernelBuilder*, ValueId) {}
template <class T, class D, Rule A>
Reg<resolve_t<A, T, D>> make_results(RuleList<A>, KernelBuilder* kernel, ValueId first) {
  return {kernel, first};
}
template <class T, class D, Rule A, Rule B>
std::pair<Reg<resolve_t<A, T, D>>, Reg<resolve_t<B, T, D>>> make_results(RuleList<A, B>, KernelBuilder* kernel,
                                                                         ValueId first) {
  return {{kernel, first}, {kernel, first + 1}};
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
  const Input inputs[sizeof...(Xs) + 1] = {parameter_t<Rs, T, D>(xs).input()...};
  for (u32 i = 0; i < sizeof...(Xs) && !kernel; ++i) kernel = inputs[i].kernel;
  return make_results<T, D>(typename Row::Results{}, kernel,
                            emit(O, to_type<T>(), to_type<D>(), {}, inputs, sizeof...(Xs), where, kernel));
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
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<T>, N>{Reg<T>(p.kernel(), first + static_cast<u32>(I))...};
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
#define FN1(id, method, ...)                                                                 \
  template <class A>                                                                         \
    requires detail::Callable<detail::rows::id##_row, A>                                     \
  auto(method)(const A& a, SourceLocation where = SourceLocation::current()) {               \
    return detail::call<Op::id, detail::rows::id##_row>(where, a);                           \
  }
#define FN2(id, method, ...)                                                                 \
  template <class A, class B>                                                                \
    requires detail::Callable<detail::rows::id##_row, A, B>                                  \
  auto(method)(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {   \
    return detail::call<Op::id, detail::rows::id##_row>(where, a, b);                        \
  }
#define FN3(id, method, ...)                                                                 \
  template <class A, class B, class C>                                                       \
    requires detail::Callable<detail::rows::id##_row, A, B, C>                               \
  auto(method)(const A& a, const B& b, const C& c,                                           \
               SourceLocation where = SourceLocation::current()) {                           \
    return detail::call<Op::id, detail::rows::id##_row>(where, a, b, c);                     \
  }
#define FN4(id, method, ...)                                                                 \
  template <class A, class B, class C, class E>                                              \
    requires detail::Callable<detail::rows::id##_row, A, B, C, E>                            \
  auto(method)(const A& a, const B& b, const C& c, const E& e,                               \
               SourceLocation where = SourceLocation::current()) {                           \
    return detail::call<Op::id, detail::rows::id##_row>(where, a, b, c, e);                  \
  }
#define FD1(id, method, ...)                                                                 \
  template <DeviceType D, class A>                                                           \
    requires detail::Convertible<detail::rows::id##_row, D, A>                               \
  auto(method)(const A& a, SourceLocation where = SourceLocation::current()) {               \
    return detail::call<Op::id, detail::rows::id##_row, D>(where, a);                        \
  }
#define FD2(id, method, ...)                                                                 \
  template <DeviceType D, class A, class B>                                                  \
    requires detail::Convertible<detail::rows::id##_row, D, A, B>                            \
  auto(method)(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {   \
    return detail::call<Op::id, detail::rows::id##_row, D>(where, a, b);                     \
  }
#define KB0(...)
#define KB1(...)
#define KB2(...)
#define PTXGEN_LOAD(id, method, space, n, first, modifiers, ...)                             \
  template <class T, std::size_t Align>                                                      \
    requires detail::Movable<T, Align, n>                                                    \
  auto method(const Ptr<Space::space, T, Align>& p __VA_OPT__(, ) __VA_ARGS__,               \
              SourceLocation where = SourceLocation::current()) {                            \
    return detail::load<Op::id, n>(p, modifiers, where) first;                               \
  }
#define PTXGEN_LOADS(id, method, space, modifiers, ...)                                      \
  PTXGEN_LOAD(id, method, space, 1, [0], modifiers __VA_OPT__(, ) __VA_ARGS__)               \
  PTXGEN_LOAD(id, method##_v2, space, 2, , modifiers __VA_OPT__(, ) __VA_ARGS__)             \
  PTXGEN_LOAD(id, method##_v4, space, 4, , modifiers __VA_OPT__(, ) __VA_ARGS__)
#define LD(id, method, space, ...) \
  PTXGEN_LOADS(id, method, space, detail::with_hints(hints), MemoryHints hints = {})
#define LD_PLAIN(id, method, space, ...) PTXGEN_LOADS(id, method, space, Modifiers{})
#define LD_VOLATILE LD_PLAIN
#define LD_SCOPED(id, method, space, ...) PTXGEN_LOADS(id, method, space, detail::with_scope(scope), Scope scope)
#define PTXGEN_STORE(id, method, space, n, value_type, modifiers, ...)                                         \
  template <class T, std::size_t Align>                                                                       \
    requires(!std::is_const_v<T>) && detail::Movable<T, Align, n>                                             \
  void method(const Ptr<Space::space, T, Align>& p, const value_type& value __VA_OPT__(, ) __VA_ARGS__,       \
              SourceLocation where = SourceLocation::current()) {                                             \
    detail::store<Op::id>(p, value, modifiers, where);                                                        \
  }
#define PTXGEN_STORES(id, method, space, modifiers, ...)                                                      \
  PTXGEN_STORE(id, method, space, 1, std::type_identity_t<In<T>>, modifiers __VA_OPT__(, ) __VA_ARGS__)       \
  PTXGEN_STORE(id, method##_v2, space, 2, detail::Pair<T>, modifiers __VA_OPT__(, ) __VA_ARGS__)              \
  PTXGEN_STORE(id, method##_v4, space, 4, detail::Quad<T>, modifiers __VA_OPT__(, ) __VA_ARGS__)
#define ST(id, method, space, ...) \
  PTXGEN_STORES(id, method, space, detail::with_hints(hints), MemoryHints hints = {})
#define ST_PLAIN(id, method, space, ...) PTXGEN_STORES(id, method, space, Modifiers{})
#define ST_SCOPED(id, method, space, ...) PTXGEN_STORES(id, method, space, detail::with_scope(scope), Scope scope)
#define PTXGEN_ATOMIC(id, method, space)                                                                      \
  template <class T, std::size_t Align>                                                                       \
    requires(detail::rows::id##_row::kTypes.contains(type_of<T>)) && detail::Movable<T, Align, 1>             \
  auto method(const Ptr<Space::space, T, Align>& p, const std::type_identity_t<In<T>>& value,                 \
              Scope scope = Scope::kGpu, SourceLocation where = SourceLocation::current()) {                  \
    return detail::atomic<Op::id, detail::rows::id##_row>(p, scope, where, value);                            \
  }
#define ATOM(id, method, ...)                      \
  PTXGEN_ATOMIC(id, atom_global_##method, kGlobal) \
  PTXGEN_ATOMIC(id, atom_shared_##method, kShared)
#define RED(id, method, ...)                      \
  PTXGEN_ATOMIC(id, red_global_##method, kGlobal) \
  PTXGEN_ATOMIC(id, red_shared_##method, kShared)
#define PTXGEN_ATOMIC2(id, method, space)                                                                     \
  template <class T, std::size_t Align>                                                                       \
    requires(detail::rows::id##_row::kTypes.contains(type_of<T>)) && detail::Movable<T, Align, 1>             \
  auto method(const Ptr<Space::space, T, Align>& p, const std::type_identity_t<In<T>>& compare,               \
              const std::type_identity_t<In<T>>& value, Scope scope = Scope::kGpu,                            \
              SourceLocation where = SourceLocation::current()) {                                             \
    return detail::atomic<Op::id, detail::rows::id##_row>(p, scope, where, compare, value);                   \
  }
#define ATOM2(id, method, ...)                      \
  PTXGEN_ATOMIC2(id, atom_global_##method, kGlobal) \
  PTXGEN_ATOMIC2(id, atom_shared_##method, kShared)
#define PREFETCH(id, method, ...)                                                                             \
  template <class T, std::size_t Align>                                                                       \
  void method(const GlobalPtr<T, Align>& p, SourceLocation where = SourceLocation::current()) {               \
    const detail::Input address = p.input();                                                                  \
    detail::emit(Op::id, Type::kNone, Type::kNone, {}, &address, 1, where, p.kernel());                       \
  }
#define INTERNAL(...)
#include "ptxgen/instruction_table.inc"
#include "ptxgen/instruction_table_undef.inc"
#undef PTXGEN_LOAD
#undef PTXGEN_LOADS
#undef PTXGEN_STORE
#undef PTXGEN_STORES
#undef PTXGEN_ATOMIC
#undef PTXGEN_ATOMIC2

}  // namespace ptxgen
