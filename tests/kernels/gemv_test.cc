// Matrix-vector products: every format by every schedule, against f64 and the integer model.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/products.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr std::array<u64, 3> kNoScalars = {0, 0, 0};

bool runs(const KernelType& kernel) {
  return build_kernel(*kernel, {test_device().target(), test_device().highest_isa()}).ok();
}

// Schedules with the types of activations they take.
std::vector<Gemv> variants(Format format, u32 k, u32 n) {
  std::vector<Gemv> all;
  for (std::size_t s = 0; s < kEnumNames<Schedule>.size(); ++s) {
    for (const Activations x_type : {Activations::kF32, Activations::kQ8_1}) {
      const Gemv gemv{
          .format = format, .k = k, .n = n, .schedule = static_cast<Schedule>(s), .x_type = x_type};
      if (KernelType(gemv)->validate().ok()) all.push_back(gemv);
    }
  }
  return all;
}

void check_gemv(const Gemv& gemv, std::uint64_t seed) {
  REQUIRE(runs(gemv));
  check(random_launch(gemv, {kNoScalars.begin(), kNoScalars.end()}, seed));
}

TEST_CASE("every format has every schedule", "[kernels][gemv]") {
  for (const FormatInfo& format : kFormats) CHECK(variants(format.format, 1280, 5).size() == 13);
}

TEST_CASE("products of few rows of few blocks", "[kernels][gemv][device]") {
  std::uint64_t seed = 1000;
  for (const FormatInfo& format : kFormats) {
    for (const u32 n : {1u, 5u, 31u, 33u}) {
      for (const u32 blocks : {1u, 3u}) {
        for (const Gemv& gemv : variants(format.format, blocks * format.block_values, n))
          check_gemv(gemv, ++seed);
      }
    }
  }
}

TEST_CASE("products of many rows", "[kernels][gemv][device]") {
  std::uint64_t seed = 2000;
  for (const FormatInfo& format : kFormats) {
    const u32 k = format.block_values == 256 ? 256 : 96;
    for (const Gemv& gemv : variants(format.format, k, 1031)) check_gemv(gemv, ++seed);
  }
}

TEST_CASE("products of long rows", "[kernels][gemv][device]") {
  std::uint64_t seed = 3000;
  for (const FormatInfo& format : kFormats) {
    for (const u32 k : {4096u, 7168u, 8192u, 8960u, 14336u}) {
      for (const Gemv& gemv : variants(format.format, k, 3)) check_gemv(gemv, ++seed);
    }
  }
}

// As many rows as vocabularies have, which repeat those of a product that is compared with the reference: a
// row's bits do not depend on its place.
TEST_CASE("products of vocabularies", "[kernels][gemv][device]") {
  constexpr u32 kPeriod = 1031;
  const bool emulator = test_device().kind() == DeviceKind::kEmulator;  // takes long
  const std::vector<u32> vocabularies =
      emulator ? std::vector{32001u} : std::vector{32001u, 128256u, 250880u};
  std::uint64_t seed = 3500;
  for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ8_0}) {
    const u32 k = emulator ? info(format).block_values : 4096;
    const LaunchData few = random_launch(Gemv{.format = format, .k = k, .n = kPeriod},
                                         {kNoScalars.begin(), kNoScalars.end()}, ++seed);
    check(few);
    const std::vector<float> expected = as<float>(run(few)[2]);
    const std::vector<std::byte>& weights = few.inputs[0];
    for (const u32 n : vocabularies) {
      LaunchData many = few;
      many.kernel = Gemv{.format = format, .k = k, .n = n};
      CAPTURE(many.kernel->text());
      many.inputs[0].resize(weights.size() / kPeriod * n);
      for (std::size_t i = 0; i < many.inputs[0].size(); i += weights.size())
        std::copy_n(weights.begin(), std::min(weights.size(), many.inputs[0].size() - i),
                    many.inputs[0].begin() + i);
      const std::vector<float> y = as<float>(run(many)[2]);
      REQUIRE(y.size() == n);
      u32 different = 0;
      for (u32 row = 0; row < n; ++row)
        different += std::bit_cast<u32>(y[row]) != std::bit_cast<u32>(expected[row % kPeriod]);
      CHECK(different == 0);
    }
  }
}

