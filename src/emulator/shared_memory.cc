#include "src/emulator/shared_memory.h"

#include <algorithm>
#include <bit>

namespace ptxgen::emulator {

void join(VectorClock& into, const VectorClock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

SharedMemory::SharedMemory(std::uint64_t bytes, unsigned granule, std::size_t warps, bool check_races)
    : data_(bytes),
      written_((bytes + granule - 1) / granule),
      cells_(check_races ? written_.size() : 0),
      warps_(warps),
      clocks_(32),
      shift_(static_cast<unsigned>(std::countr_zero(granule))),
      check_races_(check_races) {}

void SharedMemory::reset() {
  ++generation_;
  sync_variables_.clear();
  std::uint32_t latest = 0;
  for (std::size_t w = 0; w < clocks_.size(); ++w) latest = std::max(latest, clocks_[w][w]);
  for (std::size_t w = 0; w < clocks_.size(); ++w) {
    clocks_[w].fill(latest);
    clocks_[w][w] = latest + 1;
  }
}

bool SharedMemory::written(std::uint64_t offset, unsigned bytes) const {
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    if (written_[g] != generation_) return false;
  }
  return true;
}

bool SharedMemory::past(const AccessRecord& earlier, std::uint32_t warp) const {
  const std::uint32_t from = earlier.thread / 32;
  // A clock value is in the past of its own warp once that warp has advanced beyond it; of another warp, once
  // a barrier carried it there.
  return from == warp ? earlier.clock < clocks_[warp][warp] : earlier.clock <= clocks_[warp][from];
}

bool SharedMemory::races(const AccessRecord& earlier, const AccessRecord& later) const {
  return earlier.thread != later.thread && !(earlier.strong && later.strong) &&
         !past(earlier, later.thread / 32);
}

std::uint32_t SharedMemory::new_pool() {
  if (free_pool_.empty()) {
    pool_.resize(pool_.size() + warps_);
    return static_cast<std::uint32_t>(pool_.size() - warps_);
  }
  const std::uint32_t pool = free_pool_.back();
  free_pool_.pop_back();
  std::fill_n(pool_.begin() + pool, warps_, Reads{});
  return pool;
}

SharedMemory::Reads& SharedMemory::reads_of(Cell& cell, const AccessRecord& access) {
  const std::uint32_t warp = access.thread / 32;
  if (access.strong) {
    if (cell.strong_pool == kNone) cell.strong_pool = new_pool();
    return pool_[cell.strong_pool + warp];
  }
  if (cell.weak_pool == kNone) {
    const std::uint32_t reader = cell.weak.last.thread / 32;
    if (reader == warp) return cell.weak;
    if (past(cell.weak.last, warp)) return cell.weak = Reads{};
    cell.weak_pool = new_pool();
    pool_[cell.weak_pool + reader] = cell.weak;
  }
  return pool_[cell.weak_pool + warp];
}

bool SharedMemory::check_reads(const Reads& reads, const AccessRecord& write,
                               std::optional<AccessConflict>& conflict) const {
  bool all_past = true;
  for (const AccessRecord* read : {&reads.last, &reads.other}) {
    if (past(*read, write.thread / 32)) continue;
    all_past = false;
    if (races(*read, write)) conflict = AccessConflict{*read, false};
  }
  return all_past;
}

void SharedMemory::check_pool(std::uint32_t& pool, const AccessRecord& write,
                              std::optional<AccessConflict>& conflict) {
  if (pool == kNone) return;
  bool all_past = true;
  for (std::size_t w = 0; w < warps_; ++w) all_past &= check_reads(pool_[pool + w], write, conflict);
  // What races with one of these reads now races with the write too, unless the write is strong.
  if (!all_past || write.strong) return;
  free_pool_.push_back(pool);
  pool = kNone;
}

namespace {

// A thread's strong access after its weak one in the same epoch does not make up for the weak one.
void replace(AccessRecord& record, const AccessRecord& access) {
  const bool weak = !record.strong && record.thread == access.thread && record.clock == access.clock;
  record = access;
  if (weak) record.strong = false;
}

}  // namespace

std::optional<AccessConflict> SharedMemory::read(std::uint64_t offset, unsigned bytes,
                                                 const AccessRecord& access) {
  if (!check_races_) return std::nullopt;
  std::optional<AccessConflict> conflict;
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    Cell& cell = cells_[g];
    if (races(cell.writer, access)) conflict = AccessConflict{cell.writer, true};
    Reads& reads = reads_of(cell, access);
    if (reads.last.thread != access.thread) reads.other = reads.last;
    reads.last = access;
  }
  return conflict;
}

std::optional<AccessConflict> SharedMemory::write(std::uint64_t offset, unsigned bytes,
                                                  const AccessRecord& access) {
  std::optional<AccessConflict> conflict;
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    written_[g] = generation_;
    if (!check_races_) continue;
    Cell& cell = cells_[g];
    // A race with a read stands before one with a write, which may be the same value from the same
    // instruction.
    std::optional<AccessConflict> here;
    if (races(cell.writer, access)) here = AccessConflict{cell.writer, true};
    if (cell.weak_pool == kNone) check_reads(cell.weak, access, here);
    check_pool(cell.weak_pool, access, here);
    check_pool(cell.strong_pool, access, here);
    if (here && (!conflict || conflict->earlier_writes)) conflict = here;
    replace(cell.writer, access);
  }
  return conflict;
}

void SharedMemory::release(std::uint32_t warp, std::uint64_t address) {
  auto found = std::find_if(sync_variables_.begin(), sync_variables_.end(),
                            [&](const SyncVariable& v) { return v.address == address; });
  if (found == sync_variables_.end()) {
    // A window of recent ones is enough: flags are few, and histogram bins are no flags.
    if (sync_variables_.size() == 64) sync_variables_.erase(sync_variables_.begin());
    found = sync_variables_.insert(sync_variables_.end(), {address, {}});
  }
  join(found->clock, clocks_[warp]);
  advance(warp);
}

void SharedMemory::acquire(std::uint32_t warp, std::uint64_t address) {
  for (const SyncVariable& v : sync_variables_) {
    if (v.address == address) join(clocks_[warp], v.clock);
  }
}

}  // namespace ptxgen::emulator
