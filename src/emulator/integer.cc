// Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer
// Arithmetic").
#include <algorithm>
#include <limits>

#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kInts = types(Type::kU16, Type::kU32, Type::kU64, Type::kS16, Type::kS32, Type::kS64);
constexpr TypeSet kSignedInts = types(Type::kS16, Type::kS32, Type::kS64);
constexpr TypeSet kPairs = types(Type::kS16x2, Type::kU16x2);

// Wraps instead of overflowing, for signed types too.
template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
constexpr T wrap(std::uint64_t x) {
  return static_cast<T>(static_cast<Unsigned<T>>(x));
}

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, Int128, Uint128>>>;

template <class T>
constexpr T high(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
}

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return wrap<T>(std::uint64_t(a) + std::uint64_t(b));
  }
};
struct Sub {
  template <class T>
  static T apply(T a, T b) {
    return wrap<T>(std::uint64_t(a) - std::uint64_t(b));
  }
};
struct AddSat {
  static std::int32_t apply(std::int32_t a, std::int32_t b) { return clamp(std::int64_t{a} + b); }
  static std::int32_t clamp(std::int64_t x) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(x, std::numeric_limits<std::int32_t>::min(),
                                                              std::numeric_limits<std::int32_t>::max()));
  }
};
struct SubSat {
  static std::int32_t apply(std::int32_t a, std::int32_t b) { return AddSat::clamp(std::int64_t{a} - b); }
};
struct MulLo {
  template <class T>
  static T apply(T a, T b) {
    return wrap<T>(std::uint64_t(a) * std::uint64_t(b));
  }
};
struct MulHi {
  template <class T>
  static T apply(T a, T b) {
    return high(a, b);
  }
};
struct MulWide {
  template <class T>
  static Wide<T> apply(T a, T b) {
    return Wide<T>(Wide<T>(a) * Wide<T>(b));
  }
};
struct MadLo {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MulLo::apply(a, b), c);
  }
};
struct MadHi {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(high(a, b), c);
  }
};
struct MadHiSat {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return AddSat::apply(high(a, b), c);
  }
};
struct MadWide {
  template <class T>
  static Wide<T> apply(T a, T b, Wide<T> c) {
    return Add::apply(MulWide::apply(a, b), c);
  }
};
// The low 24 bits of each factor, sign-extended when signed.
template <class T>
constexpr std::int64_t low24(T x) {
  return std::is_signed_v<T> ? static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 8) >> 8
                             : static_cast<std::int64_t>(static_cast<std::uint32_t>(x) & 0xffffffu);
}
struct Mul24Lo {
  template <class T>
  static T apply(T a, T b) {
    return wrap<T>(static_cast<std::uint64_t>(low24(a) * low24(b)));
  }
};
struct Mul24Hi {
  template <class T>
  static T apply(T a, T b) {
    return wrap<T>(static_cast<std::uint64_t>((low24(a) * low24(b)) >> 16));
  }
};
struct Mad24Lo {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Mul24Lo::apply(a, b), c);
  }
};
struct Mad24Hi {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Mul24Hi::apply(a, b), c);
  }
};

