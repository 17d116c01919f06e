// Branches, ends of threads, barriers and fences (PTX ISA, "Control Flow Instructions" and "Parallel
// Synchronization and Communication Instructions").
#include <atomic>
#include <bit>

#include "src/emulator/async.h"
#include "src/emulator/decode.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {

void exit_threads(Warp& warp, const Op&, LaneMask mask) {
  warp.live &= ~mask;
  warp.current.lanes &= ~mask;
  // What waits for the lanes that left may go on.
  for (Split& s : warp.splits) {
    if (s.state == Split::State::kConverging) s.state = Split::State::kReady;
  }
  Cta& cta = *warp.cta;
  ++cta.arrivals;
  cta.release_barriers();
  cta.cluster.release_barrier();
  if (warp.live == 0 && cta.done()) {
    cta.cluster.end(cta);
    if (!cta.fault.ok()) {
      warp.event = Event::kFault;
      return;
    }
  }
  if (warp.current.lanes != 0) ++warp.current.pc;
  warp.event = Event::kJump;
}

namespace {

constexpr std::uint32_t kFairShare =
    1024;  // backward branches of some lanes before the others of the warp get a turn

void branch(Warp& warp, const Op& op, LaneMask mask) {
  const bool backward = op.target <= warp.current.pc;
  warp.jump(mask);
  warp.send(mask, op.target);
  if (warp.splits.empty()) {
    warp.backward_branches = 0;
    warp.prefer_high = false;
  } else if (backward && ++warp.backward_branches == kFairShare) {
    warp.backward_branches = 0;
    warp.prefer_high = !warp.prefer_high;
  }
}

void trap(Warp& warp, const Op& op, LaneMask mask) {
  warp.fault(op, static_cast<unsigned>(std::countr_zero(mask)), "the kernel traps");
}

void nothing(Warp&, const Op&, LaneMask) {}

// A change of one atomic, since ThreadSanitizer does not follow std::atomic_thread_fence.
std::atomic<std::uint64_t> fences = 0;
void fence(Warp&, const Op&, LaneMask) {
  ++fences;
}

// ---- CTA barriers ----

// Op::mode of a barrier.
enum BarrierKind : std::uint32_t { kSync, kArrive, kPopc, kAnd, kOr };
// Op::flags.
enum BarrierFlags : std::uint32_t { kAligned = 1, kCounted = 2 };

// src: barrier number, then the thread count when kCounted, then the predicate of a reduction.
const Slot& predicate_slot(const Op& op) {
  return op.src[op.src_count - 1];
}

void collect_result(Warp& warp, const Op& op, LaneMask mask) {
  const Barrier& b = warp.cta->barriers[warp.current.barrier];
  if (op.mode == kPopc) {
    std::uint32_t* out = warp.lanes<std::uint32_t>(op.dst[0]);
    for (; mask != 0; mask &= mask - 1) out[std::countr_zero(mask)] = b.result_true;
  } else if (op.mode == kAnd || op.mode == kOr) {
    const bool value = op.mode == kAnd ? b.result_true == b.result_count : b.result_true != 0;
    LaneMask& out = warp.predicate(op.dst[0]);
    out = value ? out | mask : out & ~mask;
  }
}

// The value of a register that must be the same in all lanes.
bool uniform(Warp& warp, const Op& op, Slot slot, LaneMask mask, std::string_view what,
             std::uint32_t& value) {
  const std::uint32_t* values = warp.lanes<std::uint32_t>(slot);
  value = values[std::countr_zero(mask)];
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    if (values[lane] == value) continue;
    warp.fault(op, lane,
               str_cat("the lanes of a warp give different ", what, "s: ", value, " and ", values[lane]));
    return false;
  }
  return true;
}

bool check_barrier(Warp& warp, const Op& op, LaneMask mask, std::uint32_t number, std::uint32_t expected) {
  const auto lane = static_cast<unsigned>(std::countr_zero(mask));
  if (number >= warp.cta->barriers.size()) {
    warp.fault(op, lane, str_cat("barrier ", number, "; a CTA has barriers 0 to 15"));
    return false;
  }
  if ((op.flags & kCounted) && (expected == 0 || expected % kWarpSize != 0)) {
    warp.fault(op, lane,
               str_cat("a barrier of ", expected, " threads; the count must be a multiple of 32 above 0"));
    return false;
  }
  const Barrier& b = warp.cta->barriers[number];
  if (b.in_use && b.expected != expected) {
    const auto count = [](std::uint32_t n) {
      return n ? str_cat(n, " threads") : std::string("all threads of the CTA");
    };
    warp.fault(op, lane,
               str_cat("barrier ", number, " with ", count(expected), ", while others wait at it with ",
                       count(b.expected), " at ", place(*warp.cta->launch, b.instruction)));
    return false;
  }
  return true;
}

