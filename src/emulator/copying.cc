#include "src/emulator/copying.h"

#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {

Copying::Copying(Warp& warp, const Op& op, unsigned lane) : warp_(warp), op_(op), lane_(lane) {
  copy.thread = warp.cluster_thread(lane);
  copy.instruction = op.instruction;
}

bool Copying::global(std::uint64_t address, std::uint32_t bytes, unsigned alignment, bool reads) {
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

bool Copying::shared(Space space, std::uint64_t address, std::uint32_t bytes, unsigned alignment,
                     std::string_view verb) {
  copy.bytes = bytes;
  return place(space, address, bytes, alignment, verb, copy.shared);
}

bool Copying::shared_source(std::uint64_t address, std::uint32_t bytes) {
  copy.from_shared = true;
  copy.source_bytes = bytes;
  return place(Space::kShared, address, bytes, 16, "reads", copy.global);
}

bool Copying::begin_write(bool async_proxy) {
  SharedMemory& shared = warp_.cta->shared;
  if (shared.marks(copy.shared, copy.bytes)) {
    return fault("writes", copy.shared, warp_.cta->async->describe_marks(copy.shared, copy.bytes));
  }
  if (const auto conflict = shared.would_race(copy.shared, copy.bytes, record())) {
    return race(true, copy.shared, *conflict);
  }
  if (async_proxy && !fenced("writes", copy.shared)) return false;
  shared.forget_written(copy.shared, copy.bytes);
  shared.mark(copy.shared, copy.bytes, kDestination);
  return true;
}

bool Copying::begin_read(std::uint64_t from) {
  SharedMemory& shared = warp_.cta->shared;
  const std::uint8_t marks = shared.marks(from, copy.bytes);
  if (marks & (kDestination | kMBarrierObject) || !shared.written(from, copy.bytes)) {
    return fault("reads", from,
                 marks ? warp_.cta->async->describe_marks(from, copy.bytes) : ", which nothing has written");
  }
  if (const auto conflict = shared.read(from, copy.bytes, record())) return race(false, from, *conflict);
  if (!fenced("reads", from)) return false;
  shared.mark(from, copy.bytes, kSource);
  return true;
}

bool Copying::mbarrier(std::uint64_t address) {
  const std::optional<std::uint64_t> offset =
      shared_offset(warp_, op_, lane_, "uses an mbarrier of", Space::kCluster, address, 8);
  if (!offset) return false;
  const MBarrier* barrier = usable_mbarrier(warp_, op_, lane_, *offset);
  if (!barrier) return false;
  copy.mbarrier = *offset;
  if (!warp_.cta->launch->options.check_races || visible_in_cluster(*barrier, warp_) ||
      warp_.cta->shared.fenced(barrier->init, copy.thread, true)) {
    return true;
  }
  warp_.fault(op_, lane_,
              str_cat("completes ", warp_.cta->async->describe(*offset), ", which ", writer(barrier->init),
                      " with neither fence.mbarrier_init nor fence.proxy.async between"));
  return false;
}

bool Copying::same_cta() {
  const std::uint64_t stride = warp_.cta->shared.stride();
  if (copy.shared / stride == copy.mbarrier / stride) return true;
  warp_.fault(op_, lane_,
              str_cat("writes the shared memory of CTA ",
                      to_string(warp_.cta->cluster.ctas[copy.shared / stride].ctaid), " and completes ",
                      warp_.cta->async->describe(copy.mbarrier),
                      "; the mbarrier of a copy lies in the CTA that receives it"));
  return false;
}

bool Copying::place(Space space, std::uint64_t address, std::uint32_t bytes, unsigned alignment,
                    std::string_view verb, std::uint64_t& at) {
  if (address % alignment != 0) {
    return fault(verb, space, address, bytes, str_cat(", which is not a multiple of ", alignment));
  }
  const std::optional<std::uint64_t> found = shared_offset(warp_, op_, lane_, verb, space, address, bytes);
  at = found.value_or(0);
  return found.has_value();
}

std::string Copying::writer(const AccessRecord& by) const {
  return str_cat(warp_.cta->cluster.name_thread(by.thread), " wrote at ",
                 line_of(*warp_.cta->launch, by.instruction));
}

bool Copying::fault(std::string_view verb, Space space, std::uint64_t offset, std::uint32_t bytes,
                    std::string_view what) {
  fault_access(warp_, op_, lane_, verb, space, offset, bytes, what);
  return false;
}

bool Copying::fault(std::string_view verb, std::uint64_t place, std::string_view what) {
  fault_shared(warp_, op_, lane_, verb, place, copy.bytes, what);
  return false;
}

bool Copying::race(bool writes, std::uint64_t place, const AccessConflict& conflict) {
  fault_race(warp_, op_, lane_, place, copy.bytes, writes, conflict);
  return false;
}

bool Copying::fenced(std::string_view verb, std::uint64_t place) {
  const auto by = warp_.cta->shared.unfenced_write(place, copy.bytes, copy.thread);
  if (!by) return true;
  return fault(
      verb, place,
      str_cat(" through the async proxy, part of which ", writer(*by), " with no fence.proxy.async between"));
}

bool Copying::multicast(std::uint32_t ranks, unsigned alignment) {
  const std::uint64_t stride = warp_.cta->shared.stride();
  const std::uint64_t shared_at = copy.shared % stride, mbarrier_at = copy.mbarrier % stride;
  const std::size_t ctas = warp_.cta->cluster.ctas.size();
  if (ranks == 0 || ranks >> ctas != 0) {
    warp_.fault(
        op_, lane_,
        str_cat("copies to the CTAs of mask ", hex(ranks), "; the cluster has ranks 0 to ", ctas - 1));
    return false;
  }
  for (; ranks != 0; ranks &= ranks - 1) {
    const auto rank = static_cast<unsigned>(std::countr_zero(ranks));
    Copying c = *this;
    if (!c.shared(Space::kCluster, mapped(rank, shared_at), copy.bytes, alignment, "writes")) return false;
    if (!c.mbarrier(mapped(rank, mbarrier_at)) || !c.begin_write(true)) return false;
    warp_.cta->async->load(c.copy);
  }
  return true;
}

void Copying::start_store() {
  ThreadCopies& thread = warp_.cta->async->of_thread(copy.thread);
  copy.group = thread.bulk_groups;
  thread.stores.push_back(std::move(copy));
}

namespace {

void materialise(Warp& warp, const Op& op, LaneMask mask) {
  std::uint64_t result[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = lane_address(warp, op, lane);
  store_lanes(warp, op.dst[0], result, mask);
}

}  // namespace

Slot address_slot(Decoder& d, const Operand& operand, Space space, AccessKind kind, unsigned bytes) {
  const AddressOperand address = d.address(operand, space);
  const Slot slot = d.temporary(Type::kB64);
  set_access(d.emit_helper(&materialise, {slot}, {address.slot}), address, space, kind, bytes);
  return slot;
}

}  // namespace ptxgen::emulator