// Division by zero is unspecified in PTX; GPUs return all ones for quotient and remainder. INT_MIN / -1
// wraps.
struct Div {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub::apply(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Abs {
  template <class T>
  static T apply(T a) {
    return a < 0 ? Sub::apply(T{0}, a) : a;
  }
};
struct Neg {
  template <class T>
  static T apply(T a) {
    return Sub::apply(T{0}, a);
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
struct Relu {
  template <class F>
  struct Of {
    static std::int32_t apply(std::int32_t a, std::int32_t b) { return std::max(F::apply(a, b), 0); }
  };
};
struct Sad {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(a < b ? Sub::apply(b, a) : Sub::apply(a, b), c);
  }
};

// F on both 16-bit halves.
template <class F, class Half>
struct Halves {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    const auto low =
        static_cast<std::uint16_t>(F::template apply<Half>(static_cast<Half>(a), static_cast<Half>(b)));
    const auto high = static_cast<std::uint16_t>(
        F::template apply<Half>(static_cast<Half>(a >> 16), static_cast<Half>(b >> 16)));
    return std::uint32_t{low} | std::uint32_t{high} << 16;
  }
};

template <class F>
Execute binary(Type t) {
  if (t == Type::kS16x2) return map<Halves<F, std::int16_t>, std::uint32_t(std::uint32_t, std::uint32_t)>;
  if (t == Type::kU16x2) return map<Halves<F, std::uint16_t>, std::uint32_t(std::uint32_t, std::uint32_t)>;
  return by_type<std::uint16_t, std::uint32_t, std::uint64_t, std::int16_t, std::int32_t, std::int64_t>(
      t, [](auto tag) {
        using T = typename decltype(tag)::type;
        return map<F, T(T, T)>;
      });
}

template <class F>
Execute unary(Type t) {
  return by_type<std::int16_t, std::int32_t, std::int64_t>(t, [](auto tag) {
    using T = typename decltype(tag)::type;
    return map<F, T(T)>;
  });
}

template <class F>
Execute ternary(Type t) {
  return by_type<std::uint16_t, std::uint32_t, std::uint64_t, std::int16_t, std::int32_t, std::int64_t>(
      t, [](auto tag) {
        using T = typename decltype(tag)::type;
        return map<F, T(T, T, T)>;
      });
}

// d = a op b, all of one type.
void emit_binary(Decoder& d, Execute run, Type t) {
  d.expect_operands(3);
  d.emit(run, {d.dst(0, t)}, {d.src(1, t), d.src(2, t)});
}
void emit_ternary(Decoder& d, Execute run, Type t) {
  d.expect_operands(4);
  d.emit(run, {d.dst(0, t)}, {d.src(1, t), d.src(2, t), d.src(3, t)});
}

template <class F>
void decode_binary(Decoder& d) {
  const Type t = d.type(kInts);
  emit_binary(d, binary<F>(t), t);
}

template <class F>
void decode_min_max(Decoder& d) {
  if (d.accept("relu")) {
    const Type t = d.type(types(Type::kS32));
    emit_binary(d, map<Relu::Of<F>, std::int32_t(std::int32_t, std::int32_t)>, t);
    return;
  }
  const Type t = d.type(kInts | kPairs);
  emit_binary(d, binary<F>(t), t);
}

template <class F>
void decode_unary(Decoder& d) {
  const Type t = d.type(kSignedInts);
  d.expect_operands(2);
  d.emit(unary<F>(t), {d.dst(0, t)}, {d.src(1, t)});
}

// ---- carries: the condition code is one more predicate, at Slot `carry` ----

// a + b + carry-in (or a - b - borrow-in), writing CC when Op::flags says so.
template <class T, bool subtract>
struct WithCarry {
  static void run(Warp& warp, const Op& op, LaneMask mask) {
    const T* a = warp.lanes<T>(op.src[0]);
    const T* b = warp.lanes<T>(op.src[1]);
    const LaneMask in = op.src_count > 2 ? warp.predicate(op.src[2]) : 0;
    T result[kWarpSize];
    LaneMask out = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const T carry = in >> lane & 1;
      const T first = subtract ? T(a[lane] - b[lane]) : T(a[lane] + b[lane]);
      result[lane] = subtract ? T(first - carry) : T(first + carry);
      const bool overflow =
          subtract ? a[lane] < b[lane] || first < carry : first < a[lane] || result[lane] < first;
      out |= LaneMask{overflow} << lane;
    }
    store_lanes(warp, op.dst[0], result, mask);
    if (op.dst_count > 1) store_predicate(warp, op.dst[1], out, mask);
  }
};

constexpr TypeSet kCarried = types(Type::kU32, Type::kS32, Type::kU64, Type::kS64);

template <bool subtract>
void emit_carry(Decoder& d, Type t, std::vector<Slot> src, bool carry_in, bool carry_out) {
  std::vector<Slot> dst = {d.dst(0, t)};
  if (carry_in) src.push_back(d.condition_code());
  if (carry_out) dst.push_back(d.condition_code());
  d.emit(bits(t) == 32 ? &WithCarry<std::uint32_t, subtract>::run : &WithCarry<std::uint64_t, subtract>::run,
         std::move(dst), std::move(src));
}

template <bool subtract>
void decode_carry(Decoder& d, bool carry_in, bool carry_out) {
  const Type t = d.type(kCarried);
  d.expect_operands(3);
  emit_carry<subtract>(d, t, {d.src(1, t), d.src(2, t)}, carry_in, carry_out);
}

template <bool subtract>
void decode_carry_in(Decoder& d) {
  const bool out = d.accept("cc");
  decode_carry<subtract>(d, true, out);
}

void decode_add(Decoder& d) {
  if (d.accept("cc")) return decode_carry<false>(d, false, true);
  if (d.accept("sat")) {
    const Type t = d.type(types(Type::kS32));
    return emit_binary(d, map<AddSat, std::int32_t(std::int32_t, std::int32_t)>, t);
  }
  const Type t = d.type(kInts | kPairs);
  emit_binary(d, binary<Add>(t), t);
}

void decode_sub(Decoder& d) {
  if (d.accept("cc")) return decode_carry<true>(d, false, true);
  if (d.accept("sat")) {
    const Type t = d.type(types(Type::kS32));
    return emit_binary(d, map<SubSat, std::int32_t(std::int32_t, std::int32_t)>, t);
  }
  const Type t = d.type(kInts);
  emit_binary(d, binary<Sub>(t), t);
}

// ---- multiplication ----

Type widened(Type t) {
  switch (t) {
    case Type::kU16: return Type::kU32;
    case Type::kS16: return Type::kS32;
    case Type::kU32: return Type::kU64;
    default: return Type::kS64;
  }
}

constexpr TypeSet kNarrow = types(Type::kU16, Type::kS16, Type::kU32, Type::kS32);

void decode_mul(Decoder& d) {
  const int part = d.expect_one({"lo", "hi", "wide"}, "the part of the product");
  if (part < 2) {
    const Type t = d.type(kInts);
    return emit_binary(d, part == 0 ? binary<MulLo>(t) : binary<MulHi>(t), t);
  }
  const Type t = d.type(kNarrow);
  d.expect_operands(3);
  d.emit(by_type<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t>(
             t,
             [](auto tag) {
               using T = typename decltype(tag)::type;
               return map<MulWide, Wide<T>(T, T)>;
             }),
         {d.dst(0, widened(t))}, {d.src(1, t), d.src(2, t)});
}

// a * b + c + carry-in: the product in a register of its own, then the sum.
void emit_mad_carry(Decoder& d, int part, bool carry_in, bool carry_out) {
  const Type t = d.type(kCarried);
  d.expect_operands(4);
  const Slot product = d.temporary(t);
  d.emit_helper(part == 0 ? binary<MulLo>(t) : binary<MulHi>(t), {product}, {d.src(1, t), d.src(2, t)});
  emit_carry<false>(d, t, {product, d.src(3, t)}, carry_in, carry_out);
}

void decode_madc(Decoder& d) {
  const int part = d.expect_one({"lo", "hi"}, "the part of the product");
  const bool carry_out = d.accept("cc");
  emit_mad_carry(d, part, true, carry_out);
}

void decode_mad(Decoder& d) {
  const int part = d.expect_one({"lo", "hi", "wide"}, "the part of the product");
  if (part < 2 && d.accept("cc")) return emit_mad_carry(d, part, false, true);
  if (part < 2) {
    if (part == 1 && d.accept("sat")) {
      const Type t = d.type(types(Type::kS32));
      return emit_ternary(d, map<MadHiSat, std::int32_t(std::int32_t, std::int32_t, std::int32_t)>, t);
    }
    const Type t = d.type(kInts);
    return emit_ternary(d, part == 0 ? ternary<MadLo>(t) : ternary<MadHi>(t), t);
  }
  const Type t = d.type(kNarrow), wide = widened(t);
  d.expect_operands(4);
  d.emit(by_type<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t>(
             t,
             [](auto tag) {
               using T = typename decltype(tag)::type;
               return map<MadWide, Wide<T>(T, T, Wide<T>)>;
             }),
         {d.dst(0, wide)}, {d.src(1, t), d.src(2, t), d.src(3, wide)});
}

template <class F, std::size_t operands>
Execute of_32(Type t) {
  if constexpr (operands == 2) {
    return t == Type::kS32 ? map<F, std::int32_t(std::int32_t, std::int32_t)>
                           : map<F, std::uint32_t(std::uint32_t, std::uint32_t)>;
  } else {
    return t == Type::kS32 ? map<F, std::int32_t(std::int32_t, std::int32_t, std::int32_t)>
                           : map<F, std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>;
  }
}

void decode_mul24(Decoder& d) {
  const int part = d.expect_one({"lo", "hi"}, "the part of the product");
  const Type t = d.type(types(Type::kU32, Type::kS32));
  emit_binary(d, part == 0 ? of_32<Mul24Lo, 2>(t) : of_32<Mul24Hi, 2>(t), t);
}

void decode_mad24(Decoder& d) {
  const int part = d.expect_one({"lo", "hi"}, "the part of the product");
  const Type t = d.type(types(Type::kU32, Type::kS32));
  emit_ternary(d, part == 0 ? of_32<Mad24Lo, 3>(t) : of_32<Mad24Hi, 3>(t), t);
}

void decode_sad(Decoder& d) {
  const Type t = d.type(kInts);
  emit_ternary(d, ternary<Sad>(t), t);
}

// ---- dot products ----

// c + sum of a's bytes times b's.
template <class A, class B>
struct Dp4a {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<std::uint32_t>(std::int32_t{static_cast<A>(a >> (8 * i))} *
                                      std::int32_t{static_cast<B>(b >> (8 * i))});
    }
    return c;
  }
};

