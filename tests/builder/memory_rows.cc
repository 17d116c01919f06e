#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define UP_TO_32_BITS "u8|s8|u16|s16|u32|s32"
#define MEMORY "(" UP_TO_32_BITS "|u64|s64|b16|b16|b32|b32|f32|f64|b16|b16)"
// At most 16 bytes move at once.
#define QUADS "(" UP_TO_32_BITS "|b16|b16|b32|b32|f32|b16|b16)"

namespace {

using namespace type_sets;
constexpr TypeSet kQuads = {kMemory.bits & ~kB64.bits};

void add_loads(RowSuite& suite) {
  TYPES_ROW(ld_global, kMemory, ld_global(p), "ld.global." MEMORY " d, [p]")
  TYPES_ROW(ld_global, kMemory, ld_global_v2(p), "ld.global.v2." MEMORY " {d0, d1}, [p]")
  TYPES_ROW(ld_global, kQuads, ld_global_v4(p), "ld.global.v4." QUADS " {d0, d1, d2, d3}, [p]")
  TYPES_ROW(ld_global_nc, kMemory, ld_global_nc(p), "ld.global.nc." MEMORY " d, [p]")
  TYPES_ROW(ld_global_nc, kMemory, ld_global_nc_v2(p), "ld.global.nc.v2." MEMORY " {d0, d1}, [p]")
  TYPES_ROW(ld_global_nc, kQuads, ld_global_nc_v4(p), "ld.global.nc.v4." QUADS " {d0, d1, d2, d3}, [p]")
  TYPES_ROW(ld_volatile_global, kMemory, ld_volatile_global(p), "ld.volatile.global." MEMORY " d, [p]")
  TYPES_ROW(ld_volatile_global, kU32, ld_volatile_global_v4(p),
            "ld.volatile.global.v4.u32 {d0, d1, d2, d3}, [p]")
  TYPES_ROW(ld_relaxed_global, kMemory, ld_relaxed_global(p, Scope::kGpu),
            "ld.relaxed.gpu.global." MEMORY " d, [p]")
  TYPES_ROW(ld_relaxed_global, kU32, ld_relaxed_global(p, Scope::kCta), "ld.relaxed.cta.global.u32 d, [p]")
  TYPES_ROW(ld_acquire_global, kMemory, ld_acquire_global(p, Scope::kSys),
            "ld.acquire.sys.global." MEMORY " d, [p]")
  TYPES_ROW(ld_acquire_global, kU32, ld_acquire_global_v2(p, Scope::kGpu),
            "ld.acquire.gpu.global.v2.u32 {d0, d1}, [p]")
  TYPES_ROW(ld_shared, kMemory, ld_shared(s), "ld.shared." MEMORY " d, [s]")
  TYPES_ROW(ld_shared, kMemory, ld_shared_v2(s), "ld.shared.v2." MEMORY " {d0, d1}, [s]")
  TYPES_ROW(ld_shared, kQuads, ld_shared_v4(s), "ld.shared.v4." QUADS " {d0, d1, d2, d3}, [s]")
  TYPES_ROW(ld_volatile_shared, kMemory, ld_volatile_shared(s), "ld.volatile.shared." MEMORY " d, [s]")
  TYPES_ROW(ld_relaxed_shared, kMemory, ld_relaxed_shared(s, Scope::kCta),
            "ld.relaxed.cta.shared." MEMORY " d, [s]")
  TYPES_ROW(ld_acquire_shared, kMemory, ld_acquire_shared(s, Scope::kCta),
            "ld.acquire.cta.shared." MEMORY " d, [s]")
}

// Through s as it is seen from the cluster.
void add_cluster(RowSuite& suite) {
  TYPES_ROW(ld_shared_cluster, kMemory, ld_shared_cluster(CLUSTER_SHARED),
            "ld.shared::cluster." MEMORY " d, [s]")
  TYPES_ROW(ld_shared_cluster, kQuads, ld_shared_cluster_v4(CLUSTER_SHARED),
            "ld.shared::cluster.v4." QUADS " {d0, d1, d2, d3}, [s]")
  TYPES_ROW(ld_relaxed_shared_cluster, kMemory, ld_relaxed_shared_cluster(CLUSTER_SHARED, Scope::kCluster),
            "ld.relaxed.cluster.shared::cluster." MEMORY " d, [s]")
  TYPES_ROW(ld_acquire_shared_cluster, kMemory, ld_acquire_shared_cluster(CLUSTER_SHARED, Scope::kCluster),
            "ld.acquire.cluster.shared::cluster." MEMORY " d, [s]")
  TYPES_ROW(ld_relaxed_global, kU32, ld_relaxed_global(p, Scope::kCluster),
            "ld.relaxed.cluster.global.u32 d, [p]")
  TYPES_ROW(st_shared_cluster, kMemory, st_shared_cluster(CLUSTER_SHARED, a),
            "st.shared::cluster." MEMORY " [s], a")
  TYPES_ROW(st_shared_cluster, kU32, st_shared_cluster_v2(CLUSTER_SHARED, {a, b}),
            "st.shared::cluster.v2.u32 [s], {a, b}")
  TYPES_ROW(st_relaxed_shared_cluster, kMemory, st_relaxed_shared_cluster(CLUSTER_SHARED, a, Scope::kCluster),
            "st.relaxed.cluster.shared::cluster." MEMORY " [s], a")
  TYPES_ROW(st_release_shared_cluster, kMemory, st_release_shared_cluster(CLUSTER_SHARED, a, Scope::kCluster),
            "st.release.cluster.shared::cluster." MEMORY " [s], a")
  ROW(mapa_shared_cluster, mapa(s, a), "mapa.shared::cluster.u32 d, s, a")
  ROW(mapa_shared_cluster, mapa(s + 1, 15), "mapa.shared::cluster.u32 d, s, 15")
}

void add_load_hints(RowSuite& suite) {
  TYPES_ROW(ld_global, kU32, ld_global(p, {.op = CacheOp::kCa}), "ld.global.ca.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.op = CacheOp::kCg}), "ld.global.cg.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.op = CacheOp::kCs}), "ld.global.cs.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l1 = L1::kNoAllocate}), "ld.global.L1::no_allocate.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l1 = L1::kEvictFirst}), "ld.global.L1::evict_first.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l1 = L1::kEvictLast}), "ld.global.L1::evict_last.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l1 = L1::kEvictNormal}), "ld.global.L1::evict_normal.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l2 = L2::kPrefetch64B}), "ld.global.L2::64B.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l2 = L2::kPrefetch128B}), "ld.global.L2::128B.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.l2 = L2::kPrefetch256B}), "ld.global.L2::256B.u32 d, [p]")
  TYPES_ROW(ld_global, kU32, ld_global(p, {.op = CacheOp::kCg, .l2 = L2::kPrefetch128B}),
            "ld.global.cg.L2::128B.u32 d, [p]")
  TYPES_ROW(ld_global_nc, kU32, ld_global_nc(p, {.op = CacheOp::kCa}), "ld.global.ca.nc.u32 d, [p]")
  TYPES_ROW(ld_global_nc, kU32, ld_global_nc(p, {.op = CacheOp::kCg}), "ld.global.cg.nc.u32 d, [p]")
  TYPES_ROW(ld_global_nc, kU32, ld_global_nc(p, {.op = CacheOp::kCs}), "ld.global.cs.nc.u32 d, [p]")
  TYPES_ROW(ld_global_nc, kU32, ld_global_nc_v4(p, {.l1 = L1::kNoAllocate, .l2 = L2::kPrefetch256B}),
            "ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {d0, d1, d2, d3}, [p]")
}

