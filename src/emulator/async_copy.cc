// cp.async, cp.async.bulk, their groups, and cache policies (PTX ISA, "Data Movement and Conversion
// Instructions: Asynchronous copy").
#include <algorithm>
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/copying.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

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
    if (!c.shared(Space::kShared, warp.lanes<std::uint64_t>(op.src[0])[lane], bytes, bytes, "writes")) return;
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
    warp.cta->async->wait_loads(warp.cluster_thread(lane), static_cast<std::uint32_t>(op.immediate),
                                op.mode != 0);
    if (!warp.cta->fault.ok()) warp.event = Event::kFault;
  }
}

void commit_loads(Warp& warp, const Op&, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    ++warp.cta->async->of_thread(warp.cluster_thread(static_cast<unsigned>(std::countr_zero(mask)))).groups;
  }
}

// ---- cp.async.bulk ----

bool bulk_size(Warp& warp, const Op& op, unsigned lane, Slot slot, std::uint32_t& bytes) {
  bytes = warp.lanes<std::uint32_t>(slot)[lane];
  if (bytes != 0 && bytes % 16 == 0) return true;
  warp.fault(op, lane, str_cat("copies ", bytes, " bytes; a bulk copy is of a multiple of 16 above 0"));
  return false;
}

// Op::mode of a bulk copy into shared memory: from shared memory; to the CTAs of a mask.
enum BulkMode : std::uint32_t { kFromShared = 1, kMulticast = 2 };

// src: destination, source, size, mbarrier, mask.
void bulk_load(Warp& warp, const Op& op, LaneMask mask) {
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Copying c(warp, op, lane);
    std::uint32_t bytes;
    if (!bulk_size(warp, op, lane, op.src[2], bytes)) return;
    const std::uint64_t from = warp.lanes<std::uint64_t>(op.src[1])[lane];
    c.copy.source_bytes = bytes;
    if (!c.mbarrier(warp.lanes<std::uint64_t>(op.src[3])[lane])) return;
    if (op.mode & kFromShared ? !c.shared_source(from, bytes) : !c.global(from, bytes, 16, true)) return;
    if (!c.shared(Space::kCluster, warp.lanes<std::uint64_t>(op.src[0])[lane], bytes, 16, "writes")) return;
    if (!c.same_cta()) return;
    if (op.mode & kMulticast) {
      if (!c.multicast(warp.lanes<std::uint16_t>(op.src[4])[lane], 16)) return;
      continue;
    }
    if (!c.begin_write(true)) return;
    if ((op.mode & kFromShared) && !c.begin_read(c.copy.global)) return;
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
    if (!c.shared(Space::kShared, warp.lanes<std::uint64_t>(op.src[1])[lane], bytes, 16, "reads")) return;
    if (!c.begin_read(c.copy.shared)) return;
    c.start_store();
  }
}

void commit_stores(Warp& warp, const Op&, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    ++warp.cta->async->of_thread(warp.cluster_thread(static_cast<unsigned>(std::countr_zero(mask))))
          .bulk_groups;
  }
}

// Op::immediate: how many groups may stay pending; Op::mode: whether their sources are all that matters.
void wait_stores(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    warp.cta->async->wait_stores(warp.cluster_thread(lane), static_cast<std::uint32_t>(op.immediate),
                                 op.mode != 0);
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

void decode_bulk_prefetch(Decoder& d) {
  d.expect_one({"L2"}, "a cache level");
  d.expect_one({"global"}, "a state space");
  const bool hint = d.accept("L2::cache_hint");
  d.expect_operands(2 + hint);
  if (d.failed()) return;
  if (hint) d.src(2, Type::kB64);
  d.emit(&bulk_prefetch, {}, {address_slot(d, d.operand(0), Space::kGlobal), d.src(1, Type::kB32)});
}

void decode_bulk_store(Decoder& d) {
  if (!d.accept("shared::cta")) return d.fail("a bulk copy to .global is from .shared::cta");
  d.expect_one({"bulk_group"}, "a completion mechanism");
  const bool hint = d.accept("L2::cache_hint");
  d.expect_operands(3 + hint);
  if (d.failed()) return;
  if (hint) d.src(3, Type::kB64);
  d.emit(&bulk_store, {},
         {address_slot(d, d.operand(0), Space::kGlobal), address_slot(d, d.operand(1), Space::kShared),
          d.src(2, Type::kB32)});
}

void decode_bulk_load(Decoder& d, Space to) {
  const bool from_shared = to == Space::kCluster && d.accept("shared::cta");
  if (!from_shared) d.expect_one({"global"}, "the state space that it copies from");
  d.expect_one({"mbarrier::complete_tx::bytes"}, "a completion mechanism");
  const bool multicast = !from_shared && d.accept("multicast::cluster");
  const bool hint = !from_shared && d.accept("L2::cache_hint");
  d.expect_operands(4u + multicast + hint);
  if (d.failed()) return;
  std::vector<Slot> src = {address_slot(d, d.operand(0), to),
                           address_slot(d, d.operand(1), from_shared ? Space::kShared : Space::kGlobal),
                           d.src(2, Type::kB32), address_slot(d, d.operand(3), to)};
  if (multicast) src.push_back(d.src(4, Type::kB16));
  if (hint) d.src(4u + multicast, Type::kB64);
  Op& op = d.emit(&bulk_load, {}, std::move(src));
  op.space = Space::kCluster;
  op.mode = (from_shared ? +kFromShared : 0) | (multicast ? +kMulticast : 0);
}

bool has_first_space(const Decoder& d, std::string_view space) {
  for (const std::string_view m : d.modifiers()) {
    if (m == "global" || m == "shared::cta" || m == "shared::cluster") return m == space;
  }
  return false;
}

// The first state space is the destination's.
void decode_bulk_copy(Decoder& d) {
  d.shared_access(8);
  if (d.accept("tensor")) return decode_tensor_copy(d);
  if (d.accept("prefetch")) return decode_bulk_prefetch(d);
  if (has_first_space(d, "global")) {
    d.accept("global");
    return decode_bulk_store(d);
  }
  const int to = d.expect_one({"shared::cluster", "shared::cta"}, "the state space that it copies to");
  decode_bulk_load(d, to == 0 ? Space::kCluster : Space::kShared);
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
  std::vector<Slot> src = {address_slot(d, d.operand(0), Space::kShared, AccessKind::kWrite, width),
                           address_slot(d, d.operand(1), Space::kGlobal, AccessKind::kRead, width)};
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