// Plans that are no multiple of anything: rows that begin within 16 bytes, tiles that are not full, CTAs with
// unequal numbers of tiles, rings that come round several times.
TEST_CASE("products by uneven plans of schedule stream", "[kernels][gemv][device]") {
  constexpr StreamPlan kPlans[] = {
      {.ctas = 3, .row_lanes = 8, .groups = 2, .rows = 2, .stages = 2},
      {.ctas = 4, .row_lanes = 16, .groups = 1, .rows = 1, .stages = 3, .in_flight = 1},
      {.ctas = 2, .row_lanes = 8, .groups = 1, .rows = 1, .stages = 5, .in_flight = 3},
      {.ctas = 2, .row_lanes = 32, .groups = 3, .rows = 4, .stages = 1, .trigger = 1},
      {.ctas = 5, .row_lanes = 4, .groups = 1, .rows = 1, .stages = 4, .in_flight = 2, .trigger = 2},
  };
  std::uint64_t seed = 4000;
  for (const FormatInfo& format : kFormats) {
    for (const StreamPlan& plan : kPlans) {
      for (const u32 n : {37u, 64u}) {
        check_gemv({.format = format.format, .k = 5 * format.block_values, .n = n, .plan = plan}, ++seed);
      }
    }
  }
}

// ---- Activations that are not ordinary

std::vector<float> special(u32 k, float value) {
  std::vector<float> x(k);
  for (u32 i = 0; i < k; ++i) x[i] = (i % 3 ? value : -value) * static_cast<float>(1 + i % 5) / 5;
  return x;
}

TEST_CASE("products with huge, tiny and zero activations", "[kernels][gemv][device]") {
  std::uint64_t seed = 5000;
  for (const float value : {0.f, 5000.f, 1e5f, 3e30f, 1e-37f, 1e-41f}) {
    for (const FormatInfo& format : kFormats) {
      for (const Gemv& gemv : variants(format.format, 768, 5)) {
        if (gemv.x_type != Activations::kF32) continue;
        CAPTURE(value);
        LaunchData launch = random_launch(gemv, {kNoScalars.begin(), kNoScalars.end()}, ++seed);
        launch.inputs[1] = bytes_of(special(gemv.k, value));
        check(launch);
      }
    }
  }
}

TEST_CASE("a NaN among the activations surfaces in every output", "[kernels][gemv][device]") {
  for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ4_0}) {
    for (const Gemv& gemv : variants(format, 768, 33)) {
      if (gemv.x_type != Activations::kF32) continue;
      CAPTURE(KernelType(gemv)->text());
      LaunchData launch = random_launch(gemv, {kNoScalars.begin(), kNoScalars.end()}, 7);
      std::vector<float> x = special(gemv.k, 1.f);
      x[301] = std::numeric_limits<float>::quiet_NaN();
      launch.inputs[1] = bytes_of(x);
      const std::vector<float> y = as<float>(run(launch)[2]);
      CHECK(std::all_of(y.begin(), y.end(), [](float v) { return std::isnan(v); }));
    }
  }
}

TEST_CASE("the same product gives the same bits", "[kernels][gemv][device]") {
  for (const Gemv& gemv : variants(Format::kQ6_K, 1280, 65)) {
    const LaunchData launch = random_launch(gemv, {kNoScalars.begin(), kNoScalars.end()}, 9);
    CHECK(run(launch)[2] == run(launch)[2]);
  }
}

// ---- Quantising

TEST_CASE("activations are quantised as documented", "[kernels][gemv][device]") {
  std::uint64_t seed = 6000;
  for (const u32 k : {32u, 96u, 4096u}) {
    for (const u64 m : {1u, 3u}) {
      LaunchData launch = random_launch(QuantizeQ8_1{.k = k}, {0, 0, m}, ++seed);
      check(launch);
      for (const float value : {0.f, 5000.f, 1e5f, 3e38f, 1e-41f, 3e-36f}) {
        launch.inputs[0] = bytes_of(special(static_cast<u32>(m) * k, value));
        check(launch);
      }
      std::vector<float> x = special(static_cast<u32>(m) * k, 2.f);
      x[5] = std::numeric_limits<float>::infinity();
      launch.inputs[0] = bytes_of(x);
      check(launch);
    }
  }
  check(random_launch(QuantizeQ8_1{.k = 64}, {0, 0, 0}, 1));
}