void barrier(Warp& warp, const Op& op, LaneMask mask) {
  if (warp.current.state == Split::State::kReleased) {
    warp.current.state = Split::State::kReady;
    return collect_result(warp, op, mask);
  }
  if ((op.flags & kAligned) && !warp.converge(mask, kAllLanes)) return;
  std::uint32_t number, expected = 0;
  if (!uniform(warp, op, op.src[0], mask, "barrier number", number)) return;
  if ((op.flags & kCounted) && !uniform(warp, op, op.src[1], mask, "thread count", expected)) return;
  if (!check_barrier(warp, op, mask, number, expected)) return;

  Barrier& b = warp.cta->barriers[number];
  if (!b.in_use) {
    b.in_use = true;
    b.expected = expected;
    b.instruction = op.instruction;
  }
  const auto threads = static_cast<std::uint32_t>(std::popcount(mask));
  // Lanes that do not exist or have exited count with the lowest live one: barriers count whole warps.
  const bool lowest = (mask & (warp.live & -warp.live)) != 0;
  b.arrived += threads + (lowest ? kWarpSize - static_cast<std::uint32_t>(std::popcount(warp.live)) : 0);
  b.thread_count += threads;
  if (op.mode >= kPopc)
    b.true_count += static_cast<std::uint32_t>(std::popcount(warp.predicate(predicate_slot(op)) & mask));
  if (expected != 0 && b.arrived > expected) {
    return warp.fault(op, static_cast<unsigned>(std::countr_zero(mask)),
                      str_cat(b.arrived, " threads arrive at barrier ", number, ", which is for ", expected));
  }
  warp.cta->shared.publish(warp.slot, b.clock);
  warp.cta->shared.advance(warp.slot);
  ++warp.cta->arrivals;
  if (op.mode != kArrive) {
    // The arrived lanes stay at this instruction until they are released; lanes that skip it go on.
    warp.wait(mask, Split::State::kBarrier, number);
  }
  warp.cta->release_barriers();
}

// bar.sync / bar.arrive / bar.red and barrier{.cta}; bar.warp.sync is in warp.cc.
void decode_barrier(Decoder& d, bool aligned) {
  d.accept("cta");
  const int action = d.expect_one({"sync", "arrive", "red"}, "an action");
  aligned |= d.accept("aligned");
  std::uint32_t kind = static_cast<std::uint32_t>(action);
  std::size_t at = 0;
  std::vector<Slot> dst, src;
  if (action == 2) {
    kind = kPopc + static_cast<std::uint32_t>(d.expect_one({"popc", "and", "or"}, "a reduction"));
    const Type t = d.type(kind == kPopc ? types(Type::kU32) : types(Type::kPred));
    dst.push_back(d.dst(at++, t));
  }
  const std::size_t least = at + 1 + (action != 0 ? 1 : 0);
  d.expect_operands(least, at + (action == 2 ? 3 : 2));
  if (d.failed()) return;
  src.push_back(d.src(at++, Type::kB32));
  const bool counted = d.count() - at > (action == 2 ? 1u : 0u);
  if (counted) src.push_back(d.src(at++, Type::kB32));
  if (action == 2) src.push_back(d.src(at, Type::kPred));
  Op& op = d.emit(&barrier, std::move(dst), std::move(src));
  op.mode = kind;
  op.flags = (aligned ? +kAligned : 0) | (counted ? +kCounted : 0);
}

// ---- barrier.cluster ----

// Op::flags.
enum ClusterFlags : std::uint32_t { kClusterAligned = 1, kRelaxed = 2 };

void cluster_arrive(Warp& warp, const Op& op, LaneMask mask) {
  if ((op.flags & kClusterAligned) && !warp.converge(mask, kAllLanes)) return;
  Cluster& cluster = warp.cta->cluster;
  if (const LaneMask again = mask & warp.arrived) {
    return warp.fault(
        op, static_cast<unsigned>(std::countr_zero(again)),
        "arrives at barrier.cluster a second time; barrier.cluster.wait comes between two arrivals");
  }
  // A relaxed arrival after a fence releases what the fence does (PTX ISA, "Release and Acquire Patterns").
  if (!(op.flags & kRelaxed) || warp.cta->launch->code->has_fence) {
    if (mask == warp.live) {
      warp.cta->shared.publish(warp.slot, cluster.arriving);
    } else {
      warp.cta->shared.publish(warp.slot, mask, cluster.arriving);
    }
    warp.cta->shared.tick(warp.slot);
  }
  warp.arrived |= mask;
  ++warp.cta->arrivals;
  cluster.release_barrier();
}

