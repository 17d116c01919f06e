// A cluster and a tensor map on a device: what the host makes of them, and the device of that.
#include <algorithm>
#include <optional>

#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernel_type.h"
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

// Copies a box of its argument `in`, by the TensorMap that each launch makes, and what lies outside.
struct CopyBox {
  static constexpr u32 kLines = 4, kBoxLines = 6;
  u32 columns = 32;
  u32 maps = 1;  // that build() declares

  static constexpr auto fields() {
    return std::tuple(field("columns", &CopyBox::columns, "words of a line", {4, 64, 4}),
                      field("maps", &CopyBox::maps, "calls of tensor_map()", {0, 2}));
  }
  struct Args {
    DevicePtr<const u32, 16> in;
    DevicePtr<u32> out;
    static constexpr auto fields() {
      return std::tuple(input("in", &Args::in, &CopyBox::in_bytes),
                        output("out", &Args::out, &CopyBox::out_bytes));
    }
  };
  u64 in_bytes(const Args&) const { return u64{columns} * kLines * sizeof(u32); }
  u64 out_bytes(const Args&) const { return u64{columns} * kBoxLines * sizeof(u32); }

  std::string name() const { return "copy_box"; }
  LaunchShape launch_shape(const Args&) const { return {.grid = {1}, .block = {32}}; }
  std::optional<TiledTensor> tensor(const Args& args) const {
    return TiledTensor{.type = Type::kU32,
                       .address = args.in.address,
                       .rank = 2,
                       .extents = {columns, kLines},
                       .strides = {columns * sizeof(u32)},
                       .box = {columns, kBoxLines}};
  }
  void build(KernelBuilder& k) const {
    std::optional<TensorMapPtr> map;
    for (u32 i = 0; i < maps; ++i) map = k.tensor_map();
    if (!map) return;
    const u32 words = columns * kBoxLines;
    const auto tile = k.shared<u32, 128>(words);
    const auto full = k.shared<MBarrier>(1);
    k.if_(k.tid_x() == 0u, [&] {
      mbarrier_init(full, 1);
      k.fence_mbarrier_init_release_cluster();
      mbarrier_arrive_expect_tx(full, words * sizeof(u32));
      const std::array<Reg<s32>, 2> begin = {k.constant<s32>(0), k.constant<s32>(0)};
      cp_async_bulk_tensor_2d_shared_global(tile, *map, begin, full);
    });
    k.bar_sync(0);
    k.mbarrier_wait_parity(full, 0);
    k.for_(k.tid_x(), words, 32,
           [&](const Reg<u32>& i) { st_global(k.param(&Args::out) + i, ld_shared(tile + i)); });
  }
};

}  // namespace

TEST_CASE("a launch makes the TensorMap of a descriptor's buffer", "[runtime][cluster]") {
  for (const Device& device : testing::all_devices()) {
    CAPTURE(device.description());
    if (!device.target().supports({90, false})) continue;
    KernelCache cache(device);
    for (const CopyBox& box : {CopyBox{}, CopyBox{.columns = 12}}) {
      std::vector<u32> lines(box.columns * CopyBox::kLines);
      for (u32 i = 0; i < lines.size(); ++i) lines[i] = 1 + i;
      std::vector<u32> wanted = lines, got(box.columns * CopyBox::kBoxLines, 7);
      wanted.resize(got.size(), 0);
      Buffer in = take(device.allocate(lines.size() * sizeof(u32), "in"));
      Buffer out = take(device.allocate(got.size() * sizeof(u32), "out"));
      ok(in.copy_from_host(lines.data(), in.bytes()));
      const std::array<u64, 2> values = {in.address(), out.address()};
      ok(take(cache.get(KernelType(box))).launch(device.default_stream(), values));
      ok(device.synchronize());
      ok(out.copy_to_host(got.data(), out.bytes()));
      CHECK(got == wanted);
    }
  }
}

TEST_CASE("a kernel declares the TensorMap that its descriptor has, once", "[runtime][cluster]") {
  const auto refused = [](const CopyBox& box) {
    return std::string(build_kernel(*KernelType(box), {.target = {90, false}}).status().message());
  };
  CHECK(refused({}).empty());
  CHECK(testing::contains(refused({.maps = 0}), "the kernel has 2 parameters, and a launch gives 3"));
  CHECK(testing::contains(refused({.maps = 2}), "tensor_map is called twice"));
}

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
