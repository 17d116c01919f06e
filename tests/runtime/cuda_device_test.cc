// The CUDA device against a driver that keeps books and fails on demand.
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ptxgen/device.h"
#include "tests/runtime/fake_driver.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

using testing::contains;
using testing::ok;
using testing::take;

using testing::FakeDriver;

constexpr std::string_view kPtx = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry copy(
  .param .u64 out,
  .param .u32 n
)
{
  ret;
}
)";

absl::Status launch(const Function& function, const Stream& stream, const LaunchShape& shape,
                    const LaunchOptions& options = {}) {
  const DevicePtr<float> out = {0x1122334455667788};
  const std::uint32_t n = 0x99aabbcc;
  const KernelArg args[] = {KernelArg::of(out), KernelArg::of(n)};
  return function.launch(stream, shape, args, options);
}

}  // namespace

TEST_CASE("the driver's version decides ISA and target", "[runtime][fake]") {
  struct Row {
    int driver;
    testing::FakeDevice device;
    const char* description;
  };
  const Row rows[] = {
      {11080, {"T", 7, 5}, "CUDA device 0: T, sm_75, PTX ISA up to 7.8, driver for CUDA 11.8"},
      {11080, {"H", 9, 0}, "CUDA device 0: H, sm_90, PTX ISA up to 7.8, driver for CUDA 11.8"},
      {12000, {"H", 9, 0}, "CUDA device 0: H, sm_90a, PTX ISA up to 8.0, driver for CUDA 12.0"},
      {12090, {"B", 12, 1}, "CUDA device 0: B, sm_121, PTX ISA up to 8.8, driver for CUDA 12.9"},
      {13000, {"N", 13, 0}, "CUDA device 0: N, sm_121, PTX ISA up to 9.0, driver for CUDA 13.0"},
  };
  for (const Row& row : rows) {
    FakeDriver driver;
    driver->set_version(row.driver);
    driver->set_devices({row.device});
    CHECK(take(driver.open()).description() == row.description);
  }
}

TEST_CASE("a driver or device that ptxgen cannot use is refused with what is needed", "[runtime][fake]") {
  FakeDriver driver;
  driver->set_version(11070);
  const absl::Status old = driver.open().status();
  CHECK(contains(old.message(), "CUDA 11.7; ptxgen needs 11.8 or later"));
  // An old driver is a fault to repair, so "auto" does not pass over it.
  CHECK_FALSE(Device::open(driver.options(0, DeviceChoice::kAuto)).ok());

  driver->set_version(12040);
  driver->set_devices({{"Fake TITAN X", 5, 2}, {"Fake L4", 8, 9}});
  CHECK(contains(driver.open(0).status().message(),
                 "compute capability 5.2; ptxgen needs one that runs sm_75"));
  CHECK(take(driver.open(1)).target() == Target{89, false});
  CHECK(contains(driver.open(2).status().message(), "there is no CUDA device 2: the driver has 2"));
  CHECK_FALSE(driver.open(-1).ok());
  CHECK(take(Device::cuda_device_count(driver.options())) == 2);

  FakeDriver older(PTXGEN_FAKE_OLD_CUDA);
  CHECK(contains(older.open().status().message(),
                 "lacks cuLaunchKernelEx; ptxgen needs NVIDIA's driver for CUDA 11.8"));
}

