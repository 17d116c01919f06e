// mbarrier.* and cp.async.mbarrier.arrive on the CTA's own shared memory (PTX ISA, "Parallel Synchronization
// and Communication Instructions: mbarrier").
//
// The bits of an mbarrier mean nothing to a program, so its state lives beside shared memory (async.h).
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/async.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

enum Flags : std::uint32_t {
  kDrop = 1,
  kNoComplete = 2,
  kExpectTx = 4,
  kParity = 8,
  kSleeps = 16,   // try_wait
  kRelaxed = 32,  // no release, no acquire
};

// What mbarrier.arrive returns: the pending count before it, the phase, and which mbarrier.
constexpr unsigned kPhaseShift = 20, kTagShift = 52;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kPhaseShift) - 1;

std::uint64_t tag_of(std::uint64_t offset) {
  return offset / 8 % 4096;
}
std::uint64_t state_of(const MBarrier& b) {
  return b.pending | std::uint64_t{b.phase} << kPhaseShift | tag_of(b.offset) << kTagShift;
}

// The offset in shared memory that the lane's address operand names; false after a fault.
bool locate_object(Warp& warp, const Op& op, unsigned lane, std::uint64_t& offset) {
  constexpr std::string_view kVerb = "uses an mbarrier of";
  std::uint64_t address = lane_address(warp, op, lane);
  const Space space = space_of(op, address);
  if (space != Space::kShared) {
    fault_access(warp, op, lane, kVerb, space, address, 8, "");
    return false;
  }
  if (op.space == Space::kGeneric) address -= kSharedWindow;
  // A generic address here is one of .shared::cta (PTX ISA, "mbarrier").
  const Space named = op.space == Space::kCluster ? Space::kCluster : Space::kShared;
  const std::optional<std::uint64_t> place = shared_offset(warp, op, lane, kVerb, named, address, 8);
  if (!place) return false;
  offset = *place;
  note_visit(warp, op, lane, offset);
  if (offset % 8 == 0) return true;
  fault_shared(warp, op, lane, kVerb, offset, 8, ", which is not a multiple of 8");
  return false;
}

// The initialised mbarrier that the lane names; null after a fault.
MBarrier* locate_mbarrier(Warp& warp, const Op& op, unsigned lane) {
  std::uint64_t offset;
  if (!locate_object(warp, op, lane, offset)) return nullptr;
  return usable_mbarrier(warp, op, lane, offset);
}

// ---- init and inval ----

void init(Warp& warp, const Op& op, LaneMask mask) {
  SharedMemory& shared = warp.cta->shared;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    std::uint64_t offset;
    if (!locate_object(warp, op, lane, offset)) return;
    const std::uint32_t count = warp.lanes<std::uint32_t>(op.src[1])[lane];
    if (count == 0 || count > kMaxMBarrierCount) {
      return warp.fault(
          op, lane,
          str_cat("an mbarrier for ", count, " arrivals; the count lies in 1 to ", kMaxMBarrierCount));
    }
    if (warp.cta->async->find(offset)) {
      return warp.fault(op, lane,
                        str_cat("initialises ", warp.cta->async->describe(offset),
                                ", which is in use already; mbarrier.inval comes before a second init"));
    }
    if (shared.marks(offset, 8)) {
      return fault_shared(warp, op, lane, "writes", offset, 8, warp.cta->async->describe_marks(offset, 8));
    }
    const AccessRecord record = warp.access(op, lane, false);
    if (const auto conflict = shared.write(offset, 8, record)) {
      return fault_race(warp, op, lane, offset, 8, true, *conflict);
    }
    MBarrier barrier;
    barrier.offset = offset;
    barrier.expected = barrier.pending = count;
    barrier.init = record;
    warp.cta->async->add(barrier);
    shared.forget_written(offset, 8);
    shared.mark(offset, 8, kMBarrierObject);
  }
}

void inval(Warp& warp, const Op& op, LaneMask mask) {
  Async& async = *warp.cta->async;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    const MBarrier* barrier = locate_mbarrier(warp, op, lane);
    if (!barrier) return;
    const std::uint64_t offset = barrier->offset;
    if (async.has_copies(offset)) {
      return warp.fault(op, lane,
                        str_cat("invalidates ", async.describe(offset), ", while copies are to complete it"));
    }
    async.remove(offset);
    warp.cta->shared.unmark(offset, 8, kMBarrierObject);
  }
}

