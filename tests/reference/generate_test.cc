#include "src/reference/generate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "src/reference/dequantize.h"
#include "src/reference/narrow.h"
#include "tests/support/catch.h"

namespace ptxgen::reference {
namespace {

std::vector<float> values_of(Format format, const std::vector<std::byte>& blocks) {
  std::vector<float> values(blocks.size() / info(format).block_bytes * info(format).block_values);
  REQUIRE(dequantize(format, blocks, absl::MakeSpan(values)).ok());
  return values;
}

TEST_CASE("a seed fixes the blocks", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    const auto blocks = random_blocks(format.format, 20, 7);
    CHECK(blocks.size() == 20 * format.block_bytes);
    CHECK(blocks == random_blocks(format.format, 20, 7));
    CHECK(blocks != random_blocks(format.format, 20, 8));
    CHECK(random_bytes(format.format, 20, 7) == random_bytes(format.format, 20, 7));
    CHECK(random_bytes(format.format, 20, 7) != random_bytes(format.format, 20, 8));
    const auto fewer = random_blocks(format.format, 3, 7);
    CHECK(std::equal(fewer.begin(), fewer.end(), blocks.begin()));
  }
  // Literal bytes: the same on every machine.
  const auto blocks = random_blocks(Format::kQ4_0, 1, 1);
  std::vector<int> head;
  for (int i = 0; i < 6; ++i) head.push_back(std::to_integer<int>(blocks[i]));
  CHECK(head == std::vector<int>{67, 176, 248, 113, 113, 195});
}

TEST_CASE("generated values are finite in f16, of both signs, and differ", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const auto values = values_of(format.format, random_blocks(format.format, 64, 3));
    CHECK(std::all_of(values.begin(), values.end(), [](float v) { return std::abs(v) < 65504; }));
    CHECK(std::any_of(values.begin(), values.end(), [](float v) { return v < -1e-3f; }));
    CHECK(std::any_of(values.begin(), values.end(), [](float v) { return v > 1e-3f; }));
    CHECK(std::set<float>(values.begin(), values.end()).size() > 500);
    // Every block, the subnormal ones too, has more than a handful of values.
    for (std::size_t first = 0; first < values.size(); first += format.block_values) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
      CHECK(std::set<float>(begin, begin + format.block_values).size() >= 8);
    }
  }
}

TEST_CASE("every eighth block has subnormal scales", "[reference]") {
  const auto blocks = random_blocks(Format::kQ4_1, 32, 3);
  const auto exponent = [&](std::size_t block, std::size_t field) {
    return std::to_integer<int>(blocks[block * 20 + 2 * field + 1]) >> 2 & 31;
  };
  for (std::size_t block = 0; block < 32; ++block) {
    for (const std::size_t field : {0u, 1u}) {
      if (block % 8 == 5) {
        CHECK(exponent(block, field) == 0);
      } else {
        CHECK(exponent(block, field) >= 7);
        CHECK(exponent(block, field) <= 14);
      }
    }
  }
}

// With all quants 1 and dmin 0 a sub-block's values are its scale; with d 0 and dmin -1 they are its min.
TEST_CASE("sub-block scales and mins of K-quants are distinct and non-zero", "[reference]") {
  const auto sub_block_values = [](Format format, std::vector<std::byte> block, std::size_t sub_block) {
    const auto values = values_of(format, block);
    std::multiset<float> firsts;
    for (std::size_t i = 0; i < 256; i += sub_block) firsts.insert(values[i]);
    return firsts;
  };
  const auto put = [](std::vector<std::byte>& block, std::size_t offset, std::size_t count, int value) {
    std::fill_n(block.begin() + static_cast<std::ptrdiff_t>(offset), count, static_cast<std::byte>(value));
  };
  const auto distinct = [](const std::multiset<float>& values) {
    return std::set<float>(values.begin(), values.end()).size();
  };
  const auto put_half = [](std::vector<std::byte>& block, std::size_t offset, int bits) {
    block[offset] = static_cast<std::byte>(bits);
    block[offset + 1] = static_cast<std::byte>(bits >> 8);
  };
  constexpr int kOne = 0x3c00, kMinusOne = 0xbc00;

  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const Format format : {Format::kQ4_K, Format::kQ5_K}) {
      auto block = random_blocks(format, 1, seed);
      put(block, 16, block.size() - 16, format == Format::kQ4_K ? 0x11 : 0);
      if (format == Format::kQ5_K) put(block, 48, 128, 0x11);
      put_half(block, 0, kOne);
      put_half(block, 2, 0);
      const auto scales = sub_block_values(format, block, 32);
      put_half(block, 0, 0);
      put_half(block, 2, kMinusOne);
      const auto mins = sub_block_values(format, block, 32);
      CHECK(distinct(scales) == 8);
      CHECK(distinct(mins) == 8);
      CHECK(*scales.begin() >= 1);
      CHECK(*mins.begin() >= 1);
    }
    auto q2 = random_blocks(Format::kQ2_K, 1, seed);
    put(q2, 16, 64, 0x55);
    put_half(q2, 80, kOne);
    put_half(q2, 82, 0);
    CHECK(distinct(sub_block_values(Format::kQ2_K, q2, 16)) == 15);
    CHECK(*sub_block_values(Format::kQ2_K, q2, 16).begin() >= 1);

    auto q3 = random_blocks(Format::kQ3_K, 1, seed);
    put(q3, 0, 32, 0xff);
    put(q3, 32, 64, 0x55);
    put_half(q3, 108, kOne);
    CHECK(distinct(sub_block_values(Format::kQ3_K, q3, 16)) == 16);
    CHECK(sub_block_values(Format::kQ3_K, q3, 16).count(0) == 0);

    auto q6 = random_blocks(Format::kQ6_K, 1, seed);
    put(q6, 0, 128, 0x11);
    put(q6, 128, 64, 0xaa);
    put_half(q6, 208, kOne);
    CHECK(distinct(sub_block_values(Format::kQ6_K, q6, 16)) == 16);
    CHECK(sub_block_values(Format::kQ6_K, q6, 16).count(0) == 0);
  }
}

}  // namespace
}  // namespace ptxgen::reference
