// cp.async, cp.async.bulk, their groups, and cache policies (PTX ISA, "Data Movement and Conversion
// Instructions: Asynchronous copy").
#include <algorithm>
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/async.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

// A lane's copy with what all of them check.
class Copying {
 public:
  Copying(Warp& warp, const Op& op, unsigned lane) : warp_(warp), op_(op), lane_(lane) {
    copy.thread = warp.thread(lane);
    copy.instruction = op.instruction;
  }

  AsyncCopy copy;

  // The piece of global memory, of which `bytes` are read or written.
  bool global(std::uint64_t address, std::uint32_t bytes, unsigned alignment, bool reads) {
    const std::string_view verb = reads ? "reads" : "writes";
    if (address % alignment != 0) {
      return fault(verb, Space::kGlobal, address, bytes, str_cat(", which is not a multiple of ", alignment));
    }
    if (bytes == 0) return true;
    copy.allocation = warp_.cta->launch->memory.find(address, bytes, warp_.cursor);
    if (!copy.allocation) return fault(verb, Space::kGlobal, address, bytes, "");
    copy.global = address - copy.allocation->address;
    if (reads && !copy.allocation->written(copy.global, bytes)) {
      return fault(verb, Space::kGlobal, address, bytes, ", which nothing has written");
    }
    return true;
  }

  bool shared(std::uint64_t offset, std::uint32_t bytes, unsigned alignment, std::string_view verb) {
    const std::uint64_t size = warp_.cta->shared.bytes();
    if (offset % alignment != 0) {
      return fault(verb, Space::kShared, offset, bytes, str_cat(", which is not a multiple of ", alignment));
    }
    if (offset >= size || size - offset < bytes) return fault(verb, Space::kShared, offset, bytes, "");
    copy.shared = offset;
    copy.bytes = bytes;
    return true;
  }

  // From now on the bytes of shared memory are to be written.
  bool begin_write(bool async_proxy) {
    SharedMemory& shared = warp_.cta->shared;
    if (shared.marks(copy.shared, copy.bytes)) {
      return fault("writes", Space::kShared, copy.shared, copy.bytes,
                   warp_.cta->async->describe_marks(copy.shared, copy.bytes));
    }
    if (const auto conflict = shared.would_race(copy.shared, copy.bytes, record())) {
      return race(true, *conflict);
    }
    if (async_proxy && !fenced("writes")) return false;
    shared.forget_written(copy.shared, copy.bytes);
    shared.mark(copy.shared, copy.bytes, kDestination);
    return true;
  }

  // From now on the bytes of shared memory are to be read.
  bool begin_read() {
    SharedMemory& shared = warp_.cta->shared;
    const std::uint8_t marks = shared.marks(copy.shared, copy.bytes);
    if (marks & (kDestination | kMBarrierObject) || !shared.written(copy.shared, copy.bytes)) {
      return fault(
          "reads", Space::kShared, copy.shared, copy.bytes,
          marks ? warp_.cta->async->describe_marks(copy.shared, copy.bytes) : ", which nothing has written");
    }
    if (const auto conflict = shared.read(copy.shared, copy.bytes, record())) return race(false, *conflict);
    if (!fenced("reads")) return false;
    shared.mark(copy.shared, copy.bytes, kSource);
    return true;
  }

  // The mbarrier at the offset, whose initialisation the async proxy must see.
  bool mbarrier(std::uint64_t offset) {
    const MBarrier* barrier = usable_mbarrier(warp_, op_, lane_, offset);
    if (!barrier) return false;
    copy.mbarrier = offset;
    if (!warp_.cta->launch->options.check_races || warp_.cta->shared.fenced(barrier->init, copy.thread))
      return true;
    warp_.fault(op_, lane_,
                str_cat("completes ", warp_.cta->async->describe(offset), ", which ", writer(barrier->init),
                        " with neither fence.mbarrier_init nor fence.proxy.async between"));
    return false;
  }

 private:
  AccessRecord record() const {
    return {warp_.cta->shared.epoch(warp_.index), static_cast<std::uint16_t>(copy.thread), false,
            op_.instruction};
  }

