#include "src/reference/product.h"

#include <cmath>
#include <limits>

#include "src/reference/dequantize.h"
#include "src/reference/generate.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen::reference {
namespace {

constexpr std::size_t kValues = 512;

struct Case {
  std::vector<std::byte> row;
  std::vector<float> weights, x;
};

Case random_case(const FormatInfo& format, std::uint64_t seed) {
  Case c;
  c.row = random_blocks(format.format, kValues / format.block_values, seed);
  c.weights.resize(kValues);
  REQUIRE(dequantize(format.format, c.row, absl::MakeSpan(c.weights)).ok());
  c.x = random_activations(kValues, seed + 1);
  return c;
}

std::vector<Q8_1> quantized(const std::vector<float>& x) {
  std::vector<Q8_1> blocks;
  for (std::size_t i = 0; i < x.size(); i += kQ8_1Values)
    blocks.push_back(quantize_q8_1(absl::MakeConstSpan(x).subspan(i, kQ8_1Values)));
  return blocks;
}

// The sum as a warp makes it: a lane takes every 32nd value, then the lanes are added in pairs.
float sum_of_lanes(const std::vector<float>& weights, const std::vector<float>& x) {
  std::array<float, 32> lanes = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 32] = std::fma(weights[i], x[i], lanes[i % 32]);
  for (std::size_t distance = 16; distance > 0; distance /= 2) {
    for (std::size_t i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
  }
  return lanes[0];
}

TEST_CASE("a product is what can be worked out by hand", "[reference]") {
  // Two blocks of q8_0, d = 0.5 and -2, whose first values are 3, -4 and 5.
  std::vector<std::byte> row(2 * 34);
  row[0] = std::byte{0x00}, row[1] = std::byte{0x38}, row[2] = std::byte{3}, row[3] = std::byte{0xfc};
  row[34] = std::byte{0x00}, row[35] = std::byte{0xc0}, row[36] = std::byte{5};
  std::vector<float> x(64);
  x[0] = 7, x[1] = 0.25f, x[32] = -1.5f;
  const Bounded product = dot(Format::kQ8_0, row, x);
  CHECK(product.value == 0.5 * (3 * 7 - 4 * 0.25) - 2 * (5 * -1.5));
  const double magnitude = 0.5 * (3 * 7 + 4 * 0.25) + 2 * (5 * 1.5);
  CHECK(product.bound == rounding_bound(64, magnitude));

  // A block of q4_1: q * 0.5 - 1, q = 6 and 15 (the high nibble is value 16).
  std::vector<std::byte> with_min(20);
  with_min[1] = std::byte{0x38}, with_min[3] = std::byte{0xbc}, with_min[4] = std::byte{0xf6};
  std::vector<Q8_1> ones(1);
  ones[0].d = 0x3f80;
  ones[0].q[0] = 2, ones[0].q[16] = -3;
  const Bounded integer = dot(Format::kQ4_1, with_min, ones);
  CHECK(integer.value == (6 * 0.5 - 1) * 2 - (15 * 0.5 - 1) * 3);
  CHECK(integer.bound == rounding_bound(32, (6 * 0.5 + 1) * 2 + (15 * 0.5 + 1) * 3));
}

TEST_CASE("a product is that of the dequantised row, to what their rounding makes", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const Case c = random_case(format, 17);
    double sum = 0;
    for (std::size_t i = 0; i < kValues; ++i) sum += double{c.weights[i]} * c.x[i];
    const Bounded product = dot(format.format, c.row, c.x);
    CHECK(product.bound > 0);
    CHECK(std::abs(product.value - sum) <= product.bound / 8);
    CHECK(product.admits(sum_of_lanes(c.weights, c.x)));
  }
}

TEST_CASE("with int8 activations a product is that of the values they stand for", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const Case c = random_case(format, 23);
    const std::vector<Q8_1> blocks = quantized(c.x);
    std::vector<float> restored;
    for (const Q8_1& block : blocks) {
      for (const int q : block.q) restored.push_back(block.scale() * static_cast<float>(q));
    }
    const Bounded integer = dot(format.format, c.row, blocks);
    const Bounded product = dot(format.format, c.row, restored);
    CHECK(integer.value == Approx(product.value).epsilon(1e-12));
    CHECK(integer.bound == Approx(product.bound).epsilon(1e-12));
    CHECK(integer.value != dot(format.format, c.row, c.x).value);
  }
}

