#include "src/emulator/shared_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ptxgen::emulator {

namespace {

constexpr std::ptrdiff_t kFencesKept = 16;  // of a warp: more than a reader lags behind it
constexpr std::uint64_t kStride = 1024;     // what any alignment in shared memory divides

std::uint32_t& entry(VectorClock& clock, std::uint16_t thread) {
  return clock[thread / 32];
}

bool knows(const std::vector<ThreadClock>& threads, const AccessRecord& record) {
  const auto found = std::lower_bound(threads.begin(), threads.end(), record.thread,
                                      [](const ThreadClock& c, std::uint16_t t) { return c.thread < t; });
  return found != threads.end() && found->thread == record.thread && record.clock <= found->clock;
}

void add(HappensBefore& into, ThreadClock add) {
  const auto at = std::lower_bound(into.threads.begin(), into.threads.end(), add.thread,
                                   [](const ThreadClock& c, std::uint16_t t) { return c.thread < t; });
  if (at != into.threads.end() && at->thread == add.thread) {
    at->clock = std::max(at->clock, add.clock);
  } else {
    into.threads.insert(at, add);
  }
}

}  // namespace

void join(HappensBefore& into, const HappensBefore& from) {
  if (into.clock.size() < from.clock.size()) into.clock.resize(from.clock.size());
  for (std::size_t i = 0; i < from.clock.size(); ++i) into.clock[i] = std::max(into.clock[i], from.clock[i]);
  into.begun |= from.begun;
  for (const ThreadClock& c : from.threads) {
    if (c.clock >= entry(into.clock, c.thread)) add(into, c);
  }
  if (into.threads.empty()) return;
  // An equal clock still tells a warp something of its own lanes.
  const auto covered = [&](const ThreadClock& c) { return c.clock < entry(into.clock, c.thread); };
  into.threads.erase(std::remove_if(into.threads.begin(), into.threads.end(), covered), into.threads.end());
}

SharedMemory::SharedMemory(std::uint64_t bytes, std::uint32_t ctas, unsigned granule, std::size_t warps,
                           bool check_races, bool marked)
    : data_((bytes + kStride - 1) / kStride * kStride * (ctas - 1) + bytes),
      written_((data_.size() + granule - 1) / granule),
      cells_(check_races ? written_.size() : 0),
      bytes_(bytes),
      stride_((bytes + kStride - 1) / kStride * kStride),
      warps_((ctas - 1) * kMaxWarps + warps),
      clocks_(warps_),
      epochs_(warps_ + (marked ? ctas * kAsyncAgents : 0)),
      marks_(marked ? written_.size() : 0),
      shift_(static_cast<unsigned>(std::countr_zero(granule))),
      check_races_(check_races) {}

void SharedMemory::reset() {
  ++generation_;
  sync_variables_.clear();
  fences_.clear();
  std::fill(marks_.begin(), marks_.end(), std::uint8_t{0});
  base_ = *std::max_element(epochs_.begin(), epochs_.end());
  std::fill(epochs_.begin(), epochs_.end(), base_ + 1);
  for (std::uint32_t w = 0; w < warps_; ++w) {
    clocks_[w].clock.assign(epochs_.size(), base_);
    clocks_[w].clock[w] = base_ + 1;
    clocks_[w].threads.clear();
    clocks_[w].begun = static_cast<std::uint16_t>(1u << (w / kMaxWarps));
  }
}

bool SharedMemory::written(std::uint64_t offset, unsigned bytes) const {
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    if (written_[g] != generation_) return false;
  }
  return true;
}

bool SharedMemory::past(const AccessRecord& earlier, const HappensBefore& known, std::uint32_t warp) {
  const std::uint32_t from = earlier.thread / 32;
  // An epoch is in the past of its own warp once that warp has advanced beyond it; of another warp, once a
  // barrier carried it there.
  if (from == warp ? earlier.clock < known.clock[warp] : earlier.clock <= known.clock[from]) return true;
  return !known.threads.empty() && knows(known.threads, earlier);
}

bool SharedMemory::races(const AccessRecord& earlier, const AccessRecord& later) const {
  return earlier.thread != later.thread && !(earlier.strong && later.strong) &&
         !past(earlier, later.thread / 32);
}

std::uint32_t SharedMemory::new_pool() {
  if (free_pool_.empty()) {
    pool_.resize(pool_.size() + epochs_.size());
    return static_cast<std::uint32_t>(pool_.size() - epochs_.size());
  }
  const std::uint32_t pool = free_pool_.back();
  free_pool_.pop_back();
  std::fill_n(pool_.begin() + pool, epochs_.size(), Reads{});
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
  for (std::size_t w = 0; w < epochs_.size(); ++w) all_past &= check_reads(pool_[pool + w], write, conflict);
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
  publish(warp, found->clock);
  advance(warp);
}

void SharedMemory::acquire(std::uint32_t warp, std::uint64_t address) {
  for (const SyncVariable& v : sync_variables_) {
    if (v.address == address) acquire(warp, v.clock);
  }
}

std::optional<AccessConflict> SharedMemory::would_race(std::uint64_t offset, unsigned bytes,
                                                       const AccessRecord& access) {
  if (!check_races_) return std::nullopt;
  std::optional<AccessConflict> conflict;
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_ && !conflict; ++g) {
    Cell& cell = cells_[g];
    if (races(cell.writer, access)) conflict = AccessConflict{cell.writer, true};
    if (cell.weak_pool == kNone) check_reads(cell.weak, access, conflict);
    check_pool(cell.weak_pool, access, conflict);
    check_pool(cell.strong_pool, access, conflict);
  }
  return conflict;
}

