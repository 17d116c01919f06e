// Floating-point arithmetic (PTX ISA, "Floating Point Instructions", "Half Precision Floating Point
// Instructions").
//
// f32 and f64 under round-to-nearest are the host's own operations. Every other combination of type,
// rounding, .ftz and .sat goes through numerics.h. Approximations (div.approx, rcp.approx, sin, ex2 ...) are
// computed in f64 and rounded: at least as close to the true value as a GPU's, but not the same bits.
#include <cmath>

#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kPairs = types(Type::kF16x2, Type::kBf16x2);
constexpr TypeSet kHalves = types(Type::kF16, Type::kBf16) | kPairs;
constexpr TypeSet kSingles = types(Type::kF32, Type::kF64);
constexpr TypeSet kFloats = kHalves | kSingles;

// Op::flags of floating-point instructions.
enum Flags : std::uint32_t { kFtz = 1, kSat = 2, kRelu = 4, kPropagateNan = 8, kXorSign = 16, kAbs = 32 };

Rounding mode_of(const Op& op) {
  return static_cast<Rounding>(op.mode);
}

// A sum that is exactly zero has the sign IEEE 754 gives it: minus when rounding down, unless all terms are
// +0.
double signed_zero(double sum, bool any_negative, bool any_positive, Rounding rounding) {
  if (sum != 0 || !(any_negative && any_positive)) return sum;
  return rounding == Rounding::kDown ? -0.0 : 0.0;
}

// Each says which operand's NaN an f64 result is, as an H200 chooses.
struct Add {
  template <class T>
  static T native(T a, T b) {
    return a + b;
  }
  template <class T>
  static T nan(T a, T b) {
    return nan_result(b, a);
  }
  static double odd(double a, double b, Rounding r) {
    return signed_zero(add_odd(a, b), std::signbit(a) || std::signbit(b),
                       !std::signbit(a) || !std::signbit(b), r);
  }
  static double directed(double a, double b, Rounding r) { return add_directed(a, b, r); }
};
struct Sub {
  template <class T>
  static T native(T a, T b) {
    return a - b;
  }
  template <class T>
  static T nan(T a, T b) {
    return nan_result(b, a);
  }
  static double odd(double a, double b, Rounding r) { return Add::odd(a, -b, r); }
  static double directed(double a, double b, Rounding r) { return add_directed(a, -b, r); }
};
struct Mul {
  template <class T>
  static T native(T a, T b) {
    return a * b;
  }
  template <class T>
  static T nan(T a, T b) {
    return nan_result(b, a);
  }
  static double odd(double a, double b, Rounding) { return a * b; }  // exact
  static double directed(double a, double b, Rounding r) { return mul_directed(a, b, r); }
};
struct Fma {
  template <class T>
  static T native(T a, T b, T c) {
    return std::fma(a, b, c);
  }
  template <class T>
  static T nan(T a, T b, T c) {
    return nan_result(b, c, a);
  }
  static double odd(double a, double b, double c, Rounding r) { return Add::odd(a * b, c, r); }
  static double directed(double a, double b, double c, Rounding r) { return fma_directed(a, b, c, r); }
};
struct Div {
  template <class T>
  static T native(T a, T b) {
    return a / b;
  }
  template <class T>
  static T nan(T a, T b) {
    return nan_result(a, b);
  }
  static double odd(double a, double b, Rounding) { return div_odd(a, b); }
  static double directed(double a, double b, Rounding r) { return div_directed(a, b, r); }
};
struct Rcp {
  template <class T>
  static T native(T a) {
    return T{1} / a;
  }
  template <class T>
  static T nan(T a) {
    return nan_result(a);
  }
  static double odd(double a, Rounding) { return div_odd(1, a); }
  static double directed(double a, Rounding r) { return div_directed(1, a, r); }
};
struct Sqrt {
  template <class T>
  static T native(T a) {
    return std::sqrt(a);
  }
  template <class T>
  static T nan(T a) {
    return nan_result(a);
  }
  static double odd(double a, Rounding) { return sqrt_odd(a); }
  static double directed(double a, Rounding r) { return sqrt_directed(a, r); }
};

template <class T>
T finish(const Op& op, T x) {
  if (op.flags & kFtz) x = flush(x);
  if (op.flags & kSat) x = saturate(x);
  if ((op.flags & kRelu) && !is_nan(x) && (to_bits(x) & kSignBit<T>)) x = std::bit_cast<T>(BitsOf<T>{0});
  return x;
}

// Round to nearest, f32 or f64, no flags.
template <class F>
struct Native {
  template <class T, class... Rest>
  static T apply(const Op&, T a, Rest... rest) {
    const T x = F::native(a, rest...);
    return is_nan(x) ? F::nan(a, rest...) : x;
  }
};