// c + a's two halves times two of b's bytes: the low two, or with Op::mode 1 the high two.
template <class A, class B>
struct Dp2a {
  static std::uint32_t apply(const Op& op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    b >>= 16 * op.mode;
    for (int i = 0; i < 2; ++i) {
      c += static_cast<std::uint32_t>(std::int32_t{static_cast<A>(a >> (16 * i))} *
                                      std::int32_t{static_cast<B>(b >> (8 * i))});
    }
    return c;
  }
};

using Dot = std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t);

void emit_dot(Decoder& d, const Execute (&runs)[2][2], std::uint32_t mode) {
  const Type a = d.type(types(Type::kU32, Type::kS32)), b = d.type(types(Type::kU32, Type::kS32));
  const Type sum = is_signed(a) || is_signed(b) ? Type::kS32 : Type::kU32;
  d.expect_operands(4);
  d.emit(runs[is_signed(a)][is_signed(b)], {d.dst(0, sum)},
         {d.src(1, Type::kB32), d.src(2, Type::kB32), d.src(3, sum)})
      .mode = mode;
}

void decode_dp4a(Decoder& d) {
  static constexpr Execute kRuns[2][2] = {
      {map<Dp4a<std::uint8_t, std::uint8_t>, Dot>, map<Dp4a<std::uint8_t, std::int8_t>, Dot>},
      {map<Dp4a<std::int8_t, std::uint8_t>, Dot>, map<Dp4a<std::int8_t, std::int8_t>, Dot>}};
  emit_dot(d, kRuns, 0);
}

