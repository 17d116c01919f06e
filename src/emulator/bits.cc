// Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions", prmt, bfe, bfi, bfind, popc, clz,
// brev, fns).
#include <bit>

#include "src/emulator/combine.h"
#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kBits = types(Type::kB16, Type::kB32, Type::kB64);
constexpr TypeSet kWords = types(Type::kB32, Type::kB64);
constexpr TypeSet kIntWords = types(Type::kU32, Type::kS32, Type::kU64, Type::kS64);

struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static T apply(T a) {
    return a == 0 ? 1 : 0;
  }
};

// Shift amounts are 32-bit and clamp at the width.
struct Shl {
  template <class T>
  static T apply(T a, std::uint32_t n) {
    return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n);
  }
};
struct Shr {
  template <class T>
  static T apply(T a, std::uint32_t n) {
    const std::uint32_t last = 8 * sizeof(T) - 1;
    if (n > last) return std::is_signed_v<T> ? static_cast<T>(a >> last) : T{0};
    return static_cast<T>(a >> n);
  }
};

// mode: 1 wraps the amount, 0 clamps it to 32.
struct ShfLeft {
  static std::uint32_t apply(const Op& op, std::uint32_t low, std::uint32_t high, std::uint32_t n) {
    n = op.mode ? n & 31 : std::min(n, 32u);
    return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (32 - n));
  }
};
struct ShfRight {
  static std::uint32_t apply(const Op& op, std::uint32_t low, std::uint32_t high, std::uint32_t n) {
    n = op.mode ? n & 31 : std::min(n, 32u);
    return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> n);
  }
};