  std::string writer(const AccessRecord& by) const {
    const Launch& launch = *warp_.cta->launch;
    const Instruction& in = *launch.code->instructions[by.instruction];
    return str_cat("thread ", to_string(position(by.thread, launch.config.block)), " wrote at PTX line ",
                   in.line, " `", in.text, "`");
  }

  bool fault(std::string_view verb, Space space, std::uint64_t offset, std::uint32_t bytes,
             std::string_view what) {
    fault_access(warp_, op_, lane_, verb, space, offset, bytes, what);
    return false;
  }

  bool race(bool writes, const AccessConflict& conflict) {
    fault_race(warp_, op_, lane_, copy.shared, copy.bytes, writes, conflict);
    return false;
  }

  bool fenced(std::string_view verb) {
    const auto by = warp_.cta->shared.unfenced_write(copy.shared, copy.bytes, copy.thread);
    if (!by) return true;
    return fault(verb, Space::kShared, copy.shared, copy.bytes,
                 str_cat(" through the async proxy, part of which ", writer(*by),
                         " with no fence.proxy.async between"));
  }

  Warp& warp_;
  const Op& op_;
  unsigned lane_;
};

// ---- cp.async ----

// Op::mode: whether a source size or a predicate that ignores the source is given. Op::immediate: the size.
enum Partial : std::uint32_t { kWhole, kSourceSize, kIgnoreSource };

void cp_async(Warp& warp, const Op& op, LaneMask mask) {
  const auto bytes = static_cast<std::uint32_t>(op.immediate);
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Copying c(warp, op, lane);
    std::uint32_t source = bytes;
    if (op.mode == kSourceSize) source = warp.lanes<std::uint32_t>(op.src[2])[lane];
    if (op.mode == kIgnoreSource && (warp.predicate(op.src[2]) >> lane & 1)) source = 0;
    if (source > bytes) {
      return warp.fault(op, lane, str_cat("the source has ", source, " bytes, of a copy of ", bytes));
    }
    c.copy.source_bytes = source;
    if (!c.global(warp.lanes<std::uint64_t>(op.src[1])[lane], source, bytes, true)) return;
    if (!c.shared(warp.lanes<std::uint64_t>(op.src[0])[lane], bytes, bytes, "writes")) return;
    if (!c.begin_write(false)) return;
    ThreadCopies& thread = warp.cta->async->of_thread(c.copy.thread);
    c.copy.group = thread.groups;
    thread.loads.push_back(std::move(c.copy));
  }
}

// Op::immediate: how many groups may stay pending; Op::mode: whether to wait for all copies.
void wait_loads(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    warp.cta->async->wait_loads(warp.thread(lane), static_cast<std::uint32_t>(op.immediate), op.mode != 0);
    if (!warp.cta->fault.ok()) warp.event = Event::kFault;
  }
}

void commit_loads(Warp& warp, const Op&, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    ++warp.cta->async->of_thread(warp.thread(static_cast<unsigned>(std::countr_zero(mask)))).groups;
  }
}

// ---- cp.async.bulk ----

bool bulk_size(Warp& warp, const Op& op, unsigned lane, Slot slot, std::uint32_t& bytes) {
  bytes = warp.lanes<std::uint32_t>(slot)[lane];
  if (bytes != 0 && bytes % 16 == 0) return true;
  warp.fault(op, lane, str_cat("copies ", bytes, " bytes; a bulk copy is of a multiple of 16 above 0"));
  return false;
}

// src: destination, source, size, mbarrier.
void bulk_load(Warp& warp, const Op& op, LaneMask mask) {
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Copying c(warp, op, lane);
    std::uint32_t bytes;
    if (!bulk_size(warp, op, lane, op.src[2], bytes)) return;
    if (!c.mbarrier(warp.lanes<std::uint64_t>(op.src[3])[lane])) return;
    if (!c.global(warp.lanes<std::uint64_t>(op.src[1])[lane], bytes, 16, true)) return;
    if (!c.shared(warp.lanes<std::uint64_t>(op.src[0])[lane], bytes, 16, "writes")) return;
    if (!c.begin_write(true)) return;
    c.copy.source_bytes = bytes;
    warp.cta->async->load(c.copy);
  }
}

