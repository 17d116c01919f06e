// Every path of a device at the edges of shapes and of activations: all its outputs against those of sgemm,
// and samples of these against f64. On the emulated device fewer shapes, with a stand-in for cuBLASLt.
#include <cmath>

#include "ptxgen/device_policy.h"
#include "src/reference/dequantize.h"
#include "tests/kernels/harness.h"
#include "tests/runtime/fake_library.h"
#include "tests/runtime/layer.h"
#include "tests/support/catch.h"

namespace ptxgen {
namespace {

using testing::FakeLibrary;
using testing::ok;
using testing::random_blocks;
using testing::random_values;
using testing::take;
using testing::test_device;
using testing::to_device;
using testing::to_host;
using testing::untuned;
using testing::weights_of;

constexpr float kSizes[] = {0, 1, 1e5f, 1e-40f, 1e-30f};  // of neighbouring rows; 1e5 is beyond f16

// What a path may be off, as a part of the lengths of its two rows, or of the longest row of a where one
// scale serves all of them; and whatever the row.
struct Bound {
  double part;
  bool one_scale = false;
  double least = 0;  // times the length of the row of weights
};
Bound bound_of(const std::optional<GemmVariant>& variant, u32 m, u32 k) {
  // Scales of int8 blocks are f16: what lies below the least of them is lost.
  const Bound int8 = {4e-3, false, 127 * 0x1p-24 * std::sqrt(k)};
  if (!variant) return m <= kMostGemvRows ? int8 : Bound{1e-3, true};
  switch (variant->path) {
    case GemmPath::kSgemm: return {1e-6};
    case GemmPath::kHgemm:
    case GemmPath::kDequantHgemm: return {5e-4, true};
    case GemmPath::kFp8: return {4e-2, true};
    case GemmPath::kFused: break;
  }
  if (variant->schedule == GemmSchedule::kTiled) return {1e-6};
  return variant->schedule == GemmSchedule::kDp4a ? int8 : Bound{1e-3};
}

std::vector<double> lengths_of(const std::vector<float>& rows, u32 k) {
  std::vector<double> lengths(rows.size() / k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double value = rows[i];
    lengths[i / k] += value * value;
  }
  for (double& length : lengths) length = std::sqrt(length);
  return lengths;
}

struct Products {
  Products(u32 n_, u32 k_, u32 most_m)
      : n(n_),
        k(k_),
        cache(test_device()),
        executor(cache, library.with(untuned())),
        stream(take(test_device().create_stream())),
        w(std::size_t{n} * k),
        c(take(test_device().allocate((u64{most_m} + 1) * n * sizeof(float), "c"))) {
    const std::vector<std::byte> blocks = random_blocks(Format::kQ4_K, n, k, 3);
    ok(reference::dequantize(Format::kQ4_K, blocks, absl::MakeSpan(w)));
    weights = weights_of(test_device(), Format::kQ4_K, n, k, blocks);
    of_w = lengths_of(w, k);
  }

  void set(std::vector<float> values) {
    a = std::move(values);
    on_device = to_device(test_device(), a, "a");
    of_a = lengths_of(a, k);
  }

  // m rows of n, once the row behind them is found untouched.
  std::vector<float> run(const std::optional<GemmVariant>& variant, u32 m) {
    ok(c.fill(0xff));  // NaN
    ok(executor.gemm(stream, *weights, on_device.ptr<const f32>(), m, c.ptr<f32>(), {.variant = variant})
           .status());
    ok(stream.synchronize());
    std::vector<float> all = to_host(c);
    u32 untouched = 0;
    for (u32 i = 0; i < n; ++i) untouched += std::isnan(all[std::size_t{m} * n + i]);
    CHECK(untouched == n);
    all.resize(std::size_t{m} * n);
    return all;
  }

  double exact(u32 row, u32 column) const {
    double sum = 0;
    for (u32 i = 0; i < k; ++i)
      sum += double{a[std::size_t{row} * k + i]} * double{w[std::size_t{column} * k + i]};
    return sum;
  }

  // The largest error as a share of what is allowed; infinite where a value is not finite, or a sum of zeros
  // is none.
  double worst(const std::vector<float>& actual, const std::vector<float>& expected,
               const Bound& bound) const {
    const u32 m = static_cast<u32>(actual.size() / n);
    const double longest = *std::max_element(of_a.begin(), of_a.begin() + m);
    double most = 0;
    for (u32 row = 0; row < m; ++row) {
      const double length = bound.part * (bound.one_scale ? longest : of_a[row]) + bound.least;
      for (u32 i = 0; i < n; ++i) {
        const double value = actual[std::size_t{row} * n + i];
        const double error = std::abs(value - double{expected[std::size_t{row} * n + i]});
        if (!std::isfinite(error) || (of_a[row] == 0 && value != 0)) return INFINITY;
        if (error > 0) most = std::max(most, error / (length * of_w[i] + k * 0x1p-126));
      }
    }
    return most;
  }

  const u32 n, k;
  FakeLibrary library;
  KernelCache cache;
  Executor executor;
  Stream stream;
  std::vector<float> w, a;
  std::vector<double> of_w, of_a;
  std::optional<WeightMatrix> weights;
  Buffer on_device, c;
};

// Some outputs of sgemm, the first and the last among them, against f64.
void check_samples(const Products& products, const std::vector<float>& c) {
  constexpr std::size_t kSamples = 300;
  const std::size_t step = std::max<std::size_t>(1, c.size() / kSamples) | 1;
  double most = 0;
  for (std::size_t i = 0; i < c.size() + step; i += step) {
    const std::size_t at = std::min(i, c.size() - 1);
    const u32 row = static_cast<u32>(at / products.n), column = static_cast<u32>(at % products.n);
    const double error = std::abs(double{c[at]} - products.exact(row, column));
    const double allowed = 1e-6 * products.of_a[row] * products.of_w[column] + products.k * 0x1p-126;
    most = std::max(most, std::isfinite(error) ? error / allowed : INFINITY);
  }
  CHECK(most <= 1);
}

TEST_CASE("every path has every edge of a matrix product", "[runtime][gemm][paths][device]") {
  const bool emulated = test_device().kind() == DeviceKind::kEmulator;
  std::vector<u32> of_n = {1, 31}, of_m = {1, 16, 17, 65};
  if (!emulated) of_n = {1, 31, 4097}, of_m = {1, 2, 15, 16, 17, 63, 64, 65, 511, 2048};
  const u32 k = emulated ? 256 : 512;
  const DevicePolicy policy(test_device().properties(), {}, {});
  for (const u32 n : of_n) {
    Products products(n, k, of_m.back());
    for (const bool alike : {true, false}) {
      std::vector<float> values = random_values(std::size_t{of_m.back()} * k, 4);
      for (std::size_t i = 0; i < values.size() && !alike; ++i) values[i] *= kSizes[i / k % 5];
      products.set(values);
      for (const u32 m : of_m) {
        const std::vector<float> expected = products.run(GemmVariant{.path = GemmPath::kSgemm}, m);
        check_samples(products, expected);
        std::vector<std::optional<GemmVariant>> variants = {std::nullopt};
        for (const GemmVariant& variant :
             policy.gemm_variants({.format = Format::kQ4_K, .n = n, .k = k, .m = m}, true))
          variants.push_back(variant);
        for (const std::optional<GemmVariant>& variant : variants) {
          CAPTURE(n, m, alike, variant ? variant->to_string() : "by default");
          CHECK(products.worst(products.run(variant, m), expected, bound_of(variant, m, k)) <= 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ptxgen