// Bit i of the table is the result where a, b, c are the bits of i, a the highest.
struct Lop3 {
  static std::uint32_t apply(const Op& op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 8; ++i) {
      if (op.immediate >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
  }
};

// Selectors by mode (PTX ISA, prmt): byte i of the result for control c[1:0] in the named modes.
enum PrmtMode : std::uint32_t { kDefault, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };

std::uint32_t prmt_selector(std::uint32_t mode, std::uint32_t c) {
  constexpr std::uint16_t kTable[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  return mode == kDefault ? c : kTable[mode - 1][c & 3];
}

struct Prmt {
  static std::uint32_t apply(const Op& op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    const std::uint32_t selector = prmt_selector(op.mode, c);
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t s = selector >> (4 * i) & 15;
      auto byte = static_cast<std::uint8_t>(bytes >> (8 * (s & 7)));
      if (s & 8) byte = byte & 0x80 ? 0xff : 0;  // the selected byte's sign, replicated
      result |= std::uint32_t{byte} << (8 * i);
    }
    return result;
  }
};

// Positions and lengths of bfe and bfi. Of 32-bit ones the low 8 bits count. PTX says the same of the 64-bit
// ones, but GPUs take all 32 bits of theirs; 64 and all above give one result.
template <class T>
std::uint32_t field_operand(std::uint32_t x) {
  return sizeof(T) == 8 ? std::min(x, 64u) : x & 0xff;
}

// PTX ISA, bfe: beyond the top the sign (or zero) is replicated.
struct Bfe {
  template <class T>
  static T apply(T a, std::uint32_t position, std::uint32_t length) {
    constexpr std::uint32_t kTop = 8 * sizeof(T) - 1;
    position = field_operand<T>(position);
    length = field_operand<T>(length);
    if (length == 0) return 0;
    const std::uint32_t sign_at = std::min(position + length - 1, kTop);
    const bool sign = std::is_signed_v<T> && (a >> sign_at & 1);
    using U = std::make_unsigned_t<T>;
    U field = position > kTop ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
    const std::uint32_t present = position > kTop ? 0 : std::min(length, kTop + 1 - position);
    if (present <= kTop) {
      const U mask = static_cast<U>((U{1} << present) - 1);
      field = sign ? static_cast<U>(field | static_cast<U>(~mask)) : static_cast<U>(field & mask);
    }
    return static_cast<T>(field);
  }
};

struct Bfi {
  template <class T>
  static T apply(T a, T b, std::uint32_t position, std::uint32_t length) {
    position = field_operand<T>(position);
    length = field_operand<T>(length);
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    if (length == 0 || position >= kWidth) return b;
    const T ones = length >= kWidth ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
    const T mask = static_cast<T>(ones << position);
    return static_cast<T>((b & ~mask) | ((a << position) & mask));
  }
};

// The highest bit that differs from the sign; mode 1: how far it is from the top. None: all ones.
struct Bfind {
  template <class T>
  static std::uint32_t apply(const Op& op, T x) {
    using U = std::make_unsigned_t<T>;
    const U value = static_cast<U>(x < 0 ? ~x : x);
    if (value == 0) return ~0u;
    const auto leading = static_cast<std::uint32_t>(std::countl_zero(value));
    return op.mode ? leading : 8 * sizeof(T) - 1 - leading;
  }
};

struct Popc {
  template <class T>
  static std::uint32_t apply(T a) {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  static std::uint32_t apply(T a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct Brev {
  template <class T>
  static T apply(T a) {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) result |= (a >> i & T{1}) << (8 * sizeof(T) - 1 - i);
    return result;
  }
};

// PTX ISA, fns: the offset-th set bit from `base`, upwards for positive offsets, downwards for negative ones.
struct Fns {
  static std::uint32_t apply(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
    if (offset == 0) return base < 32 && (mask >> base & 1) ? base : ~0u;
    std::int64_t left = offset > 0 ? std::int64_t{offset} : -std::int64_t{offset};
    for (std::int64_t i = base; i >= 0 && i<32; i += offset> 0 ? 1 : -1) {
      if ((mask >> i & 1) && --left == 0) return static_cast<std::uint32_t>(i);
    }
    return ~0u;
  }
};

// Predicate logic, on all lanes at once.
template <class F>
struct PredicateBinary {
  static void run(Warp& warp, const Op& op, LaneMask mask) {
    store_predicate(warp, op.dst[0], F::apply(warp.predicate(op.src[0]), warp.predicate(op.src[1])), mask);
  }
};

template <class F>
void decode_logic(Decoder& d) {
  const Type t = d.type(kBits | only(Type::kPred));
  d.expect_operands(3);
  const Execute run = t == Type::kPred
                          ? &PredicateBinary<F>::run
                          : by_type<std::uint16_t, std::uint32_t, std::uint64_t>(t, [](auto tag) {
                              using T = typename decltype(tag)::type;
                              return map<F, T(T, T)>;
                            });
  d.emit(run, {d.dst(0, t)}, {d.src(1, t), d.src(2, t)});
}

void not_predicate(Warp& warp, const Op& op, LaneMask mask) {
  store_predicate(warp, op.dst[0], ~warp.predicate(op.src[0]), mask);
}

template <class F>
void decode_not(Decoder& d) {
  const Type t = d.type(kBits | (std::is_same_v<F, Not> ? only(Type::kPred) : 0));
  d.expect_operands(2);
  const Execute run = t == Type::kPred
                          ? &not_predicate
                          : by_type<std::uint16_t, std::uint32_t, std::uint64_t>(t, [](auto tag) {
                              using T = typename decltype(tag)::type;
                              return map<F, T(T)>;
                            });
  d.emit(run, {d.dst(0, t)}, {d.src(1, t)});
}

void decode_shl(Decoder& d) {
  const Type t = d.type(kBits);
  d.expect_operands(3);
  d.emit(by_type<std::uint16_t, std::uint32_t, std::uint64_t>(t,
                                                              [](auto tag) {
                                                                using T = typename decltype(tag)::type;
                                                                return map<Shl, T(T, std::uint32_t)>;
                                                              }),
         {d.dst(0, t)}, {d.src(1, t), d.src(2, Type::kU32)});
}

void decode_shr(Decoder& d) {
  const Type t = d.type(kBits | kIntWords | types(Type::kU16, Type::kS16));
  d.expect_operands(3);
  d.emit(by_type<std::uint16_t, std::uint32_t, std::uint64_t, std::int16_t, std::int32_t, std::int64_t>(
             t,
             [](auto tag) {
               using T = typename decltype(tag)::type;
               return map<Shr, T(T, std::uint32_t)>;
             }),
         {d.dst(0, t)}, {d.src(1, t), d.src(2, Type::kU32)});
}

using Ternary32 = std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t);

void emit_ternary32(Decoder& d, Execute run, std::uint32_t mode) {
  d.expect_operands(4);
  d.emit(run, {d.dst(0, Type::kB32)}, {d.src(1, Type::kB32), d.src(2, Type::kB32), d.src(3, Type::kB32)})
      .mode = mode;
}

void decode_shf(Decoder& d) {
  const int right = d.expect_one({"l", "r"}, "a direction");
  const int wrap = d.expect_one({"clamp", "wrap"}, "what happens to amounts above 31");
  d.type(types(Type::kB32));
  emit_ternary32(d, right ? map<ShfRight, Ternary32> : map<ShfLeft, Ternary32>,
                 static_cast<std::uint32_t>(wrap));
}

void decode_prmt(Decoder& d) {
  d.type(types(Type::kB32));
  const int mode = d.accept_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  emit_ternary32(d, map<Prmt, Ternary32>, static_cast<std::uint32_t>(mode + 1));
}

struct NotZero {
  static bool apply(const Op&, std::uint32_t x) { return x != 0; }
};

// Whether the result is not zero, combined with a predicate. Op::mode: 0 or, 1 and.
void combine_not_zero(Warp& warp, const Op& op, LaneMask mask) {
  const LaneMask truth = test_lanes<NotZero, std::uint32_t>(warp, op), other = warp.predicate(op.src[1]);
  store_predicate(warp, op.dst[0], op.mode == 0 ? truth | other : truth & other, mask);
}

void decode_lop3(Decoder& d) {
  const int boolean = d.accept_one({"or", "and"});
  d.type(types(Type::kB32));
  d.expect_operands(boolean < 0 ? 5 : 6);
  const std::uint64_t table = d.constant(d.operand(4), "the truth table");
  if (table > 255) d.fail("the truth table of lop3 is a number from 0 to 255");
  const Operand& result = d.operand(0);
  if (boolean >= 0 && result.kind != Operand::Kind::kPair) return d.fail("lop3 with .or or .and writes d|p");
  const Slot dst = d.dst(boolean < 0 ? result : result.elements[0], Type::kB32);
  d.emit(map<Lop3, Ternary32>, {dst}, {d.src(1, Type::kB32), d.src(2, Type::kB32), d.src(3, Type::kB32)})
      .immediate = table;
  if (boolean < 0) return;
  const Slot other = d.src(5, Type::kPred);
  d.emit_helper(&combine_not_zero, {d.dst(result.elements[1], Type::kPred)}, {dst, other}).mode =
      static_cast<std::uint32_t>(boolean);
}

// b bits from bit a on. Op::mode: 1 takes both modulo 32, 0 clamps.
struct Bmsk {
  static std::uint32_t apply(const Op& op, std::uint32_t a, std::uint32_t b) {
    const bool wrap = op.mode != 0;
    if (!wrap && a >= 32) return 0;
    const std::uint32_t from = ~0u << (a & 31), end = (a & 31) + (b & 31);
    if (end >= 32 || (!wrap && b >= 32)) return from;
    return from & ~(~0u << end);
  }
};

// The low b bits of a, extended by zeros or (Op::flags) their sign. Op::mode as above.
struct Szext {
  static std::uint32_t apply(const Op& op, std::uint32_t a, std::uint32_t b) {
    if (op.mode == 0 && b >= 32) return a;
    const std::uint32_t width = b & 31;
    if (width == 0) return 0;
    const std::uint32_t above = ~0u << width;
    return op.flags && (a >> (width - 1) & 1) ? a | above : a & ~above;
  }
};

void emit_bounded(Decoder& d, Execute run, Type t) {
  const int wrap = d.expect_one({"clamp", "wrap"}, "what happens to numbers above 31");
  d.expect_operands(3);
  Op& op = d.emit(run, {d.dst(0, t)}, {d.src(1, t), d.src(2, Type::kB32)});
  op.mode = static_cast<std::uint32_t>(wrap);
  op.flags = is_signed(t);
}

void decode_bmsk(Decoder& d) {
  d.type(types(Type::kB32));
  emit_bounded(d, map<Bmsk, std::uint32_t(std::uint32_t, std::uint32_t)>, Type::kB32);
}

void decode_szext(Decoder& d) {
  const Type t = d.type(types(Type::kU32, Type::kS32));
  emit_bounded(d, map<Szext, std::uint32_t(std::uint32_t, std::uint32_t)>, t);
}

void decode_bfe(Decoder& d) {
  const Type t = d.type(kIntWords);
  d.expect_operands(4);
  d.emit(by_type<std::uint32_t, std::uint64_t, std::int32_t, std::int64_t>(
             t,
             [](auto tag) {
               using T = typename decltype(tag)::type;
               return map<Bfe, T(T, std::uint32_t, std::uint32_t)>;
             }),
         {d.dst(0, t)}, {d.src(1, t), d.src(2, Type::kU32), d.src(3, Type::kU32)});
}

void decode_bfi(Decoder& d) {
  const Type t = d.type(kWords);
  d.expect_operands(5);
  d.emit(by_type<std::uint32_t, std::uint64_t>(t,
                                               [](auto tag) {
                                                 using T = typename decltype(tag)::type;
                                                 return map<Bfi, T(T, T, std::uint32_t, std::uint32_t)>;
                                               }),
         {d.dst(0, t)}, {d.src(1, t), d.src(2, t), d.src(3, Type::kU32), d.src(4, Type::kU32)});
}

void decode_bfind(Decoder& d) {
  const bool amount = d.accept("shiftamt");
  const Type t = d.type(kIntWords);
  d.expect_operands(2);
  d.emit(by_type<std::uint32_t, std::uint64_t, std::int32_t, std::int64_t>(
             t,
             [](auto tag) {
               using T = typename decltype(tag)::type;
               return map<Bfind, std::uint32_t(T)>;
             }),
         {d.dst(0, Type::kU32)}, {d.src(1, t)})
      .mode = amount;
}

template <class F>
void decode_count(Decoder& d) {
  const Type t = d.type(kWords);
  d.expect_operands(2);
  d.emit(t == Type::kB32 ? map<F, std::uint32_t(std::uint32_t)> : map<F, std::uint32_t(std::uint64_t)>,
         {d.dst(0, Type::kU32)}, {d.src(1, t)});
}

void decode_brev(Decoder& d) {
  const Type t = d.type(kWords);
  d.expect_operands(2);
  d.emit(t == Type::kB32 ? map<Brev, std::uint32_t(std::uint32_t)> : map<Brev, std::uint64_t(std::uint64_t)>,
         {d.dst(0, t)}, {d.src(1, t)});
}

void decode_fns(Decoder& d) {
  d.type(types(Type::kB32));
  d.expect_operands(4);
  d.emit(map<Fns, std::uint32_t(std::uint32_t, std::uint32_t, std::int32_t)>, {d.dst(0, Type::kB32)},
         {d.src(1, Type::kB32), d.src(2, Type::kB32), d.src(3, Type::kS32)});
}

constexpr Mnemonic kMnemonics[] = {
    {"and", decode_logic<And>}, {"or", decode_logic<Or>},     {"xor", decode_logic<Xor>},
    {"not", decode_not<Not>},   {"cnot", decode_not<Cnot>},   {"lop3", decode_lop3},
    {"shl", decode_shl},        {"shr", decode_shr},          {"shf", decode_shf},
    {"prmt", decode_prmt},      {"bfe", decode_bfe},          {"bfi", decode_bfi},
    {"bfind", decode_bfind},    {"popc", decode_count<Popc>}, {"clz", decode_count<Clz>},
    {"brev", decode_brev},      {"fns", decode_fns},          {"bmsk", decode_bmsk},
    {"szext", decode_szext},
};

}  // namespace

absl::Span<const Mnemonic> bit_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
