// The values a kernel computes with.
//
//   Reg<T>               an immutable value of device type T
//   Var<T>               the one thing that can be assigned: a loop-carried accumulator
//   In<T>                a parameter that takes a Reg<T>, a Var<T> or a host literal that T can represent
//   exactly GlobalPtr<T, Align>  an address in global memory, known to be a multiple of Align bytes;
//   GlobalPtr<const T> only loads SharedPtr<T, Align>  the same in shared memory
//
// A value knows the kernel it belongs to. Values of different types do not mix, and nothing converts to a C++
// bool: a C++ `if` runs while the kernel is generated and cannot see a thread's predicate.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <numeric>
#include <utility>

#include "ptxgen/export.h"
#include "ptxgen/ir.h"
#include "ptxgen/source_location.h"

namespace ptxgen {

class KernelBuilder;
template <DeviceType T>
class Reg;
template <DeviceType T>
class Var;

namespace detail {

// The builder's side of every typed function. An inexact literal or a value of another kernel is recorded as
// a mistake.
struct Input {
  Operand operand;
  KernelBuilder* kernel = nullptr;  // none: a literal
  Type in_register = Type::kNone;   // a literal of this type, which PTX takes from a register only
  bool exact = true;
};
PTXGEN_API ValueId emit(Op op, Type type, Type to, const Modifiers& modifiers, const Input* inputs, u32 count,
                        SourceLocation where, KernelBuilder* kernel);
PTXGEN_API ValueId read_variable(KernelBuilder& kernel, u32 variable, SourceLocation where);
PTXGEN_API u32 add_variable(KernelBuilder& kernel, Type type);
PTXGEN_API void write_variable(KernelBuilder& kernel, u32 variable, const Input& value, SourceLocation where);

template <class H, class T>
concept LiteralFor = HostArithmetic<H> && std::same_as<H, bool>
== std::same_as<T, pred> && (std::floating_point<T> || (std::integral<T> && std::integral<H>));

// `literal` as an immediate of type T; not exact when T cannot represent it.
template <class T, class H>
Input literal(H value) {
  Input input;
  if constexpr (std::floating_point<T>) {
    const T converted = static_cast<T>(value);
    // long double holds every integer of 64 bits; converting back to H would overflow where T rounded up.
    input.exact = std::isnan(static_cast<double>(value)) ||
                  static_cast<long double>(converted) == static_cast<long double>(value);
    input.operand.form = sizeof(T) == 4 ? Operand::Form::kF32 : Operand::Form::kF64;
    if constexpr (sizeof(T) == 4) {
      input.operand.bits = __builtin_bit_cast(u32, converted);
    } else {
      input.operand.bits = __builtin_bit_cast(s64, converted);
    }
  } else {
    input.operand.form = Operand::Form::kInteger;
    input.operand.bits = static_cast<s64>(value);
    if constexpr (std::same_as<H, bool>) {
      input.in_register = Type::kPred;
    } else {
      input.exact = std::in_range<T>(value);
    }
  }
  return input;
}

}  // namespace detail

// A parameter of type T. It remembers where in the host program it was written.
template <DeviceType T>
class In {
 public:
  In(const Reg<T>& value, SourceLocation where = SourceLocation::current())  // NOLINT: implicit by design
      : input_{{0, value.id(), Operand::Form::kValue}, value.kernel()}, where_(where) {}
  In(const Var<T>& variable, SourceLocation where = SourceLocation::current())  // NOLINT
      : input_{{0, variable.read(where), Operand::Form::kValue}, variable.kernel()}, where_(where) {}
  template <class H>
  requires detail::LiteralFor<H, T> In(H value, SourceLocation where = SourceLocation::current())  // NOLINT
      : input_(detail::literal<T>(value)), where_(where) {}
  // The bit-pattern types are their own literals.
  In(T value, SourceLocation where = SourceLocation::current())  // NOLINT
      requires(!HostArithmetic<T>)
      : where_(where) {
    input_.operand.form = Operand::Form::kInteger;
    input_.in_register = type_of<T>;
    if constexpr (sizeof(T) == 2) {
      input_.operand.bits = __builtin_bit_cast(u16, value);
    } else {
      input_.operand.bits = __builtin_bit_cast(u32, value);
    }
  }

