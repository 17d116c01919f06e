// Shapes whose weights and results are beyond 4 GiB and whose values are beyond 2^32 in number.

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "ptxgen/emulator.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr u32 kRowValues = 1024;
constexpr u32 kRows = (1u << 22) + 1;
constexpr Dequant kHuge = {Format::kQ8_0, kRowValues, kRows, ElementType::kF16};

TEST_CASE("extents of huge shapes are counted in 64 bits", "[kernels]") {
  CHECK(u64{kHuge.n} * kHuge.k == 4294968320);
  CHECK(kHuge.num_blocks() == 134217760);
  CHECK(kHuge.weight_bytes({}) == 4563403840);
  CHECK(kHuge.out_bytes({}) == 8589936640);
  CHECK(kHuge.launch_shape({}).grid == Dim3(2097153));  // 64 blocks a CTA

  const Dequant largest = {Format::kQ6_K, 1u << 24, 65535, ElementType::kF32};
  CHECK(largest.num_blocks() == 4294901760);
  CHECK(largest.weight_bytes({}) == 901929369600);
  CHECK(largest.out_bytes({}) == 4397979402240);
  CHECK(largest.launch_shape({}).grid == Dim3(268431360));  // 16 blocks a CTA

  const auto arguments = KernelType(largest)->arguments(std::array<u64, 2>{});
  CHECK(arguments[0].bytes == largest.weight_bytes({}));
  CHECK(arguments[1].bytes == largest.out_bytes({}));
}

// The most blocks that a format may have: no CTA's first block, nor a grid, is beyond 32 bits.
TEST_CASE("grids of the largest shapes are launchable", "[kernels]") {
  constexpr u64 kMaxGrid = 0x7fffffff;  // CUDA C++ Programming Guide, maximum x-dimension of a grid
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : {ElementType::kF32, ElementType::kF16, ElementType::kBf16}) {
      const Dequant kernel = {format.format, 15 * format.block_values, 1u << 28, type};
      REQUIRE(KernelType(kernel)->validate().ok());
      CHECK(kernel.launch_shape({}).grid.x <= kMaxGrid);
    }
  }
  CHECK(Copy{.vectors = 1u << 31}.launch_shape({}).grid.x <= kMaxGrid);
}

absl::Span<std::byte> bytes_of(u64& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof(value)};
}

// Runs one CTA of the kernel as the whole grid would: its text with the CTA's number put for %ctaid.x.
absl::Status run_cta(const GeneratedKernel& text, u64 cta, u64 weights, u64 out, emulator::Memory& memory) {
  const std::string ptx = absl::StrReplaceAll(text.ptx, {{"%ctaid.x", std::to_string(cta)}});
  REQUIRE(ptx != text.ptx);
  const auto program = emulator::Program::parse(ptx);
  REQUIRE(program.ok());
  std::vector<std::byte> params(16);
  std::copy_n(bytes_of(weights).begin(), 8, params.begin());
  std::copy_n(bytes_of(out).begin(), 8, params.begin() + 8);
  return emulator::launch(**program, text.entry, {.grid = {1}, .block = {256}, .params = params}, memory)
      .status();
}

// Emulated memory takes host memory only where something is written, so the first and the last CTA of a huge
// launch can be run alone.
TEST_CASE("the first and the last CTA of a huge launch find their blocks", "[kernels][emulator]") {
  const GeneratedKernel text = generated_for(kHuge, kBaseTarget);
  CHECK(absl::StrContains(text.ptx, "mad.wide.u32"));
  const u64 ctas = kHuge.launch_shape({}).grid.x;
  constexpr u64 kBlocksPerCta = 64;
  emulator::Memory memory;
  const auto weights = memory.allocate(kHuge.weight_bytes({}), "weights");
  const auto out = memory.allocate(kHuge.out_bytes({}), "out");
  INFO(weights.status().ToString() << "; " << out.status().ToString());
  REQUIRE((weights.ok() && out.ok()));

  for (const u64 cta : {u64{0}, ctas - 2, ctas - 1}) {
    CAPTURE(cta);
    const u64 first = cta * kBlocksPerCta;
    const u64 count = std::min(kBlocksPerCta, kHuge.num_blocks() - first);
    const Dequant piece = {kHuge.format, 32, static_cast<u32>(count), kHuge.out_type};
    const auto blocks = random_input(piece, cta);
    REQUIRE(memory.write(*weights + first * 34, blocks).ok());
    const absl::Status status = run_cta(text, cta, *weights, *out, memory);
    INFO(status.ToString());
    REQUIRE(status.ok());
    std::vector<std::byte> actual(piece.out_bytes({}));
    REQUIRE(memory.read(*out + first * 64, absl::MakeSpan(actual), true).ok());
    check_values(piece, blocks, actual);
  }
  // The CTA after the last has nothing to do.
  CHECK(run_cta(text, ctas, *weights, *out, memory).ok());
}

// The whole launch, with weights of their own in the first and the last rows: 14 GB of device memory, seconds
// on a GPU and minutes on the emulated device, so it runs only when asked for.
TEST_CASE("a huge launch as a whole", "[.][huge]") {
  constexpr std::uint8_t kFiller = 0x3c;
  constexpr u64 kRowBytes = kRowValues / 32 * 34, kRowOut = kRowValues * 2;
  const Dequant row = {kHuge.format, kRowValues, 1, kHuge.out_type};
  Buffer weights = *test_device().allocate(kHuge.weight_bytes({}), "weights");
  Buffer out = *test_device().allocate(kHuge.out_bytes({}), "out");
  REQUIRE(weights.fill(kFiller).ok());
  REQUIRE(out.fill(0xa5).ok());
  std::vector<std::pair<u64, std::vector<std::byte>>> rows;  // and their weights
  for (const u64 r : {u64{0}, u64{kRows} / 2, u64{kRows} - 2, u64{kRows} - 1}) {
    rows.emplace_back(r, random_input(row, r));
    if (r == kRows / 2) rows.back().second.assign(kRowBytes, std::byte{kFiller});
    REQUIRE(weights.copy_from_host(rows.back().second.data(), kRowBytes, r * kRowBytes).ok());
  }
  const auto compiled = test_kernels().get(kHuge);
  REQUIRE(compiled.ok());
  REQUIRE(compiled
              ->launch(test_device().default_stream(),
                       {.weights = weights.ptr<const std::byte>(), .out = out.ptr<std::byte, 16>()})
              .ok());
  REQUIRE(test_device().synchronize().ok());
  for (const auto& [r, blocks] : rows) {
    CAPTURE(r);
    std::vector<std::byte> actual(kRowOut);
    REQUIRE(out.copy_to_host(actual.data(), kRowOut, r * kRowOut).ok());
    check_values(row, blocks, actual);
  }
}

}  // namespace
}  // namespace ptxgen::testing
