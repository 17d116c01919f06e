#include "tests/builder/rows.h"

namespace ptxgen::testing {

// The shared memory s as an mbarrier.
#define MBARRIER at<MBarrier>(s)
#define SHARED_GLOBAL "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define GLOBAL_SHARED "cp.async.bulk.global.shared::cta.bulk_group"

namespace {

void add_copies(RowSuite& suite) {
  ROW(cp_async_ca_4, cp_async_ca_4(s, p), "cp.async.ca.shared.global [s], [p], 4")
  ROW(cp_async_ca_4, cp_async_ca_4(s + 1, p + 3), "cp.async.ca.shared.global [s+4], [p+12], 4")
  ROW(cp_async_ca_8, cp_async_ca_8(s, p), "cp.async.ca.shared.global [s], [p], 8")
  ROW(cp_async_ca_16, cp_async_ca_16(s, p), "cp.async.ca.shared.global [s], [p], 16")
  ROW(cp_async_cg_16, cp_async_cg_16(s, p), "cp.async.cg.shared.global [s], [p], 16")
  ROW(cp_async_ca_4_zfill, cp_async_ca_4(s, p, a), "cp.async.ca.shared.global [s], [p], 4, a")
  ROW(cp_async_ca_4_zfill, cp_async_ca_4(s, p, 4), "cp.async.ca.shared.global [s], [p], 4, 4")
  ROW(cp_async_ca_8_zfill, cp_async_ca_8(s, p, a), "cp.async.ca.shared.global [s], [p], 8, a")
  ROW(cp_async_ca_16_zfill, cp_async_ca_16(s, p, a), "cp.async.ca.shared.global [s], [p], 16, a")
  ROW(cp_async_cg_16_zfill, cp_async_cg_16(s, p, a), "cp.async.cg.shared.global [s], [p], 16, a")
  ROW(cp_async_commit_group, k.cp_async_commit_group(), "cp.async.commit_group")
  ROW(cp_async_wait_group, k.cp_async_wait_group(2), "cp.async.wait_group 2")
  ROW(cp_async_wait_all, k.cp_async_wait_all(), "cp.async.wait_all")
  ROW(cp_async_mbarrier_arrive, cp_async_mbarrier_arrive(MBARRIER), "cp.async.mbarrier.arrive.shared.b64 [s]")
  ROW(cp_async_mbarrier_arrive_noinc, cp_async_mbarrier_arrive_noinc(MBARRIER),
      "cp.async.mbarrier.arrive.noinc.shared.b64 [s]")
}

void add_bulk_copies(RowSuite& suite) {
  ROW(cp_async_bulk_shared_global, cp_async_bulk_shared_global(s, p, a, MBARRIER),
      SHARED_GLOBAL " [s], [p], a, [s]")
  ROW(cp_async_bulk_shared_global, (cp_async_bulk_shared_global(s, p, 4096, MBARRIER + 1)),
      SHARED_GLOBAL " [s], [p], 4096, [s+8]")
  ROW(cp_async_bulk_shared_global_hint, cp_async_bulk_shared_global(s, p, a, MBARRIER, b),
      SHARED_GLOBAL ".L2::cache_hint [s], [p], a, [s], b")
  ROW(cp_async_bulk_shared_global_multicast, cp_async_bulk_shared_global_multicast(s, p, a, MBARRIER, b),
      SHARED_GLOBAL ".multicast::cluster [s], [p], a, [s], b")
  ROW(cp_async_bulk_shared_global_multicast_hint,
      cp_async_bulk_shared_global_multicast(s, p, a, MBARRIER, b, c),
      SHARED_GLOBAL ".multicast::cluster.L2::cache_hint [s], [p], a, [s], b, c")
  ROW(cp_async_bulk_shared_cluster_shared,
      cp_async_bulk_shared_cluster_shared(CLUSTER_SHARED, s, a, at<MBarrier>(CLUSTER_SHARED)),
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [s], [s], a, [s]")
  ROW(cp_async_bulk_global_shared, cp_async_bulk_global_shared(p, s, a), GLOBAL_SHARED " [p], [s], a")
  ROW(cp_async_bulk_global_shared_hint, cp_async_bulk_global_shared(p, s, a, b),
      GLOBAL_SHARED ".L2::cache_hint [p], [s], a, b")
  ROW(cp_async_bulk_commit_group, k.cp_async_bulk_commit_group(), "cp.async.bulk.commit_group")
  ROW(cp_async_bulk_wait_group, k.cp_async_bulk_wait_group(0), "cp.async.bulk.wait_group 0")
  ROW(cp_async_bulk_wait_group_read, k.cp_async_bulk_wait_group_read(1), "cp.async.bulk.wait_group.read 1")
  ROW(cp_async_bulk_prefetch_L2, cp_async_bulk_prefetch_L2(p, a), "cp.async.bulk.prefetch.L2.global [p], a")
  ROW(cp_async_bulk_prefetch_L2_hint, cp_async_bulk_prefetch_L2(p, a, b),
      "cp.async.bulk.prefetch.L2.global.L2::cache_hint [p], a, b")
  ROW(createpolicy_L2_evict_first, k.createpolicy_L2_evict_first(),
      "createpolicy.fractional.L2::evict_first.b64 d")
  ROW(createpolicy_L2_evict_last, k.createpolicy_L2_evict_last(),
      "createpolicy.fractional.L2::evict_last.b64 d")
  ROW(createpolicy_L2_evict_normal, k.createpolicy_L2_evict_normal(),
      "createpolicy.fractional.L2::evict_normal.b64 d")
  ROW(createpolicy_L2_evict_first_fraction, k.createpolicy_L2_evict_first(a),
      "createpolicy.fractional.L2::evict_first.b64 d, a")
  ROW(createpolicy_L2_evict_last_fraction, k.createpolicy_L2_evict_last(0.5f),
      "createpolicy.fractional.L2::evict_last.b64 d, 0f3F000000")
}

// Coordinates of rank 2 and more come as registers, which here all are the first.
template <std::size_t N>
std::array<Reg<s32>, N> repeated(const Reg<s32>& first) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{((void)I, first)...};
  }
  (std::make_index_sequence<N>{});
}
#define TILE assume_aligned<128>(s)
#define TENSOR_LOAD(rank) \
  "cp.async.bulk.tensor." rank "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
#define TENSOR_STORE(rank) "cp.async.bulk.tensor." rank "d.global.shared::cta.tile.bulk_group"

#define TENSOR_ROWS(rank, at, text)                                                            \
  ROW(cp_async_bulk_tensor_##rank##d_shared_global,                                            \
      cp_async_bulk_tensor_##rank##d_shared_global(TILE, m, at, MBARRIER),                     \
      TENSOR_LOAD(#rank) " [s], [m, {" text "}], [s]")                                         \
  ROW(cp_async_bulk_tensor_##rank##d_shared_global_hint,                                       \
      cp_async_bulk_tensor_##rank##d_shared_global(TILE, m, at, MBARRIER, b),                  \
      TENSOR_LOAD(#rank) ".L2::cache_hint [s], [m, {" text "}], [s], b")                       \
  ROW(cp_async_bulk_tensor_##rank##d_shared_global_multicast,                                  \
      cp_async_bulk_tensor_##rank##d_shared_global_multicast(TILE, m, at, MBARRIER, b),        \
      TENSOR_LOAD(#rank) ".multicast::cluster [s], [m, {" text "}], [s], b")                   \
  ROW(cp_async_bulk_tensor_##rank##d_shared_global_multicast_hint,                             \
      cp_async_bulk_tensor_##rank##d_shared_global_multicast(TILE, m, at, MBARRIER, b, c),     \
      TENSOR_LOAD(#rank) ".multicast::cluster.L2::cache_hint [s], [m, {" text "}], [s], b, c") \
  ROW(cp_async_bulk_tensor_##rank##d_global_shared,                                            \
      cp_async_bulk_tensor_##rank##d_global_shared(m, at, TILE),                               \
      TENSOR_STORE(#rank) " [m, {" text "}], [s]")                                             \
  ROW(cp_async_bulk_tensor_##rank##d_global_shared_hint,                                       \
      cp_async_bulk_tensor_##rank##d_global_shared(m, at, TILE, b),                            \
      TENSOR_STORE(#rank) ".L2::cache_hint [m, {" text "}], [s], b")

void add_tensor_copies(RowSuite& suite) {
  TENSOR_ROWS(1, a, "a")
  TENSOR_ROWS(2, repeated<2>(a), "a, a")
  TENSOR_ROWS(3, repeated<3>(a), "a, a, a")
  TENSOR_ROWS(4, repeated<4>(a), "a, a, a, a")
  TENSOR_ROWS(5, repeated<5>(a), "a, a, a, a, a")
  ROW(prefetch_tensormap, prefetch_tensormap(m), "prefetch.tensormap [m]")
}

void add_mbarriers(RowSuite& suite) {
  ROW(mbarrier_init, mbarrier_init(MBARRIER, a), "mbarrier.init.shared.b64 [s], a")
  ROW(mbarrier_init, mbarrier_init(MBARRIER + 1, 96), "mbarrier.init.shared.b64 [s+8], 96")
  ROW(mbarrier_inval, mbarrier_inval(MBARRIER), "mbarrier.inval.shared.b64 [s]")
  ROW(mbarrier_arrive, mbarrier_arrive(MBARRIER), "mbarrier.arrive.shared::cta.b64 _, [s]")
  ROW(mbarrier_arrive_count, mbarrier_arrive(MBARRIER, a), "mbarrier.arrive.shared::cta.b64 _, [s], a")
  ROW(mbarrier_arrive_state, mbarrier_arrive_state(MBARRIER), "mbarrier.arrive.shared.b64 d, [s]")
  ROW(mbarrier_arrive_state_count, mbarrier_arrive_state(MBARRIER, a), "mbarrier.arrive.shared.b64 d, [s], a")
  ROW(mbarrier_arrive_no_complete, mbarrier_arrive_no_complete(MBARRIER, a),
      "mbarrier.arrive.noComplete.shared.b64 d, [s], a")
  ROW(mbarrier_arrive_drop, mbarrier_arrive_drop(MBARRIER), "mbarrier.arrive_drop.shared::cta.b64 _, [s]")
  ROW(mbarrier_arrive_expect_tx, mbarrier_arrive_expect_tx(MBARRIER, a),
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], a")
  ROW(mbarrier_arrive_expect_tx_state, mbarrier_arrive_expect_tx_state(MBARRIER, a),
      "mbarrier.arrive.expect_tx.shared::cta.b64 d, [s], a")
  ROW(mbarrier_expect_tx, mbarrier_expect_tx(MBARRIER, a),
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [s], a")
  ROW(mbarrier_test_wait, mbarrier_test_wait(MBARRIER, a), "mbarrier.test_wait.shared.b64 d, [s], a")
  ROW(mbarrier_test_wait_parity, mbarrier_test_wait_parity(MBARRIER, a),
      "mbarrier.test_wait.parity.shared.b64 d, [s], a")
  ROW(mbarrier_try_wait, mbarrier_try_wait(MBARRIER, a), "mbarrier.try_wait.shared.b64 d, [s], a")
  ROW(mbarrier_try_wait_parity, mbarrier_try_wait_parity(MBARRIER, a),
      "mbarrier.try_wait.parity.shared.b64 d, [s], a")
  ROW(mbarrier_try_wait_parity, mbarrier_try_wait_parity(MBARRIER, 1),
      "mbarrier.try_wait.parity.shared.b64 d, [s], 1")
  ROW(mbarrier_test_wait_parity_cluster, mbarrier_test_wait_parity_cluster(MBARRIER, a),
      "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 d, [s], a")
  ROW(mbarrier_try_wait_parity_cluster, mbarrier_try_wait_parity_cluster(MBARRIER, a),
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 d, [s], a")
  ROW(mbarrier_arrive_cluster, mbarrier_arrive(at<MBarrier>(CLUSTER_SHARED)),
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [s]")
  ROW(mbarrier_arrive_cluster_count, mbarrier_arrive(at<MBarrier>(CLUSTER_SHARED), a),
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [s], a")
  ROW(mbarrier_arrive_expect_tx_cluster, mbarrier_arrive_expect_tx(at<MBarrier>(CLUSTER_SHARED), a),
      "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [s], a")
  ROW(mbarrier_expect_tx_cluster, mbarrier_expect_tx(at<MBarrier>(CLUSTER_SHARED), a),
      "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [s], a")
  ROW(mbarrier_try_wait_parity_hint, mbarrier_try_wait_parity(MBARRIER, a, b),
      "mbarrier.try_wait.parity.shared.b64 d, [s], a, b")
  ROW(mbarrier_pending_count, mbarrier_pending_count(a), "mbarrier.pending_count.b64 d, a")
}

}  // namespace

void add_async_rows(RowSuite& suite) {
  add_copies(suite);
  add_bulk_copies(suite);
  add_tensor_copies(suite);
  add_mbarriers(suite);
  ROW(fence_mbarrier_init_release_cluster, k.fence_mbarrier_init_release_cluster(),
      "fence.mbarrier_init.release.cluster")
  ROW(fence_proxy_async, k.fence_proxy_async(), "fence.proxy.async")
  ROW(fence_proxy_async_shared_cta, k.fence_proxy_async_shared_cta(), "fence.proxy.async.shared::cta")
  ROW(fence_proxy_async_shared_cluster, k.fence_proxy_async_shared_cluster(),
      "fence.proxy.async.shared::cluster")
  ROW(fence_proxy_async_global, k.fence_proxy_async_global(), "fence.proxy.async.global")
  ROW(elect_sync, k.elect_sync(a), "elect.sync _|d, a")
  ROW(elect_sync_lane, k.elect_sync_lane(0xffffffff), "elect.sync d0|d1, 0xffffffff")
}

}  // namespace ptxgen::testing