TEST_CASE("one quantised value that is off by one lies outside the bound", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CAPTURE(std::string(format.ggml_name));
    const Case c = random_case(format, 29);
    const Bounded product = dot(format.format, c.row, c.x);
    std::vector<std::byte> damaged = c.row;
    // The last byte that holds quantised values and no scale; its lowest bit.
    std::size_t at = format.block_bytes - 1;
    if (format.format == Format::kQ2_K) at = 79;
    if (format.format == Format::kQ3_K) at = 95;
    if (format.format == Format::kQ6_K) at = 127;
    damaged[at] ^= std::byte{1};
    CHECK_FALSE(product.admits(dot(format.format, damaged, c.x).value));
    CHECK_FALSE(
        dot(format.format, c.row, quantized(c.x)).admits(dot(format.format, damaged, quantized(c.x)).value));
  }
}

TEST_CASE("bounds of the activations count times the weights", "[reference]") {
  const FormatInfo& format = info(Format::kQ5_1);
  const Case c = random_case(format, 37);
  std::vector<Bounded> x;
  std::vector<float> higher = c.x;
  for (std::size_t i = 0; i < kValues; ++i) {
    x.push_back({c.x[i], 1e-3});
    higher[i] += c.weights[i] > 0 ? 1e-3f : -1e-3f;
  }
  const Bounded product = dot(format.format, c.row, absl::MakeConstSpan(x));
  CHECK(product.value == dot(format.format, c.row, c.x).value);
  CHECK(product.admits(dot(format.format, c.row, higher).value));
  CHECK(product.bound < 1.01 * std::abs(dot(format.format, c.row, higher).value - product.value));
}

TEST_CASE("blocks of uncertain values differ only where rounding may go either way", "[reference]") {
  std::vector<Bounded> x(64);
  x[0] = {126.9, 0};  // d = 1
  x[1] = {3.4, 0.05};
  x[2] = {3.4, 0.2};
  x[3] = {-0.5, 1e-9};
  x[32] = {127, 1e-3};  // d = 1, or the bf16 after it
  x[33] = {5.2, 0};
  const UncertainQ8_1 blocks = quantize_q8_1(x);
  REQUIRE(blocks.blocks.size() == 2);
  CHECK(blocks.blocks[0].q[1] == 3);
  CHECK(blocks.slack[0] == 0);
  CHECK(blocks.slack[1] == 0);
  CHECK(blocks.slack[2] == 1);
  CHECK(blocks.slack[3] == 1);
  CHECK(blocks.slack[4] == 0);
  CHECK(blocks.slack[33] > 1);

  const FormatInfo& format = info(Format::kQ3_K);
  Case c = random_case(format, 41);
  std::vector<Bounded> uncertain;
  for (float& value : c.x) {
    uncertain.push_back({value, 2e-5 * std::abs(value)});
    value *= 1 + 1e-5f;
  }
  const Bounded product = dot(format.format, c.row, quantize_q8_1(uncertain));
  CHECK(product.admits(dot(format.format, c.row, quantized(c.x)).value));
  c.x[17] += c.x[16];
  CHECK_FALSE(product.admits(dot(format.format, c.row, quantized(c.x)).value));
}

TEST_CASE("NaN and infinity pass through products", "[reference]") {
  const FormatInfo& format = info(Format::kQ4_K);
  Case c = random_case(format, 31);
  c.x[100] = std::nanf("");
  CHECK(std::isnan(dot(format.format, c.row, c.x).value));
  CHECK(std::isnan(dot(format.format, c.row, quantized(c.x)).value));
  c.x[100] = HUGE_VALF;
  CHECK_FALSE(std::isfinite(dot(format.format, c.row, c.x).value));
  CHECK(std::isnan(dot(format.format, c.row, quantized(c.x)).value));
}

TEST_CASE("a bound grows with the terms, and is infinite where f32 may overflow", "[reference]") {
  CHECK(rounding_bound(4096, 2) == (4096.0 / 16 + 32) * std::ldexp(1.0, -23) + std::ldexp(1.0, -114));
  CHECK(rounding_bound(32, 0) == std::ldexp(1.0, -121));
  CHECK(std::isinf(rounding_bound(32, 3.5e38)));
  CHECK(std::isfinite(rounding_bound(32, 3.4e38)));
}

}  // namespace
}  // namespace ptxgen::reference
