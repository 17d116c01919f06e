#include "src/emulator/shared_memory.h"

#include <algorithm>
#include <bit>

namespace ptxgen::emulator {

void join(VectorClock& into, const VectorClock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

SharedMemory::SharedMemory(std::uint64_t bytes, unsigned granule, bool check_races)
    : data_(bytes),
      written_((bytes + granule - 1) / granule),
      cells_(check_races ? written_.size() : 0),
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

bool SharedMemory::races(const AccessRecord& earlier, const AccessRecord& later) const {
  if (earlier.clock == 0 || earlier.thread == later.thread || (earlier.strong && later.strong)) return false;
  const std::uint32_t from = earlier.thread / 32, to = later.thread / 32;
  // A clock value is in the past of its own warp once that warp has advanced beyond it; of another warp, once
  // a barrier carried it there.
  return from == to ? earlier.clock >= clocks_[to][to] : earlier.clock > clocks_[to][from];
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
    if (cell.reader.thread != access.thread) cell.other_reader = cell.reader;
    replace(cell.reader, access);
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
    for (const AccessRecord* reader : {&cell.reader, &cell.other_reader}) {
      if (races(*reader, access)) conflict = AccessConflict{*reader, false};
    }
    if (races(cell.writer, access)) conflict = AccessConflict{cell.writer, true};
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
