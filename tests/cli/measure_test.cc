#include "tools/ptxgen/measure.h"

#include <array>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/status.h"
#include "tools/ptxgen/bench_options.h"
#include "tools/ptxgen/floor.h"
#ifdef PTXGEN_FAKE_CUDA
#include "tests/runtime/fake_driver.h"
#endif

namespace ptxgen::tool {
namespace {

using testing::take;

constexpr u64 kMega = u64{1} << 20, kGiga = u64{1} << 30;

TEST_CASE("calls rotate through one to three gigabytes", "[cli]") {
  const auto calls = [](u64 bytes, u64 device = 64 * kGiga) { return calls_for(bytes, device, {}); };
  CHECK(calls(33 * kMega) == 93);   // 3 GB of them
  CHECK(calls(9 * kMega) == 120);   // as many as are usual make 1 GB
  CHECK(calls(2 * kMega) == 513);   // more, to make 1 GB
  CHECK(calls(300 * kMega) == 10);  // 3 GB
  CHECK(calls(8 * kGiga) == 1);
  CHECK(calls(4096) == 1000);  // no more, even if they make less than 1 GB
  CHECK(calls(0) == 1000);
  CHECK(calls(33 * kMega, 4 * kGiga) == 31);  // a quarter of a small device's memory
  CHECK(calls_for(33 * kMega, kGiga, {.calls = 7}) == 7);
}

TEST_CASE("calls that take long are fewer, unless a number is asked for", "[cli]") {
  const auto options = [](std::vector<std::string> arguments) {
    CLI::App app;
    TimingOptions timing(app, 20);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::array<u32, 6>{timing.calls_for(100, 10),  timing.calls_for(100, 1e3),
                              timing.calls_for(100, 1e5), timing.replays_for(100, 10),
                              timing.replays_for(4, 3e4), timing.replays_for(4, 1e6)};
  };
  CHECK(options({}) == std::array<u32, 6>{100, 50, 4, 20, 8, 3});
  CHECK(options({"--calls", "100"}) == std::array<u32, 6>{100, 100, 100, 20, 8, 3});
  CHECK(options({"--replays", "20"}) == std::array<u32, 6>{100, 50, 4, 20, 20, 20});
}

#ifdef PTXGEN_FAKE_CUDA

u64 address(const testing::FakeLaunch& launch, std::size_t argument) {
  u64 value = 0;
  std::memcpy(&value, launch.args[argument].data(), sizeof(value));
  return value;
}

absl::StatusOr<Workload> workload_of(const Device& device, const KernelType& kernel,
                                     const RotationOptions& rotation) {
  const std::vector<u64> values = kernel->default_arguments();
  return Workload::prepare(device, *take(reference::operation_of(kernel, values)), values, rotation);
}

TEST_CASE("every call has large buffers for itself, and all share the small ones", "[cli]") {
  testing::FakeDriver driver;
  const Device device = take(driver.open());
  KernelCache cache(device);
  const KernelType kernel = Read{.vectors = 1000};
  const Workload workload = take(workload_of(device, kernel, {.calls = 5}));
  CHECK(workload.bytes_read() == 16000);
  CHECK(workload.bytes_written() == 0);
  const Timing time = take(time_calls(take(cache.get(kernel)), device, workload, 3, false));
  CHECK(time.fastest > 0);
  CHECK(time.fastest <= time.median);
  CHECK(time.median <= time.slowest);
  const auto launches = driver->launches();
  REQUIRE(launches.size() == 5);
  std::set<u64> sources, sums;
  for (const testing::FakeLaunch& launch : launches) {
    sources.insert(address(launch, 0));
    sums.insert(address(launch, 1));
    CHECK_FALSE(launch.programmatic);
  }
  CHECK(sources.size() == 5);
  CHECK(sums.size() == 1);
  CHECK(driver->calls("cuGraphLaunch") == 1 + 3);
}

TEST_CASE("kernels that are compared take turns on the same buffers", "[cli]") {
  testing::FakeDriver driver;
  const Device device = take(driver.open());
  KernelCache cache(device);
  const KernelType read = Read{.vectors = 1000}, other = Read{.vectors = 1000, .threads = 256};
  const Workload workload = take(workload_of(device, read, {.calls = 5}));
  const std::vector<CompiledKernel> kernels = {take(cache.get(read)), take(cache.get(other))};
  CHECK(take(time_calls(kernels, device, workload, 3, false)).size() == 2);
  const auto launches = driver->launches();
  REQUIRE(launches.size() == 2 * 5);
  for (std::size_t call = 0; call < 5; ++call) {
    CHECK(address(launches[call], 0) == address(launches[5 + call], 0));
    CHECK(launches[call].block_x != launches[5 + call].block_x);
  }
  CHECK(driver->calls("cuGraphLaunch") == 2 * (1 + 3));
}

TEST_CASE("calls that write much rotate their outputs", "[cli]") {
  testing::FakeDriver driver;
  const Device device = take(driver.open());
  const Workload workload = take(workload_of(device, Copy{.vectors = 10}, {.calls = 3}));
  CHECK(workload.bytes_read() == 160);
  CHECK(workload.bytes_written() == 160);
  std::set<u64> addresses;
  for (u32 call = 0; call < 3; ++call) {
    for (const u64 value : workload.values(call)) addresses.insert(value);
  }
  CHECK(addresses.size() == 6);
}

TEST_CASE("the largest input rotates, however small it is beside the output", "[cli]") {
  testing::FakeDriver driver;
  const Device device = take(driver.open());
  const Workload workload =
      take(workload_of(device, Dequant{Format::kQ2_K, 256, 4, ElementType::kF32}, {.calls = 3}));
  CHECK(workload.bytes_read() == 4 * 84);
  CHECK(workload.bytes_written() == 4 * 1024);
}

TEST_CASE("floors are the best of several plans, measured once for each number of bytes", "[cli]") {
  testing::FakeDriver driver;
  driver->set_devices({{"Fake H200", 9, 0}});
  const Device device = take(driver.open());
  KernelCache cache(device);
  Floors floors(cache, {.calls = 2}, 2);
  const double plain = *take(floors.read(1600, false));
  const std::size_t launches = driver->launches().size();
  CHECK(*take(floors.read(1600, false)) == plain);
  CHECK(take(floors.read(1600, true)));
  CHECK(driver->launches().size() == launches);
  CHECK(take(floors.copy(1600)) > 0);
  std::set<unsigned> grids, blocks;
  std::size_t dependent = 0;
  for (const testing::FakeLaunch& launch : driver->launches()) {
    dependent += launch.programmatic;
    if (launch.entry == "read") grids.insert(launch.grid_x), blocks.insert(launch.block_x);
  }
  CHECK(dependent * 2 == launches);
  CHECK(grids.size() == 3);
  CHECK(blocks == std::set<unsigned>{256, 512});  // the fake driver's kernels take no more threads
  const std::vector<BenchRow> rows = floors.rows();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].dependent);
  CHECK_FALSE(rows[1].dependent);
  CHECK(rows[1].bytes == 1600);
  CHECK(rows[1].calls == 2);
  CHECK(rows[1].footprint.registers == 40);
  CHECK(rows[1].footprint.local_bytes == 16);
  CHECK(rows[2].kernel == "copy vectors=50");
  take(floors.read(3200, false));
  CHECK(floors.rows().size() == 5);
}

TEST_CASE("where there is no dependent launch, there is no floor with it", "[cli]") {
  testing::FakeDriver driver;
  const Device device = take(driver.open());
  KernelCache cache(device);
  Floors floors(cache, {.calls = 1}, 1);
  CHECK(take(floors.read(64, false)));
  CHECK_FALSE(take(floors.read(64, true)));
}

#endif

}  // namespace
}  // namespace ptxgen::tool
