// Comparison and selection (PTX ISA, "Comparison and Selection Instructions" and their half-precision forms),
// testp.
#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kCompared =
    types(Type::kB16, Type::kB32, Type::kB64, Type::kU16, Type::kU32, Type::kU64, Type::kS16, Type::kS32,
          Type::kS64, Type::kF16, Type::kF16x2, Type::kBf16, Type::kBf16x2, Type::kF32, Type::kF64);

// Op::mode: which of less, equal, greater, unordered make the comparison true.
enum Relation : std::uint32_t { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

// Op::flags of set and setp.
enum Flags : std::uint32_t {
  kFtz = 1,
  kCombine = 2,
  kAnd = 4,
  kOr = 8,
  kXor = 16,
  kFloatResult = 32,
  kBf16Result = 64
};

template <class T>
std::uint32_t relation(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? kLess : a == b ? kEqual : kGreater;
  } else {
    const double x = to_double(a), y = to_double(b);
    return x < y ? kLess : x == y ? kEqual : x > y ? kGreater : kUnordered;
  }
}

struct Compare {
  template <class T>
  static bool apply(const Op& op, T a, T b) {
    if constexpr (!std::is_integral_v<T>) {
      if (op.flags & kFtz) return (relation(flush(a), flush(b)) & op.mode) != 0;
    }
    return (relation(a, b) & op.mode) != 0;
  }
};

struct CompareLow {
  template <class T>
  struct Of {
    static bool apply(const Op& op, std::uint32_t a, std::uint32_t b) {
      return Compare::apply(op, T{static_cast<std::uint16_t>(a)}, T{static_cast<std::uint16_t>(b)});
    }
  };
};
struct CompareHigh {
  template <class T>
  struct Of {
    static bool apply(const Op& op, std::uint32_t a, std::uint32_t b) {
      return CompareLow::Of<T>::apply(op, a >> 16, b >> 16);
    }
  };
};

LaneMask combine(const Warp& warp, const Op& op, LaneMask truth) {
  if (!(op.flags & kCombine)) return truth;
  const LaneMask c = warp.predicate(op.src[2]);
  return op.flags & kAnd ? truth & c : op.flags & kOr ? truth | c : truth ^ c;
}

// dst[0] is p; dst[1], when there, is q, the combination with the comparison's opposite.
template <class F, class T>
void setp(Warp& warp, const Op& op, LaneMask mask) {
  const LaneMask truth = test_lanes<F, T, T>(warp, op);
  const LaneMask p = combine(warp, op, truth), q = combine(warp, op, ~truth);
  store_predicate(warp, op.dst[0], p, mask);
  if (op.dst_count > 1) store_predicate(warp, op.dst[1], q, mask);
}

// f16x2: p is the low half's comparison, q the high half's.
template <class T>
void setp_pair(Warp& warp, const Op& op, LaneMask mask) {
  const LaneMask p = combine(warp, op, test_lanes<CompareLow::Of<T>, std::uint32_t, std::uint32_t>(warp, op));
  const LaneMask q =
      combine(warp, op, test_lanes<CompareHigh::Of<T>, std::uint32_t, std::uint32_t>(warp, op));
  store_predicate(warp, op.dst[0], p, mask);
  if (op.dst_count > 1) store_predicate(warp, op.dst[1], q, mask);
}

std::uint32_t true_pattern(const Op& op, unsigned width) {
  if (!(op.flags & kFloatResult)) return width == 16 ? 0xffffu : ~0u;
  if (width == 32) return 0x3f800000u;
  return op.flags & kBf16Result ? 0x3f80u : 0x3c00u;
}

template <class T, class D>
void set(Warp& warp, const Op& op, LaneMask mask) {
  const LaneMask truth = combine(warp, op, test_lanes<Compare, T, T>(warp, op));
  D result[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    result[lane] = truth >> lane & 1 ? static_cast<D>(true_pattern(op, 8 * sizeof(D))) : D{0};
  }
  store_lanes(warp, op.dst[0], result, mask);
}

template <class T>
void set_pair(Warp& warp, const Op& op, LaneMask mask) {
  const LaneMask low =
      combine(warp, op, test_lanes<CompareLow::Of<T>, std::uint32_t, std::uint32_t>(warp, op));
  const LaneMask high =
      combine(warp, op, test_lanes<CompareHigh::Of<T>, std::uint32_t, std::uint32_t>(warp, op));
  std::uint32_t result[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t pattern = true_pattern(op, 16);
    result[lane] = (low >> lane & 1 ? pattern : 0) | (high >> lane & 1 ? pattern << 16 : 0);
  }
  store_lanes(warp, op.dst[0], result, mask);
}