// ---- arrivals and transactions ----

bool expect_transactions(Warp& warp, const Op& op, unsigned lane, MBarrier& barrier, std::uint32_t bytes) {
  if (bytes > kMaxMBarrierCount || barrier.transactions + bytes > kMaxMBarrierCount) {
    warp.fault(op, lane,
               str_cat("expects ", bytes, " bytes more of ", warp.cta->async->describe(barrier.offset), "; ",
                       kMaxMBarrierCount, " is the most"));
    return false;
  }
  barrier.transactions += bytes;
  return true;
}

// Whether the lanes of the instruction are all that live, and arrive at one mbarrier: then the warp arrives.
bool whole_warp(const Warp& warp, const Op& op, LaneMask mask) {
  if (mask != warp.live) return false;
  const std::uint64_t first = lane_address(warp, op, static_cast<unsigned>(std::countr_zero(mask)));
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    if (lane_address(warp, op, static_cast<unsigned>(std::countr_zero(left))) != first) return false;
  }
  return true;
}

void arrive(Warp& warp, const Op& op, LaneMask mask) {
  Async& async = *warp.cta->async;
  SharedMemory& shared = warp.cta->shared;
  const bool whole = whole_warp(warp, op, mask);
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    MBarrier* barrier = locate_mbarrier(warp, op, lane);
    if (!barrier) return;
    const std::uint64_t before = state_of(*barrier);
    const std::uint32_t operand = op.src_count > 1 ? warp.lanes<std::uint32_t>(op.src[1])[lane] : 1;
    const std::uint32_t count = op.flags & kExpectTx ? 1 : operand;
    if ((op.flags & kExpectTx) && !expect_transactions(warp, op, lane, *barrier, operand)) return;
    if (count == 0 || count > barrier->pending) {
      return warp.fault(op, lane, str_cat("arrives ", count, " times at ", async.describe(barrier->offset)));
    }
    if ((op.flags & kNoComplete) && count == barrier->pending) {
      return warp.fault(
          op, lane, str_cat("completes ", async.describe(barrier->offset), ", which .noComplete may not"));
    }
    if (!(op.flags & kRelaxed)) {
      if (whole) {
        shared.publish(warp.slot, barrier->arriving);
      } else {
        shared.publish(warp.slot, LaneMask{1} << lane, barrier->arriving);
      }
    }
    barrier->pending -= count;
    if (op.flags & kDrop) barrier->expected -= count;
    async.update(*barrier);
    if (op.dst_count != 0) warp.lanes<std::uint64_t>(op.dst[0])[lane] = before;
  }
  shared.tick(warp.slot);
}

void expect_tx(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    MBarrier* barrier = locate_mbarrier(warp, op, lane);
    if (!barrier) return;
    const std::uint32_t bytes = warp.lanes<std::uint32_t>(op.src[1])[lane];
    if (!expect_transactions(warp, op, lane, *barrier, bytes)) return;
    warp.cta->async->update(*barrier);
  }
}

void complete_tx(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    MBarrier* barrier = locate_mbarrier(warp, op, lane);
    if (!barrier) return;
    const std::uint32_t bytes = warp.lanes<std::uint32_t>(op.src[1])[lane];
    if (bytes > kMaxMBarrierCount || barrier->transactions - bytes < -kMaxMBarrierCount) {
      return warp.fault(op, lane,
                        str_cat("completes ", bytes, " bytes of ", warp.cta->async->describe(barrier->offset),
                                "; the count goes down to -", kMaxMBarrierCount));
    }
    barrier->transactions -= bytes;
    warp.cta->async->update(*barrier);
  }
}

// ---- tests ----

// Whether the phase that the lane asks for is complete; nothing after a fault.
std::optional<bool> complete(Warp& warp, const Op& op, unsigned lane, const MBarrier& barrier) {
  if (op.flags & kParity) {
    const std::uint32_t parity = warp.lanes<std::uint32_t>(op.src[1])[lane];
    if (parity <= 1) return (barrier.phase & 1) != parity;
    warp.fault(op, lane, str_cat("the parity of a phase is 0 or 1, not ", parity));
    return std::nullopt;
  }
  const std::uint64_t state = warp.lanes<std::uint64_t>(op.src[1])[lane];
  const auto phase = static_cast<std::uint32_t>(state >> kPhaseShift);
  if (state >> kTagShift != tag_of(barrier.offset) || phase > barrier.phase || barrier.phase - phase > 1) {
    warp.fault(
        op, lane,
        str_cat("the state ", hex(state), " is of no arrival in the current or the preceding phase of ",
                warp.cta->async->describe(barrier.offset)));
    return std::nullopt;
  }
  return barrier.phase != phase;
}