TEST_CASE("auto passes over what is absent and stops at what is broken", "[runtime][fake]") {
  FakeDriver driver;
  const DeviceOptions automatic = driver.options(0, DeviceChoice::kAuto);
  CHECK(take(Device::open(automatic)).kind() == DeviceKind::kCuda);
  CHECK(take(Device::open(automatic)).reason() == "no device was named, and CUDA device 0 is there");

  for (const CUresult absent : {CUDA_ERROR_NO_DEVICE, CUDA_ERROR_STUB_LIBRARY}) {
    driver->fail("cuInit", absent, 2);
    const Device device = take(Device::open(automatic));
    CHECK(device.kind() == DeviceKind::kEmulator);
    CHECK(contains(device.reason(),
                   absent == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_STUB_LIBRARY"));
    CHECK_FALSE(driver.open().ok());
  }
  driver->fail("cuInit", CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  const absl::Status broken = Device::open(automatic).status();
  CHECK(
      contains(broken.message(), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (system has unsupported display driver"));
  CHECK(contains(broken.message(), "ask for \"emulator\""));
}

TEST_CASE("opening that fails half way holds no context", "[runtime][fake]") {
  FakeDriver driver;
  for (const char* entry : {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem_v2",
                            "cuDriverGetVersion", "cuDevicePrimaryCtxRetain"}) {
    INFO(entry);
    driver->fail(entry, CUDA_ERROR_INVALID_VALUE);
    CHECK_FALSE(driver.open().ok());
    CHECK(driver->alive() == 0);
    CHECK(driver.open().ok());
  }
  driver->fail("cuDeviceGetAttribute", CUDA_ERROR_INVALID_VALUE, 1, 5);
  CHECK_FALSE(driver.open().ok());
}

TEST_CASE("the caller's current context is left as it was", "[runtime][fake]") {
  FakeDriver driver;
  const CUcontext mine = driver->make_context(1);
  driver->set_current(mine);
  {
    const Device device = take(driver.open(0));
    Buffer buffer = take(device.allocate(64));
    CHECK(driver->current() == mine);
    ok(buffer.fill(3));
    CHECK(driver->current() == mine);
    driver->fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
    const absl::Status status = device.allocate(1 << 20, "weights").status();
    CHECK(absl::IsResourceExhausted(status));
    CHECK(status.message() ==
          "allocating 1048576 bytes for weights on CUDA device 0: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
    CHECK(driver->current() == mine);
  }
  CHECK(driver->current() == mine);
  driver->set_current(nullptr);
  driver->reset();
}

TEST_CASE("two devices and fresh threads", "[runtime][fake]") {
  FakeDriver driver;
  const Device first = take(driver.open(0)), second = take(driver.open(1));
  CHECK(first.target() == Target{80, false});
  CHECK(second.target() == Target{89, false});
  CHECK_FALSE(first == second);

  const Function on_first = take(take(first.load_module(kPtx)).function("copy"));
  const Function on_second = take(take(second.load_module(kPtx)).function("copy"));
  const Stream stream = take(second.create_stream());
  Buffer buffer = take(first.allocate(4));

  std::thread([&] {
    CHECK(driver->current() == nullptr);
    ok(launch(on_first, first.default_stream(), {.grid = {1}, .block = {32}}));
    ok(launch(on_second, stream, {.grid = {2}, .block = {64}}));
    CHECK(driver->current() == nullptr);
  }).join();
  CHECK(driver->launches().at(0).device == 0);
  CHECK(driver->launches().at(1).device == 1);

  // Never reaches the driver: it would be an invalid handle there.
  const absl::Status mixed = launch(on_first, stream, {.grid = {1}, .block = {32}});
  CHECK(contains(mixed.message(), "kernel copy: compiled for CUDA device 0: Fake A100"));
  CHECK(contains(mixed.message(), "the stream is on another device: CUDA device 1: Fake L4"));
  CHECK_FALSE(buffer.fill(1, stream).ok());
  Event event = take(first.create_event());
  CHECK_FALSE(event.record(stream).ok());
  CHECK_FALSE(stream.wait(event).ok());
}

TEST_CASE("a launch hands the driver shape, attributes and arguments", "[runtime][fake]") {
  FakeDriver driver;
  driver->set_devices({{"H", 9, 0}});
  const Device device = take(driver.open());
  const Function function = take(take(device.load_module(kPtx)).function("copy"));
  CHECK(function.info().registers == 40);
  CHECK(function.info().static_shared_bytes == 1024);
  CHECK(function.info().local_bytes == 16);
  CHECK(function.info().max_threads == 512);
  CHECK(function.info().param_bytes == std::vector<std::uint32_t>{8, 4});
  CHECK(take(function.max_ctas_per_sm(256, 0)) == 8);

  ok(launch(function, device.default_stream(), {.grid = {6, 5, 4}, .block = {32, 2, 3}, .cluster = {2}},
            {.programmatic_dependent_launch = true}));
  const testing::FakeLaunch seen = driver->launches().at(0);
  CHECK(seen.entry == "copy");
  CHECK((seen.grid_x == 6 && seen.grid_y == 5 && seen.grid_z == 4));
  CHECK((seen.block_x == 32 && seen.block_y == 2 && seen.block_z == 3));
  CHECK(seen.cluster_x == 2);
  CHECK(seen.programmatic);
  std::uint64_t out = 0;
  std::uint32_t n = 0;
  std::memcpy(&out, seen.args.at(0).data(), 8);
  std::memcpy(&n, seen.args.at(1).data(), 4);
  CHECK(out == 0x1122334455667788);
  CHECK(n == 0x99aabbcc);

  ok(launch(function, device.default_stream(), {.grid = {1}, .block = {32}}));
  CHECK(driver->launches().at(1).cluster_x == 0);
  CHECK_FALSE(driver->launches().at(1).programmatic);
  CHECK_FALSE(launch(function, device.default_stream(), {.grid = {1, 65536}, .block = {32}}).ok());
  CHECK_FALSE(launch(function, device.default_stream(), {.grid = {1}, .block = {513}}).ok());
  ok(launch(function, device.default_stream(), {.grid = {1, 0}, .block = {32}}));
  CHECK(driver->calls("cuLaunchKernelEx") == 2);
}

TEST_CASE("the cluster of a launch is the launch's or the kernel's", "[runtime][fake]") {
  FakeDriver driver;
  driver->set_devices({{"H", 9, 0}});
  const Device device = take(driver.open());
  const Function free = take(take(device.load_module(kPtx)).function("copy"));
  CHECK(free.info().cluster == Dim3());
  ok(launch(free, device.default_stream(), {.grid = {16}, .block = {32}, .cluster = {16}},
            {.non_portable_cluster = true}));
  CHECK(driver->launches().at(0).cluster_x == 16);
  CHECK(driver->launches().at(0).non_portable_cluster);

  std::string ptx(kPtx);
  ptx.insert(ptx.find(")", ptx.find(".entry")) + 1, "\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n");
  const Function fixed = take(take(device.load_module(ptx)).function("copy"));
  CHECK(fixed.info().cluster == Dim3(2));
  // The kernel has it already: no attribute says it again.
  for (const Dim3 cluster : {Dim3(), Dim3(2)}) {
    ok(launch(fixed, device.default_stream(), {.grid = {4}, .block = {32}, .cluster = cluster}));
    CHECK(driver->launches().back().cluster_x == 0);
    CHECK_FALSE(driver->launches().back().non_portable_cluster);
  }
  CHECK(contains(launch(fixed, device.default_stream(), {.grid = {3}, .block = {32}}).message(),
                 "grid is 3 x 1 x 1; each extent must be a multiple of the cluster's, 2 x 1 x 1"));
  CHECK(
      contains(launch(fixed, device.default_stream(), {.grid = {4}, .block = {32}, .cluster = {4}}).message(),
               "the kernel (.reqnctapercluster) has 2 x 1 x 1"));
  CHECK(driver->violations().empty());
}

TEST_CASE("the driver encodes tensor maps", "[runtime][fake]") {
  FakeDriver driver;
  driver->set_devices({{"H", 9, 0}});
  const Device device = take(driver.open());
  TiledTensor tensor = {.type = Type::kBf16,
                        .address = 1 << 20,
                        .rank = 3,
                        .extents = {640, 48, 7},
                        .strides = {1280, 61440},
                        .box = {64, 16, 2},
                        .element_strides = {1, 2, 1},
                        .swizzle = Swizzle::k128B,
                        .l2_promotion = 256,
                        .out_of_bounds = OutOfBounds::kNaN};
  CHECK(take(device.encode_tensor_map(tensor)).opaque[15] == 0x7e5031);
  const testing::FakeTensorMap seen = driver->tensor_maps().at(0);
  CHECK(seen.type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  CHECK(seen.swizzle == CU_TENSOR_MAP_SWIZZLE_128B);
  CHECK(seen.promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  CHECK(seen.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  CHECK((seen.rank == 3 && seen.address == 1 << 20));
  CHECK(seen.extents == std::vector<unsigned long long>{640, 48, 7});
  CHECK(seen.strides == std::vector<unsigned long long>{1280, 61440});
  CHECK(seen.box == std::vector<unsigned>{64, 16, 2});
  CHECK(seen.element_strides == std::vector<unsigned>{1, 2, 1});
  const std::pair<Type, CUtensorMapDataType> types[] = {
      {Type::kU8, CU_TENSOR_MAP_DATA_TYPE_UINT8},    {Type::kU16, CU_TENSOR_MAP_DATA_TYPE_UINT16},
      {Type::kU32, CU_TENSOR_MAP_DATA_TYPE_UINT32},  {Type::kS32, CU_TENSOR_MAP_DATA_TYPE_INT32},
      {Type::kU64, CU_TENSOR_MAP_DATA_TYPE_UINT64},  {Type::kS64, CU_TENSOR_MAP_DATA_TYPE_INT64},
      {Type::kF16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16}, {Type::kF32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32},
      {Type::kF64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64}};
  const std::pair<Swizzle, CUtensorMapSwizzle> swizzles[] = {{Swizzle::kNone, CU_TENSOR_MAP_SWIZZLE_NONE},
                                                             {Swizzle::k32B, CU_TENSOR_MAP_SWIZZLE_32B},
                                                             {Swizzle::k64B, CU_TENSOR_MAP_SWIZZLE_64B}};
  tensor.box = {16, 16, 2};
  tensor.out_of_bounds = OutOfBounds::kZero;
  tensor.l2_promotion = 0;
  tensor.swizzle = Swizzle::kNone;
  for (const auto& type : types) {
    tensor.type = type.first;
    take(device.encode_tensor_map(tensor));
    CHECK(driver->tensor_maps().back().type == type.second);
  }
  tensor.type = Type::kU8;
  for (const auto& swizzle : swizzles) {
    tensor.swizzle = swizzle.first;
    take(device.encode_tensor_map(tensor));
    CHECK(driver->tensor_maps().back().swizzle == swizzle.second);
  }
  // What no driver needs to see.
  const int calls = driver->calls("cuTensorMapEncodeTiled");
  tensor.box[0] = 257;
  CHECK(contains(device.encode_tensor_map(tensor).status().message(), "TiledTensor::box[0] is 257"));
  CHECK(driver->calls("cuTensorMapEncodeTiled") == calls);
  driver->set_devices({{"A", 8, 0}});
  CHECK(contains(take(driver.open()).encode_tensor_map(tensor).status().message(),
                 "a tensor map needs sm_90, and the device is sm_80"));
}

TEST_CASE("shared memory above 48 KiB is allowed once, and retried after a failure", "[runtime][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  const Function function = take(take(device.load_module(kPtx)).function("copy"));
  const Stream stream = device.default_stream();
  ok(launch(function, stream, {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 49152 - 1024}));
  CHECK(driver->calls("cuFuncSetAttribute") == 0);
  driver->fail("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE);
  CHECK_FALSE(
      launch(function, stream, {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 49153 - 1024}).ok());
  ok(launch(function, stream, {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 49153 - 1024}));
  ok(launch(function, stream, {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 166912 - 1024}));
  CHECK(driver->calls("cuFuncSetAttribute") == 2);
  CHECK_FALSE(
      launch(function, stream, {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 166913 - 1024}).ok());
}

TEST_CASE("the compiler's log is in the error, with what the driver accepts", "[runtime][fake]") {
  FakeDriver driver;
  driver->set_version(11080);
  const Device device = take(driver.open());
  CHECK(take(device.load_module(kPtx)).log() == "info: compiled by the fake");

  std::string bogus(kPtx);
  bogus.replace(bogus.find("  ret;"), 6, "  bogus.f32 %f1, %f2;");
  const absl::Status parse = device.load_module(bogus).status();
  CHECK(absl::IsInvalidArgument(parse));
  CHECK(contains(parse.message(), "compiling PTX: CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed)"));
  CHECK(contains(parse.message(), "line 9; fatal   : Parsing error"));

  std::string newer(kPtx);
  newer.replace(newer.find("7.8"), 3, "8.0");
  const absl::Status version = device.load_module(newer).status();
  CHECK(contains(version.message(), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"));
  CHECK(contains(version.message(), "driver 11.8 for sm_80 accepts PTX ISA up to 7.8"));
  CHECK(contains(version.message(), "Unsupported .version 8.0"));
}

TEST_CASE("a lost context is named as such, then and later", "[runtime][fake]") {
  FakeDriver driver;
  driver->reset();
  {
    const Device device = take(driver.open(0)), other = take(driver.open(1));
    Buffer buffer = take(device.allocate(16));
    const Stream stream = take(device.create_stream());
    ok(device.health());
    driver->fail("cuStreamSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
    const absl::Status lost = stream.synchronize();
    CHECK(absl::IsDataLoss(lost));
    CHECK(contains(lost.message(), "waiting for a stream: CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(contains(lost.message(), "the device's context is lost"));
    CHECK(device.health() == lost);

    const absl::Status later = buffer.fill(1);
    CHECK(absl::IsDataLoss(later));
    CHECK(
        contains(later.message(), "filling memory: the device was lost before, while waiting for a stream"));
    const absl::Status load = device.load_module(kPtx).status();
    CHECK(absl::IsDataLoss(load));
    ok(other.health());
    ok(take(other.allocate(8)).fill(2));
  }
  CHECK(driver->violations().empty());
  driver->reset();  // what a lost context held is gone with it
}

TEST_CASE("an error that passes is no loss", "[runtime][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  driver->fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_FALSE(device.allocate(16).ok());
  ok(device.health());
  CHECK(device.allocate(16).ok());
}

TEST_CASE("a recording survives what may not happen in it", "[runtime][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  const Stream stream = take(device.create_stream());
  std::optional<Buffer> buffer = take(device.allocate(64));
  std::optional<Module> module = take(device.load_module(kPtx));
  const Function function = take(module->function("copy"));

  ok(stream.begin_capture());
  ok(launch(function, stream, {.grid = {1}, .block = {32}}));
  buffer.reset();  // released at the end
  CHECK(driver->calls("cuMemFree_v2") == 0);
  CHECK(absl::IsFailedPrecondition(device.allocate(64).status()));
  CHECK(absl::IsFailedPrecondition(device.load_module(kPtx).status()));
  CHECK(absl::IsFailedPrecondition(device.synchronize()));
  std::thread([&] { ok(take(device.allocate(64)).fill(1)); }).join();  // other threads are free
  CHECK(driver->calls("cuMemFree_v2") == 1);

  const Graph graph = take(stream.end_capture());
  CHECK(driver->calls("cuMemFree_v2") == 2);
  ok(graph.launch(stream));
  CHECK_FALSE(stream.end_capture().ok());
  CHECK_FALSE(device.default_stream().begin_capture().ok());
}

TEST_CASE("destructors are silent after the driver has gone", "[runtime][fake]") {
  FakeDriver driver;
  {
    const Device device = take(driver.open());
    const Stream stream = take(device.create_stream());
    const Event event = take(device.create_event());
    const Buffer buffer = take(device.allocate(64));
    const PinnedBuffer pinned = take(device.allocate_pinned(64));
    const Function function = take(take(device.load_module(kPtx)).function("copy"));
    driver->shut_down();
    CHECK(contains(stream.synchronize().message(), "CUDA_ERROR_DEINITIALIZED (driver shutting down)"));
  }
  CHECK(driver->violations().empty());
  driver->reset();
}

TEST_CASE("objects are destroyed in any order", "[runtime][fake]") {
  FakeDriver driver;
  std::optional<Device> device = take(driver.open());
  std::optional<Module> module = take(device->load_module(kPtx));
  std::optional<Function> function = take(module->function("copy"));
  std::optional<Stream> stream = take(device->create_stream());
  std::optional<Buffer> buffer = take(device->allocate(64));
  device.reset();
  module.reset();
  CHECK(driver->calls("cuModuleUnload") == 0);
  CHECK(driver->calls("cuDevicePrimaryCtxRelease_v2") == 0);
  ok(launch(*function, *stream, {.grid = {1}, .block = {32}}));
  stream.reset();
  function.reset();
  CHECK(driver->calls("cuModuleUnload") == 1);
  *buffer = Buffer();
  CHECK(driver->calls("cuMemFree_v2") == 1);
  CHECK(driver->calls("cuDevicePrimaryCtxRelease_v2") == 1);
}

TEST_CASE("a stream of the caller's is used and not destroyed", "[runtime][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  const Stream owner = take(device.create_stream());
  {
    const Stream borrowed = device.borrow_stream(owner.native());
    ok(take(device.allocate(16)).fill(1, borrowed));
    ok(borrowed.synchronize());
  }
  CHECK(driver->calls("cuStreamDestroy_v2") == 0);
}

TEST_CASE("objects of static storage outlive main and the driver", "[runtime][fake]") {
  for (const char* order : {"driver_first", "driver_last"}) {
    const std::string command = std::string(PTXGEN_STATIC_LIFETIME) + " " + PTXGEN_FAKE_CUDA + " " + order;
    INFO(command);
    CHECK(std::system(command.c_str()) == 0);
  }
}

}  // namespace ptxgen