  const detail::Input& input() const { return input_; }
  void append_to(detail::Input*& out) const { *out++ = input_; }
  KernelBuilder* kernel() const { return input_.kernel; }
  SourceLocation where() const { return where_; }

 private:
  detail::Input input_;
  SourceLocation where_;
};

namespace detail {

// The operators of Reg<T> and Var<T>. Integers: + - * keep the low half (.lo), / truncates, and is written
// with shifts and multiplications where an unsigned divisor is a literal, because ptxas leaves a div; >> is
// arithmetic for signed types, & | ^ ~ << are bitwise, and shifting by the width or more gives 0 or the sign.
// Floats: +
// - * round to nearest even (.rn) and are never contracted. Comparisons are ordered: false for NaN, but != is
// true (setp.neu). Predicates:
// && || ! compute both sides.
template <class T>
struct Operators {
  using Operand = In<T>;
  static constexpr bool kIsInt = type_sets::kInt.contains(type_of<T>);
  static constexpr bool kIsFloat = type_sets::kFloat.contains(type_of<T>);
  static constexpr bool kIsHalf = (type_sets::kHalf | type_sets::kBrain).contains(type_of<T>);
  static constexpr bool kIsPred = std::same_as<T, pred>;

#define PTXGEN_BINARY(op, result, condition, row)                                                     \
  friend auto operator op(const In<T>& a, const In<T>& b) requires(condition) {                       \
    const Input inputs[] = {a.input(), b.input()};                                                    \
    KernelBuilder* kernel = a.kernel() ? a.kernel() : b.kernel();                                     \
    return Reg<result>(kernel, emit(row, type_of<T>, Type::kNone, {}, inputs, 2, b.where(), kernel)); \
  }
  PTXGEN_BINARY(+, T, kIsInt || kIsFloat || kIsHalf,
                float_op(Op::add, Op::add_rn, Op::add_rn_f16, Op::add_rn_bf16))
  PTXGEN_BINARY(-, T, kIsInt || kIsFloat || kIsHalf,
                float_op(Op::sub, Op::sub_rn, Op::sub_rn_f16, Op::sub_rn_bf16))
  PTXGEN_BINARY(*, T, kIsInt || kIsFloat || kIsHalf,
                float_op(Op::mul_lo, Op::mul_rn, Op::mul_rn_f16, Op::mul_rn_bf16))
  PTXGEN_BINARY(&, T, kIsInt, Op::and_)
  PTXGEN_BINARY(|, T, kIsInt, Op::or_)
  PTXGEN_BINARY(^, T, kIsInt, Op::xor_)
  PTXGEN_BINARY(&&, T, kIsPred, Op::and_)
  PTXGEN_BINARY(||, T, kIsPred, Op::or_)
  PTXGEN_BINARY(==, pred, kIsInt || kIsFloat, Op::setp_eq)
  PTXGEN_BINARY(!=, pred, kIsInt || kIsFloat, kIsInt ? Op::setp_ne : Op::setp_neu)
  PTXGEN_BINARY(<, pred, kIsInt || kIsFloat, Op::setp_lt)
  PTXGEN_BINARY(<=, pred, kIsInt || kIsFloat, Op::setp_le)
  PTXGEN_BINARY(>, pred, kIsInt || kIsFloat, Op::setp_gt)
  PTXGEN_BINARY(>=, pred, kIsInt || kIsFloat, Op::setp_ge)
#undef PTXGEN_BINARY