template <class F>
struct Rounded {
  template <class T, class... Rest>
  static T apply(const Op& op, T a, Rest... rest) {
    const auto in = [&](T x) { return op.flags & kFtz ? flush(x) : x; };
    const Rounding rounding = mode_of(op);
    if constexpr (std::is_same_v<T, double>) {
      const double x = F::directed(in(a), in(rest)..., rounding);
      return finish(op, is_nan(x) ? F::nan(in(a), in(rest)...) : x);
    } else {
      return finish(op, from_double<T>(F::odd(to_double(in(a)), to_double(in(rest))..., rounding), rounding));
    }
  }
};

// F on both halves of a pair of T.
template <class F, class T>
struct Paired {
  template <class... Args>
  static std::uint32_t apply(const Op& op, Args... args) {
    const T low = F::apply(op, T{static_cast<std::uint16_t>(args)}...);
    const T high = F::apply(op, T{static_cast<std::uint16_t>(args >> 16)}...);
    return std::uint32_t{low.bits} | std::uint32_t{high.bits} << 16;
  }
};

template <class T, std::size_t operands>
struct SignatureOf;
template <class T>
struct SignatureOf<T, 1> {
  using type = T(T);
};
template <class T>
struct SignatureOf<T, 2> {
  using type = T(T, T);
};
template <class T>
struct SignatureOf<T, 3> {
  using type = T(T, T, T);
};

// F::apply(op, T...) for every floating-point type.
template <class F, std::size_t operands>
Execute for_type(Type t) {
  if (t == Type::kF16x2) return map<Paired<F, f16>, typename SignatureOf<std::uint32_t, operands>::type>;
  if (t == Type::kBf16x2) return map<Paired<F, bf16>, typename SignatureOf<std::uint32_t, operands>::type>;
  return by_type<f16, bf16, float, double>(
      t, [](auto tag) { return map<F, typename SignatureOf<typename decltype(tag)::type, operands>::type>; });
}

template <class F, std::size_t operands>
Execute arithmetic(Type t, Rounding rounding, std::uint32_t flags) {
  if (rounding == Rounding::kNearestEven && flags == 0) {
    if (t == Type::kF32) return map<Native<F>, typename SignatureOf<float, operands>::type>;
    if (t == Type::kF64) return map<Native<F>, typename SignatureOf<double, operands>::type>;
  }
  return for_type<Rounded<F>, operands>(t);
}

void emit(Decoder& d, Execute run, Type t, std::size_t operands, std::uint32_t mode, std::uint32_t flags) {
  d.expect_operands(operands + 1);
  if (d.failed()) return;
  std::vector<Slot> src;
  for (std::size_t i = 1; i <= operands; ++i) src.push_back(d.src(i, t));
  Op& op = d.emit(run, {d.dst(0, t)}, std::move(src));
  op.mode = mode;
  op.flags = flags;
}

std::uint32_t decode_flags(Decoder& d) {
  return (d.accept("ftz") ? +kFtz : 0) | (d.accept("sat") ? +kSat : 0) | (d.accept("relu") ? +kRelu : 0);
}

void check_type(Decoder& d, Type t, Rounding rounding, std::uint32_t flags) {
  if ((flags & kFtz) && !(only(t) & types(Type::kF16, Type::kF16x2, Type::kF32)))
    d.fail(".ftz is for f16 and f32");
  if ((flags & kSat) && !(only(t) & types(Type::kF16, Type::kF16x2, Type::kF32)))
    d.fail(".sat is for f16 and f32");
  if (rounding != Rounding::kNearestEven && !(only(t) & kSingles))
    d.fail("the half types round to nearest only");
}

// add, sub, mul: rounding optional.
template <class F>
void decode_arithmetic(Decoder& d) {
  const Rounding rounding = d.rounding().value_or(Rounding::kNearestEven);
  const std::uint32_t flags = decode_flags(d);
  if (flags & kRelu) d.fail(".relu belongs to fma, min, max and cvt");
  const Type t = d.type(kFloats);
  check_type(d, t, rounding, flags);
  emit(d, arithmetic<F, 2>(t, rounding, flags), t, 2, static_cast<std::uint32_t>(rounding), flags);
}