struct Comparison {
  std::string_view name;
  std::uint32_t relations;
  bool float_only, unsigned_only;
};

constexpr Comparison kComparisons[] = {
    {"eq", kEqual, false, false},
    {"ne", kLess | kGreater, false, false},
    {"lt", kLess, false, false},
    {"le", kLess | kEqual, false, false},
    {"gt", kGreater, false, false},
    {"ge", kGreater | kEqual, false, false},
    {"lo", kLess, false, true},
    {"ls", kLess | kEqual, false, true},
    {"hi", kGreater, false, true},
    {"hs", kGreater | kEqual, false, true},
    {"equ", kEqual | kUnordered, true, false},
    {"neu", kLess | kGreater | kUnordered, true, false},
    {"ltu", kLess | kUnordered, true, false},
    {"leu", kLess | kEqual | kUnordered, true, false},
    {"gtu", kGreater | kUnordered, true, false},
    {"geu", kGreater | kEqual | kUnordered, true, false},
    {"num", kLess | kEqual | kGreater, true, false},
    {"nan", kUnordered, true, false},
};

// The comparison, .ftz and the boolean operator; what set and setp share.
struct Parsed {
  const Comparison* comparison;
  std::uint32_t flags;
};

Parsed parse_comparison(Decoder& d) {
  const int which = d.expect_one({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu",
                                  "ltu", "leu", "gtu", "geu", "num", "nan"},
                                 "a comparison");
  std::uint32_t flags = d.accept("ftz") ? +kFtz : 0;
  const int boolean = d.accept_one({"and", "or", "xor"});
  if (boolean >= 0) flags |= kCombine | (kAnd << boolean);
  return {&kComparisons[which], flags};
}

void check_comparison(Decoder& d, const Parsed& parsed, Type t) {
  if (parsed.comparison->float_only && !is_float(t)) d.fail("this comparison is for floating-point types");
  if (parsed.comparison->unsigned_only && (is_float(t) || is_signed(t)))
    d.fail("this comparison is for unsigned types");
  if ((t == Type::kB16 || t == Type::kB32 || t == Type::kB64) && parsed.comparison->relations != kEqual &&
      parsed.comparison->relations != (kLess | kGreater)) {
    d.fail("untyped bits compare with eq and ne only");
  }
}

void decode_setp(Decoder& d) {
  const Parsed parsed = parse_comparison(d);
  const Type t = d.type(kCompared);
  check_comparison(d, parsed, t);
  d.expect_operands(parsed.flags & kCombine ? 4 : 3);
  const Operand& result = d.operand(0);
  std::vector<Slot> dst;
  if (result.kind == Operand::Kind::kPair) {
    for (const Operand& o : result.elements) dst.push_back(d.dst(o, Type::kPred));
  } else {
    dst.push_back(d.dst(result, Type::kPred));
  }
  std::vector<Slot> src = {d.src(1, t), d.src(2, t)};
  if (parsed.flags & kCombine) src.push_back(d.src(3, Type::kPred));
  Execute run = t == Type::kF16x2 ? &setp_pair<f16>
                : t == Type::kBf16x2
                    ? &setp_pair<bf16>
                    : by_type<std::uint16_t, std::uint32_t, std::uint64_t, std::int16_t, std::int32_t,
                              std::int64_t, f16, bf16, float, double>(t, [](auto tag) -> Execute {
                        return &setp<Compare, typename decltype(tag)::type>;
                      });
  Op& op = d.emit(run, std::move(dst), std::move(src));
  op.mode = parsed.comparison->relations;
  op.flags = parsed.flags;
}

