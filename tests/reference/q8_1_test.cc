#include "src/reference/q8_1.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "src/reference/generate.h"
#include "src/reference/narrow.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/support/status.h"

namespace ptxgen::reference {
namespace {

using testing::take;

// A block of zeros with these values in front.
Q8_1 block_of(std::vector<float> values) {
  values.resize(kQ8_1Values);
  return quantize_q8_1(values);
}

TEST_CASE("d is the largest value over 127, rounded up to bf16", "[reference]") {
  CHECK(block_of({127}).d == 0x3f80);      // 1
  CHECK(block_of({0, -254}).d == 0x4000);  // 2
  // 128 / 127 = 1.00787 lies between 1.0078125 = 0x3f81 and 1.015625 = 0x3f82.
  CHECK(block_of({128}).d == 0x3f82);
  CHECK(block_of({128}).q[0] == 126);  // 126.03
  CHECK(block_of({127.0001f}).d == 0x3f81);  // the bf16 after 1
  CHECK(block_of({std::numeric_limits<float>::max()}).d == 0x7c02);
  CHECK(block_of({-std::numeric_limits<float>::max()}).q[0] == -126);  // -126.03
}

TEST_CASE("q is rounded to the nearest integer, ties to even", "[reference]") {
  const Q8_1 block = block_of({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49f, -0.51f, 126.5f, -126.5f});
  const std::array<std::int8_t, 11> expected = {127, 0, 2, 2, 0, -2, -2, 0, -1, 126, -126};
  CHECK(std::equal(expected.begin(), expected.end(), block.q.begin()));
  CHECK(block.sum == 127 - 1);
  // Rounded once: in f32, the product with 1/3 would first become 0.5.
  const float just_above = std::nextafter(1.5f, 2.0f);
  const Q8_1 thirds = block_of({381, just_above});
  CHECK(thirds.scale() == 3);
  CHECK(thirds.q[1] == 1);
}

TEST_CASE("the smallest blocks are zero, and sums of the largest fit", "[reference]") {
  for (const float largest : {0.0f, -0.0f, 0x1p-149f, 0x1p-119f, std::nextafter(0x1p-118f, 0.0f)}) {
    const Q8_1 block = block_of({largest, largest / 2});
    CHECK(block.d == 0);
    CHECK(block.q == Q8_1{}.q);
    CHECK(block.sum == 0);
  }
  const Q8_1 least = block_of({0x1p-118f, -0x1p-119f});
  CHECK(least.d == 0x0102);  // 2^-125 * (1 + 2 / 128)
  CHECK(least.q[0] == 126);
  CHECK(least.q[1] == -63);
  for (const float value : {5000.0f, 1e5f, std::numeric_limits<float>::max()}) {
    const Q8_1 block = quantize_q8_1(std::vector<float>(kQ8_1Values, value));
    CHECK(block.sum == 32 * block.q[0]);
    CHECK(block.q[0] >= 126);
  }
}

TEST_CASE("a value that is not finite makes its block NaN", "[reference]") {
  for (const float value : {std::nanf(""), -std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    for (const std::size_t place : {0u, 17u, 31u}) {
      std::vector<float> values(kQ8_1Values, 3.0f);
      values[place] = value;
      CHECK(quantize_q8_1(values).is_nan());
    }
  }
  CHECK_FALSE(block_of({std::numeric_limits<float>::max()}).is_nan());
}

TEST_CASE("quantised values lie within half a step", "[reference]") {
  const std::vector<float> values = random_activations(64 * kQ8_1Values, 3);
  for (std::size_t first = 0; first < values.size(); first += kQ8_1Values) {
    const auto x = absl::MakeConstSpan(values).subspan(first, kQ8_1Values);
    const Q8_1 block = quantize_q8_1(x);
    if (block.d == 0) continue;
    CHECK(std::accumulate(block.q.begin(), block.q.end(), 0) == block.sum);
    const double d = block.scale();
    for (std::size_t i = 0; i < kQ8_1Values; ++i)
      CHECK(std::abs(x[i] - d * block.q[i]) <= d * (0.5 + 0x1p-16));
    CHECK(*std::max_element(block.q.begin(), block.q.end(),
                            [](int a, int b) { return std::abs(a) < std::abs(b); }) != 0);
  }
}

TEST_CASE("quantised values are ggml's to a step", "[reference]") {
  const auto bytes = testing::read_data("blocks/activations_f32.bin");
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  const auto blocks = testing::read_data("blocks/activations_q8_1.bin");
  REQUIRE(values.size() == 4 * 1024);
  REQUIRE(blocks.size() == values.size() / kQ8_1Values * kQ8_1Bytes);
  const std::vector<Q8_1> ggml = take(read_q8_1(blocks));  // d is f16 there
  for (std::size_t b = 0; b < ggml.size(); ++b) {
    const Q8_1 ours = quantize_q8_1(absl::MakeConstSpan(values).subspan(b * kQ8_1Values, kQ8_1Values));
    const double d = f16_to_f32(ggml[b].d);
    CHECK(ours.scale() >= d * (1 - 0x1p-10));
    CHECK(ours.scale() <= d * (1 + 0x1p-7 + 0x1p-10));
    for (std::size_t i = 0; i < kQ8_1Values; ++i)
      CHECK(std::abs(ours.scale() * ours.q[i] - d * ggml[b].q[i]) <= 1.01 * ours.scale());
  }
}

TEST_CASE("blocks are 36 bytes: d, the sum, the values", "[reference]") {
  std::vector<float> values(2 * kQ8_1Values);
  values[32] = -254;
  values[33] = 3;
  std::vector<std::byte> bytes(2 * kQ8_1Bytes, std::byte{0x55});
  REQUIRE(quantize_q8_1(values, absl::MakeSpan(bytes)).ok());
  CHECK(std::count(bytes.begin(), bytes.begin() + 36, std::byte{0}) == 36);
  const std::array<unsigned, 6> expected = {0x00, 0x40, 0x83, 0xff, 0x81, 0x02};  // 2, -125, -127, 2
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::to_integer<unsigned>(bytes[36 + i]) == expected[i]);
  const std::vector<Q8_1> read = take(read_q8_1(bytes));
  REQUIRE(read.size() == 2);
  CHECK(read[1].sum == -125);
  CHECK(read[1].q[0] == -127);
  CHECK_FALSE(quantize_q8_1(absl::MakeConstSpan(values).first(33), absl::MakeSpan(bytes)).ok());
  CHECK_FALSE(quantize_q8_1(values, absl::MakeSpan(bytes).first(71)).ok());
  CHECK_FALSE(read_q8_1(absl::MakeConstSpan(bytes).first(35)).ok());
}

TEST_CASE("NaN blocks are given one form, and others left alone", "[reference]") {
  std::vector<float> values(3 * kQ8_1Values, 1.5f);
  values[40] = std::nanf("");
  std::vector<std::byte> bytes(3 * kQ8_1Bytes);
  REQUIRE(quantize_q8_1(values, absl::MakeSpan(bytes)).ok());
  std::vector<std::byte> other = bytes;
  for (std::size_t i = 36; i < 72; ++i) other[i] = std::byte{0xff};  // another NaN, other values
  canonicalize_q8_1(absl::MakeSpan(other));
  CHECK(other == bytes);
}

}  // namespace
}  // namespace ptxgen::reference
