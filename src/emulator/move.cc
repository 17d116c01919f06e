// mov, cvta, isspacep, mapa, getctarank: data movement between registers.
#include <bit>
#include <chrono>

#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kMoved = types(Type::kPred, Type::kB16, Type::kB32, Type::kB64, Type::kB128, Type::kU16,
                                 Type::kU32, Type::kU64, Type::kS16, Type::kS32, Type::kS64, Type::kF16,
                                 Type::kBf16, Type::kF16x2, Type::kBf16x2, Type::kF32, Type::kF64);

struct Copy {
  template <class T>
  static T apply(T a) {
    return a;
  }
};

void copy_predicate(Warp& warp, const Op& op, LaneMask mask) {
  store_predicate(warp, op.dst[0], warp.predicate(op.src[0]), mask);
}

Execute copy(Type t) {
  switch (bits(t)) {
    case 1: return &copy_predicate;
    case 16: return map<Copy, std::uint16_t(std::uint16_t)>;
    case 32: return map<Copy, std::uint32_t(std::uint32_t)>;
    case 128: return map<Copy, Bits128(Bits128)>;
    default: return map<Copy, std::uint64_t(std::uint64_t)>;
  }
}

// The parts of a register, first part lowest.
template <class Part, class Whole>
void pack(Warp& warp, const Op& op, LaneMask mask) {
  Whole result[kWarpSize] = {};
  for (unsigned i = 0; i < op.src_count; ++i) {
    const Part* part = warp.lanes<Part>(op.src[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      result[lane] |= Whole(Whole{part[lane]} << (8 * sizeof(Part) * i));
  }
  store_lanes(warp, op.dst[0], result, mask);
}

template <class Part, class Whole>
void unpack(Warp& warp, const Op& op, LaneMask mask) {
  Whole whole[kWarpSize];
  std::memcpy(whole, warp.lanes<Whole>(op.src[0]), sizeof(whole));
  for (unsigned i = 0; i < op.dst_count; ++i) {
    Part result[kWarpSize];
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      result[lane] = static_cast<Part>(whole[lane] >> (8 * sizeof(Part) * i));
    store_lanes(warp, op.dst[i], result, mask);
  }
}

struct Join {
  static Bits128 apply(std::uint64_t low, std::uint64_t high) { return {low, high}; }
};

void split(Warp& warp, const Op& op, LaneMask mask) {
  const Bits128* whole = warp.lanes<Bits128>(op.src[0]);
  std::uint64_t low[kWarpSize], high[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    low[lane] = whole[lane].low;
    high[lane] = whole[lane].high;
  }
  store_lanes(warp, op.dst[0], low, mask);
  store_lanes(warp, op.dst[1], high, mask);
}

// The type of one of `parts` parts of a register.
Type part_of(Type t, std::size_t parts) {
  const unsigned width = bits(t) / static_cast<unsigned>(std::max<std::size_t>(parts, 1));
  return width == 64 ? Type::kB64 : width == 32 ? Type::kB32 : Type::kB16;
}

enum class Clock : std::uint32_t {
  kCycles,
  kCyclesHigh,
  kCycles64,
  kNanoseconds,
  kNanosecondsLow,
  kNanosecondsHigh
};

// A clock cycle is an operation of the CTA; %globaltimer is the host's.
void read_clock(Warp& warp, const Op& op, LaneMask mask) {
  const auto which = static_cast<Clock>(op.mode);
  const bool cycles = which <= Clock::kCycles64;
  const std::uint64_t now =
      cycles ? warp.cta->steps
             : static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count());
  if (which == Clock::kCycles64 || which == Clock::kNanoseconds) {
    std::uint64_t result[kWarpSize];
    std::fill(std::begin(result), std::end(result), now);
    store_lanes(warp, op.dst[0], result, mask);
    return;
  }
  const bool high = which == Clock::kCyclesHigh || which == Clock::kNanosecondsHigh;
  std::uint32_t result[kWarpSize];
  std::fill(std::begin(result), std::end(result), static_cast<std::uint32_t>(high ? now >> 32 : now));
  store_lanes(warp, op.dst[0], result, mask);
}

bool decode_clock(Decoder& d, Type t) {
  constexpr std::string_view kNames[] = {"%clock",       "%clock_hi",       "%clock64",
                                         "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"};
  for (std::uint32_t i = 0; i < std::size(kNames); ++i) {
    if (d.operand(1).kind != Operand::Kind::kSpecial || d.operand(1).name != kNames[i]) continue;
    if (bits(t) != (i == 2 || i == 3 ? 64u : 32u))
      d.fail("this register has another width than the instruction");
    d.emit(&read_clock, {d.dst(0, t)}, {}).mode = i;
    return true;
  }
  return false;
}

void decode_pack(Decoder& d, Type t) {
  const auto parts = d.elements(1);
  const Type part = part_of(t, parts.size());
  std::vector<Slot> src;
  for (const Operand& o : parts) src.push_back(d.src(o, part));
  Execute run = nullptr;
  if (bits(t) == 32 && parts.size() == 2) run = &pack<std::uint16_t, std::uint32_t>;
  if (bits(t) == 64 && parts.size() == 2) run = &pack<std::uint32_t, std::uint64_t>;
  if (bits(t) == 64 && parts.size() == 4) run = &pack<std::uint16_t, std::uint64_t>;
  if (bits(t) == 128 && parts.size() == 2) run = map<Join, Bits128(std::uint64_t, std::uint64_t)>;
  if (!run) return d.fail("mov packs 2 or 4 parts of 16, 32 or 64 bits that fill its type");
  d.emit(run, {d.dst(0, t)}, std::move(src));
}

void decode_unpack(Decoder& d, Type t) {
  const auto parts = d.elements(0);
  const Type part = part_of(t, parts.size());
  std::vector<Slot> dst;
  for (const Operand& o : parts) dst.push_back(d.dst(o, part));
  Execute run = nullptr;
  if (bits(t) == 32 && parts.size() == 2) run = &unpack<std::uint16_t, std::uint32_t>;
  if (bits(t) == 64 && parts.size() == 2) run = &unpack<std::uint32_t, std::uint64_t>;
  if (bits(t) == 64 && parts.size() == 4) run = &unpack<std::uint16_t, std::uint64_t>;
  if (bits(t) == 128 && parts.size() == 2) run = &split;
  if (!run) return d.fail("mov unpacks 2 or 4 parts of 16, 32 or 64 bits that fill its type");
  d.emit(run, std::move(dst), {d.src(1, t)});
}

void decode_mov(Decoder& d) {
  const Type t = d.type(kMoved);
  d.expect_operands(2);
  if (d.operand(1).kind == Operand::Kind::kVector) return decode_pack(d, t);
  if (d.operand(0).kind == Operand::Kind::kVector) return decode_unpack(d, t);
  if (decode_clock(d, t)) return;
  d.emit(copy(t), {d.dst(0, t)}, {d.src(1, t)});
}

// Between a state space's addresses and generic ones: Op::immediate is the window to add or subtract.
struct ToGeneric {
  template <class T>
  static T apply(const Op& op, T a) {
    return static_cast<T>(a + op.immediate);
  }
};
struct FromGeneric {
  template <class T>
  static T apply(const Op& op, T a) {
    return static_cast<T>(a - op.immediate);
  }
};

void decode_cvta(Decoder& d) {
  const bool to = d.accept("to");
  const std::optional<Space> space = d.space();
  const Type t = d.type(types(Type::kU64));
  if (!space) return d.fail("cvta needs a state space: .global, .shared, .const, .param or .local");
  d.expect_operands(2);
  using Signature = std::uint64_t(std::uint64_t);
  d.emit(to ? map<FromGeneric, Signature> : map<ToGeneric, Signature>, {d.dst(0, t)}, {d.src(1, t)})
      .immediate = window(*space);
}

struct InWindow {
  static bool apply(const Op& op, std::uint64_t address) {
    const std::uint64_t high = address >> kWindowShift;
    return op.immediate == 0 ? high == 0 || high > (kLocalWindow >> kWindowShift)
                             : high == op.immediate >> kWindowShift;
  }
};

// Op::mode: whether the CTA's own shared memory is meant, not the cluster's.
void isspacep(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask inside = test_lanes<InWindow, std::uint64_t>(warp, op);
  const std::uint64_t* addresses = warp.lanes<std::uint64_t>(op.src[0]);
  for (LaneMask left = op.mode != 0 ? inside : 0; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedPlace place = shared_place(*warp.cta, addresses[lane] - kSharedWindow);
    if (place.rank != warp.cta->rank) inside &= ~(LaneMask{1} << lane);
  }
  store_predicate(warp, op.dst[0], inside, mask);
}

void decode_isspacep(Decoder& d) {
  const std::optional<Space> space = d.space();
  if (!space) return d.fail("isspacep needs a state space: .global, .shared, .const, .param or .local");
  d.expect_operands(2);
  Op& op = d.emit(&isspacep, {d.dst(0, Type::kPred)}, {d.src(1, Type::kU64)});
  op.immediate = window(*space);
  op.mode = *space == Space::kShared;
}

// ---- mapa, getctarank ----

// The same address in the CTA of rank b: Op::immediate is the shared window for generic addresses, else 0.
template <class Address>
void mapa(Warp& warp, const Op& op, LaneMask mask) {
  Address result[kWarpSize] = {};
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint32_t rank = warp.lanes<std::uint32_t>(op.src[1])[lane];
    const std::size_t ctas = warp.cta->cluster.ctas.size();
    if (rank >= ctas) {
      return warp.fault(op, lane, str_cat("rank ", rank, " in a cluster of ", ctas, " CTAs"));
    }
    const std::uint64_t address = warp.lanes<Address>(op.src[0])[lane] - op.immediate;
    if (address >> kWindowShift != 0) return warp.fault(op, lane, "the address is not in shared memory");
    const SharedPlace place = shared_place(*warp.cta, address);
    result[lane] = static_cast<Address>(op.immediate + (mapped(rank, place.offset)));
  }
  store_lanes(warp, op.dst[0], result, mask);
}

