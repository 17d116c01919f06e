// Few rows of x on the tensor cores: every format, against exact integer sums of quantised activations in
// f64.

#include <cmath>
#include <limits>
#include <random>

#include "src/reference/dequantize.h"
#include "src/reference/product.h"
#include "src/reference/q8_1.h"
#include "tests/kernels/products.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

bool has_copies() {
  return test_device().target().supports(kHopper);
}

BatchedGemv product(Format format, u32 blocks, u32 n, u32 max_m, Schedule schedule = Schedule::kMma,
                    Activations x_type = Activations::kF32) {
  BatchedGemv gemv;
  gemv.format = format;
  gemv.k = blocks * info(format).block_values;
  gemv.n = n;
  gemv.max_m = max_m;
  gemv.schedule = schedule;
  gemv.x_type = x_type;
  return gemv;
}

std::vector<std::byte> make_weights(const BatchedGemv& gemv, std::uint64_t seed) {
  return random_input(Dequant{.format = gemv.format, .k = gemv.k, .n = gemv.n}, seed);
}
std::vector<float> make_x(u32 m, u32 k, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(std::size_t{m} * k);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = normal(random) * static_cast<float>(1 + i / 32 % 7);
  return x;
}

struct Inputs {
  std::vector<std::byte> weights;
  std::vector<float> x;
};
Inputs make_inputs(const BatchedGemv& gemv, u32 m, std::uint64_t seed) {
  return {make_weights(gemv, seed), make_x(m, gemv.k, seed + 1)};
}

// The first m rows of x.
std::vector<float> launch(const BatchedGemv& gemv, const Inputs& inputs, u32 m) {
  const std::vector<float> x(inputs.x.begin(), inputs.x.begin() + std::size_t{m} * gemv.k);
  std::vector<std::byte> activations = bytes_of(x);
  if (gemv.x_type == Activations::kQ8_1) {
    std::vector<std::byte> blocks(x.size() / reference::kQ8_1Values * reference::kQ8_1Bytes);
    REQUIRE(reference::quantize_q8_1(x, absl::MakeSpan(blocks)).ok());
    activations = blocks;
  }
  CAPTURE(KernelType(gemv)->text(), m);
  return as<float>(run({gemv, {0, 0, 0, m}, {inputs.weights, activations, {}, {}}})[2]);
}

// Each output within what rounding in f32 may do (reference::rounding_bound): a product's terms are as many
// and are added as often as there.
void check_outputs(const BatchedGemv& gemv, const Inputs& inputs, u32 m, const std::vector<float>& y) {
  CAPTURE(KernelType(gemv)->text(), m);
  REQUIRE(y.size() == std::size_t{m} * gemv.n);
  const std::size_t row_bytes = inputs.weights.size() / gemv.n;
  for (u32 i = 0; i < m; ++i) {
    std::vector<reference::Q8_1> x;
    for (u32 first = 0; first < gemv.k; first += 32)
      x.push_back(
          reference::quantize_q8_1(absl::MakeConstSpan(&inputs.x[std::size_t{i} * gemv.k + first], 32)));
    for (u32 row = 0; row < gemv.n; ++row) {
      const auto blocks = absl::MakeConstSpan(inputs.weights).subspan(row * row_bytes, row_bytes);
      const reference::Bounded expected = reference::dot(gemv.format, blocks, absl::MakeConstSpan(x));
      const float actual = y[std::size_t{i} * gemv.n + row];
      if (std::abs(actual - expected.value) <= expected.bound) continue;
      CAPTURE(i, row, actual, expected.value, expected.bound);
      FAIL_CHECK("an output out of bounds");
      return;
    }
  }
}

void check_product(const BatchedGemv& gemv, u32 m, std::uint64_t seed) {
  const Inputs inputs = make_inputs(gemv, m, seed);
  check_outputs(gemv, inputs, m, launch(gemv, inputs, m));
}

std::vector<Schedule> schedules() {
  std::vector<Schedule> all = {Schedule::kMmaDirect};
  if (has_copies()) all.push_back(Schedule::kMma);
  return all;
}

TEST_CASE("tensor-core products of few rows and blocks", "[kernels][gemv][mma][device]") {
  std::uint64_t seed = 100;
  for (const FormatInfo& format : kFormats) {
    for (const Schedule schedule : schedules()) {
      u32 m = 0;
      for (const u32 n : {1u, 5u, 31u, 33u, 37u}) {
        for (const u32 blocks : {1u, 3u, 5u}) {
          const Activations x_type = m % 2 ? Activations::kQ8_1 : Activations::kF32;
          check_product(product(format.format, blocks, n, 8, schedule, x_type), m % 8 + 1, ++seed);
          check_product(product(format.format, blocks, n, 16, schedule, x_type), m % 16 + 1, ++seed);
          ++m;
        }
      }
    }
  }
}

