#include "src/reference/dequantize.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "src/reference/compare.h"
#include "src/reference/generate.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

namespace ptxgen::reference {
namespace {

std::vector<float> dequantized(Format format, absl::Span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / info(format).block_bytes * info(format).block_values);
  REQUIRE(dequantize(format, blocks, absl::MakeSpan(values)).ok());
  return values;
}

absl::Span<const std::byte> bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
}

Comparison compare_f32(absl::Span<const std::byte> expected, const std::vector<float>& actual) {
  auto comparison = compare(FloatType::kF32, expected, bytes_of(actual));
  REQUIRE(comparison.ok());
  return *comparison;
}

TEST_CASE("dequantize gives ggml's floats bit for bit", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    const std::string name(format.ggml_name);
    CAPTURE(name);
    const auto blocks = testing::read_data("blocks/" + name + ".bin");
    const auto expected = testing::read_data("blocks/" + name + "_f32.bin");
    REQUIRE(expected.size() == 8 * 1024 * sizeof(float));
    const Comparison comparison = compare_f32(expected, dequantized(format.format, blocks));
    CAPTURE(comparison.to_string());
    CHECK(comparison.values == 8 * 1024);
    CHECK(comparison.equal());
  }
}

TEST_CASE("no bit of a block is without effect", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const auto blocks = random_blocks(format.format, 6, 11);
    for (const std::size_t index : {0u, 5u}) {  // 5: subnormal scales
      const auto first = blocks.begin() + static_cast<std::ptrdiff_t>(index * format.block_bytes);
      const std::vector<std::byte> block(first, first + format.block_bytes);
      const std::vector<float> expected = dequantized(format.format, block);
      std::size_t unseen = 0;
      for (std::size_t bit = 0; bit < 8 * block.size(); ++bit) {
        std::vector<std::byte> damaged = block;
        damaged[bit / 8] ^= std::byte{1} << (bit % 8);
        unseen += compare_f32(bytes_of(expected), dequantized(format.format, damaged)).equal();
      }
      CHECK(unseen == 0);
    }
  }
}

TEST_CASE("dequantize reads blocks at any address", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    const auto blocks = random_blocks(format.format, 3, 5);
    std::vector<std::byte> shifted(blocks.size() + 1);
    std::copy(blocks.begin(), blocks.end(), shifted.begin() + 1);
    const auto values = dequantized(format.format, blocks);
    CHECK(compare_f32(bytes_of(values), dequantized(format.format, absl::MakeConstSpan(shifted).subspan(1)))
              .equal());
  }
}

TEST_CASE("dequantize lets NaN and Inf scales through", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const auto values = dequantized(format.format, random_bytes(format.format, 400, 3));
    CHECK(std::any_of(values.begin(), values.end(), [](float v) { return v != v; }));
    CHECK(std::any_of(values.begin(), values.end(), [](float v) { return v == v && v - v != 0; }));
  }
}

TEST_CASE("dequantize refuses sizes that do not fit", "[reference]") {
  const auto blocks = random_blocks(Format::kQ6_K, 2, 1);
  std::vector<float> out(512, -1.0f);
  const auto message = [](const absl::Status& status) { return std::string(status.message()); };
  CHECK(dequantize(Format::kQ6_K, {}, {}).ok());
  CHECK(message(dequantize(Format::kQ6_K, absl::MakeConstSpan(blocks).first(419), absl::MakeSpan(out))) ==
        "dequantize: 419 bytes are no whole number of q6_K blocks of 210 bytes");
  CHECK(message(dequantize(Format::kQ6_K, blocks, absl::MakeSpan(out).first(511))) ==
        "dequantize: 420 bytes of q6_K hold 512 values, but out has room for 511");
  CHECK(std::all_of(out.begin(), out.end(), [](float v) { return v == -1.0f; }));
}

}  // namespace
}  // namespace ptxgen::reference
