#include "ptxgen/device.h"

#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/devices.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

using testing::contains;
using testing::ok;
using testing::take;

// out[i] = in[i] * factor + i, for i < n
constexpr std::string_view kScalePtx = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 in, .param .u32 factor, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [n];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mul.wide.u32 %rd3, %r4, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.u32 %r6, [%rd2];
  ld.param.u32 %r7, [factor];
  mad.lo.u32 %r6, %r6, %r7, %r4;
  st.global.u32 [%rd1], %r6;
DONE:
  ret;
}
)";

std::vector<std::uint32_t> numbers(std::uint32_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 1000u);
  return values;
}

struct Scale {
  explicit Scale(const Device& device, std::uint32_t count)
      : function(take(take(device.load_module(kScalePtx)).function("scale"))),
        in(take(device.allocate(count * 4, "in"))),
        out(take(device.allocate(count * 4, "out"))),
        n(count) {}

  absl::Status launch(const Stream& stream, std::uint32_t factor) const {
    const DevicePtr<std::uint32_t> to = out.ptr<std::uint32_t>();
    const DevicePtr<const std::uint32_t> from = in.ptr<const std::uint32_t>();
    const KernelArg args[] = {KernelArg::of(to), KernelArg::of(from), KernelArg::of(factor),
                              KernelArg::of(n)};
    return function.launch(stream, {.grid = {(n + 127) / 128}, .block = {128}}, args);
  }

  std::vector<std::uint32_t> result() const {
    std::vector<std::uint32_t> values(n);
    ok(out.copy_to_host(values.data(), n * 4));
    return values;
  }

  Function function;
  Buffer in, out;
  std::uint32_t n;
};

std::vector<std::uint32_t> expected(std::uint32_t count, std::uint32_t factor) {
  std::vector<std::uint32_t> values = numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = values[i] * factor + i;
  return values;
}

}  // namespace

TEST_CASE("a module runs and its results come back", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    INFO(device.description());
    const Stream stream = take(device.create_stream());
    for (const std::uint32_t count : {1u, 127u, 128u, 1000u}) {
      Scale scale(device, count);
      ok(scale.in.copy_from_host(numbers(count).data(), count * 4));
      ok(scale.launch(stream, 3));
      ok(stream.synchronize());
      CHECK(scale.result() == expected(count, 3));
    }
  }
}

TEST_CASE("copies on a stream, pinned memory, fill and events", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    INFO(device.description());
    const Stream stream = take(device.create_stream()), other = take(device.create_stream());
    PinnedBuffer host = take(device.allocate_pinned(400));
    Buffer first = take(device.allocate(400)), second = take(device.allocate(400));
    Event start = take(device.create_event()), end = take(device.create_event());
    CHECK_FALSE(first.address() == second.address());
    CHECK(first.address() % 256 == 0);

    ok(start.record(stream));
    ok(first.fill(0xa5, stream));
    const std::vector<std::uint32_t> ten = numbers(10);
    ok(first.copy_from_host(ten.data(), 40, 8, stream));
    ok(end.record(stream));
    ok(other.wait(end));
    ok(second.copy_from(first, 400, other));
    ok(second.copy_to_host(host.data(), 400, 0, other));
    ok(other.synchronize());
    ok(end.synchronize());
    CHECK(take(end.elapsed_ms_since(start)) >= 0);

    const auto* words = static_cast<const std::uint32_t*>(host.data());
    CHECK(words[1] == 0xa5a5a5a5);
    CHECK(words[2] == 1000);
    CHECK(words[11] == 1009);
    CHECK(words[12] == 0xa5a5a5a5);
  }
}

TEST_CASE("extents of copies are checked", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    Buffer buffer = take(device.allocate(16));
    std::array<std::byte, 32> host = {};
    CHECK(buffer.copy_from_host(host.data(), 17).message() ==
          "writing 17 bytes at offset 0 of a buffer of 16 bytes");
    CHECK(absl::IsOutOfRange(buffer.copy_to_host(host.data(), 1, 16)));
    CHECK(absl::IsOutOfRange(buffer.copy_to_host(host.data(), 2, ~std::uint64_t{0})));
    CHECK(buffer.copy_to_host(host.data(), ~std::uint64_t{0}, 2).message() ==
          "reading 18446744073709551615 bytes at offset 2 of a buffer of 16 bytes");
    ok(buffer.copy_from_host(host.data(), 0, 16));
    Buffer empty = take(device.allocate(0));
    ok(empty.fill(1));
    CHECK(absl::IsOutOfRange(empty.copy_from_host(host.data(), 1)));
    CHECK(absl::IsOutOfRange(Buffer().copy_from_host(host.data(), 1)));
    CHECK_FALSE(buffer.copy_from(empty, 4, device.default_stream()).ok());
  }
}

TEST_CASE("an empty grid is a successful launch of nothing", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    Scale scale(device, 4);
    ok(scale.out.fill(0x11));
    scale.n = 0;
    ok(scale.launch(device.default_stream(), 5));
    scale.n = 4;
    CHECK(scale.result() == std::vector<std::uint32_t>(4, 0x11111111));
  }
}