// Whether the test at this place has said no to all of the lanes in this phase.
bool refused_before(const Warp& warp, const MBarrier& barrier, LaneMask lanes) {
  for (const Refusal& r : warp.refusals) {
    if (r.pc != warp.current.pc) continue;
    return r.mbarrier == barrier.offset && r.phase == barrier.phase && (lanes & ~r.lanes) == 0;
  }
  return false;
}

// Says no, and lets others go first.
void refuse(Warp& warp, const MBarrier& barrier, LaneMask lanes) {
  Refusal refusal{warp.current.pc, lanes, barrier.offset, barrier.phase, warp.cta->cluster.changes()};
  warp.idle = false;
  for (auto r = warp.refusals.begin(); r != warp.refusals.end(); ++r) {
    if (r->pc != refusal.pc) continue;
    if (r->mbarrier == refusal.mbarrier && r->phase == refusal.phase) {
      refusal.lanes |= r->lanes;
      warp.idle = r->changes == refusal.changes;
    }
    warp.refusals.erase(r);
    break;
  }
  warp.refusals.push_back(refusal);
  warp.event = Event::kYield;
}

// try_wait says no the first time, as it may, and then sleeps: it wakes when the phase is complete or when
// nothing else can go on. test_wait never sleeps.
void wait(Warp& warp, const Op& op, LaneMask mask) {
  const bool awoken = warp.current.state == Split::State::kReleased;
  warp.current.state = Split::State::kReady;
  LaneMask done = 0;
  const MBarrier* waits_for = nullptr;
  bool same = true;
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const MBarrier* barrier = locate_mbarrier(warp, op, lane);
    if (!barrier) return;
    const std::optional<bool> result = complete(warp, op, lane, *barrier);
    if (!result) return;
    if (*result) {
      done |= LaneMask{1} << lane;
      if (!(op.flags & kRelaxed)) warp.cta->shared.acquire(warp.slot, barrier->completed);
    } else {
      same &= !waits_for || waits_for == barrier;
      waits_for = barrier;
    }
  }
  if (waits_for && (op.flags & kSleeps) && !awoken && done == 0 && same &&
      refused_before(warp, *waits_for, mask)) {
    return warp.wait(mask, Split::State::kSuspended, static_cast<std::uint32_t>(waits_for->offset));
  }
  store_predicate(warp, op.dst[0], done, mask);
  if (waits_for) {
    refuse(warp, *waits_for, mask & ~done);
  } else {
    warp.idle = false;
  }
}

struct PendingCount {
  static std::uint32_t apply(std::uint64_t state) { return static_cast<std::uint32_t>(state & kCountMask); }
};

// ---- cp.async.mbarrier.arrive ----

// Without .noinc the pending count goes up first, so that the arrival is beside those expected.
void arrive_on(Warp& warp, const Op& op, LaneMask mask) {
  Async& async = *warp.cta->async;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    MBarrier* barrier = locate_mbarrier(warp, op, lane);
    if (!barrier) return;
    if (op.flags == 0) {
      if (barrier->pending == kMaxMBarrierCount) {
        return warp.fault(op, lane, str_cat("one arrival too many for ", async.describe(barrier->offset)));
      }
      ++barrier->pending;
    }
    const std::uint32_t thread = warp.cluster_thread(lane);
    async.add_arrival(thread, {barrier->offset, async.of_thread(thread).loads.size(), op.instruction});
  }
}

// ---- decoding ----

void emit_on(Decoder& d, std::size_t at, Space space, Execute run, std::vector<Slot> dst,
             std::vector<Slot> src, std::uint32_t flags) {
  const AddressOperand address = d.address(d.operand(at), space);
  src.insert(src.begin(), address.slot);
  Op& op = d.emit(run, std::move(dst), std::move(src));
  set_address(op, address, space);
  op.flags = flags;
  d.code().has_async = true;
  d.shared_access(8);
}