// ---- A few vectors

TEST_CASE("a few vectors of long rows leave shared memory for a plan", "[kernels][gemv]") {
  for (const FormatInfo& format : kFormats) {
    for (const u32 max_m : {2u, 3u, 4u}) {
      const BatchedGemv few{.format = format.format, .k = 14336, .n = 4096, .max_m = max_m};
      INFO(KernelType(few)->text());
      CHECK(few.validate().ok());
    }
  }
}

TEST_CASE("CTAs of schedule stream have equal shares where few are lost by it", "[kernels][gemv]") {
  const auto ctas = [](u32 n, u32 k, u32 max_m) {
    const BatchedGemv gemv = {.k = k, .n = n, .max_m = max_m};
    CHECK(gemv.validate().ok());
    return gemv.launch_shape({0, 0, 0, max_m}).grid.x;
  };
  CHECK(ctas(4096, 14336, 3) == 128);
  CHECK(ctas(4096, 4096, 4) == 128);
  CHECK(ctas(4096, 4096, 3) == 132);      // two of them on an SM
  CHECK(ctas(14336, 4096, 4) == 132);     // 108 or 109 rows
  CHECK(ctas(32 * 132, 4096, 4) == 132);  // 32 for all
  CHECK(ctas(240, 4096, 4) == 132);       // 120 would be too few
}

TEST_CASE("each vector of a few gives the bits that it gives alone", "[kernels][gemv][device]") {
  for (const FormatInfo& format : kFormats) {
    const u32 k = 5 * format.block_values, n = 37;
    BatchedGemv four{.format = format.format, .k = k, .n = n, .max_m = 4};
    const LaunchData all = random_launch(four, {0, 0, 0, 4}, 11);
    check(all);
    const std::vector<float> y = as<float>(run(all)[2]);
    for (const u32 max_m : {1u, 2u, 3u, 4u}) {
      for (u32 m = 1; m <= max_m; ++m) {
        BatchedGemv few = four;
        few.max_m = max_m;
        LaunchData launch{few, {0, 0, 0, m}, all.inputs};
        launch.inputs[1].resize(u64{m} * k * 4);
        CHECK(as<float>(run(launch)[2]) == std::vector<float>(y.begin(), y.begin() + m * n));
      }
    }
  }
}

TEST_CASE("more vectors than a kernel is made for are refused, none do nothing", "[kernels][gemv][device]") {
  const BatchedGemv two{.k = 256, .n = 8, .max_m = 2};
  const auto kernel = test_kernels().get(two);
  REQUIRE(kernel.ok());
  BatchedGemv::Args args = {{256}, {256}, {256}, 0};
  CHECK(kernel->launch(test_device().default_stream(), args).ok());
  args.m = 3;
  CHECK_FALSE(kernel->launch(test_device().default_stream(), args).ok());
}

// ---- Fused

TEST_CASE("fused products are what their parts are", "[kernels][gemv][device]") {
  std::uint64_t seed = 8000;
  for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ5_K, Format::kQ8_0, Format::kQ4_1}) {
    const bool k_quant = info(format).block_values == 256;
    const u32 k = 3 * info(format).block_values;
    const Format other = k_quant ? Format::kQ6_K : Format::kQ5_0;
    const FusedGemv base{.format = format, .k = k, .n = 37, .format_b = format, .format_c = other};
    for (const Norm norm : {Norm::kNone, Norm::kRms}) {
      std::vector<FusedGemv> kernels(4, base);
      kernels[0].residual = Residual::kAdd;
      kernels[1].n_b = 13;                       // K/V
      kernels[2].n_b = 13, kernels[2].n_c = 21;  // Q/K/V
      kernels[3].n_b = 37, kernels[3].combine = Combine::kSwiglu;
      for (FusedGemv& kernel : kernels) {
        kernel.norm = norm;
        check(random_launch(kernel, std::vector<u64>(KernelType(kernel)->default_arguments()), ++seed));
      }
    }
  }
}

}  // namespace
}  // namespace ptxgen::testing