// ---- order ----

void SharedMemory::publish(std::uint32_t warp, HappensBefore& into) const {
  join(into, clocks_[warp]);
  into.clock[warp] = std::max(into.clock[warp], epochs_[warp]);
}

void SharedMemory::publish(std::uint32_t warp, std::uint32_t lanes, HappensBefore& into) const {
  HappensBefore released = clocks_[warp];
  --released.clock[warp];
  join(into, released);
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto thread =
        static_cast<std::uint16_t>(warp * 32 + static_cast<unsigned>(std::countr_zero(lanes)));
    add(into, {thread, epochs_[warp]});
  }
}

void SharedMemory::acquire(std::uint32_t warp, const HappensBefore& from) {
  if (from.clock.empty()) return;
  const std::uint32_t own = std::max(clocks_[warp].clock[warp], from.clock[warp] + 1);
  join(clocks_[warp], from);
  clocks_[warp].clock[warp] = own;
}

void SharedMemory::fence_proxy(std::uint32_t warp, std::uint32_t lanes, Fence fence) {
  if (!check_races_) return;
  const auto own = [warp](const ProxyFence& f) { return f.warp == warp; };
  if (std::count_if(fences_.begin(), fences_.end(), own) == kFencesKept)
    fences_.erase(std::find_if(fences_.begin(), fences_.end(), own));
  fences_.push_back({warp, lanes, epochs_[warp], fence, clocks_[warp]});
  tick(warp);
}

bool SharedMemory::fenced(const AccessRecord& earlier, std::uint32_t thread, bool init) const {
  const std::uint32_t warp = thread / 32;
  for (auto fence = fences_.rbegin(); fence != fences_.rend(); ++fence) {
    const auto executed = [&](std::uint32_t t) {
      return t / 32 == fence->warp && (fence->lanes >> (t % 32) & 1) != 0;
    };
    const bool own = executed(earlier.thread) && earlier.clock <= fence->clock;
    if (fence->kind == Fence::kInits ? !(own && init) : !own && !past(earlier, fence->before, fence->warp))
      continue;
    if (executed(thread)) return true;
    for (std::uint32_t lanes = fence->lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
      if (past({fence->clock, static_cast<std::uint16_t>(fence->warp * 32 + lane)}, warp)) return true;
    }
  }
  return false;
}

std::optional<AccessRecord> SharedMemory::unfenced_write(std::uint64_t offset, unsigned bytes,
                                                         std::uint32_t thread) const {
  if (!check_races_) return std::nullopt;
  AccessRecord last;  // neighbours are mostly of one store
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    const AccessRecord& writer = cells_[g].writer;
    if (writer == last || writer.clock <= base_ || writer.asynchronous) continue;
    if (!fenced(writer, thread, false)) return writer;
    last = writer;
  }
  return std::nullopt;
}

// ---- asynchronous copies ----

std::uint8_t SharedMemory::marks_at(std::uint64_t offset, unsigned bytes) const {
  std::uint8_t all = 0;
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) all |= marks_[g];
  return all;
}

void SharedMemory::mark(std::uint64_t offset, unsigned bytes, SharedMark mark) {
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) marks_[g] |= mark;
}

void SharedMemory::unmark(std::uint64_t offset, unsigned bytes, SharedMark mark) {
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    marks_[g] &= static_cast<std::uint8_t>(~mark);
  }
}

void SharedMemory::forget_written(std::uint64_t offset, unsigned bytes) {
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) written_[g] = 0;
}

AccessRecord SharedMemory::agent_record(std::uint32_t agent, std::uint32_t instruction) {
  AccessRecord record;
  record.clock = ++epochs_[warps_ + agent];
  record.thread = static_cast<std::uint16_t>(32 * (warps_ + agent));
  record.asynchronous = true;
  record.instruction = instruction;
  return record;
}

void SharedMemory::publish(const AccessRecord& landed, HappensBefore& into) const {
  if (into.clock.empty()) into.clock.resize(epochs_.size());
  std::uint32_t& seen = entry(into.clock, landed.thread);
  seen = std::max(seen, landed.clock);
}

void SharedMemory::read_by_agent(std::uint64_t offset, unsigned bytes, const AccessRecord& record) {
  if (!check_races_) return;
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    Cell& cell = cells_[g];
    if (cell.weak_pool == kNone) {
      cell.weak_pool = new_pool();
      pool_[cell.weak_pool + cell.weak.last.thread / 32] = cell.weak;
    }
    Reads& reads = pool_[cell.weak_pool + record.thread / 32];
    reads.other = std::exchange(reads.last, record);
  }
}

void SharedMemory::land(std::uint64_t offset, unsigned bytes, const AccessRecord& record) {
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    written_[g] = generation_;
    if (!check_races_) continue;
    Cell& cell = cells_[g];
    for (std::uint32_t* pool : {&cell.weak_pool, &cell.strong_pool}) {
      if (*pool != kNone) free_pool_.push_back(std::exchange(*pool, kNone));
    }
    cell.weak = Reads{};
    cell.writer = record;
  }
}

void SharedMemory::claim(std::uint64_t offset, unsigned bytes, const AccessRecord& from,
                         const AccessRecord& to) {
  if (!check_races_) return;
  for (std::uint64_t g = offset >> shift_; g <= (offset + bytes - 1) >> shift_; ++g) {
    if (cells_[g].writer == from) cells_[g].writer = to;
  }
}

}  // namespace ptxgen::emulator