void decode_dp2a(Decoder& d) {
  static constexpr Execute kRuns[2][2] = {
      {map<Dp2a<std::uint16_t, std::uint8_t>, Dot>, map<Dp2a<std::uint16_t, std::int8_t>, Dot>},
      {map<Dp2a<std::int16_t, std::uint8_t>, Dot>, map<Dp2a<std::int16_t, std::int8_t>, Dot>}};
  const int high = d.expect_one({"lo", "hi"}, "the half of b");
  emit_dot(d, kRuns, static_cast<std::uint32_t>(high));
}

constexpr Mnemonic kMnemonics[] = {
    {"add", decode_add, kInts | kPairs},
    {"sub", decode_sub, kInts},
    {"addc", decode_carry_in<false>},
    {"subc", decode_carry_in<true>},
    {"mul", decode_mul, kInts},
    {"mad", decode_mad, kInts},
    {"madc", decode_madc},
    {"mul24", decode_mul24},
    {"mad24", decode_mad24},
    {"div", decode_binary<Div>, kInts},
    {"rem", decode_binary<Rem>},
    {"abs", decode_unary<Abs>, kSignedInts},
    {"neg", decode_unary<Neg>, kSignedInts},
    {"min", decode_min_max<Min>, kInts | kPairs},
    {"max", decode_min_max<Max>, kInts | kPairs},
    {"sad", decode_sad},
    {"dp4a", decode_dp4a},
    {"dp2a", decode_dp2a},
};

}  // namespace

absl::Span<const Mnemonic> integer_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
