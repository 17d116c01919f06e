// Clusters, tensor maps and register counts: what the builder prints for them, what it refuses, and what does
// not compile.
#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

using Catch::Matchers::Contains;

constexpr BuildOptions kSm90 = {{90, false}, {9, 0}}, kSm90a = {{90, true}, {9, 0}};

struct MapArgs {
  TensorMap map;
  u32 n = 0;
  static constexpr auto fields() {
    return std::tuple(tensor_map("map", &MapArgs::map), scalar("n", &MapArgs::n));
  }
};

template <class P>
constexpr bool loads_own = requires(P p) {
  ld_shared(p);
};
template <class P>
constexpr bool loads_cluster = requires(P p) {
  ld_shared_cluster(p);
};
template <class P>
constexpr bool stores_cluster = requires(P p, Reg<u32> v) {
  st_shared_cluster(p, v);
};
template <class P>
constexpr bool initialises = requires(P p) {
  mbarrier_init(p, 1);
};
template <class P>
constexpr bool arrives = requires(P p) {
  mbarrier_arrive(p);
};
template <class P>
constexpr bool waits = requires(KernelBuilder& k, P p) {
  k.mbarrier_wait_parity_cluster(p, 0);
};
template <class P>
constexpr bool maps = requires(P p) {
  mapa(p, 1);
};
template <class D, class S, class B>
constexpr bool pushes = requires(D d, S s, B b) {
  cp_async_bulk_shared_cluster_shared(d, s, 64, b);
};
template <class P, std::size_t N>
constexpr bool loads_box = requires(P p, TensorMapPtr map, std::array<Reg<s32>, N> at,
                                    SharedPtr<MBarrier> b) {
  cp_async_bulk_tensor_2d_shared_global(p, map, at, b);
};

// Whose memory a pointer is in stays in its type.
static_assert(loads_own<SharedPtr<u32>> && !loads_own<ClusterSharedPtr<u32>>);
static_assert(loads_cluster<ClusterSharedPtr<const u32>> && !loads_cluster<SharedPtr<u32>>);
static_assert(stores_cluster<ClusterSharedPtr<u32>> && !stores_cluster<ClusterSharedPtr<const u32>>);
static_assert(maps<SharedPtr<u32>> && maps<SharedPtr<MBarrier>> && !maps<GlobalPtr<u32>> &&
              !maps<ClusterSharedPtr<u32>>);
static_assert(initialises<SharedPtr<MBarrier>> && !initialises<ClusterSharedPtr<MBarrier>>);
static_assert(arrives<SharedPtr<MBarrier>> && arrives<ClusterSharedPtr<MBarrier>> &&
              !arrives<ClusterSharedPtr<u64>>);
static_assert(waits<SharedPtr<MBarrier>> && !waits<ClusterSharedPtr<MBarrier>>);
static_assert(pushes<ClusterSharedPtr<u32, 16>, SharedPtr<u32, 16>, ClusterSharedPtr<MBarrier>>);
static_assert(!pushes<ClusterSharedPtr<u32, 16>, SharedPtr<u32, 16>, SharedPtr<MBarrier>>);
static_assert(!pushes<ClusterSharedPtr<u32, 8>, SharedPtr<u32, 16>, ClusterSharedPtr<MBarrier>>);
static_assert(!pushes<ClusterSharedPtr<const u32, 16>, SharedPtr<u32, 16>, ClusterSharedPtr<MBarrier>>);
// A box lies at a multiple of 128 bytes, and has as many coordinates as the instruction says.
static_assert(loads_box<SharedPtr<u32, 128>, 2> && loads_box<SharedPtr<f16, 1024>, 2>);
static_assert(!loads_box<SharedPtr<u32, 64>, 2> && !loads_box<SharedPtr<const u32, 128>, 2>);
static_assert(!loads_box<SharedPtr<u32, 128>, 3> && !loads_box<ClusterSharedPtr<u32, 128>, 2>);

}  // namespace

TEST_CASE("a kernel says its cluster", "[builder]") {
  const auto kernel = build([](KernelBuilder& k) { k.cluster(2, 3); }, kSm90);
  REQUIRE(kernel.ok());
  CHECK_THAT(print_ptx(*kernel), Contains(".version 7.8\n.target sm_90\n") &&
                                     Contains("\n.explicitcluster\n.reqnctapercluster 2, 3, 1\n{"));
  CHECK(mistake([](KernelBuilder& k) { k.cluster(4, 4); }, kSm90) == "");
  const std::array<u32, 3> wrong[] = {{0, 1, 1}, {17, 1, 1}, {4, 4, 2}, {1u << 31, 2, 1}};
  for (const std::array<u32, 3>& extents : wrong) {
    CHECK_THAT(mistake([&](KernelBuilder& k) { k.cluster(extents[0], extents[1], extents[2]); }, kSm90),
               Contains("cluster_test.cc:") && Contains("): a cluster has 1 to 16 CTAs, more than 8 where "
                                                        "LaunchOptions::non_portable_cluster allows it"));
  }
  CHECK_THAT(mistake([](KernelBuilder& k) { k.cluster(2); }, {{89, false}, {9, 0}}),
             Contains("cluster() needs sm_90; the kernel is built for sm_89"));
}