  friend auto operator/(const In<T>& a, const In<T>& b) requires(kIsInt) {
    return divide(a, b);
  }
  friend auto operator%(const In<T>& a, const In<T>& b) requires(kIsInt) {
    if (std::is_unsigned_v<T> && is_power_of_two(b))
      return integer(Op::and_, a, In<T>(static_cast<T>(b.input().operand.bits - 1), b.where()));
    if (std::same_as<T, u32> && !b.kernel() && b.input().operand.bits != 0)
      return integer(Op::sub, a, In<T>(integer(Op::mul_lo, In<T>(divide(a, b)), b)));
    return integer(Op::rem, a, b);
  }

#define PTXGEN_SHIFT(op, row)                                                                         \
  friend auto operator op(const In<T>& a, const In<u32>& amount) requires(kIsInt) {                   \
    const Input inputs[] = {a.input(), amount.input()};                                               \
    KernelBuilder* kernel = a.kernel() ? a.kernel() : amount.kernel();                                \
    return Reg<T>(kernel, emit(row, type_of<T>, Type::kNone, {}, inputs, 2, amount.where(), kernel)); \
  }
  PTXGEN_SHIFT(<<, Op::shl)
  PTXGEN_SHIFT(>>, Op::shr)
#undef PTXGEN_SHIFT

#define PTXGEN_UNARY(op, condition, row)                                                                     \
  friend auto operator op(const In<T>& a) requires(condition) {                                              \
    return Reg<T>(a.kernel(), emit(row, type_of<T>, Type::kNone, {}, &a.input(), 1, a.where(), a.kernel())); \
  }
  PTXGEN_UNARY(~, kIsInt, Op::not_)
  PTXGEN_UNARY(!, kIsPred, Op::not_)
  PTXGEN_UNARY(-, (std::signed_integral<T> || kIsFloat || kIsHalf),
               float_op(Op::neg, Op::neg_f, Op::neg_f16, Op::neg_bf16))
#undef PTXGEN_UNARY

 private:
  static auto integer(Op op, const In<T>& a, const In<T>& b) {
    const Input inputs[] = {a.input(), b.input()};
    KernelBuilder* kernel = a.kernel() ? a.kernel() : b.kernel();
    return Reg<T>(kernel, emit(op, type_of<T>, Type::kNone, {}, inputs, 2, b.where(), kernel));
  }
  static auto shift_right(const In<T>& a, u32 amount, SourceLocation where) {
    const Input inputs[] = {a.input(), literal<u32>(amount)};
    return Reg<T>(a.kernel(), emit(Op::shr, type_of<T>, Type::kNone, {}, inputs, 2, where, a.kernel()));
  }
  static bool is_power_of_two(const In<T>& b) {
    return !b.kernel() && std::has_single_bit(static_cast<u64>(b.input().operand.bits));
  }
  // a / b. By a literal b of 32 bits that is no power of two: with 2^(l - 1) < b < 2^l and m = floor(2^32
  // (2^l
  // - b) / b) + 1, a / b = (t + (a - t) / 2) / 2^(l - 1) where t is the high half of m a (Granlund and
  // Montgomery, "Division by Invariant Integers using Multiplication", figure 4.1).
  static auto divide(const In<T>& a, const In<T>& b) {
    if constexpr (std::is_unsigned_v<T>) {
      const u64 divisor = static_cast<u64>(b.input().operand.bits);
      if (is_power_of_two(b)) return shift_right(a, static_cast<u32>(std::countr_zero(divisor)), b.where());
      if (std::same_as<T, u32> && !b.kernel() && divisor != 0) {
        const u32 l = static_cast<u32>(std::bit_width(divisor - 1));
        const T m = static_cast<T>((u64{1} << 32) * ((u64{1} << l) - divisor) / divisor + 1);
        const Reg<T> t = integer(Op::mul_hi, a, In<T>(m, b.where()));
        const Reg<T> half = shift_right(In<T>(integer(Op::sub, a, In<T>(t))), 1, b.where());
        return shift_right(In<T>(integer(Op::add, In<T>(half), In<T>(t))), l - 1, b.where());
      }
    }
    return integer(Op::div, a, b);
  }