template <class Address>
void getctarank(Warp& warp, const Op& op, LaneMask mask) {
  std::uint32_t result[kWarpSize] = {};
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = warp.lanes<Address>(op.src[0])[lane] - op.immediate;
    const SharedPlace place = shared_place(*warp.cta, address);
    result[lane] = static_cast<std::uint32_t>(place.rank);
    if (address >> kWindowShift != 0 || place.rank >= warp.cta->cluster.ctas.size()) {
      return warp.fault(op, lane, "the address is not in the shared memory of the cluster");
    }
  }
  store_lanes(warp, op.dst[0], result, mask);
}

void decode_of_cluster(Decoder& d, Execute narrow, Execute wide, std::size_t operands, bool address_result) {
  const bool in_cluster = d.accept("shared::cluster");
  const Type t = d.type(types(Type::kU32, Type::kU64));
  d.expect_operands(operands);
  if (d.failed()) return;
  std::vector<Slot> src = {d.src(1, t)};
  if (operands == 3) src.push_back(d.src(2, Type::kB32));
  const std::uint64_t base = in_cluster ? 0 : kSharedWindow;
  if (!in_cluster && t == Type::kU32)
    return d.fail("a generic address has 64 bits; write .u64 or .shared::cluster");
  d.emit(t == Type::kU32 ? narrow : wide, {d.dst(0, address_result ? t : Type::kU32)}, std::move(src))
      .immediate = base;
}

void decode_mapa(Decoder& d) {
  decode_of_cluster(d, &mapa<std::uint32_t>, &mapa<std::uint64_t>, 3, true);
}
void decode_getctarank(Decoder& d) {
  decode_of_cluster(d, &getctarank<std::uint32_t>, &getctarank<std::uint64_t>, 2, false);
}

constexpr Mnemonic kMnemonics[] = {
    {"mov", decode_mov},
    {"cvta", decode_cvta},
    {"isspacep", decode_isspacep},
    {"mapa", decode_mapa},
    {"getctarank", decode_getctarank},
};

}  // namespace

absl::Span<const Mnemonic> move_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