void decode_fma(Decoder& d) {
  const std::optional<Rounding> rounding = d.rounding();
  const std::uint32_t flags = decode_flags(d);
  const Type t = d.type(kFloats);
  if (!rounding) d.fail("this instruction needs a rounding: .rn, .rz, .rm or .rp");
  if ((flags & kRelu) && !(only(t) & kHalves)) d.fail(".relu is for the half types");
  const Rounding r = rounding.value_or(Rounding::kNearestEven);
  check_type(d, t, r, flags);
  emit(d, arithmetic<Fma, 3>(t, r, flags), t, 3, static_cast<std::uint32_t>(r), flags);
}

// ---- approximations: in f64, then rounded to f32 ----

struct ApproxDiv {
  static double of(double a, double b) { return a / b; }
};
// div.full and div.approx: 2^126 < |b| < 2^128 gives 0 for div.approx (PTX ISA).
struct ApproxDivLimited {
  static double of(double a, double b) {
    const double size = std::fabs(b);
    if (size > 0x1p126 && size < 0x1p128)
      return std::isinf(a) ? std::nan("") : std::copysign(0.0, a) * std::copysign(1.0, b);
    return a / b;
  }
};
struct ApproxRcp {
  static double of(double a) { return 1 / a; }
};
struct ApproxSqrt {
  static double of(double a) { return std::sqrt(a); }
};
struct ApproxRsqrt {
  static double of(double a) { return 1 / std::sqrt(a); }
};
struct ApproxSin {
  static double of(double a) { return std::sin(a); }
};
struct ApproxCos {
  static double of(double a) { return std::cos(a); }
};
struct ApproxLg2 {
  static double of(double a) { return std::log2(a); }
};
struct ApproxEx2 {
  static double of(double a) { return std::exp2(a); }
};
struct ApproxTanh {
  static double of(double a) { return std::tanh(a); }
};

template <class F>
struct Approx {
  template <class T, class... Rest>
  static T apply(const Op& op, T a, Rest... rest) {
    const auto in = [&](T x) { return to_double(op.flags & kFtz ? flush(x) : x); };
    return finish(op, from_double<T>(F::of(in(a), in(rest)...), Rounding::kNearestEven));
  }
};

template <class F>
Execute approximate(Type t) {
  return for_type<Approx<F>, 1>(t);
}

// sin, cos, lg2: .approx{.ftz}.f32 only.
template <class F>
void decode_approx_f32(Decoder& d) {
  if (!d.accept("approx")) d.fail("this instruction needs .approx");
  const std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const Type t = d.type(types(Type::kF32));
  emit(d, approximate<F>(t), t, 1, 0, flags);
}

// ex2, tanh: f32 and the half types. bf16 has .ftz in its name and flushes nothing that f32 would not.
template <class F>
void decode_approx_any(Decoder& d) {
  if (!d.accept("approx")) d.fail("this instruction needs .approx");
  const std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const Type t = d.type(kHalves | only(Type::kF32));
  emit(d, approximate<F>(t), t, 1, 0, flags);
}

void decode_div(Decoder& d) {
  const int approximation = d.accept_one({"approx", "full"});
  const std::optional<Rounding> rounding = d.rounding();
  const std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const Type t = d.type(approximation >= 0 ? types(Type::kF32) : kSingles);
  if (approximation >= 0) {
    const Execute run = approximation == 0 ? map<Approx<ApproxDivLimited>, float(float, float)>
                                           : map<Approx<ApproxDiv>, float(float, float)>;
    return emit(d, run, t, 2, 0, flags);
  }
  if (!rounding) d.fail("div needs .rn, .rz, .rm, .rp, .approx or .full");
  const Rounding r = rounding.value_or(Rounding::kNearestEven);
  emit(d, arithmetic<Div, 2>(t, r, flags), t, 2, static_cast<std::uint32_t>(r), flags);
}

// rcp and sqrt: exact under a rounding, or approximate.
template <class Exact, class Approximate>
void decode_exact_or_approx(Decoder& d) {
  const bool approx = d.accept("approx");
  const std::optional<Rounding> rounding = d.rounding();
  const std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const Type t = d.type(kSingles);
  if (approx) return emit(d, approximate<Approximate>(t), t, 1, 0, flags);
  if (!rounding) d.fail("this instruction needs .rn, .rz, .rm, .rp or .approx");
  const Rounding r = rounding.value_or(Rounding::kNearestEven);
  emit(d, arithmetic<Exact, 1>(t, r, flags), t, 1, static_cast<std::uint32_t>(r), flags);
}

void decode_rsqrt(Decoder& d) {
  if (!d.accept("approx")) d.fail("rsqrt needs .approx");
  const std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const Type t = d.type(kSingles);
  emit(d, approximate<ApproxRsqrt>(t), t, 1, 0, flags);
}

// ---- sign, minimum, maximum ----

