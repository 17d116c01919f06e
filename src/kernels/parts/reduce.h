// Over the lanes of a warp and the threads of a CTA: sums, in an order that depends on nothing but their
// number, and largest values.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

inline constexpr u32 kAllLanes = 0xffffffff;

// The sum over `lanes` neighbouring lanes (a power of two), in all of them. The whole warp takes part.
inline Reg<f32> lane_sum(Reg<f32> value, u32 lanes = 32) {
  for (u32 distance = lanes / 2; distance > 0; distance /= 2)
    value = value + shfl_sync_bfly(value, distance, 0x1fu, kAllLanes);
  return value;
}

// Combines a value over `lanes` neighbouring lanes, a power of two. Every lane of the warp takes part.
template <class T, class Combine>
Reg<T> over_lanes(Reg<T> value, u32 lanes, Combine&& combine) {
  for (u32 distance = 1; distance < lanes; distance *= 2) {
    const Reg<T> other = shfl_sync_bfly(value, distance, 0x1fu, kAllLanes);
    value = combine(value, other);
  }
  return value;
}

// The largest of a warp's, in all its lanes.
inline Reg<u32> warp_max(const Reg<u32>& own) {
  if (own.kernel()->target().supports({80, false})) return redux_sync_max(own, kAllLanes);
  return over_lanes(own, 32, [](const Reg<u32>& a, const Reg<u32>& b) { return (max)(a, b); });
}
// The largest of a CTA of `threads`, in all of them, or of each of `groups` into which they are cut, of which
// the thread is in group `group`. Each call has shared memory of its own. Or of all `ctas` of a cluster,
// whose threads have arrived at the cluster's barrier before: that they run is waited for here.
inline Reg<u32> cta_max(KernelBuilder& k, const Reg<u32>& own, u32 threads, u32 groups, const Reg<u32>& group,
                        u32 ctas = 1) {
  const u32 warps = threads / 32, all = ctas * warps;
  const auto tops = k.shared<u32>(groups * all);
  const Reg<u32> lane = k.tid_x() & 31u;
  if (ctas > 1) k.barrier_cluster_wait();
  for (u32 g = 0; g < groups; ++g) {
    const Reg<u32> of_group = groups == 1 ? own : selp(own, k.constant<u32>(0), group == g);
    const Reg<u32> top = warp_max(of_group);
    const auto mine = tops + g * all + (k.tid_x() >> 5);
    if (ctas == 1) {
      k.if_(lane == 0u, [&] { st_shared(mine, top); });
    } else {
      k.if_(lane < ctas, [&] { st_shared_cluster(mapa(mine + k.cluster_ctarank() * warps, lane), top); });
    }
  }
  if (ctas == 1) {
    k.bar_sync(0);
  } else {
    k.barrier_cluster_arrive();
    k.barrier_cluster_wait();
  }
  const auto of_warps = [&](u32 g) {
    const auto of_warp = [&](const Reg<u32>& i) { return ld_shared(tops + g * all + (min)(i, all - 1)); };
    Reg<u32> top = of_warp(lane);
    for (u32 first = 32; first < all; first += 32) top = (max)(top, of_warp(lane + first));
    return warp_max(top);
  };
  Reg<u32> largest = of_warps(0);
  for (u32 g = 1; g < groups; ++g) {
    const Reg<u32> top = of_warps(g);
    largest = selp(top, largest, group == g);
  }
  return largest;
}
inline Reg<u32> cta_max(KernelBuilder& k, const Reg<u32>& own, u32 threads) {
  return cta_max(k, own, threads, 1, k.constant<u32>(0));
}

}  // namespace ptxgen::parts
