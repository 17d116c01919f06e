// A cluster and a tensor map on a device: what the host makes of them, and the device of that.
#include <algorithm>

#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"
#include "tests/runtime/devices.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

using testing::ok;
using testing::take;

constexpr u32 kThreads = 64, kCluster = 4, kClusters = 2;
constexpr u32 kColumns = 100, kRows = 12, kPitch = 104;      // of a tensor of 16 bits; kPitch in memory
constexpr u32 kBoxColumns = 64, kBoxRows = 8, kWords = 256;  // 8 lines of 128 bytes
constexpr u32 kLeft = 16, kAbove = 4;                        // the first box begins before the tensor

struct Args {
  TensorMap source;
  DevicePtr<u32> out;
  static constexpr auto fields() {
    return std::tuple(tensor_map("source", &Args::source), output("out", &Args::out, nullptr));
  }
};

// The first CTA of a cluster brings a box, swizzled, to all four; each puts it straight and leaves it in out.
Kernel spread(PtxIsa isa) {
  KernelBuilder k("spread", {.target = {90, false}, .max_isa = isa});
  k.declare_parameters<Args>();
  k.cluster(kCluster);
  k.maxntid(kThreads);
  const auto tile = k.shared<u32, 1024>(kWords);
  const auto full = k.shared<MBarrier>(1);
  const Pred first = k.tid_x() == 0;
  k.if_(first, [&] {
    mbarrier_init(full, 1);
    k.fence_mbarrier_init_release_cluster();
  });
  k.barrier_cluster_arrive_relaxed_aligned();
  k.barrier_cluster_wait_aligned();
  k.if_(first, [&] {
    mbarrier_arrive_expect_tx(full, kWords * sizeof(u32));
    k.if_(k.cluster_ctarank() == 0, [&] {
      const std::array<Reg<s32>, 2> at = {
          bitcast<s32>(k.clusterid_x() * kBoxColumns) - static_cast<s32>(kLeft),
          bitcast<s32>(k.clusterid_x() * kBoxRows) - static_cast<s32>(kAbove)};
      cp_async_bulk_tensor_2d_shared_global_multicast(tile, k.param(&Args::source), at, full,
                                                      (1u << kCluster) - 1);
    });
  });
  k.mbarrier_wait_parity(full, 0);
  const auto out = k.param(&Args::out) + k.ctaid_x() * kWords;
  for (u32 i = 0; i < kWords; i += kThreads) {
    const Reg<u32> word = k.tid_x() + i;
    const Reg<u32> line = word >> 5;
    st_global(out + word, ld_shared(tile + (word ^ ((line & 7) << 2))));
  }
  const absl::StatusOr<Kernel> kernel = k.finish();
  ok(kernel.status());
  return *kernel;
}

u16 element(u32 column, u32 row) {
  return static_cast<u16>(1 + row * kColumns + column);
}

std::vector<u16> tensor_data() {
  std::vector<u16> data(kPitch * kRows, 0xffff);
  for (u32 row = 0; row < kRows; ++row) {
    for (u32 column = 0; column < kColumns; ++column) data[row * kPitch + column] = element(column, row);
  }
  return data;
}

std::vector<u16> expected() {
  std::vector<u16> all;
  for (u32 cta = 0; cta < kClusters * kCluster; ++cta) {
    const u32 cluster = cta / kCluster;
    for (u32 y = 0; y < kBoxRows; ++y) {
      for (u32 x = 0; x < kBoxColumns; ++x) {
        const u32 column = cluster * kBoxColumns + x - kLeft, row = cluster * kBoxRows + y - kAbove;
        all.push_back(column < kColumns && row < kRows ? element(column, row) : u16{0});
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a box of a tensor reaches all CTAs of a cluster", "[runtime][cluster]") {
  const std::vector<u16> data = tensor_data();
  std::vector<u16> got(2 * kClusters * kCluster * kWords);
  for (const Device& device : testing::all_devices()) {
    CAPTURE(device.description());
    if (!device.target().supports({90, false})) continue;
    Buffer source = take(device.allocate(data.size() * sizeof(u16), "source"));
    Buffer out = take(device.allocate(got.size() * sizeof(u16), "out"));
    ok(source.copy_from_host(data.data(), source.bytes()));
    const TensorMap map = take(device.encode_tensor_map({.type = Type::kU16,
                                                         .address = source.address(),
                                                         .rank = 2,
                                                         .extents = {kColumns, kRows},
                                                         .strides = {kPitch * sizeof(u16)},
                                                         .box = {kBoxColumns, kBoxRows},
                                                         .swizzle = Swizzle::k128B}));
    const std::string ptx = print_ptx(spread(device.highest_isa()));
    const Function function = take(take(device.load_module(ptx)).function("spread"));
    CHECK(function.info().cluster == Dim3(kCluster));
    const DevicePtr<u32> to = out.ptr<u32>();
    const KernelArg args[] = {KernelArg::of(map), KernelArg::of(to)};
    ok(function.launch(device.default_stream(), {.grid = {kClusters * kCluster}, .block = {kThreads}}, args));
    ok(device.synchronize());
    ok(out.copy_to_host(got.data(), out.bytes()));
    CHECK(got == expected());
  }
}

}  // namespace ptxgen