void add_stores(RowSuite& suite) {
  TYPES_ROW(st_global, kMemory, st_global(p, a), "st.global." MEMORY " [p], a")
  TYPES_ROW(st_global, kMemory, st_global_v2(p, {a, b}), "st.global.v2." MEMORY " [p], {a, b}")
  TYPES_ROW(st_global, kQuads, st_global_v4(p, {a, b, c, e}), "st.global.v4." QUADS " [p], {a, b, c, e}")
  TYPES_ROW(st_global, kU32, st_global(p, a, {.op = CacheOp::kCg}), "st.global.cg.u32 [p], a")
  TYPES_ROW(st_global, kU32, st_global(p, a, {.op = CacheOp::kCs}), "st.global.cs.u32 [p], a")
  TYPES_ROW(st_global, kU32, st_global(p, a, {.l1 = L1::kNoAllocate}), "st.global.L1::no_allocate.u32 [p], a")
  TYPES_ROW(st_global, kU32, st_global(p, a, {.l1 = L1::kEvictFirst}), "st.global.L1::evict_first.u32 [p], a")
  TYPES_ROW(st_volatile_global, kMemory, st_volatile_global(p, a), "st.volatile.global." MEMORY " [p], a")
  TYPES_ROW(st_relaxed_global, kMemory, st_relaxed_global(p, a, Scope::kGpu),
            "st.relaxed.gpu.global." MEMORY " [p], a")
  TYPES_ROW(st_release_global, kMemory, st_release_global(p, a, Scope::kSys),
            "st.release.sys.global." MEMORY " [p], a")
  TYPES_ROW(st_release_global, kU32, st_release_global_v2(p, {a, b}, Scope::kCta),
            "st.release.cta.global.v2.u32 [p], {a, b}")
  TYPES_ROW(st_shared, kMemory, st_shared(s, a), "st.shared." MEMORY " [s], a")
  TYPES_ROW(st_shared, kMemory, st_shared_v2(s, {a, b}), "st.shared.v2." MEMORY " [s], {a, b}")
  TYPES_ROW(st_shared, kQuads, st_shared_v4(s, {a, b, c, e}), "st.shared.v4." QUADS " [s], {a, b, c, e}")
  TYPES_ROW(st_volatile_shared, kMemory, st_volatile_shared(s, a), "st.volatile.shared." MEMORY " [s], a")
  TYPES_ROW(st_relaxed_shared, kMemory, st_relaxed_shared(s, a, Scope::kCta),
            "st.relaxed.cta.shared." MEMORY " [s], a")
  TYPES_ROW(st_release_shared, kMemory, st_release_shared(s, a, Scope::kCta),
            "st.release.cta.shared." MEMORY " [s], a")
}

}  // namespace

void add_memory_rows(RowSuite& suite) {
  add_loads(suite);
  add_load_hints(suite);
  add_stores(suite);
  add_cluster(suite);
  TYPES_ROW(prefetch_global_L1, kU32, prefetch_global_L1(p), "prefetch.global.L1 [p]")
  TYPES_ROW(prefetch_global_L2, kU32, prefetch_global_L2(p), "prefetch.global.L2 [p]")
  TYPES_ROW(prefetch_global_L2_evict_last, kU32, prefetch_global_L2_evict_last(p),
            "prefetch.global.L2::evict_last [p]")
  TYPES_ROW(prefetch_global_L2_evict_normal, kU32, prefetch_global_L2_evict_normal(p),
            "prefetch.global.L2::evict_normal [p]")
  TYPES_ROW(prefetchu_L1, kU32, prefetchu_L1(p), "prefetchu.L1 [p]")
}

}  // namespace ptxgen::testing
