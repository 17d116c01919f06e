// Exchange between the lanes of a warp (PTX ISA, shfl.sync, vote.sync, match.sync, redux.sync, activemask,
// elect.sync, bar.warp.sync).
//
// The lanes named by a member mask meet at the instruction before it executes. A lane that has exited is not
// waited for.
#include <algorithm>
#include <bit>

#include "src/emulator/combine.h"
#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

// Brings the lanes of the member mask in src[slot] together; false while some are missing or after a fault.
bool gather(Warp& warp, const Op& op, LaneMask mask, unsigned slot, LaneMask& members) {
  const std::uint32_t* masks = warp.lanes<std::uint32_t>(op.src[slot]);
  LaneMask wanted = 0;
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (!(masks[lane] >> lane & 1)) {
      warp.fault(op, lane,
                 str_cat("the member mask ", hex(masks[lane]), " does not name lane ", lane,
                         ", which executes this"));
      return false;
    }
    wanted |= masks[lane];
  }
  if (!warp.converge(mask, wanted)) return false;
  members = masks[std::countr_zero(mask)];
  warp.synchronise();
  return true;
}

// ---- shfl ----

enum ShflMode : std::uint32_t { kUp, kDown, kBfly, kIdx };

// PTX ISA, shfl.sync: c holds the clamp in bits 4:0 and the segment mask in bits 12:8.
void shfl(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask members;
  if (op.src_count > 3 && !gather(warp, op, mask, 3, members)) return;
  const std::uint32_t* a = warp.lanes<std::uint32_t>(op.src[0]);
  const std::uint32_t* b = warp.lanes<std::uint32_t>(op.src[1]);
  const std::uint32_t* c = warp.lanes<std::uint32_t>(op.src[2]);
  std::uint32_t result[kWarpSize] = {};
  LaneMask in_range = 0;
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const int self = static_cast<int>(lane), by = static_cast<int>(b[lane] & 31);
    const int clamp = static_cast<int>(c[lane] & 31), segment = static_cast<int>(c[lane] >> 8 & 31);
    const int highest = (self & segment) | (clamp & ~segment), lowest = self & segment;
    int from = self;
    bool valid = false;
    switch (op.mode) {
      case kUp:
        from = self - by;
        valid = from >= highest;
        break;
      case kDown:
        from = self + by;
        valid = from <= highest;
        break;
      case kBfly:
        from = self ^ by;
        valid = from <= highest;
        break;
      default:
        from = lowest | (by & ~segment);
        valid = from <= highest;
        break;
    }
    if (!valid) from = self;
    if (!(mask >> from & 1)) {
      return warp.fault(op, lane,
                        str_cat("lane ", lane, " reads from lane ", from,
                                ", which does not take part (lanes that do: ", hex(mask), ")"));
    }
    result[lane] = a[from];
    in_range |= LaneMask{valid} << lane;
  }
  store_lanes(warp, op.dst[0], result, mask);
  if (op.dst_count > 1) store_predicate(warp, op.dst[1], in_range, mask);
}

// Without .sync, which sm_70 and later do not have, the lanes that execute it take part.
bool decode_sync(Decoder& d, std::string_view what) {
  if (d.accept("sync")) return true;
  if (d.module().target.sm >= 70) d.fail(str_cat(what, " without .sync is for targets below sm_70"));
  return false;
}

void decode_shfl(Decoder& d) {
  const bool sync = decode_sync(d, "shfl");
  const int mode = d.expect_one({"up", "down", "bfly", "idx"}, "a mode");
  d.type(types(Type::kB32));
  d.expect_operands(sync ? 5 : 4);
  if (d.failed()) return;
  std::vector<Slot> dst;
  const Operand& result = d.operand(0);
  if (result.kind == Operand::Kind::kPair) {
    dst = {d.dst(result.elements[0], Type::kB32), d.dst(result.elements[1], Type::kPred)};
  } else {
    dst = {d.dst(result, Type::kB32)};
  }
  std::vector<Slot> src = {d.src(1, Type::kB32), d.src(2, Type::kB32), d.src(3, Type::kB32)};
  if (sync) src.push_back(d.src(4, Type::kB32));
  d.emit(&shfl, std::move(dst), std::move(src)).mode = static_cast<std::uint32_t>(mode);
}

// ---- vote ----

enum VoteMode : std::uint32_t { kAll, kAny, kUni, kBallot };

void vote(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask members;
  if (op.src_count > 1 && !gather(warp, op, mask, 1, members)) return;
  const LaneMask truths = warp.predicate(op.src[0]) & mask;
  if (op.mode == kBallot) {
    std::uint32_t result[kWarpSize];
    std::fill(std::begin(result), std::end(result), truths);
    return store_lanes(warp, op.dst[0], result, mask);
  }
  const bool all = truths == mask, any = truths != 0;
  const bool value = op.mode == kAll ? all : op.mode == kAny ? any : all || !any;
  store_predicate(warp, op.dst[0], value ? kAllLanes : 0, mask);
}

void decode_vote(Decoder& d) {
  const bool sync = decode_sync(d, "vote");
  const int mode = d.expect_one({"all", "any", "uni", "ballot"}, "a mode");
  const Type t = d.type(types(mode == 3 ? Type::kB32 : Type::kPred));
  d.expect_operands(sync ? 3 : 2);
  std::vector<Slot> src = {d.src(1, Type::kPred)};
  if (sync) src.push_back(d.src(2, Type::kB32));
  d.emit(&vote, {d.dst(0, t)}, std::move(src)).mode = static_cast<std::uint32_t>(mode);
}