  static constexpr Op float_op(Op integer, Op floating, Op half, Op brain) {
    if (kIsInt) return integer;
    if (kIsFloat) return floating;
    return type_sets::kHalf.contains(type_of<T>) ? half : brain;
  }
};

}  // namespace detail

// An immutable value. Copies name the same value; they cost nothing.
template <DeviceType T>
class Reg : public detail::Operators<T> {
 public:
  using value_type = T;
  Reg(KernelBuilder* kernel, ValueId id) : kernel_(kernel), id_(id) {}
  // The variable's present content.
  Reg(const Var<T>& variable, SourceLocation where = SourceLocation::current())  // NOLINT: implicit by design
      : Reg(variable.kernel(), variable.read(where)) {}

  KernelBuilder* kernel() const { return kernel_; }
  ValueId id() const { return id_; }

 private:
  KernelBuilder* kernel_;
  ValueId id_;
};

using Pred = Reg<pred>;

// A variable, made by KernelBuilder::var. Reading it (converting it to Reg<T> or using it as an operand)
// gives the content at that place in program order. A copy is a new variable with that content: it never
// aliases.
template <DeviceType T>
class Var : public detail::Operators<T> {
 public:
  using value_type = T;
  Var(KernelBuilder* kernel, const In<T>& initial)
      : kernel_(kernel), index_(detail::add_variable(*kernel, type_of<T>)) {
    detail::write_variable(*kernel_, index_, initial.input(), initial.where());
  }
  Var(const Var& other) : Var(other.kernel_, Reg<T>(other)) {}
  // Returning one by value. The variable moved from is no variable any more; using it is a mistake.
  Var(Var&& other) noexcept : kernel_(other.kernel_), index_(std::exchange(other.index_, kNone)) {}
  Var& operator=(Var&&) = delete;  // so std::swap does not compile: exchange the contents through a Reg
  Var& operator=(const Var& other) {
    *this = In<T>(other);
    return *this;
  }
  void operator=(const In<T>& value) {
    detail::write_variable(*kernel_, index_, value.input(), value.where());
  }

  KernelBuilder* kernel() const { return kernel_; }
  ValueId read(SourceLocation where) const { return detail::read_variable(*kernel_, index_, where); }
  // The variable itself, for an instruction that reads and writes it in place.
  detail::Input variable() const { return {{index_, kNoValue, Operand::Form::kVariable}, kernel_}; }

 private:
  KernelBuilder* kernel_;
  u32 index_;
};

// The same bits seen as another type of the same size. No instruction.
template <DeviceType To, DeviceType From>
requires(sizeof(To) == sizeof(From) && !std::same_as<To, pred> &&
         !std::same_as<From, pred>) Reg<To> bitcast(const Reg<From>& value) {
  return Reg<To>(value.kernel(), value.id());
}

// An address: a register plus a byte offset known at generation time.
template <Space S, class T, std::size_t Align>
class Ptr {
  static_assert(std::has_single_bit(Align), "an alignment is a power of two");

 public:
  using element_type = T;
  static constexpr Space kSpace = S;
  static constexpr std::size_t kAlign = Align;
  using Index = std::conditional_t<S == Space::kGlobal, u64, u32>;
  // What stays known of the alignment after moving by whole elements.
  using Element = Ptr<S, T, std::gcd(Align, sizeof(T))>;

  Ptr(KernelBuilder* kernel, ValueId base, s64 offset = 0) : kernel_(kernel), base_(base), offset_(offset) {}
  // Fewer promises and constness are given implicitly.
  template <class U, std::size_t A>
  requires(A >= Align && (std::same_as<T, U> || std::same_as<T, const U>)) Ptr(const Ptr<S, U, A>& other)
      : Ptr(other.kernel(), other.base(), other.offset()) {}  // NOLINT

