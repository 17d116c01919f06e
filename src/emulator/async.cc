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

Async::Async(Cta& cta) : cta_(cta), threads_(cta.threads), seed_(cta.launch->options.seed) {}

void Async::reset(std::uint64_t cta) {
  barriers_.clear();
  loads_.clear();
  threads_.assign(threads_.size(), ThreadCopies{});
  next_agent_ = 0;
  patience_ = kPatience;
  rounds_ = 0;
  woken_ = false;
  random_ = seed_ + cta * 0x2545f4914f6cdd1d;
}

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
std::uint64_t Async::random() {
  std::uint64_t z = (random_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// ---- the scheduler's side ----

std::size_t Async::first_warp() {
  return seed_ ? random() % cta_.warps.size() : 0;
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
  for (const Warp& w : cta_.warps) {
    if (w.live == 0) continue;
    for (const Split& s : w.splits) {
      if (s.state == Split::State::kSuspended && s.barrier == mbarrier) return true;
    }
    if (w.idle && w.refusals.back().mbarrier == mbarrier) return true;
  }
  return false;
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
  for (Warp& w : cta_.warps) {
    if (w.live == 0) continue;
    woken_ |= w.idle;
    for (Split& s : w.splits) {
      if (s.state != Split::State::kSuspended) continue;
      s.state = Split::State::kReleased;
      woken_ = true;
    }
  }
  return woken_;
}

void Async::land_at_random() {
  for (std::uint32_t w = 0; cta_.wgmma && w < cta_.warps.size(); ++w) {
    if (random() % 8 == 0) cta_.wgmma->advance(w);
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

void Async::finish() {
  for (const AsyncCopy& copy : loads_) {
    return cta_.fail(
        copy.instruction, copy.thread,
        "the CTA exits while this copy is still to write its shared memory; wait for the mbarrier "
        "first");
  }
  for (ThreadCopies& t : threads_) {
    for (AsyncCopy& copy : t.stores) {
      if (!copy.awaited) {
        return cta_.fail(copy.instruction, copy.thread,
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
  added.agent = next_agent_++ % kUnawaited;
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
  for (Warp& w : cta_.warps) {
    for (Split& s : w.splits) {
      if (s.state == Split::State::kSuspended && s.barrier == b.offset) s.state = Split::State::kReady;
    }
  }
}

std::string Async::describe(std::uint64_t mbarrier) const {
  const std::string where = str_cat("the mbarrier at shared address ", hex(mbarrier));
  for (const MBarrier& b : barriers_) {
    if (b.offset != mbarrier) continue;
    std::string text = str_cat("phase ", b.phase, " (parity ", b.phase & 1, ") of ", where, ", which lacks ",
                               b.pending, " of ", b.expected, " arrivals and ", b.transactions, " bytes");
    const std::string place = emulator::describe(cta_, Space::kShared, mbarrier);
    return str_cat(text, " (", place.substr(0, place.find(';')), ")");
  }
  return str_cat(where, ", which is none any more");
}

// ---- copies ----

std::string Async::place_of(const AsyncCopy& copy) const {
  const Instruction& in = *cta_.launch->code->instructions[copy.instruction];
  return str_cat("the asynchronous copy at PTX line ", in.line, " `", in.text, "` of thread ",
                 to_string(position(copy.thread, cta_.launch->config.block)));
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
  return cta_.wgmma ? cta_.wgmma->describe_source(offset, bytes) : "";
}

void Async::load(const AsyncCopy& copy) {
  loads_.push_back(copy);
  ++changes_;
}

void Async::add_arrival(std::uint32_t thread, const ArriveOn& arrival) {
  threads_[thread].arrivals.push_back(arrival);
  ++changes_;
}

void Async::land(AsyncCopy& copy, std::uint32_t agent) {
  std::byte* to = cta_.shared.data() + copy.shared;
  if (copy.source_bytes != 0) std::memcpy(to, copy.allocation->data.get() + copy.global, copy.source_bytes);
  std::memset(to + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
  copy.record = cta_.shared.agent_record(agent, copy.instruction);
  copy.landed = true;
  cta_.shared.unmark(copy.shared, copy.bytes, kDestination);
  cta_.shared.land(copy.shared, copy.bytes, copy.record);
  cta_.traffic.global_read += copy.source_bytes;
  cta_.traffic.shared_written += copy.bytes;
  ++changes_;
}

void Async::land_load(std::size_t index) {
  AsyncCopy copy = std::move(loads_[index]);
  loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(index));
  MBarrier* barrier = find(copy.mbarrier);  // mbarrier.inval refuses while there are copies
  land(copy, barrier->agent);
  barrier->transactions -= copy.bytes;
  if (barrier->transactions < -kMaxMBarrierCount) {
    return cta_.fail(copy.instruction, copy.thread,
                     str_cat("its completion takes the transaction count of ", describe(copy.mbarrier),
                             ", beyond -", kMaxMBarrierCount));
  }
  std::uint32_t& seen = barrier->arriving.clock[kMaxWarps + barrier->agent];
  seen = std::max(seen, copy.record.clock);
  update(*barrier);
}

void Async::fire(ThreadCopies& thread, std::size_t index, bool waited) {
  const ArriveOn arrival = thread.arrivals[index];
  thread.arrivals.erase(thread.arrivals.begin() + static_cast<std::ptrdiff_t>(index));
  MBarrier* barrier = find(arrival.mbarrier);
  const auto number = static_cast<std::uint32_t>(&thread - threads_.data());
  if (waited) {
    const std::uint32_t warp = number / kWarpSize;
    cta_.shared.publish(warp, LaneMask{1} << (number % kWarpSize), barrier->arriving);
    cta_.shared.tick(warp);
  }
  std::uint32_t& seen = barrier->arriving.clock[kMaxWarps + barrier->agent];
  for (std::size_t i = 0; i < arrival.copies && !waited; ++i) {
    AsyncCopy& copy = thread.loads[i];
    if (!copy.landed) {
      land(copy, barrier->agent);
    } else {  // now somebody can wait for it
      const AccessRecord record = cta_.shared.agent_record(barrier->agent, copy.instruction);
      cta_.shared.claim(copy.shared, copy.bytes, copy.record, record);
      copy.record = record;
    }
    seen = std::max(seen, copy.record.clock);
  }
  if (barrier->pending == 0) {
    return cta_.fail(arrival.instruction, number,
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
  const AccessRecord mine{cta_.shared.epoch(thread / kWarpSize), static_cast<std::uint16_t>(thread), false,
                          0};
  for (std::size_t i = 0; i < complete; ++i) {
    AsyncCopy& copy = t.loads[i];
    if (!copy.landed) land(copy, kUnawaited);
    AccessRecord record = mine;
    record.instruction = copy.instruction;
    cta_.shared.claim(copy.shared, copy.bytes, copy.record, record);
  }
  // What was to follow these copies follows now.
  for (std::size_t i = t.arrivals.size(); i-- > 0;) {
    if (t.arrivals[i].copies <= complete) fire(t, i, true);
  }
  for (ArriveOn& arrival : t.arrivals) arrival.copies -= complete;
  t.loads.erase(t.loads.begin(), t.loads.begin() + static_cast<std::ptrdiff_t>(complete));
}

void Async::read_source(AsyncCopy& store) {
  const std::byte* from = cta_.shared.data() + store.shared;
  store.data.assign(from, from + store.bytes);
  cta_.traffic.shared_read += store.bytes;
}

void Async::write_global(AsyncCopy& store) {
  if (store.data.empty()) read_source(store);
  std::memcpy(store.allocation->data.get() + store.global, store.data.data(), store.bytes);
  store.allocation->mark_written(store.global, store.bytes);
  store.landed = true;
  cta_.traffic.global_written += store.bytes;
  ++changes_;
}

void Async::mark_sources() {
  if (cta_.wgmma) cta_.wgmma->mark_sources();
  for (const ThreadCopies& t : threads_) {
    for (const AsyncCopy& copy : t.stores) {
      if (!copy.awaited) cta_.shared.mark(copy.shared, copy.bytes, kSource);
    }
  }
}

void Async::wait_stores(std::uint32_t thread, std::uint32_t pending, bool only_read) {
  ThreadCopies& t = threads_[thread];
  const auto covered = [&](const AsyncCopy& c) { return std::uint64_t{c.group} + pending < t.bulk_groups; };
  const AccessRecord mine{cta_.shared.epoch(thread / kWarpSize), static_cast<std::uint16_t>(thread), false,
                          0};
  bool unmarked = false;
  for (AsyncCopy& copy : t.stores) {
    if (!covered(copy)) continue;
    if (copy.data.empty()) read_source(copy);
    if (!only_read && !copy.landed) write_global(copy);
    if (std::exchange(copy.awaited, true)) continue;
    // From here on it is as if the thread had read the bytes itself.
    AccessRecord record = mine;
    record.instruction = copy.instruction;
    cta_.shared.read(copy.shared, copy.bytes, record);
    cta_.shared.unmark(copy.shared, copy.bytes, kSource);
    unmarked = true;
  }
  if (unmarked) mark_sources();
  if (only_read) return;
  t.stores.erase(std::remove_if(t.stores.begin(), t.stores.end(), covered), t.stores.end());
}

}  // namespace ptxgen::emulator
