#include "src/reference/scaled_operation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/reference/dequantize.h"
#include "src/reference/gemv_operation.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen::reference {
namespace {

using testing::ok;
using testing::take;

constexpr Format kFormat = Format::kQ4_K;
constexpr u32 kN = 3, kK = 512, kM = 2;

// Inputs and what is computed from them, on the host.
struct Setup {
  explicit Setup(FloatType type)
      : operation(scaled_operation(kFormat, kN, kK, type,
                                   product_operation(kFormat, kN, kK, kM, Arithmetic::kF32, true))) {
    std::vector<std::byte> blocks(operation->arguments()[0].bytes);
    ok(operation->make_input(0, 7, 0, absl::MakeSpan(blocks)));
    w.resize(kN * kK);
    ok(dequantize(kFormat, blocks, absl::MakeSpan(w)));
    std::vector<std::byte> rows(operation->arguments()[1].bytes);
    ok(operation->make_input(1, 7, 0, absl::MakeSpan(rows)));
    a.resize(kM * kK);
    std::memcpy(a.data(), rows.data(), rows.size());
  }

  Comparison check(const std::vector<float>& c) const {
    const auto read = [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
      return operation->make_input(argument, 7, offset, piece);
    };
    const auto* bytes = reinterpret_cast<const std::byte*>(c.data());
    return take(operation->check(2, 0, read, absl::MakeConstSpan(bytes, c.size() * sizeof(float))));
  }

  std::unique_ptr<Operation> operation;
  std::vector<float> w, a;
};

float most_of(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& w) {
  std::vector<float> c;
  for (u32 row = 0; row < kM; ++row) {
    for (u32 i = 0; i < kN; ++i) {
      double sum = 0;
      for (u32 j = 0; j < kK; ++j)
        sum += static_cast<double>(a[row * kK + j]) * static_cast<double>(w[i * kK + j]);
      c.push_back(static_cast<float>(sum));
    }
  }
  return c;
}

std::vector<float> as_f16(std::vector<float> values, int exponent) {
  for (float& value : values)
    value = std::ldexp(f16_to_f32(f32_to_f16(std::ldexp(value, exponent))), -exponent);
  return values;
}

std::vector<float> as_e4m3(std::vector<float> values) {
  const float most = most_of(values), factor = 448 / most, scale = most / 448;
  for (float& value : values) value = e4m3_to_f32(f32_to_e4m3(value * factor)) * scale;
  return values;
}

TEST_CASE("a scaled product is that of rounded values, and of no others", "[reference]") {
  const Setup half(FloatType::kF16), e4m3(FloatType::kE4m3);
  CHECK(half.operation->is_bounded(2));
  const std::vector<float> of_f16 =
      product(as_f16(half.a, 14 - std::ilogb(most_of(half.a))), as_f16(half.w, 0));
  const std::vector<float> of_e4m3 = product(as_e4m3(e4m3.a), as_e4m3(e4m3.w));
  CHECK(half.check(of_f16).mismatches == 0);
  CHECK(e4m3.check(of_e4m3).mismatches == 0);
  CHECK(half.check(of_e4m3).mismatches == kM * kN);
  // What is not rounded, or rounded where it should not be.
  CHECK(e4m3.check(product(e4m3.a, e4m3.w)).mismatches > 0);
  CHECK(e4m3.check(product(e4m3.a, as_e4m3(e4m3.w))).mismatches > 0);
  CHECK(half.check(product(half.a, as_e4m3(half.w))).mismatches > 0);
  std::vector<float> one_off = of_f16;
  one_off[3] *= 1.01f;
  CHECK(half.check(one_off).mismatches == 1);
  one_off[3] = NAN;
  CHECK(half.check(one_off).mismatches == 1);
}

}  // namespace
}  // namespace ptxgen::reference