TEST_CASE("tensor-core products of long rows", "[kernels][gemv][mma][device]") {
  std::uint64_t seed = 1000;
  for (const FormatInfo& format : kFormats) {
    for (const Schedule schedule : schedules()) {
      check_product(product(format.format, 4096 / format.block_values, 19, 8, schedule, Activations::kQ8_1),
                    7, ++seed);
      check_product(product(format.format, 4096 / format.block_values, 19, 16, schedule), 15, ++seed);
    }
  }
}

// By every number of rows of x, each of which gives the bits that it gives alone, whatever max_m, schedule
// and type of the activations.
TEST_CASE("each row of a few on the tensor cores gives the bits that it gives alone",
          "[kernels][gemv][mma][device]") {
  for (const FormatInfo& format : kFormats) {
    const BatchedGemv sixteen = product(format.format, 5, 37, 16, schedules().back());
    const Inputs inputs = make_inputs(sixteen, 16, 2000);
    const std::vector<float> all = launch(sixteen, inputs, 16);
    check_outputs(sixteen, inputs, 16, all);
    const auto first_rows = [&](u32 m) {
      return std::vector<float>(all.begin(), all.begin() + std::size_t{m} * sixteen.n);
    };
    for (u32 m = 1; m <= 16; ++m) {
      CHECK(launch(sixteen, inputs, m) == first_rows(m));
      if (m > 8) continue;
      BatchedGemv eight = sixteen;
      eight.max_m = 8;
      CHECK(launch(eight, inputs, m) == first_rows(m));
      eight.schedule = Schedule::kMmaDirect;
      eight.x_type = Activations::kQ8_1;
      CHECK(launch(eight, inputs, m) == first_rows(m));
    }
    BatchedGemv by_eights = sixteen;
    by_eights.plan = {.ctas = 2, .stages = 2, .ctas_per_sm = 1};
    by_eights.mma_plan = {.columns = 8, .warps = 8, .chunk = format.block_values == 256 ? 8u : 32u};
    CHECK(launch(by_eights, inputs, 13) == first_rows(13));
    Inputs last = inputs;
    last.x.erase(last.x.begin(), last.x.begin() + 15 * std::ptrdiff_t{sixteen.k});
    CHECK(launch(sixteen, last, 1) == std::vector<float>(all.end() - sixteen.n, all.end()));
  }
}

// Chunks that do not divide the row, rings that come round, CTAs with unequal numbers of tiles.
TEST_CASE("tensor-core products by uneven plans", "[kernels][gemv][mma][device]") {
  if (!has_copies()) return;
  struct Plan {
    StreamPlan stream;
    u32 columns, warps, chunk, chunk_of_small;  // the last for blocks of 32 values
  };
  const Plan kPlans[] = {
      {{.ctas = 1, .stages = 1}, 16, 4, 8, 16},
      {{.ctas = 2, .stages = 4, .in_flight = 1, .trigger = 1}, 8, 8, 8, 32},
      {{.ctas = 3, .stages = 2, .trigger = 4, .ctas_per_sm = 1}, 8, 16, 16, 64},
      {{.ctas = 5, .stages = 3, .in_flight = 2}, 8, 8, 1000, 1000},
      {{.ctas = 5, .stages = 1}, 8, 4, 24, 48},
  };
  std::uint64_t seed = 3000;
  for (const FormatInfo& format : kFormats) {
    for (const Plan& plan : kPlans) {
      for (const u32 n : {37u, 64u}) {
        const bool large = format.block_values == 256;
        const bool whole_row = plan.chunk > 100;
        BatchedGemv gemv = product(format.format, whole_row ? 9 : large ? 29 : 85, n, 16);
        const Inputs inputs = make_inputs(gemv, 11, ++seed);
        const std::vector<float> planned = launch(gemv, inputs, 11);
        gemv.plan = plan.stream;
        gemv.mma_plan = {plan.columns, plan.warps, large ? plan.chunk : plan.chunk_of_small};
        INFO(gemv.validate().ToString());
        REQUIRE(gemv.validate().ok());
        const std::vector<float> y = launch(gemv, inputs, 11);
        check_outputs(gemv, inputs, 11, y);
        CHECK(y == planned);
      }
    }
  }
}

