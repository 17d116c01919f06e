// Clusters and tensor maps through LLVM: what is no instruction of the table.
#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"
#include "tests/emulator/harness.h"
#include "tests/support/ptxas.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

constexpr u32 kThreads = 32, kCtas = 4;

struct Args {
  TensorMap source;
  DevicePtr<u32> out;
  static constexpr auto fields() {
    return std::tuple(tensor_map("source", &Args::source), output("out", &Args::out, nullptr));
  }
};

void meet(KernelBuilder& k) {
  k.barrier_cluster_arrive_aligned();
  k.barrier_cluster_wait_aligned();
}

// Every CTA copies 32 words of the tensor; thread t leaves 1000 times its CTA's word t and once the other's.
Kernel pair_kernel() {
  KernelBuilder k("pair", {.target = {90, true}, .max_isa = {8, 5}});
  k.declare_parameters<Args>();
  k.cluster(2);
  k.maxntid(kThreads);
  const auto tile = k.shared<u32, 1024>(kThreads);
  const auto full = k.shared<MBarrier>(1);
  const Pred first = k.tid_x() == 0;
  k.if_(first, [&] {
    mbarrier_init(full, 1);
    k.fence_mbarrier_init_release_cluster();
  });
  k.bar_sync(0);
  k.if_(first, [&] {
    mbarrier_arrive_expect_tx(full, kThreads * sizeof(u32));
    cp_async_bulk_tensor_1d_shared_global(tile, k.param(&Args::source), bitcast<s32>(k.ctaid_x() * kThreads),
                                          full);
  });
  k.mbarrier_wait_parity(full, 0);
  meet(k);
  const Reg<u32> other = ld_shared_cluster(mapa(tile, k.cluster_ctarank() ^ 1) + k.tid_x());
  const Reg<u32> own = ld_shared(tile + k.tid_x());
  st_global(k.param(&Args::out) + (k.ctaid_x() * kThreads + k.tid_x()), own * 1000 + other);
  meet(k);
  const absl::StatusOr<Kernel> kernel = k.finish();
  INFO(kernel.status().ToString());
  REQUIRE(kernel.ok());
  return *kernel;
}

std::vector<u32> computed(const std::string& ptx) {
  Memory memory;
  std::vector<u32> words(kCtas * kThreads);
  for (u32 i = 0; i < words.size(); ++i) words[i] = i + 1;
  const TiledTensor tensor = {.type = ptxgen::Type::kU32,
                              .address = upload(memory, words, "source"),
                              .rank = 1,
                              .extents = {words.size()},
                              .box = {kThreads}};
  const std::uint64_t out = upload(memory, std::vector<u32>(words.size()), "out");
  const absl::StatusOr<TensorMap> map = encode_tensor_map(tensor);
  REQUIRE(map.ok());
  const Args args = {*map, {out}};
  std::vector<std::byte> params(sizeof(TensorMap) + sizeof(out));
  std::memcpy(params.data(), &args, params.size());
  LaunchConfig config;
  config.grid = {kCtas};
  config.block = {kThreads};
  config.params = params;
  run(*parsed(ptx), "pair", config, memory);
  return download<u32>(memory, out, words.size());
}

}  // namespace

TEST_CASE("clusters and tensor maps come through LLVM", "[llvm][ptxas]") {
  const Kernel kernel = pair_kernel();
  const absl::StatusOr<std::string> ptx = compile_with_llvm({&kernel, 1}, {90, true}, {8, 5});
  INFO(ptx.status().ToString());
  REQUIRE(ptx.ok());
  CHECK_THAT(*ptx, Contains(".align 64 .b8 source[128]") && Contains(".explicitcluster") &&
                       Contains(".reqnctapercluster 2, 1, 1") && Contains("mapa.shared::cluster.u32") &&
                       !Contains(".local"));
  const PtxasReport report = testing::assemble(*ptx, {90, true});
  INFO(report.log);
  CHECK(report.ok);
  std::vector<u32> expected;
  for (u32 i = 0; i < kCtas * kThreads; ++i) expected.push_back(1000 * (i + 1) + (i ^ kThreads) + 1);
  CHECK(computed(print_ptx(kernel)) == expected);
  CHECK(computed(*ptx) == expected);
}

}  // namespace ptxgen::emulator
