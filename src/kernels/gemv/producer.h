// The producer of a ring: in which order and at which pace the tiles of a CTA are copied. By one lane, or by
// all lanes of a warp that copy a part of each tile.
#pragma once

#include <algorithm>

#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/ring.h"

namespace ptxgen::gemv {

class Producer {
 public:
  // A CTA has `count` tiles, which for all CTAs lies between `least` and `most`. `in_flight` of them may be
  // on their way at once (0: all stages), but only half as many until the first has landed: the consumers'
  // first loads are under way then. The next kernel may start when `trigger` tiles remain to be loaded (0: at
  // once).
  Producer(KernelBuilder& k, const parts::Ring& ring, u32 least, u32 most, const Reg<u32>& count,
           u32 in_flight, u32 trigger)
      : k_(k), ring_(ring), least_(least), most_(most), count_(count), trigger_(trigger) {
    const u32 whole = std::min(ring.stages(), most);
    in_flight_ = in_flight ? std::min(in_flight, whole) : whole;
    first_ = in_flight ? (in_flight_ + 1) / 2 : in_flight_;
  }

  // Before anything is copied.
  void allow_next_at_once() const {
    if (trigger_ == 0) parts::launch_dependents(k_);
  }

  // The first tiles, before the consumers know of the ring. copy(tile, stage) announces and starts a copy.
  template <class Copy>
  void begin(Copy&& copy) const {
    copy_each(0, first_, copy);
    if (first_ == in_flight_) allow_next_behind_all();
  }

  // The other tiles: each when an earlier one has landed, and its stage is free.
  template <class Copy>
  void rest(Copy&& copy) const {
    parts::Ring::Cursor landed = ring_.cursor(), freed = ring_.cursor();
    const Reg<u32> trigger_at = (max)(count_, trigger_ + in_flight_) - trigger_;
    const auto copy_and_trigger = [&](const Reg<u32>& tile, const Reg<u32>& stage) {
      copy(tile, stage);
      if (trigger_) k_.if_(tile == trigger_at, [&] { parts::launch_dependents(k_); });
    };
    if (first_ < in_flight_) {
      ring_.wait_full(landed);
      copy_each(first_, in_flight_, copy);
      allow_next_behind_all();
    }
    k_.for_(in_flight_, (min)(count_, ring_.stages()), 1, [&](const Reg<u32>& tile) {
      ring_.wait_full(landed);
      landed.advance();
      copy_and_trigger(tile, tile);
    });
    if (ring_.stages() >= most_) return;
    k_.for_(ring_.stages(), count_, 1, [&](const Reg<u32>& tile) {
      if (in_flight_ < ring_.stages()) {
        ring_.wait_full(landed);
        landed.advance();
      }
      ring_.wait_empty(freed);
      copy_and_trigger(tile, freed.stage());
      freed.advance();
    });
  }

 private:
  // Where the tiles on their way are all.
  void allow_next_behind_all() const {
    if (trigger_ && in_flight_ == most_) parts::launch_dependents(k_);
  }

  // The tiles from `begin` to `end`, at most one a stage.
  template <class Copy>
  void copy_each(u32 begin, u32 end, Copy&& copy) const {
    for (u32 t = begin; t < end; ++t) {
      const auto one = [&] { copy(k_.constant<u32>(t), k_.constant<u32>(t)); };
      if (t < least_) {
        one();
      } else {
        k_.if_(count_ > t, one);
      }
    }
  }

  KernelBuilder& k_;
  const parts::Ring& ring_;
  u32 least_, most_;
  Reg<u32> count_;
  u32 in_flight_ = 0, first_ = 0, trigger_;
};

// Bytes of a matrix of which rows begin or end within 16 bytes: all of these 16 are copied. The last ones of
// the matrix may be fewer, and are stored by hand before the copy is announced.
class RaggedCopy {
 public:
  // The bytes [begin, begin + bytes) of a matrix of `matrix_bytes`.
  RaggedCopy(KernelBuilder& k, u64 matrix_bytes, const Reg<u64>& begin, const Reg<u32>& bytes)
      : k_(k),
        matrix_bytes_(matrix_bytes),
        from_(begin & ~u64{15}),
        to_((begin + cvt<u64>(bytes) + u64{15}) & ~u64{15}),
        copied_(cvt<u32>((min)(to_, whole()) - from_)) {}

  // What the copy brings; the first byte asked for lies at begin % 16 of it.
  const Reg<u32>& bytes() const { return copied_; }

  // Stores the last bytes of the matrix where the copy does not bring them. For each of `matrices`,
  // target(i) is where weights(i) go.
  template <class Weights, class Target>
  void store_tail(u32 matrices, Weights&& weights, Target&& target) const {
    if (whole() == matrix_bytes_) return;
    k_.if_(to_ > whole(), [&] {
      for (u32 i = 0; i < matrices; ++i) {
        const auto tail = at<u16>(assume_aligned<2>(target(i) + copied_));
        const auto source = at<u16>(assume_aligned<2>(weights(i) + whole()));
        for (u32 pair = 0; pair < (matrix_bytes_ - whole()) / 2; ++pair) {
          const Reg<u16> value = ld_global_nc(source + pair);
          st_shared(tail + pair, value);
        }
        // The other half of a word that is read as one.
        if (matrix_bytes_ % 4 != 0) st_shared(tail + (matrix_bytes_ - whole()) / 2, u16{0});
      }
    });
  }
  template <class Weights, class Target>
  void copy(u32 matrices, Weights&& weights, Target&& target, const SharedPtr<MBarrier>& barrier) const {
    k_.if_(copied_ > 0u, [&] {
      for (u32 i = 0; i < matrices; ++i) {
        cp_async_bulk_shared_global(target(i), assume_aligned<16>(weights(i) + from_), copied_, barrier);
      }
    });
  }

 private:
  u64 whole() const { return matrix_bytes_ & ~u64{15}; }

  KernelBuilder& k_;
  u64 matrix_bytes_;
  Reg<u64> from_, to_;
  Reg<u32> copied_;
};

}  // namespace ptxgen::gemv