  KernelBuilder* kernel() const { return kernel_; }
  ValueId base() const { return base_; }
  s64 offset() const { return offset_; }
  detail::Input input() const { return {{offset_, base_, Operand::Form::kValue}, kernel_}; }
  void append_to(detail::Input*& out) const { *out++ = input(); }

  friend Element operator+(const Ptr& p, std::integral auto elements) {
    return Element(p.kernel_, p.base_, p.offset_ + static_cast<s64>(elements) * static_cast<s64>(sizeof(T)));
  }
  // A 32-bit index is widened before it is scaled; in shared memory 32 bits are an address.
  friend Element operator+(const Ptr& p, const In<u32>& index) { return p.advance(index); }
  friend Element operator+(const Ptr& p, const In<s32>& index) requires(S == Space::kGlobal) {
    return p.advance(index);
  }
  friend Element operator+(const Ptr& p, const In<u64>& index) requires(S == Space::kGlobal) {
    return p.advance(index);
  }

 private:
  template <class Integer>
  Element advance(const In<Integer>& index) const {
    constexpr bool kIsWide = sizeof(Integer) < sizeof(Index);
    const detail::Input base = {{0, base_, Operand::Form::kValue}, kernel_};
    const auto emit = [&](Op op, std::initializer_list<detail::Input> inputs) {
      return detail::emit(op, type_of<Integer>, Type::kNone, {}, inputs.begin(),
                          static_cast<u32>(inputs.size()), index.where(), kernel_);
    };
    const auto moved = [&](ValueId to) { return Element(kernel_, to, offset_); };
    if constexpr (!kIsWide && sizeof(T) == 1) return moved(emit(Op::add, {index.input(), base}));
    if constexpr (sizeof(Integer) == 8 && std::has_single_bit(sizeof(T))) {  // GPUs multiply 32 bits
      const ValueId scaled =
          emit(Op::shl, {index.input(), detail::literal<u32>(std::countr_zero(sizeof(T)))});
      return moved(emit(Op::add, {{{0, scaled, Operand::Form::kValue}, kernel_}, base}));
    }
    return moved(emit(kIsWide ? Op::mad_wide : Op::mad_lo,
                      {index.input(), detail::literal<Integer>(sizeof(T)), base}));
  }

  KernelBuilder* kernel_;
  ValueId base_;
  s64 offset_;
};

template <class T, std::size_t Align = alignof(T)>
using GlobalPtr = Ptr<Space::kGlobal, T, Align>;
template <class T, std::size_t Align = alignof(T)>
using SharedPtr = Ptr<Space::kShared, T, Align>;
// In the shared memory of a CTA of the cluster, this one or another; made by mapa().
template <class T, std::size_t Align = alignof(T)>
using ClusterSharedPtr = Ptr<Space::kSharedCluster, T, Align>;

// The address of a TensorMap parameter.
class TensorMapPtr {
 public:
  TensorMapPtr(KernelBuilder* kernel, ValueId address) : kernel_(kernel), address_(address) {}
  KernelBuilder* kernel() const { return kernel_; }
  void append_to(detail::Input*& out) const { *out++ = {{0, address_, Operand::Form::kValue}, kernel_}; }

 private:
  KernelBuilder* kernel_;
  ValueId address_;
};

// The element of type U `Offset` bytes into what p points to; constness stays.
template <class U, std::size_t Offset = 0, Space S, class T, std::size_t Align>
auto at(const Ptr<S, T, Align>& p) {
  using Element = std::conditional_t<std::is_const_v<T>, const U, U>;
  return Ptr<S, Element, std::gcd(Align, Offset)>(p.kernel(), p.base(),
                                                  p.offset() + static_cast<s64>(Offset));
}

// A promise that p is a multiple of Align bytes; the emulator and the GPU stop where it is broken.
template <std::size_t Align, Space S, class T, std::size_t Known>
Ptr<S, T, Align> assume_aligned(const Ptr<S, T, Known>& p) {
  return {p.kernel(), p.base(), p.offset()};
}

}  // namespace ptxgen
