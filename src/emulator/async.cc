#include "src/emulator/async.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "src/emulator/access.h"
#include "src/emulator/text.h"
#include "src/emulator/wgmma.h"

namespace ptxgen::emulator {
namespace {

// How often threads that sleep or poll are told "not yet" before that counts as a deadlock: a kernel may
// count its attempts and give up.
constexpr std::uint32_t kPatience = 1024;
// Rounds of the scheduler after which what somebody waits for lands though others are still busy: they may
// spin on what the waiting thread is to do.
constexpr std::uint32_t kMaxRounds = 64;
constexpr std::uint64_t kRandomTurn = 48;  // operations at most

bool overlaps(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

Async::Async(Cluster& cluster)
    : cluster_(cluster), threads_(count_threads()), seed_(cluster.launch->options.seed) {}

std::size_t Async::count_threads() const {
  const Launch& l = *cluster_.launch;
  return (l.cluster_ctas() - 1) * kMaxWarps * kWarpSize + l.config.block.count();
}

void Async::reset(std::uint64_t cluster) {
  barriers_.clear();
  loads_.clear();
  threads_.assign(threads_.size(), ThreadCopies{});
  next_agent_ = kUnawaited + 1;
  patience_ = kPatience;
  rounds_ = 0;
  woken_ = false;
  random_ = seed_ + cluster * 0x2545f4914f6cdd1d;
}

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
std::uint64_t Async::random() {
  std::uint64_t z = (random_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// ---- the scheduler's side ----

std::size_t Async::first_of(std::size_t count) {
  return seed_ && count > 1 ? random() % count : 0;
}

std::uint64_t Async::turn(std::uint64_t usual) {
  return seed_ ? 1 + random() % kRandomTurn : usual;
}

bool Async::after_turns(bool progress) {
  const std::uint64_t before = changes_;
  if (seed_) land_at_random();
  if (progress || changes_ != before) {
    if (!woken_) patience_ = kPatience;
    woken_ = false;
    if (++rounds_ > kMaxRounds) land_one(true);
    return true;
  }
  if (land_one(true) || land_one(false)) {
    patience_ = kPatience;
    return true;
  }
  return patience_-- > 0 && wake_sleepers();
}

bool Async::awaited(std::uint64_t mbarrier) const {
  const auto waits = [&](const Split& s) {
    return s.state == Split::State::kSuspended && s.barrier == mbarrier;
  };
  bool found = false;
  cluster_.for_each_warp([&](const Warp& w) {
    if (w.live == 0) return;
    found |= std::any_of(w.splits.begin(), w.splits.end(), waits) ||
             (w.idle && w.refusals.back().mbarrier == mbarrier);
  });
  return found;
}

// The latest first: copies overtake each other.
bool Async::land_one(bool awaited_only) {
  rounds_ = 0;
  for (std::size_t i = loads_.size(); i-- > 0;) {
    if (awaited_only && !awaited(loads_[i].mbarrier)) continue;
    land_load(i);
    return true;
  }
  for (ThreadCopies& t : threads_) {
    for (std::size_t i = t.arrivals.size(); i-- > 0;) {
      if (awaited_only && !awaited(t.arrivals[i].mbarrier)) continue;
      fire(t, i, false);
      return true;
    }
  }
  return false;
}

// mbarrier.try_wait may return false at any time. True when somebody sleeps or polls.
bool Async::wake_sleepers() {
  woken_ = false;
  cluster_.for_each_warp([&](Warp& w) {
    if (w.live == 0) return;
    woken_ |= w.idle;
    for (Split& s : w.splits) {
      if (s.state != Split::State::kSuspended) continue;
      s.state = Split::State::kReleased;
      woken_ = true;
    }
  });
  return woken_;
}

void Async::land_at_random() {
  for (Cta& cta : cluster_.ctas) {
    for (std::uint32_t w = 0; cta.wgmma && w < cta.warps.size(); ++w) {
      if (random() % 8 == 0) cta.wgmma->advance(w);
    }
  }
  for (std::size_t i = loads_.size(); i-- > 0;) {
    if (random() % 8 == 0) land_load(i);
  }
  for (ThreadCopies& t : threads_) {
    for (AsyncCopy& copy : t.loads) {
      if (!copy.landed && random() % 8 == 0) land(copy, kUnawaited);
    }
    for (std::size_t i = t.arrivals.size(); i-- > 0;) {
      if (random() % 8 == 0) fire(t, i, false);
    }
    for (AsyncCopy& copy : t.stores) {
      if (copy.data.empty() && random() % 8 == 0) read_source(copy);
      if (!copy.data.empty() && !copy.landed && random() % 8 == 0) write_global(copy);
    }
  }
}

bool Async::lies_in(std::uint64_t offset, const Cta& cta) const {
  return offset / std::max<std::uint64_t>(cluster_.shared.stride(), 1) == cta.rank;
}

void Async::end(const Cta& cta) {
  for (const AsyncCopy& copy : loads_) {
    const bool reads = copy.from_shared && lies_in(copy.global, cta);
    if (!reads && !lies_in(copy.shared, cta)) continue;
    return cluster_.fail(
        copy.instruction, copy.thread,
        str_cat("the CTA", cluster_.ctas.size() == 1 ? "" : str_cat(" ", to_string(cta.ctaid)),
                " exits while this copy is still to ", reads ? "read" : "write",
                " its shared memory; wait for the mbarrier first"));
  }
  const std::size_t first = std::size_t{cta.rank} * kMaxWarps * kWarpSize;
  const std::size_t last = std::min(threads_.size(), first + kMaxWarps * kWarpSize);
  for (std::size_t i = first; i < last; ++i) {
    for (AsyncCopy& copy : threads_[i].stores) {
      if (!copy.awaited) {
        return cluster_.fail(
            copy.instruction, copy.thread,
            "the CTA exits while this copy is still to read its shared memory; wait for it with "
            "cp.async.bulk.wait_group.read first");
      }
      if (!copy.landed) write_global(copy);
    }
  }
}

// ---- mbarriers ----

MBarrier* Async::find(std::uint64_t offset) {
  const auto found =
      std::find_if(barriers_.begin(), barriers_.end(), [&](const MBarrier& b) { return b.offset == offset; });
  return found == barriers_.end() ? nullptr : &*found;
}

MBarrier& Async::add(const MBarrier& barrier) {
  MBarrier& added = barriers_.emplace_back(barrier);
  added.agent = next_agent_;
  next_agent_ = next_agent_ + 1 < kAsyncAgents * cluster_.ctas.size() ? next_agent_ + 1 : kUnawaited + 1;
  ++changes_;
  return added;
}

void Async::remove(std::uint64_t offset) {
  barriers_.erase(std::remove_if(barriers_.begin(), barriers_.end(),
                                 [&](const MBarrier& b) { return b.offset == offset; }),
                  barriers_.end());
}

bool Async::has_copies(std::uint64_t mbarrier) const {
  const auto mine = [&](const auto& x) { return x.mbarrier == mbarrier; };
  return std::any_of(loads_.begin(), loads_.end(), mine) ||
         std::any_of(threads_.begin(), threads_.end(), [&](const ThreadCopies& t) {
           return std::any_of(t.arrivals.begin(), t.arrivals.end(), mine);
         });
}

void Async::update(MBarrier& b) {
  ++changes_;
  if (b.pending != 0 || b.transactions != 0) return;
  ++b.phase;
  b.pending = b.expected;
  join(b.completed, b.arriving);
  b.arriving = {};
  cluster_.for_each_warp([&](Warp& w) {
    for (Split& s : w.splits) {
      if (s.state == Split::State::kSuspended && s.barrier == b.offset) s.state = Split::State::kReady;
    }
  });
}

// An arrival that is still to come completes the next barrier.cluster, one that is there the barrier after
// that.
void Async::release_inits(const Warp& warp, LaneMask lanes) {
  for (MBarrier& b : barriers_) {
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      if (b.init.thread != warp.cluster_thread(lane)) continue;
      b.visible_from = std::min(b.visible_from, cluster_.barriers + 1 + (warp.arrived >> lane & 1));
    }
  }
}

std::string Async::describe(std::uint64_t mbarrier) const {
  const Cta& cta = cluster_.ctas[mbarrier / cluster_.shared.stride()];
  const std::string where =
      str_cat("the mbarrier at shared address ", hex(mbarrier % cluster_.shared.stride()),
              cluster_.ctas.size() == 1 ? "" : str_cat(" of CTA ", to_string(cta.ctaid)));
  for (const MBarrier& b : barriers_) {
    if (b.offset != mbarrier) continue;
    std::string text = str_cat("phase ", b.phase, " (parity ", b.phase & 1, ") of ", where, ", which lacks ",
                               b.pending, " of ", b.expected, " arrivals and ", b.transactions, " bytes");
    const std::string place = emulator::describe(cta, Space::kShared, mbarrier % cluster_.shared.stride());
    return str_cat(text, " (", place.substr(0, place.find(';')), ")");
  }
  return str_cat(where, ", which is none any more");
}

// ---- copies ----

Traffic& Async::traffic_of(std::uint32_t thread) {
  return cluster_.ctas[thread / kMaxWarps / kWarpSize].traffic;
}

std::string Async::place_of(const AsyncCopy& copy) const {
  return str_cat("the asynchronous copy at ", line_of(*cluster_.launch, copy.instruction), " of ",
                 cluster_.name_thread(copy.thread));
}

std::string Async::describe_marks(std::uint64_t offset, unsigned bytes) const {
  const auto covers = [&](const AsyncCopy& c) { return overlaps(c.shared, c.bytes, offset, bytes); };
  const auto to_write = [&](const AsyncCopy& c) {
    return str_cat(", which ", place_of(c), " is still to write; wait for it first");
  };
  for (const MBarrier& b : barriers_) {
    if (overlaps(b.offset, 8, offset, bytes)) {
      return ", which is an mbarrier; until mbarrier.inval only mbarrier instructions may access it";
    }
  }
  for (const AsyncCopy& c : loads_) {
    if (covers(c)) return to_write(c);
    if (!c.from_shared || !overlaps(c.global, c.bytes, offset, bytes)) continue;
    return str_cat(", which ", place_of(c),
                   " may still read; let whoever waits for its mbarrier say so first");
  }
  for (const ThreadCopies& t : threads_) {
    for (const AsyncCopy& c : t.loads) {
      if (!c.landed && covers(c)) return to_write(c);
    }
    for (const AsyncCopy& c : t.stores) {
      if (c.awaited || !covers(c)) continue;
      return str_cat(", which ", place_of(c),
                     " may still read; wait for it with cp.async.bulk.wait_group.read first");
    }
  }
  for (const Cta& cta : cluster_.ctas) {
    const std::string source = cta.wgmma ? cta.wgmma->describe_source(offset, bytes) : "";
    if (!source.empty()) return source;
  }
  return "";
}

void Async::load(const AsyncCopy& copy) {
  loads_.push_back(copy);
  ++changes_;
}

void Async::add_arrival(std::uint32_t thread, const ArriveOn& arrival) {
  threads_[thread].arrivals.push_back(arrival);
  ++changes_;
}

// Writes what the copy brings.
void Async::fill(const AsyncCopy& copy) {
  std::byte* const shared = cluster_.shared.data();
  std::byte* const to = shared + copy.shared;
  for (const CopyPiece& piece : copy.pieces) {
    if (piece.allocation) {
      std::memcpy(to + piece.at, piece.allocation->data.get() + piece.global, piece.bytes);
    } else {
      std::memset(to + piece.at, 0, piece.bytes);
    }
  }
  if (!copy.pieces.empty()) return;
  if (copy.source_bytes != 0) {
    std::memcpy(to, (copy.from_shared ? shared : copy.allocation->data.get()) + copy.global,
                copy.source_bytes);
  }
  std::memset(to + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
}

void Async::land(AsyncCopy& copy, std::uint32_t agent) {
  fill(copy);
  copy.record = cluster_.shared.agent_record(agent, copy.instruction);
  copy.landed = true;
  if (copy.from_shared) {
    cluster_.shared.unmark(copy.global, copy.bytes, kSource);
    cluster_.shared.read_by_agent(copy.global, copy.bytes, copy.record);
    mark_sources();
  }
  cluster_.shared.unmark(copy.shared, copy.bytes, kDestination);
  cluster_.shared.land(copy.shared, copy.bytes, copy.record);
  Traffic& traffic = traffic_of(copy.thread);
  (copy.from_shared ? traffic.shared_read : traffic.global_read) += copy.source_bytes;
  traffic.shared_written += copy.bytes;
  ++changes_;
}

void Async::land_load(std::size_t index) {
  AsyncCopy copy = std::move(loads_[index]);
  loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(index));
  MBarrier* barrier = find(copy.mbarrier);  // mbarrier.inval refuses while there are copies
  land(copy, barrier->agent);
  barrier->transactions -= copy.bytes;
  if (barrier->transactions < -kMaxMBarrierCount) {
    return cluster_.fail(copy.instruction, copy.thread,
                         str_cat("its completion takes the transaction count of ", describe(copy.mbarrier),
                                 ", beyond -", kMaxMBarrierCount));
  }
  cluster_.shared.publish(copy.record, barrier->arriving);
  update(*barrier);
}

void Async::fire(ThreadCopies& thread, std::size_t index, bool waited) {
  const ArriveOn arrival = thread.arrivals[index];
  thread.arrivals.erase(thread.arrivals.begin() + static_cast<std::ptrdiff_t>(index));
  MBarrier* barrier = find(arrival.mbarrier);
  const auto number = static_cast<std::uint32_t>(&thread - threads_.data());
  if (waited) {
    const std::uint32_t warp = number / kWarpSize;
    cluster_.shared.publish(warp, LaneMask{1} << (number % kWarpSize), barrier->arriving);
    cluster_.shared.tick(warp);
  }
  for (std::size_t i = 0; i < arrival.copies && !waited; ++i) {
    AsyncCopy& copy = thread.loads[i];
    if (!copy.landed) {
      land(copy, barrier->agent);
    } else if (!copy.awaitable) {  // now somebody can wait for it
      const AccessRecord record = cluster_.shared.agent_record(barrier->agent, copy.instruction);
      cluster_.shared.claim(copy.shared, copy.bytes, copy.record, record);
      copy.record = record;
    }
    copy.awaitable = true;
    cluster_.shared.publish(copy.record, barrier->arriving);
  }
  if (barrier->pending == 0) {
    return cluster_.fail(
        arrival.instruction, number,
        str_cat("arrives at ", describe(arrival.mbarrier), ": more arrivals than it waits for"));
  }
  --barrier->pending;
  update(*barrier);
}

void Async::wait_loads(std::uint32_t thread, std::uint32_t pending, bool open) {
  ThreadCopies& t = threads_[thread];
  std::size_t complete = 0;
  while (complete < t.loads.size() && (open || std::uint64_t{t.loads[complete].group} + pending < t.groups)) {
    ++complete;
  }
  AccessRecord mine;
  mine.clock = cluster_.shared.epoch(thread / kWarpSize);
  mine.thread = static_cast<std::uint16_t>(thread);
  for (std::size_t i = 0; i < complete; ++i) {
    AsyncCopy& copy = t.loads[i];
    if (!copy.landed) land(copy, kUnawaited);
    AccessRecord record = mine;
    record.instruction = copy.instruction;
    cluster_.shared.claim(copy.shared, copy.bytes, copy.record, record);
  }
  // What was to follow these copies follows now.
  for (std::size_t i = t.arrivals.size(); i-- > 0;) {
    if (t.arrivals[i].copies <= complete) fire(t, i, true);
  }
  for (ArriveOn& arrival : t.arrivals) arrival.copies -= complete;
  t.loads.erase(t.loads.begin(), t.loads.begin() + static_cast<std::ptrdiff_t>(complete));
}

void Async::read_source(AsyncCopy& store) {
  const std::byte* from = cluster_.shared.data() + store.shared;
  store.data.assign(from, from + store.bytes);
  traffic_of(store.thread).shared_read += store.bytes;
}

void Async::write_global(AsyncCopy& store) {
  if (store.data.empty()) read_source(store);
  const auto write = [&](Allocation& to, std::uint64_t global, std::size_t at, std::uint32_t bytes) {
    std::memcpy(to.data.get() + global, store.data.data() + at, bytes);
    to.mark_written(global, bytes);
  };
  for (const CopyPiece& piece : store.pieces) {
    if (piece.allocation) write(*piece.allocation, piece.global, piece.at, piece.bytes);
  }
  if (store.pieces.empty()) write(*store.allocation, store.global, 0, store.bytes);
  store.landed = true;
  traffic_of(store.thread).global_written += store.bytes;
  ++changes_;
}

void Async::mark_sources() {
  for (Cta& cta : cluster_.ctas) {
    if (cta.wgmma) cta.wgmma->mark_sources();
  }
  for (const ThreadCopies& t : threads_) {
    for (const AsyncCopy& copy : t.stores) {
      if (!copy.awaited) cluster_.shared.mark(copy.shared, copy.bytes, kSource);
    }
  }
  for (const AsyncCopy& copy : loads_) {
    if (copy.from_shared) cluster_.shared.mark(copy.global, copy.bytes, kSource);
  }
}

void Async::wait_stores(std::uint32_t thread, std::uint32_t pending, bool only_read) {
  ThreadCopies& t = threads_[thread];
  const auto covered = [&](const AsyncCopy& c) { return std::uint64_t{c.group} + pending < t.bulk_groups; };
  AccessRecord mine;
  mine.clock = cluster_.shared.epoch(thread / kWarpSize);
  mine.thread = static_cast<std::uint16_t>(thread);
  bool unmarked = false;
  for (AsyncCopy& copy : t.stores) {
    if (!covered(copy)) continue;
    if (copy.data.empty()) read_source(copy);
    if (!only_read && !copy.landed) write_global(copy);
    if (std::exchange(copy.awaited, true)) continue;
    // From here on it is as if the thread had read the bytes itself.
    AccessRecord record = mine;
    record.instruction = copy.instruction;
    cluster_.shared.read(copy.shared, copy.bytes, record);
    cluster_.shared.unmark(copy.shared, copy.bytes, kSource);
    unmarked = true;
  }
  if (unmarked) mark_sources();
  if (only_read) return;
  t.stores.erase(std::remove_if(t.stores.begin(), t.stores.end(), covered), t.stores.end());
}

}  // namespace ptxgen::emulator