TEST_CASE("wrong PTX, entries, shapes and arguments are refused with reasons", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    INFO(device.description());
    const absl::Status empty = device.load_module("").status();
    CHECK_FALSE(empty.ok());
    std::string wrong(kScalePtx);
    wrong.replace(wrong.find("mad.lo"), 6, "bogus.");
    const absl::Status parse = device.load_module(wrong).status();
    REQUIRE_FALSE(parse.ok());
    CHECK(contains(parse.message(), "line 12"));
    CHECK(contains(device.load_module("// \xc3\xa9\n.version 7.0\n").status().message(),
                   "byte 3 of the text is 195"));
    CHECK_FALSE(device.load_module(std::string_view(".version 7.0\0x", 14)).ok());

    const Module module = take(device.load_module(kScalePtx));
    CHECK(absl::IsNotFound(module.function("scala").status()));
    CHECK(contains(module.function("scala").status().message(), "scala"));

    const Function scale = take(module.function("scale"));
    const std::uint32_t n = 1;
    const KernelArg args[] = {KernelArg::of(n)};
    const absl::Status grid = scale.launch(device.default_stream(), {.grid = {1, 65536}, .block = {1}}, args);
    CHECK(grid.message() == "kernel scale: grid.y is 65536; the device allows at most 65535");
    if (scale.info().param_bytes.has_value()) {
      CHECK(*scale.info().param_bytes == std::vector<std::uint32_t>{8, 8, 4, 4});
      CHECK(scale.launch(device.default_stream(), {.grid = {1}, .block = {1}}, args).message() ==
            "kernel scale: 1 arguments given; the kernel has 4");
    }
  }
}

TEST_CASE("objects outlive the handles they were made from", "[runtime][device]") {
  for (const DeviceChoice choice : {DeviceChoice::kEmulator, DeviceChoice::kCuda}) {
    std::optional<Scale> scale;
    std::optional<Stream> stream;
    {
      const absl::StatusOr<Device> device = Device::open({.choice = choice, .libcuda = "libcuda.so.1"});
      if (!device.ok()) continue;
      scale.emplace(*device, 8);
      stream.emplace(take(device->create_stream()));
    }
    ok(scale->in.copy_from_host(numbers(8).data(), 32));
    ok(scale->launch(*stream, 2));
    ok(stream->synchronize());
    stream.reset();
    CHECK(scale->result() == expected(8, 2));
  }
}

TEST_CASE("a fresh thread launches", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    Scale scale(device, 300);
    ok(scale.in.copy_from_host(numbers(300).data(), 1200));
    absl::Status status;
    std::thread([&] {
      status = scale.launch(device.default_stream(), 9);
      status.Update(device.synchronize());
    }).join();
    ok(status);
    CHECK(scale.result() == expected(300, 9));
  }
}

TEST_CASE("a recorded graph runs with the inputs of its launch", "[runtime][device]") {
  for (const Device& device : testing::all_devices()) {
    INFO(device.description());
    const Stream stream = take(device.create_stream());
    Scale scale(device, 50);
    ok(scale.out.fill(0x22));

    ok(stream.begin_capture());
    ok(scale.launch(stream, 7));
    CHECK(contains(device.allocate(4).status().message(), "while this thread records"));
    CHECK(contains(device.load_module(kScalePtx).status().message(), "while this thread records"));
    CHECK_FALSE(stream.synchronize().ok());
    CHECK_FALSE(scale.out.fill(0).ok());
    const Graph graph = take(stream.end_capture());
    CHECK(scale.result() == std::vector<std::uint32_t>(50, 0x22222222));  // nothing ran yet

    for (const std::uint32_t first : {0u, 5u}) {
      std::vector<std::uint32_t> input = numbers(50);
      for (std::uint32_t& value : input) value += first;
      ok(scale.in.copy_from_host(input.data(), 200));
      ok(graph.launch(stream));
      ok(stream.synchronize());
      CHECK(scale.result()[49] == (1049 + first) * 7 + 49);
    }
  }
}

TEST_CASE("the emulated device says what it is", "[runtime]") {
  const Device device =
      take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = Target{86, false}}));
  CHECK(device.kind() == DeviceKind::kEmulator);
  CHECK(device.target() == Target{86, false});
  CHECK(device.highest_isa() == PtxIsa{9, 0});
  CHECK(device.properties().shared_bytes_per_block_optin == 99 * 1024);
  CHECK(device.description() == "emulated device: sm_86, PTX ISA up to 9.0");
  CHECK(device.reason() == "the emulated device was asked for");
  CHECK(contains(device.load_module(".version 8.0\n.target sm_90a\n.address_size 64\n").status().message(),
                 "sm_86"));
}

TEST_CASE("a missing driver is an error where CUDA is asked for, and the reason where it is not",
          "[runtime]") {
  const DeviceOptions missing = {.choice = DeviceChoice::kCuda, .libcuda = "/nonexistent/libcuda.so"};
  const absl::Status refused = Device::open(missing).status();
  CHECK(absl::IsNotFound(refused));
  CHECK(contains(refused.message(), "opening the device \"cuda:0\""));
  CHECK(contains(refused.message(), "ask for \"emulator\""));

  const Device device =
      take(Device::open({.choice = DeviceChoice::kAuto, .libcuda = "/nonexistent/libcuda.so"}));
  CHECK(device.kind() == DeviceKind::kEmulator);
  CHECK(contains(device.reason(), "no CUDA device can be had"));
}

TEST_CASE("device choices are read from text", "[runtime]") {
  CHECK(take(DeviceOptions::parse("auto")).choice == DeviceChoice::kAuto);
  CHECK(take(DeviceOptions::parse("emulator")).choice == DeviceChoice::kEmulator);
  CHECK(take(DeviceOptions::parse("cuda")).index == 0);
  CHECK(take(DeviceOptions::parse("cuda:12")).index == 12);
  CHECK(take(DeviceOptions::parse("cuda:12")).choice == DeviceChoice::kCuda);
  for (const char* bad : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda: 1", "cuda:99999", "cuda:4294967296",
                          "CUDA", "auto "}) {
    INFO(bad);
    REQUIRE_FALSE(DeviceOptions::parse(bad).ok());
    CHECK(contains(DeviceOptions::parse(bad).status().message(), "auto, cuda, cuda:<index>, emulator"));
  }
}

}  // namespace ptxgen