void cluster_wait(Warp& warp, const Op& op, LaneMask mask) {
  if ((op.flags & kClusterAligned) && !warp.converge(mask, kAllLanes)) return;
  if (const LaneMask absent = mask & ~warp.arrived) {
    return warp.fault(op, static_cast<unsigned>(std::countr_zero(absent)),
                      "waits at barrier.cluster without having arrived; barrier.cluster.arrive comes first");
  }
  if ((mask & ~warp.passable) != 0) return warp.wait(mask, Split::State::kCluster);
  Cluster& cluster = warp.cta->cluster;
  warp.arrived &= ~mask;
  warp.passable &= ~mask;
  warp.cluster_barriers = cluster.barriers;
  warp.cta->shared.acquire(warp.slot, cluster.completed);
  warp.cta->shared.learn_begun(warp.slot, static_cast<std::uint16_t>((1u << cluster.ctas.size()) - 1));
}

void decode_cluster_barrier(Decoder& d) {
  const bool arrives = d.expect_one({"arrive", "wait"}, "an action") == 0;
  const bool relaxed = arrives && d.accept_one({"relaxed", "release"}) == 0;
  if (!arrives) d.accept("acquire");
  const bool aligned = d.accept("aligned");
  d.expect_operands(0);
  d.emit(arrives ? &cluster_arrive : &cluster_wait, {}, {}).flags =
      (aligned ? +kClusterAligned : 0) | (relaxed ? +kRelaxed : 0);
}

void decode_bar(Decoder& d) {
  if (d.accept("warp")) return decode_warp_barrier(d);
  decode_barrier(d, true);
}

void decode_barrier_unaligned(Decoder& d) {
  if (d.accept("cluster")) return decode_cluster_barrier(d);
  decode_barrier(d, false);
}

// ---- the rest ----

void decode_bra(Decoder& d) {
  d.accept("uni");
  d.expect_operands(1);
  if (d.operand(0).kind != Operand::Kind::kLabel) return d.fail("bra takes a label");
  Op& op = d.emit(&branch, {}, {});
  op.branches = true;
  op.target = d.operand(0).index;
}

void decode_exit(Decoder& d) {
  d.accept("uni");
  d.expect_operands(0);
  d.emit(&exit_threads, {}, {});
}

void decode_trap(Decoder& d) {
  d.expect_operands(0);
  d.emit(&trap, {}, {});
}

// Between ordinary accesses to shared memory, mbarrier.init among them, and asynchronous copies.
void fence_proxy(Warp& warp, const Op&, LaneMask mask) {
  warp.cta->shared.fence_proxy(warp.slot, mask, SharedMemory::Fence::kProxy);
}

// Between the thread's mbarrier.init and asynchronous copies, and the threads of the cluster once they have
// met at a barrier.cluster, however relaxed; of no other access (PTX ISA, membar/fence, .mbarrier_init).
void fence_mbarrier_init(Warp& warp, const Op&, LaneMask mask) {
  warp.cta->shared.fence_proxy(warp.slot, mask, SharedMemory::Fence::kInits);
  if (warp.cta->async) warp.cta->async->release_inits(warp, mask);
}

void decode_membar(Decoder& d) {
  if (d.accept("mbarrier_init")) {
    if (!d.accept("release") || !d.accept("cluster")) d.fail("fence.mbarrier_init is .release.cluster");
    d.expect_operands(0);
    d.emit(&fence_mbarrier_init, {}, {});
    return;
  }
  if (d.accept("proxy") && d.accept("async")) {
    const Space space = d.space().value_or(Space::kShared);
    d.expect_operands(0);
    d.emit(space == Space::kGlobal ? &nothing : &fence_proxy, {}, {});
    return;
  }
  d.accept_one({"sc", "acq_rel", "acquire", "release"});
  d.accept_one({"alias", "async::generic", "tensormap::generic"});
  d.space();
  d.accept_one({"cta", "cluster", "gpu", "sys", "gl"});
  d.expect_operands(0);
  d.code().has_fence = true;
  d.emit(&fence, {}, {});
}

void decode_griddepcontrol(Decoder& d) {
  d.expect_one({"launch_dependents", "wait"}, "an action");
  d.expect_operands(0);
  d.emit(&nothing, {}, {});
}

void decode_nanosleep(Decoder& d) {
  d.type(types(Type::kU32));
  d.expect_operands(1);
  d.emit(&nothing, {}, {d.src(0, Type::kU32)});
}

constexpr Mnemonic kMnemonics[] = {
    {"bra", decode_bra},
    {"exit", decode_exit},
    {"ret", decode_ret},
    {"call", decode_call},
    {"brx", decode_brx},
    {"trap", decode_trap},
    {"brkpt", decode_trap},
    {"bar", decode_bar},
    {"barrier", decode_barrier_unaligned},
    {"membar", decode_membar},
    {"fence", decode_membar},
    {"griddepcontrol", decode_griddepcontrol},
    {"nanosleep", decode_nanosleep},
};

}  // namespace

absl::Span<const Mnemonic> control_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