void decode_set(Decoder& d) {
  const Parsed parsed = parse_comparison(d);
  const Type result = d.type(types(Type::kU32, Type::kS32, Type::kF32, Type::kF16, Type::kBf16, Type::kU16,
                                   Type::kS16, Type::kF16x2, Type::kBf16x2));
  const Type t = d.type(kCompared);
  check_comparison(d, parsed, t);
  d.expect_operands(parsed.flags & kCombine ? 4 : 3);
  std::vector<Slot> src = {d.src(1, t), d.src(2, t)};
  if (parsed.flags & kCombine) src.push_back(d.src(3, Type::kPred));
  Execute run = nullptr;
  if (t == Type::kF16x2 || t == Type::kBf16x2) {
    if (bits(result) == 32 && result != Type::kF32)
      run = t == Type::kF16x2 ? &set_pair<f16> : &set_pair<bf16>;
  } else {
    run = by_type<std::uint16_t, std::uint32_t, std::uint64_t, std::int16_t, std::int32_t, std::int64_t, f16,
                  bf16, float, double>(t, [&](auto tag) -> Execute {
      using T = typename decltype(tag)::type;
      return bits(result) == 16 ? &set<T, std::uint16_t> : &set<T, std::uint32_t>;
    });
  }
  Op& op = d.emit(run, {d.dst(0, result)}, std::move(src));
  op.mode = parsed.comparison->relations;
  op.flags = parsed.flags | (is_float(result) ? +kFloatResult : 0) |
             (result == Type::kBf16 || result == Type::kBf16x2 ? +kBf16Result : 0);
}

template <class T>
void selp(Warp& warp, const Op& op, LaneMask mask) {
  const T* a = warp.lanes<T>(op.src[0]);
  const T* b = warp.lanes<T>(op.src[1]);
  const LaneMask p = warp.predicate(op.src[2]);
  T result[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = p >> lane & 1 ? a[lane] : b[lane];
  store_lanes(warp, op.dst[0], result, mask);
}

Execute selp_of(Type t) {
  return bits(t) == 16 ? &selp<std::uint16_t> : bits(t) == 32 ? &selp<std::uint32_t> : &selp<std::uint64_t>;
}

constexpr TypeSet kSelected = types(Type::kB16, Type::kB32, Type::kB64, Type::kU16, Type::kU32, Type::kU64,
                                    Type::kS16, Type::kS32, Type::kS64, Type::kF32, Type::kF64);

void decode_selp(Decoder& d) {
  const Type t = d.type(kSelected);
  d.expect_operands(4);
  d.emit(selp_of(t), {d.dst(0, t)}, {d.src(1, t), d.src(2, t), d.src(3, Type::kPred)});
}

// c >= 0 selects a; -0 counts as 0, NaN does not. With .ftz a subnormal c counts as 0.
struct NotNegative {
  static bool apply(const Op& op, float c) { return (op.flags & kFtz ? flush(c) : c) >= 0; }
  static bool apply(const Op&, std::int32_t c) { return c >= 0; }
};

template <class C>
void not_negative(Warp& warp, const Op& op, LaneMask mask) {
  store_predicate(warp, op.dst[0], test_lanes<NotNegative, C>(warp, op), mask);
}

void decode_slct(Decoder& d) {
  const bool ftz = d.accept("ftz");
  const Type t = d.type(kSelected), c = d.type(types(Type::kS32, Type::kF32));
  d.expect_operands(4);
  const Slot condition = d.temporary(Type::kPred);
  d.emit_helper(c == Type::kF32 ? &not_negative<float> : &not_negative<std::int32_t>, {condition},
                {d.src(3, c)})
      .flags = ftz ? +kFtz : 0;
  d.emit(selp_of(t), {d.dst(0, t)}, {d.src(1, t), d.src(2, t), condition});
}

// testp: Op::mode numbers the property.
struct Test {
  template <class T>
  static bool apply(const Op& op, T x) {
    const auto bits = to_bits(magnitude(x));
    const bool finite = bits < kExponentMask<T>, nan = is_nan(x);
    switch (op.mode) {
      case 0: return finite;
      case 1: return bits == kExponentMask<T>;
      case 2: return !nan;
      case 3: return nan;
      case 4: return finite && (bits & kExponentMask<T>) != 0;
      default: return bits != 0 && (bits & kExponentMask<T>) == 0;
    }
  }
};

template <class T>
void testp(Warp& warp, const Op& op, LaneMask mask) {
  store_predicate(warp, op.dst[0], test_lanes<Test, T>(warp, op), mask);
}

void decode_testp(Decoder& d) {
  const int property =
      d.expect_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}, "a property");
  const Type t = d.type(types(Type::kF32, Type::kF64));
  d.expect_operands(2);
  d.emit(t == Type::kF32 ? &testp<float> : &testp<double>, {d.dst(0, Type::kPred)}, {d.src(1, t)}).mode =
      static_cast<std::uint32_t>(property);
}

constexpr Mnemonic kMnemonics[] = {
    {"setp", decode_setp}, {"set", decode_set},     {"selp", decode_selp},
    {"slct", decode_slct}, {"testp", decode_testp},
};

}  // namespace

absl::Span<const Mnemonic> compare_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