// Of a NaN, the canonical one; in f64 the same one, its sign included, made quiet.
struct Abs {
  template <class T>
  static T apply(const Op& op, T a) {
    return is_nan(a) ? nan_result(a) : magnitude(op.flags & kFtz ? flush(a) : a);
  }
};
struct Neg {
  template <class T>
  static T apply(const Op& op, T a) {
    return is_nan(a) ? nan_result(a) : negate(op.flags & kFtz ? flush(a) : a);
  }
};

// PTX ISA, min: -0 < +0; one NaN gives the other operand, two give the canonical NaN, in f64 the second; .NaN
// propagates any.
template <bool maximum>
struct Extreme {
  template <class T>
  static T pick(const Op& op, T a, T b) {
    if (is_nan(a) || is_nan(b)) {
      if ((op.flags & kPropagateNan) || (is_nan(a) && is_nan(b))) return nan_result(b, a);
      return is_nan(a) ? b : a;
    }
    const double x = to_double(a), y = to_double(b);
    const bool a_lower = x < y || (x == y && std::signbit(x) && !std::signbit(y));
    return a_lower != maximum ? a : b;
  }
  template <class T, class... Rest>
  static T apply(const Op& op, T a, T b, Rest... rest) {
    const auto in = [&](T x) { return op.flags & kFtz ? flush(x) : x; };
    a = in(a);
    b = in(b);
    const auto sign = static_cast<BitsOf<T>>((to_bits(a) ^ to_bits(b)) & kSignBit<T>);
    T x = (op.flags & (kXorSign | kAbs)) ? pick(op, magnitude(a), magnitude(b)) : pick(op, a, b);
    if constexpr (sizeof...(rest) == 1) x = pick(op, x, in(op.flags & kAbs ? magnitude(rest) : rest)...);
    if ((op.flags & kXorSign) && !is_nan(x)) x = std::bit_cast<T>(static_cast<BitsOf<T>>(to_bits(x) | sign));
    return x;
  }
};

template <bool maximum>
void decode_extreme(Decoder& d) {
  std::uint32_t flags = (d.accept("ftz") ? +kFtz : 0) | (d.accept("NaN") ? +kPropagateNan : 0);
  if (d.accept("xorsign")) flags |= kXorSign;
  if (d.accept("abs")) flags |= kAbs;
  const Type t = d.type(kFloats);
  if ((flags & kXorSign) && !(flags & kAbs)) d.fail(".xorsign is written .xorsign.abs");
  if (d.count() == 4) {
    if (t != Type::kF32) d.fail("min and max of three are for f32");
    return emit(d, map<Extreme<maximum>, float(float, float, float)>, t, 3, 0, flags);
  }
  emit(d, for_type<Extreme<maximum>, 2>(t), t, 2, 0, flags);
}

template <class F>
void decode_sign(Decoder& d) {
  const std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const Type t = d.type(kFloats);
  emit(d, for_type<F, 1>(t), t, 1, 0, flags);
}

// The sign of a on the magnitude of b.
struct Copysign {
  template <class T>
  static T apply(T a, T b) {
    return std::bit_cast<T>(static_cast<BitsOf<T>>((to_bits(a) & kSignBit<T>) | (to_bits(b) & ~kSignBit<T>)));
  }
};

void decode_copysign(Decoder& d) {
  const Type t = d.type(kSingles);
  emit(d, t == Type::kF32 ? map<Copysign, float(float, float)> : map<Copysign, double(double, double)>, t, 2,
       0, 0);
}

constexpr Mnemonic kMnemonics[] = {
    {"add", decode_arithmetic<Add>, kFloats},
    {"sub", decode_arithmetic<Sub>, kFloats},
    {"mul", decode_arithmetic<Mul>, kFloats},
    {"fma", decode_fma},
    {"mad", decode_fma, kSingles},
    {"div", decode_div, kSingles},
    {"rcp", decode_exact_or_approx<Rcp, ApproxRcp>},
    {"sqrt", decode_exact_or_approx<Sqrt, ApproxSqrt>},
    {"rsqrt", decode_rsqrt},
    {"sin", decode_approx_f32<ApproxSin>},
    {"cos", decode_approx_f32<ApproxCos>},
    {"lg2", decode_approx_f32<ApproxLg2>},
    {"ex2", decode_approx_any<ApproxEx2>},
    {"tanh", decode_approx_any<ApproxTanh>},
    {"abs", decode_sign<Abs>, kFloats},
    {"neg", decode_sign<Neg>, kFloats},
    {"min", decode_extreme<false>, kFloats},
    {"max", decode_extreme<true>, kFloats},
    {"copysign", decode_copysign},
};

}  // namespace

absl::Span<const Mnemonic> float_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