// ---- match ----

// mode 0: the lanes with the same value. mode 1: all members when they agree, else 0; the predicate says
// which.
template <class T>
void match(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask members;
  if (!gather(warp, op, mask, 1, members)) return;
  const T* a = warp.lanes<T>(op.src[0]);
  std::uint32_t result[kWarpSize] = {};
  bool all_agree = true;
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    for (LaneMask others = mask; others != 0; others &= others - 1) {
      const int other = std::countr_zero(others);
      if (a[other] == a[lane]) result[lane] |= LaneMask{1} << other;
    }
    all_agree &= result[lane] == mask;
  }
  if (op.mode == 1) std::fill(std::begin(result), std::end(result), all_agree ? mask : 0);
  store_lanes(warp, op.dst[0], result, mask);
  if (op.dst_count > 1) store_predicate(warp, op.dst[1], all_agree ? kAllLanes : 0, mask);
}

void decode_match(Decoder& d) {
  const int mode = d.expect_one({"any", "all"}, "a mode");
  if (!d.accept("sync")) d.fail("match needs .sync");
  const Type t = d.type(types(Type::kB32, Type::kB64));
  d.expect_operands(3);
  if (d.failed()) return;
  std::vector<Slot> dst;
  const Operand& result = d.operand(0);
  if (result.kind == Operand::Kind::kPair) {
    if (mode == 0) d.fail("match.any has no predicate result");
    dst = {d.dst(result.elements[0], Type::kB32), d.dst(result.elements[1], Type::kPred)};
  } else {
    dst = {d.dst(result, Type::kB32)};
  }
  d.emit(t == Type::kB32 ? &match<std::uint32_t> : &match<std::uint64_t>, std::move(dst),
         {d.src(1, t), d.src(2, Type::kB32)})
      .mode = static_cast<std::uint32_t>(mode);
}

// ---- redux ----

template <class F, class T>
void redux(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask members;
  if (!gather(warp, op, mask, 1, members)) return;
  const T* a = warp.lanes<T>(op.src[0]);
  LaneMask left = mask;
  T value = a[std::countr_zero(left)];
  for (left &= left - 1; left != 0; left &= left - 1) value = F::apply(value, a[std::countr_zero(left)]);
  T result[kWarpSize];
  std::fill(std::begin(result), std::end(result), value);
  store_lanes(warp, op.dst[0], result, mask);
}

void decode_redux(Decoder& d) {
  if (!d.accept("sync")) d.fail("redux needs .sync");
  const int which = d.expect_one({"add", "min", "max", "and", "or", "xor"}, "an operation");
  const Type t = d.type(which < 3 ? types(Type::kU32, Type::kS32) : types(Type::kB32));
  static constexpr Execute kUnsigned[] = {&redux<Add, std::uint32_t>, &redux<Min, std::uint32_t>,
                                          &redux<Max, std::uint32_t>, &redux<And, std::uint32_t>,
                                          &redux<Or, std::uint32_t>,  &redux<Xor, std::uint32_t>};
  static constexpr Execute kSigned[] = {&redux<Add, std::int32_t>, &redux<Min, std::int32_t>,
                                        &redux<Max, std::int32_t>};
  d.expect_operands(3);
  d.emit(t == Type::kS32 ? kSigned[which] : kUnsigned[which], {d.dst(0, t)},
         {d.src(1, t), d.src(2, Type::kB32)});
}

// ---- the rest ----

void activemask(Warp& warp, const Op& op, LaneMask mask) {
  std::uint32_t result[kWarpSize];
  std::fill(std::begin(result), std::end(result), mask);
  store_lanes(warp, op.dst[0], result, mask);
}

void decode_activemask(Decoder& d) {
  d.type(types(Type::kB32));
  d.expect_operands(1);
  d.emit(&activemask, {d.dst(0, Type::kB32)}, {});
}

// The leader is the lowest lane; PTX leaves the choice open.
void elect(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask members;
  if (!gather(warp, op, mask, 0, members)) return;
  const auto leader = static_cast<std::uint32_t>(std::countr_zero(mask));
  std::uint32_t result[kWarpSize];
  std::fill(std::begin(result), std::end(result), leader);
  store_lanes(warp, op.dst[0], result, mask);
  store_predicate(warp, op.dst[1], LaneMask{1} << leader, mask);
}

void decode_elect(Decoder& d) {
  if (!d.accept("sync")) d.fail("elect needs .sync");
  d.expect_operands(2);
  if (d.failed()) return;
  const Operand& result = d.operand(0);
  if (result.kind != Operand::Kind::kPair) return d.fail("elect.sync writes d|p");
  d.emit(&elect, {d.dst(result.elements[0], Type::kB32), d.dst(result.elements[1], Type::kPred)},
         {d.src(1, Type::kB32)});
}

void warp_barrier(Warp& warp, const Op& op, LaneMask mask) {
  LaneMask members;
  gather(warp, op, mask, 0, members);
}

constexpr Mnemonic kMnemonics[] = {
    {"shfl", decode_shfl},
    {"vote", decode_vote},
    {"match", decode_match},
    {"redux", decode_redux},
    {"activemask", decode_activemask},
    {"elect", decode_elect},
};

}  // namespace

void decode_warp_barrier(Decoder& d) {
  if (!d.accept("sync")) d.fail("bar.warp needs .sync");
  d.expect_operands(1);
  d.emit(&warp_barrier, {}, {d.src(0, Type::kB32)});
}

absl::Span<const Mnemonic> warp_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
