#include "ptxgen/strings.h"
#include "src/reference/operation.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/ptxas.h"
#include "tests/support/status.h"

namespace ptxgen::testing {
namespace {

// What the kernel leaves in `sum`, which holds the guards' pattern before, and what the reference says.
struct Sums {
  std::vector<std::byte> actual, expected;
};

Sums run_read(const Read& kernel, KernelCache& cache, u32 least = 0) {
  const auto operation = take(reference::operation_of(kernel, std::array<u64, 3>{0, 0, 0}));
  std::vector<std::byte> data(kernel.bytes({}));
  REQUIRE(operation->make_input(0, kernel.vectors, 0, absl::MakeSpan(data)).ok());
  const Device& device = cache.device();
  const TightInput src(device, data, 16, "src");
  const GuardedOutput sum(device, sizeof(u32), alignof(u32), "sum");
  const std::vector<std::byte> before = take(sum.read());
  const auto compiled = take(cache.get(KernelType(kernel)));
  REQUIRE(
      compiled.launch(device.default_stream(), std::array<u64, 3>{src.address(), sum.address(), least}).ok());
  REQUIRE(device.synchronize().ok());
  Sums sums{take(sum.read()), std::vector<std::byte>(sizeof(u32))};
  const auto read = [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
    const std::vector<std::byte>& from = argument == 0 ? data : before;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(offset), piece.size(), piece.begin());
    return absl::OkStatus();
  };
  REQUIRE(operation->expect(1, 0, read, absl::MakeSpan(sums.expected)).ok());
  if (least != 0) sums.expected = before;
  return sums;
}

TEST_CASE("read takes every vector once, whatever the plan", "[kernels][device]") {
  for (const u32 vectors : {1u, 31u, 127u, 128u, 129u, 511u, 2047u, 2048u, 2049u, 3001u, 20001u}) {
    for (const Read& plan :
         {Read{}, Read{.ctas = 3, .threads = 32, .loads = 1}, Read{.ctas = 2, .threads = 64, .loads = 2},
          Read{.ctas = 5, .threads = 1024, .loads = 1}, Read{.ctas = 1, .threads = 96, .loads = 7}}) {
      Read kernel = plan;
      kernel.vectors = vectors;
      CAPTURE(KernelType(kernel)->text());
      const Sums sums = run_read(kernel, test_kernels());
      CHECK(sums.actual == sums.expected);
    }
  }
}

TEST_CASE("read writes nothing where no fold is large enough", "[kernels][device]") {
  const Sums sums = run_read(Read{.vectors = 4099}, test_kernels(), 0xffffffff);
  CHECK(sums.actual == sums.expected);
}

TEST_CASE("read runs on targets without hints and dependent launch", "[kernels][emulator]") {
  for (const Target target : {Target{75, false}, Target{80, false}}) {
    KernelCache cache(take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = target})));
    const Sums sums = run_read(Read{.vectors = 5003}, cache);
    CHECK(sums.actual == sums.expected);
  }
}

TEST_CASE("read's CTAs are as many as there is work for, up to two an SM of an H200", "[kernels]") {
  const auto shape = [](const Read& read) { return read.launch_shape({}); };
  CHECK(shape({.vectors = 1}).grid.x == 1);
  CHECK(shape({.vectors = 2048}).grid.x == 1);
  CHECK(shape({.vectors = 2049}).grid.x == 2);
  CHECK(shape({.vectors = 1u << 31}).grid.x == 264);
  CHECK(shape({.vectors = 1, .ctas = 7, .threads = 96}) == LaunchShape{.grid = {7}, .block = {96}});
}

TEST_CASE("goldens of read", "[kernels][golden]") {
  // Whole chunks and a rest; every CTA has one chunk and there is no rest.
  const std::pair<std::string_view, Read> goldens[] = {
      {"read_sm_90.ptx", {.vectors = 100000}},
      {"read_whole_sm_90.ptx", {.vectors = 2 * 32 * 2, .ctas = 2, .threads = 32, .loads = 2}}};
  constexpr Target kSm90 = {90, false};
  for (const auto& [file, kernel] : goldens) {
    CAPTURE(std::string(file));
    const GeneratedKernel text = generated_for(kernel, kSm90);
    CHECK(matches_golden(file, text.ptx));
    const PtxasReport report = assemble(text.ptx, kSm90);
    CAPTURE(report.log);
    REQUIRE(report.ok);
    CHECK_FALSE(report.spills());
    const Sums sums = run_read(kernel, test_kernels());
    CHECK(sums.actual == sums.expected);
  }
}

}  // namespace
}  // namespace ptxgen::testing