TEST_CASE("tensor-core products with huge, tiny and zero activations", "[kernels][gemv][mma][device]") {
  std::uint64_t seed = 4000;
  for (const float value : {0.f, 5000.f, 1e5f, 3e30f, 1e-33f, 1e-41f}) {
    for (const FormatInfo& format : kFormats) {
      const BatchedGemv gemv = product(format.format, 3, 5, 8, schedules().back());
      Inputs inputs = make_inputs(gemv, 3, ++seed);
      for (u32 i = 0; i < inputs.x.size(); ++i)
        inputs.x[i] = (i % 3 ? value : -value) * static_cast<float>(1 + i % 5) / 5;
      CAPTURE(value);
      check_outputs(gemv, inputs, 3, launch(gemv, inputs, 3));
    }
  }
}

TEST_CASE("a NaN in a row of x surfaces in that row's outputs and nowhere else",
          "[kernels][gemv][mma][device]") {
  for (const FormatInfo& format : kFormats) {
    const BatchedGemv gemv = product(format.format, 5, 33, 8, schedules().back());
    Inputs inputs = make_inputs(gemv, 5, 17);
    const std::vector<float> before = launch(gemv, inputs, 5);
    inputs.x[2 * gemv.k + 77] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> after = launch(gemv, inputs, 5);
    for (u32 i = 0; i < after.size(); ++i) {
      CAPTURE(i);
      if (i / gemv.n == 2) {
        CHECK(std::isnan(after[i]));
      } else {
        CHECK(after[i] == before[i]);
      }
    }
  }
}

// The f64 reference itself, against ggml's dequantised values.
TEST_CASE("tensor-core products are those of dequantised weights", "[kernels][gemv][mma][device]") {
  for (const FormatInfo& format : kFormats) {
    const BatchedGemv gemv = product(format.format, 3, 5, 8, schedules().back());
    const Inputs inputs = make_inputs(gemv, 2, 23);
    const std::vector<float> y = launch(gemv, inputs, 2);
    std::vector<float> weights(std::size_t{gemv.n} * gemv.k);
    REQUIRE(reference::dequantize(gemv.format, inputs.weights, absl::MakeSpan(weights)).ok());
    for (u32 i = 0; i < y.size(); ++i) {
      double sum = 0, magnitude = 0;
      for (u32 j = 0; j < gemv.k; ++j) {
        const double w = weights[i % gemv.n * gemv.k + j], x = inputs.x[i / gemv.n * gemv.k + j];
        sum += w * x;
        magnitude += std::abs(w * x);
      }
      // Quantising moves an activation by at most half a step, 1 / 254 of the largest of its 32.
      CAPTURE(format.name, i, sum, y[i]);
      CHECK(std::abs(y[i] - sum) <= magnitude / 20);
      CHECK(magnitude > 0);
    }
  }
}

TEST_CASE("tensor-core products refuse what they cannot do", "[kernels][gemv][mma]") {
  const auto refused = [](BatchedGemv gemv, std::string_view why) {
    const absl::Status status = gemv.validate();
    CAPTURE(status.ToString());
    CHECK_FALSE(status.ok());
    CHECK(status.message().find(std::string(why)) != std::string::npos);
  };
  BatchedGemv gemv = product(Format::kQ4_K, 16, 64, 16);
  CHECK(gemv.validate().ok());
  gemv.max_m = 12;
  refused(gemv, "power of two");
  gemv.max_m = 16;
  gemv.schedule = Schedule::kStream;
  refused(gemv, "schedule stream takes up to 4");
  gemv.max_m = 4;
  gemv.mma_plan.columns = 8;
  refused(gemv, "belong to mma");
  gemv.schedule = Schedule::kMma;
  gemv.plan = {.ctas = 2, .stages = 1};
  refused(gemv, "warps is 0");
  gemv.mma_plan = {.columns = 8, .warps = 4, .chunk = 6};
  refused(gemv, "multiple of 4 blocks");
  gemv.mma_plan.warps = 12;
  refused(gemv, "4, 8 or 16");
  gemv.mma_plan.warps = 4;
  gemv.mma_plan.chunk = 16;
  CHECK(gemv.validate().ok());
  gemv.plan.stages = 32;
  refused(gemv, "bytes of shared memory");
  gemv.plan.stages = 1;
  gemv.plan.row_lanes = 8;
  refused(gemv, "belong to stream");
  gemv.plan.row_lanes = 0;
  gemv.plan.ctas = 65;
  refused(gemv, "at least one row");
}

}  // namespace
}  // namespace ptxgen::testing