// src: destination, source, size.
void bulk_store(Warp& warp, const Op& op, LaneMask mask) {
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Copying c(warp, op, lane);
    std::uint32_t bytes;
    if (!bulk_size(warp, op, lane, op.src[2], bytes)) return;
    if (!c.global(warp.lanes<std::uint64_t>(op.src[0])[lane], bytes, 16, false)) return;
    if (!c.shared(warp.lanes<std::uint64_t>(op.src[1])[lane], bytes, 16, "reads")) return;
    if (!c.begin_read()) return;
    ThreadCopies& thread = warp.cta->async->of_thread(c.copy.thread);
    c.copy.group = thread.bulk_groups;
    thread.stores.push_back(std::move(c.copy));
  }
}

void commit_stores(Warp& warp, const Op&, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    ++warp.cta->async->of_thread(warp.thread(static_cast<unsigned>(std::countr_zero(mask)))).bulk_groups;
  }
}

// Op::immediate: how many groups may stay pending; Op::mode: whether their sources are all that matters.
void wait_stores(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    warp.cta->async->wait_stores(warp.thread(lane), static_cast<std::uint32_t>(op.immediate), op.mode != 0);
  }
}

void bulk_prefetch(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    std::uint32_t bytes;
    if (!bulk_size(warp, op, lane, op.src[1], bytes)) return;
    const std::uint64_t address = warp.lanes<std::uint64_t>(op.src[0])[lane];
    if (address % 16 != 0) {
      return fault_access(warp, op, lane, "prefetches", Space::kGlobal, address, bytes,
                          ", which is not a multiple of 16");
    }
  }
}

// ---- decoding ----

