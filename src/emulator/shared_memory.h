// The shared memory of a cluster's CTAs, one after another, and the record that finds unwritten reads and
// races. Mostly a cluster is one CTA.
//
// Happens-before is tracked with a vector clock per warp. A warp's epoch counts its synchronisations and
// releases; a barrier joins the clocks of the warps that arrive into those of the warps that it releases. Two
// accesses to the same bytes by different threads, at least one a write, are a race unless the earlier one is
// in the later one's past. Named barriers with counts, bar.arrive, the warp-level synchronisations and
// mbarriers are all covered by this one rule.
//
// Where only some lanes of a warp release (one elected lane arrives at an mbarrier), what the others did is
// not released: those lanes' accesses travel by thread, beside the clock.
//
// An asynchronous copy writes as an agent of its own, which has an entry in the clocks too.
//
// A cell keeps the last write, which is enough while writes are ordered, and no more reads than needed
// (Flanagan and Freund, "FastTrack", PLDI 2009): those of one warp while each next reader has the earlier
// ones in its past; once a second warp reads beside the first, those of every warp, in a pool, until a write
// has them all in its past.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ptxgen::emulator {

// Warps and threads are numbered through the cluster: those of the CTA of rank r begin at kMaxWarps r.
inline constexpr std::uint32_t kMaxWarps = 32;
// Agents that land asynchronous copies: those of mbarriers share all but the first, which is for copies that
// land before anybody waits for them. They count as further warps.
inline constexpr std::uint32_t kAsyncAgents = 8;  // a CTA
inline constexpr std::uint32_t kUnawaited = 0;

// Entry w: up to which epoch the accesses of warp w happened before. Empty: zeros.
using VectorClock = std::vector<std::uint32_t>;

// The same of one thread alone.
struct ThreadClock {
  std::uint16_t thread;
  std::uint32_t clock;
};

struct HappensBefore {
  VectorClock clock;
  std::vector<ThreadClock> threads;  // beyond `clock`; sorted
  std::uint16_t begun = 0;           // CTAs of the cluster, bit by rank, that are known to run
};

void join(HappensBefore& into, const HappensBefore& from);

// One thread's access to one granule.
struct AccessRecord {
  std::uint32_t clock = 0;  // the epoch of the thread's warp; 0: no access yet
  std::uint16_t thread = 0;
  bool strong = false;            // atomic, volatile or with a memory order: no race among themselves
  bool asynchronous = false;      // an agent's
  std::uint32_t instruction = 0;  // for the message

  bool operator==(const AccessRecord&) const = default;
};

struct AccessConflict {
  AccessRecord earlier;
  bool earlier_writes;
};

// What asynchronous operations have made of a granule.
enum SharedMark : std::uint8_t {
  kDestination = 1,  // a copy in flight will write it
  kSource = 2,       // a copy in flight will read it
  kMBarrierObject = 4,
};

class SharedMemory {
 public:
  // `bytes` and `warps` of each of `ctas`. `granule`: bytes per shadow cell; no access may split one.
  // `marked`: whether there will be marks.
  SharedMemory(std::uint64_t bytes, std::uint32_t ctas, unsigned granule, std::size_t warps, bool check_races,
               bool marked);

  // Nothing is written any more, and nobody has accessed anything. Costs nothing: clocks and the generation
  // go on from where they were, so everything on record is past.
  void reset();

  std::byte* data() { return data_.data(); }
  std::uint64_t offset_of(const std::byte* at) const { return static_cast<std::uint64_t>(at - data_.data()); }
  // The memory of the CTA of rank r is `bytes()` at `stride()` * r.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t stride() const { return stride_; }

  // Whether every byte was written.
  bool written(std::uint64_t offset, unsigned bytes) const;

  std::optional<AccessConflict> read(std::uint64_t offset, unsigned bytes, const AccessRecord& access);
  // Also marks the bytes as written.
  std::optional<AccessConflict> write(std::uint64_t offset, unsigned bytes, const AccessRecord& access);

  // The race that a write of these bytes would be, without a record of it.
  std::optional<AccessConflict> would_race(std::uint64_t offset, unsigned bytes, const AccessRecord& access);

  // ---- order ----

  std::uint32_t epoch(std::uint32_t warp) const { return epochs_[warp]; }
  // The warp's accesses so far are now in the past of its later ones.
  void advance(std::uint32_t warp) { clocks_[warp].clock[warp] = ++epochs_[warp]; }
  // The warp's later accesses can be told from those so far; its lanes are not ordered.
  void tick(std::uint32_t warp) { ++epochs_[warp]; }
  // All that the warp knows and did is in the past of who acquires `into`; of what it did itself in this
  // epoch, only what the lanes did where they are not all.
  void publish(std::uint32_t warp, HappensBefore& into) const;
  void publish(std::uint32_t warp, std::uint32_t lanes, HappensBefore& into) const;
  void acquire(std::uint32_t warp, const HappensBefore& from);
  // The warp learns, as from an arrival that releases nothing, that these CTAs run.
  void learn_begun(std::uint32_t warp, std::uint16_t ctas) { clocks_[warp].begun |= ctas; }
  bool knows_begun(std::uint32_t warp, std::uint32_t rank) const { return clocks_[warp].begun >> rank & 1; }
  // Whether the access happened before what the thread does now.
  bool happened(const AccessRecord& earlier, std::uint32_t thread) const {
    return earlier.thread == thread || past(earlier, thread / 32);
  }

