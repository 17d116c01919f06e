// cvt between all scalar types, into pairs, and into and from the 8-bit floats (PTX ISA, "cvt").
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kIntegers =
    types(Type::kU8, Type::kU16, Type::kU32, Type::kU64, Type::kS8, Type::kS16, Type::kS32, Type::kS64);
constexpr TypeSet kFloats = types(Type::kF16, Type::kBf16, Type::kF32, Type::kF64);
constexpr TypeSet kFp8Pairs = types(Type::kE4m3x2, Type::kE5m2x2);
constexpr TypeSet kHalfPairs = types(Type::kF16x2, Type::kBf16x2);

// Op::flags of cvt. kIntegral: between equal types, to an integral value.
enum Flags : std::uint32_t { kFtz = 1, kSat = 2, kRelu = 4, kSatfinite = 8, kIntegral = 16, kE4m3 = 32 };

// 8-bit integers live in 16-bit registers.
template <class T>
using Storage = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int16_t,
                                   std::conditional_t<std::is_same_v<T, std::uint8_t>, std::uint16_t, T>>;

template <class T>
T clamp_to(auto value) {
  using Limits = std::numeric_limits<T>;
  if (std::cmp_less(value, Limits::min())) return Limits::min();
  if (std::cmp_greater(value, Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

// PTX ISA, cvt: float to integer always clamps. NaN gives 0, but the top bit alone where f64 or a 64-bit
// integer is involved.
template <class D>
D to_integer(double x, Rounding rounding, bool from_f64) {
  if (x != x) {
    const bool zero = sizeof(D) < 8 && !from_f64;
    return zero ? D{0} : static_cast<D>(std::uint64_t{1} << (8 * sizeof(D) - 1));
  }
  x = round_integral(x, rounding);
  if (x < static_cast<double>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  const double limit = std::ldexp(1.0, std::numeric_limits<D>::digits);
  return x >= limit ? std::numeric_limits<D>::max() : static_cast<D>(x);
}

// An integer as a double that is exact or rounded to odd.
template <class S>
double integer_odd(S x) {
  const bool negative = x < 0;
  const auto wide = static_cast<std::uint64_t>(x);
  const std::uint64_t size = negative ? -wide : wide;
  const double value = size >> 53 == 0 ? static_cast<double>(size)
                                       : static_cast<double>(size >> 11 | ((size & 0x7ff) != 0)) * 2048.0;
  return negative ? -value : value;
}

template <class S>
double integer_to_f64(S x, Rounding rounding) {
  const double odd = integer_odd(x);
  if (rounding == Rounding::kNearestEven || std::fabs(odd) < 0x1p53) return static_cast<double>(x);
  const bool negative = x < 0;
  const auto wide = static_cast<std::uint64_t>(x);
  const std::uint64_t size = negative ? -wide : wide;
  const int drop = static_cast<int>(std::bit_width(size)) - 53;
  std::uint64_t kept = size >> drop;
  const bool inexact = kept << drop != size;
  if (inexact && ((rounding == Rounding::kUp && !negative) || (rounding == Rounding::kDown && negative)))
    ++kept;
  const double value = std::ldexp(static_cast<double>(kept), drop);
  return negative ? -value : value;
}

// An f64 under a directed rounding of a wider value does not occur: f64 is the widest type, and its values
// are exact.
template <class D>
D finish_float(const Op& op, double x) {
  const auto rounding = static_cast<Rounding>(op.mode);
  D result;
  if constexpr (std::is_same_v<D, float>) {
    result = rounding == Rounding::kNearestEven && !is_nan(x) ? static_cast<float>(x)
                                                              : from_double<float>(x, rounding);
  } else {
    result = from_double<D>(x, rounding);
  }
  if (std::is_same_v<D, float> && (op.flags & kFtz)) result = flush(result);
  if (op.flags & kSat) result = saturate(result);
  if ((op.flags & kRelu) && !is_nan(result) && std::signbit(to_double(result)))
    result = std::bit_cast<D>(BitsOf<D>{0});
  return result;
}

// The sign of the f64 NaN and as much of its payload as fits, quiet.
template <class D>
D nan_from_f64(double nan) {
  constexpr unsigned kMantissa = std::countr_zero(kExponentMask<D>);
  const std::uint64_t bits = to_bits(quiet(nan)), payload = bits << 12 >> (64 - kMantissa);
  return std::bit_cast<D>(static_cast<BitsOf<D>>((bits >> 63) * kSignBit<D> | kExponentMask<D> | payload));
}

template <class T>
T clamp_finite(const Op& op, T x) {
  if (!(op.flags & kSatfinite)) return x;
  const auto size = to_bits(magnitude(x));
  return size == kExponentMask<T> ? std::bit_cast<T>(static_cast<BitsOf<T>>(to_bits(x) - 1)) : x;
}

template <class D, class S>
struct Convert {
  static constexpr bool kFromInt = std::is_integral_v<S>, kToInt = std::is_integral_v<D>;

  static Storage<D> apply(const Op& op, Storage<S> stored) {
    const S x = narrow(stored);
    if constexpr (kFromInt && kToInt) {
      return op.flags & kSat ? clamp_to<D>(x) : static_cast<D>(x);
    } else if constexpr (kFromInt) {
      return from_integer(op, x);
    } else {
      double value = to_double(x);
      if (std::is_same_v<S, float> && (op.flags & kFtz)) value = to_double(flush(x));
      if constexpr (kToInt) {
        return to_integer<D>(value, static_cast<Rounding>(op.mode), std::is_same_v<S, double>);
      } else {
        if constexpr (kKeepsPayload) {
          if (is_nan(x) && !(op.flags & kSat)) return payload_of(x);
        }
        if (op.flags & kIntegral) value = round_integral(value, static_cast<Rounding>(op.mode));
        return clamp_finite(op, finish_float<D>(op, value));
      }
    }
  }

 private:
  // A NaN keeps its sign and the top of its payload on the way from f64 and from bf16 to f32; other NaNs are
  // canonical. To f64 the value carries them.
  static constexpr bool kKeepsPayload = (std::is_same_v<S, double> && sizeof(D) < 8 && !kToInt) ||
                                        (std::is_same_v<S, bf16> && std::is_same_v<D, float>);
  static D payload_of(S x) {
    if constexpr (std::is_same_v<S, bf16>) {
      return std::bit_cast<D>(BitsOf<D>{x.bits} << 16);
    } else {
      return nan_from_f64<D>(x);
    }
  }
  static S narrow(Storage<S> x) {
    if constexpr (kFromInt) {
      return static_cast<S>(x);
    } else {
      return x;
    }
  }
  static D from_integer(const Op& op, S x) {
    const auto rounding = static_cast<Rounding>(op.mode);
    if constexpr (std::is_same_v<D, float>) {
      if (rounding == Rounding::kNearestEven && op.flags == 0) return static_cast<float>(x);
    }
    if constexpr (std::is_same_v<D, double>) {
      return finish_float<double>(op, integer_to_f64(x, rounding));
    } else {
      return finish_float<D>(op, integer_odd(x));
    }
  }
};

template <class D>
Execute convert_to(Type from) {
  return by_type<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                 std::uint64_t, std::int64_t, f16, bf16, float, double>(from, [](auto tag) {
    using S = typename decltype(tag)::type;
    return map<Convert<D, S>, Storage<D>(Storage<S>)>;
  });
}

Execute convert(Type to, Type from) {
  return by_type<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                 std::uint64_t, std::int64_t, f16, bf16, float, double>(
      to, [&](auto tag) { return convert_to<typename decltype(tag)::type>(from); });
}

// ---- pairs: the first source becomes the high half ----

template <class H>
struct PairFromSingles {
  static std::uint32_t apply(const Op& op, float high, float low) {
    const H h = clamp_finite(op, finish_float<H>(op, high)), l = clamp_finite(op, finish_float<H>(op, low));
    return std::uint32_t{h.bits} << 16 | l.bits;
  }
};

std::uint8_t to_fp8(const Op& op, double x) {
  if ((op.flags & kRelu) && std::signbit(x) && x == x) x = 0;
  return encode_fp8(x, op.flags & kE4m3 ? emulator::kE4m3 : emulator::kE5m2);
}

struct Fp8FromSingles {
  static std::uint16_t apply(const Op& op, float high, float low) {
    return static_cast<std::uint16_t>(to_fp8(op, high) << 8 | to_fp8(op, low));
  }
};
struct Fp8FromHalves {
  static std::uint16_t apply(const Op& op, std::uint32_t pair) {
    return static_cast<std::uint16_t>(to_fp8(op, to_double(f16{static_cast<std::uint16_t>(pair >> 16)}))
                                          << 8 |
                                      to_fp8(op, to_double(f16{static_cast<std::uint16_t>(pair)})));
  }
};
struct HalvesFromFp8 {
  static std::uint32_t apply(const Op& op, std::uint16_t pair) {
    const Format format = op.flags & kE4m3 ? emulator::kE4m3 : emulator::kE5m2;
    const auto half = [&](unsigned shift) {
      return finish_float<f16>(op, decode_fp8(static_cast<std::uint8_t>(pair >> shift), format)).bits;
    };
    return std::uint32_t{half(8)} << 16 | half(0);
  }
};

// .rna keeps of a NaN what fits, and so makes an infinity of one whose payload lies below.
struct Tf32 {
  static std::uint32_t apply(const Op& op, float x) {
    if (is_nan(x)) {
      const bool away = static_cast<Rounding>(op.mode) == Rounding::kNearestAway;
      return away ? to_bits(x) & ~0x1fffu : kNanF32;
    }
    std::uint32_t result = encode(x, kTf32, static_cast<Rounding>(op.mode)) << 13;
    if ((op.flags & kSatfinite) && (result & 0x7fffffffu) == 0x7f800000u) result -= 1u << 13;
    return (op.flags & kRelu) && result >> 31 ? 0 : result;
  }
};

// ---- decoding ----

std::optional<Rounding> integral_rounding(Decoder& d) {
  switch (d.accept_one({"rni", "rzi", "rmi", "rpi"})) {
    case 0: return Rounding::kNearestEven;
    case 1: return Rounding::kZero;
    case 2: return Rounding::kDown;
    case 3: return Rounding::kUp;
    default: return std::nullopt;
  }
}

struct Parsed {
  Type to, from;
  std::uint32_t flags;
};

void emit_pair(Decoder& d, const Parsed& p, Execute run, std::initializer_list<Type> sources) {
  const std::optional<Rounding> rounding = d.rounding();
  if (!rounding) d.fail("this cvt needs .rn or .rz");
  d.expect_operands(1 + sources.size());
  if (d.failed()) return;
  std::vector<Slot> src;
  std::size_t i = 1;
  for (Type t : sources) src.push_back(d.src(i++, t));
  Op& op = d.emit(run, {d.dst(0, p.to)}, std::move(src));
  op.mode = static_cast<std::uint32_t>(rounding.value_or(Rounding::kNearestEven));
  op.flags = p.flags | (p.to == Type::kE4m3x2 || p.from == Type::kE4m3x2 ? +kE4m3 : 0);
}

void decode_fp8(Decoder& d, const Parsed& p) {
  if (only(p.to) & kFp8Pairs) {
    if (!(p.flags & kSatfinite)) d.fail("cvt to e4m3x2 and e5m2x2 needs .satfinite");
    if (p.from == Type::kF32)
      return emit_pair(d, p, map<Fp8FromSingles, std::uint16_t(float, float)>, {p.from, p.from});
    if (p.from == Type::kF16x2)
      return emit_pair(d, p, map<Fp8FromHalves, std::uint16_t(std::uint32_t)>, {p.from});
  } else if (p.to == Type::kF16x2) {
    return emit_pair(d, p, map<HalvesFromFp8, std::uint32_t(std::uint16_t)>, {p.from});
  }
  d.fail("the 8-bit floats convert from f32 and f16x2 and to f16x2 only");
}

void decode_tf32(Decoder& d, const Parsed& p) {
  const bool away = d.accept("rna");
  const std::optional<Rounding> rounding = away ? Rounding::kNearestAway : d.rounding();
  if (p.from != Type::kF32 || !rounding) return d.fail("tf32 converts from f32, with .rna, .rn or .rz");
  d.expect_operands(2);
  Op& op = d.emit(map<Tf32, std::uint32_t(float)>, {d.dst(0, Type::kTf32)}, {d.src(1, Type::kF32)});
  op.mode = static_cast<std::uint32_t>(*rounding);
  op.flags = p.flags;
}

// Rounding that the pair of types calls for; nothing when it is exact.
std::optional<Rounding> scalar_rounding(Decoder& d, Parsed& p) {
  const bool from_float = is_float(p.from), to_float = is_float(p.to);
  if (from_float && !to_float) {
    const std::optional<Rounding> r = integral_rounding(d);
    if (!r) d.fail("cvt from a float to an integer needs .rni, .rzi, .rmi or .rpi");
    return r;
  }
  if (!to_float) return std::nullopt;
  if (p.from == p.to) {
    const std::optional<Rounding> r = integral_rounding(d);
    if (r) p.flags |= kIntegral;
    return r;
  }
  // bf16 and f16 are not each other's subset.
  const bool exact = from_float && bits(p.from) < bits(p.to);
  if (exact) return std::nullopt;
  const std::optional<Rounding> r = d.rounding();
  if (!r) d.fail("this cvt is not exact and needs .rn, .rz, .rm or .rp");
  return r;
}

// cvt.pack: a and b clamped to `Part`, b lowest; above them what is given of c.
template <class Part>
struct Pack {
  static constexpr unsigned kWidth = 8 * sizeof(Part);
  static std::uint32_t clamp(std::int32_t x) {
    const auto clamped = static_cast<Part>(
        std::clamp<std::int32_t>(x, std::numeric_limits<Part>::min(), std::numeric_limits<Part>::max()));
    return static_cast<std::make_unsigned_t<Part>>(clamped);
  }
  static std::uint32_t apply(std::int32_t a, std::int32_t b) { return clamp(a) << kWidth | clamp(b); }
  static std::uint32_t apply(std::int32_t a, std::int32_t b, std::uint32_t c) {
    return c << 2 * kWidth | apply(a, b);
  }
};

void decode_cvt_pack(Decoder& d) {
  if (!d.accept("sat")) d.fail("cvt.pack needs .sat");
  const Type part = d.type(types(Type::kU16, Type::kS16, Type::kU8, Type::kS8));
  d.type(types(Type::kS32));
  const bool quarters = bits(part) == 8;
  if (quarters) d.type(types(Type::kB32));
  d.expect_operands(quarters ? 4 : 3);
  using Halves = std::uint32_t(std::int32_t, std::int32_t);
  using Quarters = std::uint32_t(std::int32_t, std::int32_t, std::uint32_t);
  const Execute run = part == Type::kU16   ? map<Pack<std::uint16_t>, Halves>
                      : part == Type::kS16 ? map<Pack<std::int16_t>, Halves>
                      : part == Type::kU8  ? map<Pack<std::uint8_t>, Quarters>
                                           : map<Pack<std::int8_t>, Quarters>;
  std::vector<Slot> src = {d.src(1, Type::kS32), d.src(2, Type::kS32)};
  if (quarters) src.push_back(d.src(3, Type::kB32));
  d.emit(run, {d.dst(0, Type::kB32)}, std::move(src));
}

void decode_cvt(Decoder& d) {
  if (d.accept("pack")) return decode_cvt_pack(d);
  Parsed p{};
  p.flags = (d.accept("ftz") ? +kFtz : 0) | (d.accept("sat") ? +kSat : 0) | (d.accept("relu") ? +kRelu : 0) |
            (d.accept("satfinite") ? +kSatfinite : 0);
  p.to = d.type(kIntegers | kFloats | kFp8Pairs | kHalfPairs | only(Type::kTf32));
  p.from = d.type(kIntegers | kFloats | kFp8Pairs | only(Type::kF16x2));
  if (d.failed()) return;
  if ((only(p.to) | only(p.from)) & kFp8Pairs) return decode_fp8(d, p);
  if (p.to == Type::kTf32) return decode_tf32(d, p);
  if (only(p.to) & kHalfPairs) {
    if (p.from != Type::kF32) return d.fail("pairs of halves convert from two f32 values");
    const Execute run = p.to == Type::kF16x2 ? map<PairFromSingles<f16>, std::uint32_t(float, float)>
                                             : map<PairFromSingles<bf16>, std::uint32_t(float, float)>;
    return emit_pair(d, p, run, {p.from, p.from});
  }
  if ((p.flags & (kRelu | kSatfinite)) &&
      !((only(p.to) & types(Type::kF16, Type::kBf16)) && p.from == Type::kF32)) {
    d.fail(".relu and .satfinite are for f16, bf16, tf32 and the 8-bit floats");
  }
  const std::optional<Rounding> rounding = scalar_rounding(d, p);
  d.expect_operands(2);
  if (d.failed()) return;
  const Slot src = d.src(1, p.from, Fit::kWider);
  Op& op = d.emit(convert(p.to, p.from), {d.dst(0, p.to, Fit::kWider)}, {src});
  op.mode = static_cast<std::uint32_t>(rounding.value_or(Rounding::kNearestEven));
  op.flags = p.flags;
}

constexpr Mnemonic kMnemonics[] = {{"cvt", decode_cvt}};

}  // namespace

absl::Span<const Mnemonic> conversion_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