void materialise(Warp& warp, const Op& op, LaneMask mask) {
  std::uint64_t result[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = lane_address(warp, op, lane);
  store_lanes(warp, op.dst[0], result, mask);
}

// The address operand as a 64-bit register: such instructions have several.
// A profile counts accesses of `bytes` there, by each lane.
Slot address_slot(Decoder& d, std::size_t at, Space space, AccessKind kind = AccessKind::kRead,
                  unsigned bytes = 0) {
  const AddressOperand address = d.address(d.operand(at), space);
  const Slot slot = d.temporary(Type::kB64);
  set_access(d.emit_helper(&materialise, {slot}, {address.slot}), address, space, kind, bytes);
  return slot;
}

// A constant number of groups.
void emit_wait(Decoder& d, Execute run, std::uint32_t mode) {
  d.expect_operands(1);
  if (d.failed()) return;
  const std::uint64_t groups = d.constant(d.operand(0), "a number of groups");
  Op& op = d.emit(run, {}, {});
  op.immediate = std::min<std::uint64_t>(groups, ~std::uint32_t{0});
  op.mode = mode;
}

void decode_groups(Decoder& d, Execute commit, Execute wait) {
  if (d.accept("commit_group")) {
    d.expect_operands(0);
    d.emit(commit, {}, {});
    return;
  }
  if (d.accept("wait_all")) {
    d.expect_operands(0);
    d.emit(wait, {}, {}).mode = 1;
    return;
  }
  const bool is_wait = d.accept("wait_group");
  if (is_wait) emit_wait(d, wait, d.accept("read"));
}

void decode_bulk_copy(Decoder& d) {
  const bool prefetch = d.accept("prefetch");
  if (prefetch) d.expect_one({"L2"}, "a cache level");
  const bool to_shared = !prefetch && d.accept_one({"shared::cluster"}) == 0;
  const bool from_shared = !to_shared && !prefetch && d.accept("global") && d.accept("shared::cta");
  const bool to_own = !to_shared && !from_shared && !prefetch && d.accept("shared::cta");
  if (!from_shared) d.expect_one({"global"}, "the state spaces of a copy between global and shared memory");
  if (to_shared || to_own) d.expect_one({"mbarrier::complete_tx::bytes"}, "a completion mechanism");
  if (from_shared) d.expect_one({"bulk_group"}, "a completion mechanism");
  const bool hint = d.accept("L2::cache_hint");
  const std::size_t operands = prefetch ? 2 : from_shared ? 3 : 4;
  d.expect_operands(operands + hint);
  if (d.failed()) return;
  if (hint) d.src(operands, Type::kB64);
  d.code().has_async = true;
  d.shared_access(8);
  const Space first = prefetch || from_shared ? Space::kGlobal : Space::kShared;
  std::vector<Slot> src = {address_slot(d, 0, first)};
  if (!prefetch) src.push_back(address_slot(d, 1, from_shared ? Space::kShared : Space::kGlobal));
  src.push_back(d.src(src.size(), Type::kB32));
  if (operands == 4) src.push_back(address_slot(d, 3, Space::kShared));
  Op& op = d.emit(prefetch ? &bulk_prefetch : from_shared ? &bulk_store : &bulk_load, {}, std::move(src));
  op.space = Space::kShared;
}

void decode_cp(Decoder& d) {
  if (!d.accept("async")) return d.fail("cp is .async");
  d.code().has_async = true;
  if (d.accept("mbarrier")) {
    d.expect_one({"arrive"}, "an action");
    return decode_arrive_on(d);
  }
  const bool bulk = d.accept("bulk");
  for (const std::string_view m : d.modifiers()) {
    if (m != "commit_group" && m != "wait_group" && m != "wait_all") continue;
    return bulk ? decode_groups(d, &commit_stores, &wait_stores)
                : decode_groups(d, &commit_loads, &wait_loads);
  }
  if (bulk) return decode_bulk_copy(d);
  const bool l2_only = d.expect_one({"ca", "cg"}, "a cache operator") == 1;
  if (d.accept_one({"shared", "shared::cta"}) < 0 || !d.accept("global")) {
    d.fail("cp.async is from .global to .shared");
  }
  const bool hint = decode_cache_hints(d);
  d.expect_operands(3 + hint, 4u + hint);
  if (d.failed()) return;
  const std::uint64_t bytes = d.constant(d.operand(2), "a size");
  if (bytes != 16 && (l2_only || (bytes != 4 && bytes != 8))) {
    return d.fail(l2_only ? "cp.async.cg copies 16 bytes" : "cp.async.ca copies 4, 8 or 16 bytes");
  }
  const auto width = static_cast<unsigned>(bytes);
  std::vector<Slot> src = {address_slot(d, 0, Space::kShared, AccessKind::kWrite, width),
                           address_slot(d, 1, Space::kGlobal, AccessKind::kRead, width)};
  std::uint32_t mode = kWhole;
  if (d.count() == 4u + hint) {
    const Operand& partial = d.operand(3);
    const bool predicate = partial.kind == Operand::Kind::kRegister && d.declared(partial) == Type::kPred;
    mode = predicate ? kIgnoreSource : kSourceSize;
    src.push_back(d.src(partial, predicate ? Type::kPred : Type::kB32));
  }
  if (hint) d.src(d.count() - 1, Type::kB64);
  d.shared_access(static_cast<unsigned>(bytes));
  Op& op = d.emit(&cp_async, {}, std::move(src));
  op.space = Space::kShared;
  op.immediate = bytes;
  op.mode = mode;
}

// A policy changes no result, so any bits stand for it.
void create_policy(Warp& warp, const Op& op, LaneMask mask) {
  std::uint64_t result[kWarpSize];
  std::fill(std::begin(result), std::end(result), std::uint64_t{1});
  store_lanes(warp, op.dst[0], result, mask);
}

void decode_createpolicy(Decoder& d) {
  d.expect_one({"fractional"}, "a kind");
  d.expect_one({"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"},
               "a priority");
  d.accept_one({"L2::evict_first", "L2::evict_unchanged"});
  d.type(types(Type::kB64));
  d.expect_operands(1, 2);
  if (d.failed()) return;
  std::vector<Slot> src;
  if (d.count() == 2) src.push_back(d.src(1, Type::kF32));
  d.emit(&create_policy, {d.dst(0, Type::kB64)}, std::move(src));
}

constexpr Mnemonic kMnemonics[] = {{"cp", decode_cp}, {"createpolicy", decode_createpolicy}};

}  // namespace

absl::Span<const Mnemonic> async_copy_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
