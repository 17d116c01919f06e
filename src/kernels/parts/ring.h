// A ring of stages in shared memory between a producer that fills them by bulk copies and consumer warps that
// read them (PTX ISA, mbarrier and cp.async.bulk; sm_90 and later). Tile t passes through stage t % stages.
//
// Each stage has two mbarriers. `full` completes a phase when the tile's bytes have arrived, `empty` when
// every consumer warp has let go of the tile. The n-th use of a stage is phase n of both; a wait takes the
// phase's parity, which a Cursor knows.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

class Ring {
 public:
  // How far the producer or a consumer has come: the stage, and the parity of its phase.
  class Cursor {
   public:
    // From tile `first` on, which is less than `stages`.
    Cursor(KernelBuilder& k, u32 stages, const In<u32>& first)
        : k_(k), stages_(stages), stage_(k.var<u32>(first)), parity_(k.var<u32>(0u)) {}
    Reg<u32> stage() const { return stage_; }
    Reg<u32> parity() const { return parity_; }
    // By `tiles`, at most as many as there are stages.
    void advance(u32 tiles = 1) {
      const Reg<u32> next = stage_ + tiles;
      const Pred wraps = tiles == 1 ? next == stages_ : next >= stages_;
      stage_ = selp(tiles == 1 ? k_.constant<u32>(0) : next - stages_, next, wraps);
      parity_ = parity_ ^ selp(k_.constant<u32>(1), k_.constant<u32>(0), wraps);
    }

   private:
    KernelBuilder& k_;
    u32 stages_;
    Var<u32> stage_, parity_;
  };

  // The stages begin at `data`.
  Ring(KernelBuilder& k, const SharedPtr<std::byte, 16>& data, u32 stages, u32 stage_bytes)
      : k_(k),
        data_(data),
        full_(k.shared<MBarrier>(stages)),
        empty_(k.shared<MBarrier>(stages)),
        stages_(stages),
        stage_bytes_(stage_bytes) {}

  u32 stages() const { return stages_; }
  Cursor cursor(const In<u32>& first = 0u) const { return Cursor(k_, stages_, first); }
  SharedPtr<std::byte, 16> stage(u32 s) const { return assume_aligned<16>(data_ + s * stage_bytes_); }
  SharedPtr<std::byte, 16> stage(const Reg<u32>& s) const {
    return assume_aligned<16>(data_ + s * stage_bytes_);
  }

  // By one thread, before any other touches the ring; a barrier of the CTA must follow.
  // `announcements` is how many a tile has.
  void init(u32 consumer_warps, u32 announcements = 1) const {
    for (u32 s = 0; s < stages_; ++s) init_stage(k_.constant<u32>(s), consumer_warps, announcements);
    k_.fence_mbarrier_init_release_cluster();
  }
  // The same by a lane of each of warps 0, 1 ... of at least as many as there are stages, for the stages from
  // `first` on. `warp` is the same in all lanes for an assembler to see (from a shuffle): else threads take
  // turns, and each is slow.
  void init_by_warps(const Reg<u32>& warp, const Reg<u32>& lane, u32 consumer_warps, u32 announcements = 1,
                     u32 first = 0) const {
    by_warps(warp, lane, first,
             [&](const Reg<u32>& stage) { init_one(stage, consumer_warps, announcements); });
  }
  // One stage alone, by one thread, which may at once announce what comes into it.
  void init_one(const Reg<u32>& stage, u32 consumer_warps, u32 announcements = 1) const {
    init_stage(stage, consumer_warps, announcements);
    k_.fence_mbarrier_init_release_cluster();
  }

  // Ends what init_by_warps() and init_one() began, by the same threads, when all have passed a barrier after
  // their last use of the ring. The memory of the stages is free too.
  void end_by_warps(const Reg<u32>& warp, const Reg<u32>& lane, u32 first = 0) const {
    by_warps(warp, lane, first, [&](const Reg<u32>& stage) { end_one(stage); });
  }
  void end_one(const Reg<u32>& stage) const {
    mbarrier_inval(full_ + stage);
    mbarrier_inval(empty_ + stage);
  }

  // A thread of the producer announces `bytes` of a tile, and then starts the copies that bring them.
  template <class Stage>
  SharedPtr<MBarrier> announce(const Stage& s, const In<u32>& bytes) const {
    const SharedPtr<MBarrier> barrier = full_ + s;
    mbarrier_arrive_expect_tx(barrier, bytes);
    return barrier;
  }
  // The same for a producer of cp.async copies, after the last of a tile, by as many threads as a tile has
  // announcements: the stage is full when the copies of all have landed.
  void announce_copied(const Reg<u32>& s) const { cp_async_mbarrier_arrive_noinc(full_ + s); }

  // By a producer whose cursor begins with the first tile: until the stage is free, at once in its first use.
  void wait_free(const Cursor& c) const { k_.mbarrier_wait_parity(empty_ + c.stage(), c.parity() ^ 1u); }
  // By one whose cursor begins with the first tile that takes another's stage: until the consumers have let
  // go of what it held.
  void wait_empty(const Cursor& c) const { k_.mbarrier_wait_parity(empty_ + c.stage(), c.parity()); }
  void wait_full(const Cursor& c) const { k_.mbarrier_wait_parity(full_ + c.stage(), c.parity()); }
  // The same for a stage's first tile, by who knows that its second has not come.
  void wait_first(const Reg<u32>& s) const { k_.mbarrier_wait_parity(full_ + s, 0u); }
  // By whole warps, when no lane will read the stage again.
  void release(const Cursor& c, const Reg<u32>& lane) const { release(c.stage(), lane); }
  void release(const Reg<u32>& s, const Reg<u32>& lane) const {
    k_.bar_warp_sync(0xffffffffu);
    k_.if_(lane == 0u, [&] { mbarrier_arrive(empty_ + s); });
  }

 private:
  template <class Body>
  void by_warps(const Reg<u32>& warp, const Reg<u32>& lane, u32 first, Body&& body) const {
    Pred takes_part = lane == 0u && warp < stages_;
    if (first) takes_part = takes_part && warp >= first;
    k_.if_(takes_part, [&] { body(warp); });
  }
  void init_stage(const Reg<u32>& s, u32 consumer_warps, u32 announcements) const {
    mbarrier_init(full_ + s, announcements);
    mbarrier_init(empty_ + s, consumer_warps);
  }

  KernelBuilder& k_;
  SharedPtr<std::byte, 16> data_;
  SharedPtr<MBarrier> full_, empty_;
  u32 stages_, stage_bytes_;
};

}  // namespace ptxgen::parts
