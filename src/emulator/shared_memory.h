// A CTA's shared memory and the record that finds unwritten reads and races.
//
// Happens-before is tracked with a vector clock per warp. A warp's own entry counts its synchronisations; a
// barrier joins the clocks of the warps that arrive into those of the warps that it releases. Two accesses to
// the same bytes by different threads, at least one a write, are a race unless the earlier one is in the
// later one's past. Named barriers with counts, bar.arrive and the warp-level synchronisations are all
// covered by this one rule.
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

// Entry w: how many synchronisations of warp w happened before.
using VectorClock = std::array<std::uint32_t, 32>;

void join(VectorClock& into, const VectorClock& from);

// One thread's access to one granule.
struct AccessRecord {
  std::uint32_t clock = 0;  // of the thread's warp; 0: no access yet
  std::uint16_t thread = 0;
  bool strong = false;            // atomic, volatile or with a memory order: no race among themselves
  std::uint32_t instruction = 0;  // for the message
};

struct AccessConflict {
  AccessRecord earlier;
  bool earlier_writes;
};

class SharedMemory {
 public:
  // `granule`: bytes per shadow cell; no access may split one.
  SharedMemory(std::uint64_t bytes, unsigned granule, std::size_t warps, bool check_races);

  // Nothing is written any more, and nobody has accessed anything. Costs nothing: clocks and the generation
  // go on from where they were, so everything on record is past.
  void reset();

  std::byte* data() { return data_.data(); }
  std::uint64_t bytes() const { return data_.size(); }

  // Whether every byte was written.
  bool written(std::uint64_t offset, unsigned bytes) const;

  std::optional<AccessConflict> read(std::uint64_t offset, unsigned bytes, const AccessRecord& access);
  // Also marks the bytes as written.
  std::optional<AccessConflict> write(std::uint64_t offset, unsigned bytes, const AccessRecord& access);

  VectorClock& clock(std::uint32_t warp) { return clocks_[warp]; }
  // The warp's accesses so far are now in the past of its later ones.
  void advance(std::uint32_t warp) { ++clocks_[warp][warp]; }

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
  bool past(const AccessRecord& earlier, std::uint32_t warp) const;
  bool races(const AccessRecord& earlier, const AccessRecord& later) const;
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
  std::vector<Reads> pool_;               // in pieces of warps_, one Reads a warp
  std::vector<std::uint32_t> free_pool_;  // pieces that no cell uses
  std::size_t warps_;
  std::vector<VectorClock> clocks_;
  struct SyncVariable {
    std::uint64_t address;
    VectorClock clock;
  };
  std::vector<SyncVariable> sync_variables_;
  std::uint32_t generation_ = 0;
  unsigned shift_;  // log2 of the granule
  bool check_races_;
};

}  // namespace ptxgen::emulator
