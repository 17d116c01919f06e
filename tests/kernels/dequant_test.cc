// Every format to every type on the device under test.

#include <bit>
#include <cmath>
#include <set>

#include "src/reference/dequantize.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

namespace ptxgen::testing {
namespace {

constexpr ElementType kOutTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kBf16};

std::vector<float> values_of(Format format, absl::Span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / info(format).block_bytes * info(format).block_values);
  REQUIRE(reference::dequantize(format, blocks, absl::MakeSpan(values)).ok());
  return values;
}

TEST_CASE("kernels give ggml's own floats bit for bit", "[kernels][device]") {
  for (const FormatInfo& format : kFormats) {
    const std::string name(format.ggml_name);
    CAPTURE(name);
    const auto blocks = read_data("blocks/" + name + ".bin");
    const auto expected = read_data("blocks/" + name + "_f32.bin");
    REQUIRE(expected.size() == 8 * 1024 * sizeof(float));
    const auto actual = run_kernel(Dequant{.format = format.format, .k = 1024, .n = 8}, blocks);
    CHECK(actual == expected);
  }
}

TEST_CASE("dequantisation of few rows of few blocks", "[kernels][device]") {
  std::uint64_t seed = 100;
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : kOutTypes) {
      for (const u32 blocks : {1u, 3u}) {
        for (const u32 n : {1u, 2u, 31u, 33u}) {
          const Dequant kernel = {format.format, blocks * format.block_values, n, type};
          check_dequant(kernel, random_input(kernel, ++seed));
        }
      }
    }
  }
}

TEST_CASE("dequantisation of long rows", "[kernels][device]") {
  std::uint64_t seed = 200;
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : kOutTypes) {
      for (const u32 k : {256u, 896u, 1152u, 7168u, 11008u}) {
        if (k % format.block_values != 0) continue;
        const Dequant kernel = {format.format, k, 3, type};
        check_dequant(kernel, random_input(kernel, ++seed));
      }
    }
  }
}

TEST_CASE("dequantisation of many rows", "[kernels][device]") {
  constexpr u32 kRows = 32001;
  for (const Dequant& kernel :
       {Dequant{Format::kQ4_0, 32, kRows, ElementType::kF32}, Dequant{Format::kQ5_0, 32, kRows, ElementType::kBf16},
        Dequant{Format::kQ8_0, 32, kRows, ElementType::kF16}, Dequant{Format::kQ6_K, 256, kRows, ElementType::kF16},
        Dequant{Format::kQ4_K, 4096, 125, ElementType::kF32},
        Dequant{Format::kQ3_K, 2048, 257, ElementType::kBf16}}) {
    check_dequant(kernel, random_input(kernel, kernel.k));
  }
}

TEST_CASE("dequantisation of arbitrary bytes, NaN and Inf and subnormal scales among them",
          "[kernels][device]") {
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : kOutTypes) {
      const Dequant kernel = {format.format, format.block_values, 201, type};
      const auto blocks = arbitrary_input(kernel, 7);
      bool nan = false, inf = false, subnormal = false;
      for (const float value : values_of(format.format, blocks)) {
        nan |= std::isnan(value);
        inf |= std::isinf(value);
        subnormal |= value != 0 && std::fabs(value) < 0x1p-14f;  // in f16
      }
      CHECK((nan && inf && subnormal));
      check_dequant(kernel, blocks);
    }
  }
}

TEST_CASE("kernels for the oldest target round as those for newer ones", "[kernels][device]") {
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : {ElementType::kF16, ElementType::kBf16}) {
      const Dequant kernel = {format.format, 3 * format.block_values, 35, type};
      check_dequant(kernel, random_input(kernel, 61), kBaseTarget);
      check_dequant(kernel, arbitrary_input(kernel, 62), kBaseTarget);
    }
  }
}

TEST_CASE("values halfway between two are rounded to the even one", "[kernels][device]") {
  for (const ElementType type : {ElementType::kF16, ElementType::kBf16}) {
    const Dequant kernel = {Format::kQ8_0, 32, 300, type};
    const auto blocks = halfway_input(kernel, 8);
    const u32 kept = type == ElementType::kF16 ? 13 : 16;  // the lowest bit of an f32 that the type keeps
    std::size_t down = 0, up = 0;
    for (const float value : values_of(kernel.format, blocks)) {
      const u32 bits = std::bit_cast<u32>(value);
      if ((bits & ((1u << kept) - 1)) == 1u << (kept - 1)) ++(bits >> kept & 1 ? up : down);
    }
    CHECK((down > 50 && up > 50));
    check_dequant(kernel, blocks);
    check_dequant(kernel, blocks, kBaseTarget);
  }
}

// A fixture of equal or zero fields would let a decoder that mixes them up pass.
TEST_CASE("the blocks that kernels are tested with differ wherever they can", "[kernels]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const Dequant kernel = {format.format, format.block_values, 40, ElementType::kF32};
    const auto blocks = random_input(kernel, 1);
    const auto values = values_of(format.format, blocks);
    std::size_t zeros = 0;
    for (const float value : values) zeros += value == 0;
    CHECK(zeros < values.size() / 6);  // an eighth of q3_K's quants stand for 0
    CHECK(std::set<float>(values.begin(), values.end()).size() > 300);
    for (std::size_t i = 0; i < format.block_bytes; ++i) {
      std::set<std::byte> seen;
      for (std::size_t b = 0; b < kernel.n; ++b) seen.insert(blocks[b * format.block_bytes + i]);
      CHECK(seen.size() > 8);
    }
  }
}

TEST_CASE("a guarded output notices what is written beside it", "[kernels][device]") {
  Buffer source = *test_device().allocate(16);
  REQUIRE(source.fill(1).ok());
  const auto copy = test_kernels().get(Copy{.vectors = 1});
  REQUIRE(copy.ok());
  constexpr std::uint64_t kBytes = 96;
  for (const std::int64_t offset : {-64, -16, 0, 80, 96, 160}) {
    CAPTURE(offset);
    const GuardedOutput out(test_device(), kBytes, 16, "out");
    REQUIRE(out.read().ok());
    CHECK(out.address() % 32 == 16);
    const u64 target = out.address() + static_cast<u64>(offset);
    REQUIRE(copy->launch(test_device().default_stream(), {.src = {source.address()}, .dst = {target}}).ok());
    REQUIRE(test_device().synchronize().ok());
    const bool inside = offset >= 0 && offset + 16 <= static_cast<std::int64_t>(kBytes);
    CHECK(out.read().ok() == inside);
  }
}

}  // namespace
}  // namespace ptxgen::testing