TEST_CASE("the cluster's scope and memory need sm_90", "[builder]") {
  const BuildOptions ada = {{89, false}, {9, 0}};
  const auto scoped = [](KernelBuilder& k) { ld_relaxed_global(k.param(&Args::in), Scope::kCluster); };
  CHECK_THAT(mistake(scoped, ada), Contains("the cluster needs sm_90; the kernel is built for sm_89"));
  const auto kernel = build(scoped, kSm90);
  REQUIRE(kernel.ok());
  CHECK(kernel->target == Target{90, false});
  CHECK(kernel->isa == PtxIsa{7, 8});
  CHECK(mistake([](KernelBuilder& k) { ld_relaxed_global(k.param(&Args::in), Scope::kGpu); }, ada) == "");
  CHECK_THAT(mistake([](KernelBuilder& k) { mapa(k.shared<u32>(1), 0); }, ada), Contains("mapa needs sm_90"));
  CHECK_THAT(mistake([](KernelBuilder& k) { mapa(k.shared<u32>(1), 16); }, kSm90),
             Contains("the rank of a CTA in its cluster is 16; it lies in 0 to 15"));
}

TEST_CASE("a mapped pointer keeps its offset and type", "[builder]") {
  CHECK(instructions(
            [](KernelBuilder& k) {
              const auto p = mapa(k.shared<u32, 16>(8) + 3, 1);
              st_shared_cluster(p + 1, k.constant<u32>(7));
            },
            kSm90) ==
        "  mov.u32 %r1, _shared_0;\n  mapa.shared::cluster.u32 %r2, %r1, 1;\n  mov.b32 %r3, 7;\n"
        "  st.shared::cluster.u32 [%r2+16], %r3;\n  ret;\n");
}

TEST_CASE("aligned barriers of the cluster stand in uniform control flow", "[builder]") {
  const auto in_if = [](auto&& meet) {
    return mistake([&](KernelBuilder& k) { k.if_(k.tid_x() < 7, [&] { meet(k); }); }, kSm90);
  };
  CHECK_THAT(in_if([](KernelBuilder& k) { k.barrier_cluster_arrive_aligned(); }),
             Contains("a barrier stands in control flow"));
  CHECK_THAT(in_if([](KernelBuilder& k) { k.barrier_cluster_wait_acquire_aligned(); }),
             Contains("a barrier stands in control flow"));
  CHECK(in_if([](KernelBuilder& k) { k.barrier_cluster_arrive(); }) == "");
  CHECK(mistake(
            [](KernelBuilder& k) {
              k.if_(k.cluster_ctarank() == 0, [&] { k.barrier_cluster_arrive_aligned(); });
            },
            kSm90) == "");
}

TEST_CASE("a tensor map is a parameter of 128 bytes", "[builder]") {
  KernelBuilder k("test", kSm90);
  k.declare_parameters<MapArgs>();
  prefetch_tensormap(k.param(&MapArgs::map));
  const auto kernel = k.finish();
  REQUIRE(kernel.ok());
  CHECK_THAT(
      print_ptx(*kernel),
      Contains("(\n  .param .align 64 .b8 map[128],\n  .param .u32 n\n)") &&
          Contains("  mov.b64 %rd1, map;\n  cvta.param.u64 %rd2, %rd1;\n  prefetch.tensormap [%rd2];\n"));
}

TEST_CASE("setmaxnreg needs to know what it changes", "[builder]") {
  const auto change = [](KernelBuilder& k) {
    k.if_((k.tid_x() >> 7) == 0, [&] { k.setmaxnreg_dec(40); }, [&] { k.setmaxnreg_inc(232); });
  };
  CHECK(mistake([&](KernelBuilder& k) { k.maxnreg(168), change(k); }, kSm90a) == "");
  CHECK(mistake([&](KernelBuilder& k) { k.maxntid(384), k.minnctapersm(1), change(k); }, kSm90a) == "");
  CHECK_THAT(mistake([&](KernelBuilder& k) { k.maxntid(384), change(k); }, kSm90a),
             Contains("setmaxnreg needs maxnreg, or maxntid and minnctapersm: ptxas ignores it"));
  CHECK_THAT(mistake([&](KernelBuilder& k) { k.maxnreg(168), change(k); }, kSm90),
             Contains("setmaxnreg_dec needs sm_90a; the kernel is built for sm_90"));
  CHECK_THAT(mistake([](KernelBuilder& k) { k.maxnreg(168), k.setmaxnreg_inc(20); }, kSm90a),
             Contains("the register count of setmaxnreg is 20; it lies in 24 to 256 and is a multiple of 8"));
  CHECK_THAT(mistake([](KernelBuilder& k) { k.maxnreg(168), k.setmaxnreg_inc(100); }, kSm90a),
             Contains("is 100; it lies in 24 to 256 and is a multiple of 8"));
  CHECK_THAT(
      mistake([](KernelBuilder& k) { k.maxnreg(168), k.if_(k.tid_x() < 5, [&] { k.setmaxnreg_dec(40); }); },
              kSm90a),
      Contains("setmaxnreg_dec stands in control flow that may differ"));
}

}  // namespace ptxgen::testing