void decode_arrive(Decoder& d, Space space, std::uint32_t flags) {
  if (d.accept("expect_tx")) flags |= kExpectTx;
  if (d.accept("noComplete")) flags |= kNoComplete;
  d.type(types(Type::kB64));
  const bool needs_operand = (flags & (kExpectTx | kNoComplete)) != 0;
  d.expect_operands(needs_operand ? 3 : 2, 3);
  if (d.failed()) return;
  std::vector<Slot> dst, src;
  if (d.operand(0).kind != Operand::Kind::kDiscard) dst.push_back(d.dst(0, Type::kB64));
  if (space == Space::kCluster && !dst.empty())
    return d.fail("an arrival in .shared::cluster returns no state; write _");
  if (d.count() == 3) src.push_back(d.src(2, Type::kB32));
  emit_on(d, 1, space, &arrive, std::move(dst), std::move(src), flags);
}

void decode_wait(Decoder& d, Space space, std::uint32_t flags) {
  if (d.accept("parity")) flags |= kParity;
  d.type(types(Type::kB64));
  d.expect_operands(3, flags & kSleeps ? 4 : 3);
  if (d.failed()) return;
  std::vector<Slot> src = {d.src(2, flags & kParity ? Type::kB32 : Type::kB64)};
  if (d.count() == 4) src.push_back(d.src(3, Type::kB32));  // how long it sleeps
  emit_on(d, 1, space, &wait, {d.dst(0, Type::kPred)}, std::move(src), flags);
}

void decode_mbarrier(Decoder& d) {
  enum Action { kInit, kInval, kArrive, kArriveDrop, kExpect, kComplete, kTest, kTry, kPendingCount };
  const int action = d.expect_one({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx",
                                   "test_wait", "try_wait", "pending_count"},
                                  "an action");
  const bool relaxed = d.accept_one({"relaxed", "release", "acquire"}) == 0;
  d.accept_one({"cta", "cluster"});
  const Space space = d.space().value_or(Space::kGeneric);
  const std::uint32_t flags = relaxed ? +kRelaxed : 0;
  const bool local = action == kInit || action == kInval || action == kTest || action == kTry;
  if (space == Space::kCluster && local) {
    return d.fail("this is for an mbarrier of the CTA's own, .shared::cta");
  }
  switch (action) {
    case kArrive: return decode_arrive(d, space, flags);
    case kArriveDrop: return decode_arrive(d, space, flags | kDrop);
    case kTest: return decode_wait(d, space, flags);
    case kTry: return decode_wait(d, space, flags | kSleeps);
    default: break;
  }
  d.type(types(Type::kB64));
  d.expect_operands(action == kInval ? 1 : 2);
  if (d.failed()) return;
  switch (action) {
    case kInit: return emit_on(d, 0, space, &init, {}, {d.src(1, Type::kB32)}, flags);
    case kInval: return emit_on(d, 0, space, &inval, {}, {}, flags);
    case kExpect: return emit_on(d, 0, space, &expect_tx, {}, {d.src(1, Type::kB32)}, flags);
    case kComplete: return emit_on(d, 0, space, &complete_tx, {}, {d.src(1, Type::kB32)}, flags);
    default:
      d.emit(map<PendingCount, std::uint32_t(std::uint64_t)>, {d.dst(0, Type::kB32)}, {d.src(1, Type::kB64)});
  }
}

constexpr Mnemonic kMnemonics[] = {{"mbarrier", decode_mbarrier}};

}  // namespace

MBarrier* usable_mbarrier(Warp& warp, const Op& op, unsigned lane, std::uint64_t offset) {
  MBarrier* barrier = offset % 8 == 0 ? warp.cta->async->find(offset) : nullptr;
  if (!barrier) {
    fault_shared(warp, op, lane, "uses an mbarrier of", offset, 8,
                 ", where no mbarrier has been initialised");
    return nullptr;
  }
  if (warp.cta->launch->options.check_races && !visible_in_cluster(*barrier, warp) &&
      !warp.cta->shared.happened(barrier->init, warp.cluster_thread(lane))) {
    fault_race(warp, op, lane, offset, 8, true, {barrier->init, true});
    return nullptr;
  }
  return barrier;
}

void decode_arrive_on(Decoder& d) {
  const std::uint32_t noinc = d.accept("noinc");
  const Space space = d.space().value_or(Space::kGeneric);
  d.type(types(Type::kB64));
  d.expect_operands(1);
  if (!d.failed()) emit_on(d, 0, space, &arrive_on, {}, {}, noinc);
}

absl::Span<const Mnemonic> mbarrier_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
