#include "src/reference/layer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptxgen::reference {
namespace {

constexpr double kUnit = 0x1p-24, kTiny = 0x1p-126;

}  // namespace

std::vector<Bounded> rms_norm(absl::Span<const float> x, absl::Span<const float> gamma, float eps) {
  const double n = static_cast<double>(x.size());
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  const double root = std::sqrt(squares / n + eps);
  std::vector<Bounded> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i] * static_cast<double>(gamma[i]) / root;
    double bound =
        (n / 64 + 16) * kUnit * std::abs(value) + kTiny * std::max(1.0, std::abs(double{gamma[i]}));
    if (squares > std::numeric_limits<float>::max()) bound = std::numeric_limits<double>::infinity();
    y.push_back({value, std::isfinite(value) ? bound : 0});
  }
  return y;
}

Bounded swiglu(const Bounded& gate, const Bounded& up) {
  const double silu = gate.value / (1 + std::exp(-gate.value));
  const double value = silu * up.value;
  if (!std::isfinite(value)) return {value, 0};
  const double up_at_most = std::abs(up.value) + up.bound;
  return {value, (16 + 2 * std::abs(gate.value)) * kUnit * std::abs(value) + 1.1 * gate.bound * up_at_most +
                     std::abs(silu) * up.bound + kTiny * (1 + std::abs(up.value))};
}

Bounded add(const Bounded& a, const Bounded& b) {
  const double value = a.value + b.value;
  return {value, a.bound + b.bound + kUnit * (std::abs(value) + a.bound + b.bound)};
}

}  // namespace ptxgen::reference