  // What a fence makes visible to the asynchronous copies that follow it.
  enum class Fence : std::uint8_t {
    kProxy,  // fence.proxy.async: what happened before it
    kInits,  // fence.mbarrier_init: the mbarrier.init that its own thread has executed
  };
  void fence_proxy(std::uint32_t warp, std::uint32_t lanes, Fence fence);
  // Whether a fence for it lies between the access of an ordinary instruction, mbarrier.init where `init`, and
  // what the thread does now.
  bool fenced(const AccessRecord& earlier, std::uint32_t thread, bool init) const;
  // An ordinary write of these bytes that the thread's asynchronous copies may not see.
  std::optional<AccessRecord> unfenced_write(std::uint64_t offset, unsigned bytes,
                                             std::uint32_t thread) const;

  // ---- asynchronous copies ----

  std::uint8_t marks(std::uint64_t offset, unsigned bytes) const {
    return marks_.empty() ? std::uint8_t{0} : marks_at(offset, bytes);
  }
  void mark(std::uint64_t offset, unsigned bytes, SharedMark mark);
  void unmark(std::uint64_t offset, unsigned bytes, SharedMark mark);
  void forget_written(std::uint64_t offset, unsigned bytes);
  // The record of a copy that lands now.
  AccessRecord agent_record(std::uint32_t agent, std::uint32_t instruction);
  // `into` knows what the agent has landed up to the record.
  void publish(const AccessRecord& landed, HappensBefore& into) const;
  // A copy has written these bytes. Its start was checked, so all on record is past.
  void land(std::uint64_t offset, unsigned bytes, const AccessRecord& record);
  // The same of a copy that has read them.
  void read_by_agent(std::uint64_t offset, unsigned bytes, const AccessRecord& record);
  // What landed with the record `from` counts as written with `to`.
  void claim(std::uint64_t offset, unsigned bytes, const AccessRecord& from, const AccessRecord& to);

  // Strong accesses to one address order what came before a write against what comes after a read of it.
  void release(std::uint32_t warp, std::uint64_t address);
  void acquire(std::uint32_t warp, std::uint64_t address);

 private:
  // One warp's reads, the latest first. A write that races with any read of the warp races with one of its
  // last two readers: they are no earlier, and at most one of them is the writing thread.
  struct Reads {
    AccessRecord last, other;  // of different threads
  };
  struct Cell {
    AccessRecord writer;
    Reads weak;                         // of one warp; unused while weak_pool is set
    std::uint32_t weak_pool = kNone;    // of every warp: an index into pool_
    std::uint32_t strong_pool = kNone;  // strong reads, which race with weak writes only
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Whether everything up to the record happened before what the warp does now.
  bool past(const AccessRecord& earlier, std::uint32_t warp) const {
    return past(earlier, clocks_[warp], warp);
  }
  static bool past(const AccessRecord& earlier, const HappensBefore& known, std::uint32_t warp);
  bool races(const AccessRecord& earlier, const AccessRecord& later) const;
  std::uint8_t marks_at(std::uint64_t offset, unsigned bytes) const;
  // Where the cell keeps the reads of the access's warp.
  Reads& reads_of(Cell& cell, const AccessRecord& access);
  std::uint32_t new_pool();
  // Notes a read that races with the write; false when not all the reads are in its past.
  bool check_reads(const Reads& reads, const AccessRecord& write,
                   std::optional<AccessConflict>& conflict) const;
  void check_pool(std::uint32_t& pool, const AccessRecord& write, std::optional<AccessConflict>& conflict);

  std::vector<std::byte> data_;
  std::vector<std::uint32_t> written_;  // by granule: the generation that wrote it
  std::vector<Cell> cells_;
  std::vector<Reads> pool_;               // in pieces of epochs_.size(), one Reads a warp
  std::vector<std::uint32_t> free_pool_;  // pieces that no cell uses
  std::uint64_t bytes_, stride_;
  std::size_t warps_;  // all numbers of warps up to the last one's
  std::vector<HappensBefore>
      clocks_;  // a warp's own entry: its epochs before that are past for all its lanes
  std::vector<std::uint32_t> epochs_;  // of warps, then of agents
  std::uint32_t base_ = 0;             // records up to here are of earlier CTAs
  struct SyncVariable {
    std::uint64_t address;
    HappensBefore clock;
  };
  std::vector<SyncVariable> sync_variables_;
  struct ProxyFence {
    std::uint32_t warp, lanes, clock;
    Fence kind;
    HappensBefore before;
  };
  std::vector<ProxyFence> fences_;   // the latest, oldest first
  std::vector<std::uint8_t> marks_;  // by granule; empty where there are none
  std::uint32_t generation_ = 0;
  unsigned shift_;  // log2 of the granule
  bool check_races_;
};

}  // namespace ptxgen::emulator
