// What goes on beside the threads of a cluster: mbarriers and copies in flight (PTX ISA, "Asynchronous
// operations", "mbarrier", "cp.async", "cp.async.bulk"). Places in shared memory are those of SharedMemory,
// threads those of AccessRecord: one numbering for the cluster.
//
// A copy is adversarial: it lands when a thread waits for it and nothing else can go on, or, with
// Options::seed, at random between its issue and that moment. Until then its destination counts as unwritten
// and its source may not be overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/emulator/machine.h"

namespace ptxgen::emulator {

inline constexpr std::int64_t kMaxMBarrierCount =
    (1 << 20) - 1;  // PTX ISA, "Contents of the mbarrier object"

struct MBarrier {
  std::uint64_t offset = 0;  // in shared memory
  std::uint32_t expected = 0, pending = 0;
  std::int64_t transactions = 0;  // bytes still to come; negative when they came before they were expected
  std::uint32_t phase = 0;
  std::uint32_t agent = 0;
  AccessRecord init;
  // What Warp::cluster_barriers is once a fence.mbarrier_init has made `init` visible through a
  // barrier.cluster.
  std::uint64_t visible_from = ~std::uint64_t{0};
  HappensBefore arriving, completed;  // of the current phase, and of those before it
};

// Of a tensor copy: bytes that lie together in shared and in global memory.
struct CopyPiece {
  std::uint32_t at = 0, bytes = 0;   // from the beginning of the box in shared memory
  Allocation* allocation = nullptr;  // null: outside the tensor
  std::uint64_t global = 0;
};

struct AsyncCopy {
  std::uint32_t thread = 0;
  std::uint32_t instruction = 0;
  std::uint64_t shared = 0;  // offset
  bool from_shared = false;  // a copy between two CTAs
  Allocation* allocation = nullptr;
  std::uint64_t global = 0;  // offset in the allocation; from_shared: of the source in shared memory
  std::uint32_t bytes = 0;
  std::uint32_t source_bytes = 0;  // cp.async: zeros follow
  std::vector<CopyPiece> pieces;   // a tensor copy has these in the place of `allocation`
  std::uint64_t mbarrier = 0;      // offset of the one that a bulk copy completes
  std::uint32_t group = 0;         // of its thread
  bool landed = false;
  bool awaitable = false;       // it has landed for a barrier
  bool awaited = false;         // a bulk store whose thread has waited until its source was read
  AccessRecord record;          // of the landing
  std::vector<std::byte> data;  // of a bulk store that has read its source
};

// cp.async.mbarrier.arrive: once the thread's earlier copies have landed.
struct ArriveOn {
  std::uint64_t mbarrier = 0;
  std::size_t copies = 0;  // how many of ThreadCopies::loads
  std::uint32_t instruction = 0;
};

struct ThreadCopies {
  std::vector<AsyncCopy> loads;  // cp.async
  std::vector<ArriveOn> arrivals;
  std::uint32_t groups = 0;       // committed
  std::vector<AsyncCopy> stores;  // cp.async.bulk out of shared memory
  std::uint32_t bulk_groups = 0;
};

class Async {
 public:
  explicit Async(Cluster& cluster);

  void reset(std::uint64_t cluster);

  // ---- the scheduler's side ----

  std::uint64_t changes() const { return changes_; }
  // Who of so many has the first turn.
  std::size_t first_of(std::size_t count);
  std::uint64_t turn(std::uint64_t usual);
  // After every warp had its turn; false when nobody can go on any more.
  bool after_turns(bool progress);
  // When all threads of the CTA have exited.
  void end(const Cta& cta);

  // ---- mbarriers ----

  MBarrier* find(std::uint64_t offset);
  MBarrier& add(const MBarrier& barrier);
  void remove(std::uint64_t offset);
  bool has_copies(std::uint64_t mbarrier) const;
  // After a change of its counts: completes the phase when they are zero, and wakes who waits for it.
  void update(MBarrier& barrier);
  // fence.mbarrier_init by these lanes, of what each initialised itself.
  void release_inits(const Warp& warp, LaneMask lanes);

  // ---- copies ----

  void load(const AsyncCopy& copy);  // completes a mbarrier
  ThreadCopies& of_thread(std::uint32_t thread) { return threads_[thread]; }
  void add_arrival(std::uint32_t thread, const ArriveOn& arrival);
  // Waits until at most `pending` of the thread's groups are not complete; all copies when `open` too.
  void wait_loads(std::uint32_t thread, std::uint32_t pending, bool open);
  void wait_stores(std::uint32_t thread, std::uint32_t pending, bool only_read);
  // Marks again what is to be read: sources may overlap each other.
  void mark_sources();

  // ", which the asynchronous copy at PTX line 12 `...` of thread (0,0,0) is still to write; wait for it
  // first"
  std::string describe_marks(std::uint64_t offset, unsigned bytes) const;
  // "phase 3 of the mbarrier at shared address 0x10, which lacks 1 of 2 arrivals and 4096 bytes"
  std::string describe(std::uint64_t mbarrier) const;

 private:
  void land(AsyncCopy& copy, std::uint32_t agent);
  void land_load(std::size_t index);
  // `waited`: the thread itself has seen the copies.
  void fire(ThreadCopies& thread, std::size_t arrival, bool waited);
  void fill(const AsyncCopy& copy);
  void read_source(AsyncCopy& store);
  void write_global(AsyncCopy& store);
  bool awaited(std::uint64_t mbarrier) const;
  bool land_one(bool awaited_only);
  bool wake_sleepers();
  void land_at_random();
  std::uint64_t random();
  std::string place_of(const AsyncCopy& copy) const;

  Traffic& traffic_of(std::uint32_t thread);
  bool lies_in(std::uint64_t offset, const Cta& cta) const;
  std::size_t count_threads() const;

  Cluster& cluster_;
  std::vector<MBarrier> barriers_;
  std::vector<AsyncCopy> loads_;  // bulk copies into shared memory
  std::vector<ThreadCopies> threads_;
  std::uint64_t changes_ = 0;
  std::uint32_t next_agent_ = 0;
  std::uint32_t patience_ = 0;
  std::uint32_t rounds_ = 0;  // since something landed
  bool woken_ = false;
  std::uint64_t seed_ = 0, random_ = 0;
};

// The initialised mbarrier at an offset of shared memory, for the lane's thread; null after a fault.
MBarrier* usable_mbarrier(Warp& warp, const Op& op, unsigned lane, std::uint64_t offset);
// Whether its initialisation is visible to the warp since a barrier.cluster that followed a
// fence.mbarrier_init.
inline bool visible_in_cluster(const MBarrier& barrier, const Warp& warp) {
  return warp.cluster_barriers >= barrier.visible_from;
}

// cp.async.mbarrier.arrive, whose opcode is that of the copies.
class Decoder;
void decode_arrive_on(Decoder& d);

}  // namespace ptxgen::emulator
