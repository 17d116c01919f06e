#include "src/reference/layer.h"

#include <cmath>

#include "src/reference/generate.h"
#include "tests/support/catch.h"

namespace ptxgen::reference {
namespace {

TEST_CASE("RMSNorm is what can be worked out by hand", "[reference]") {
  const std::vector<Bounded> y = rms_norm({3, -4}, {1, 0.5f}, 12.5f);
  REQUIRE(y.size() == 2);
  CHECK(y[0].value == 3.0 / 5);  // the mean of the squares is 12.5
  CHECK(y[1].value == -2.0 / 5);
  CHECK(y[0].bound > 0);
}

TEST_CASE("RMSNorm in f32 lies within its bounds", "[reference]") {
  const std::vector<float> x = random_activations(4096, 5), gamma = random_activations(4096, 6);
  const float eps = 1e-6f;
  float lanes[32] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 32] = std::fma(x[i], x[i], lanes[i % 32]);
  float squares = 0;
  for (const float lane : lanes) squares += lane;
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(x.size()) + eps);
  const std::vector<Bounded> y = rms_norm(x, gamma, eps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(y[i].admits(x[i] * scale * gamma[i]));
    if (y[i].value != 0 && std::abs(y[i].value) > 1e-30) CHECK_FALSE(y[i].admits(y[i].value * (1 + 1e-5)));
  }
}

TEST_CASE("RMSNorm of what is not finite is not, and large squares may overflow", "[reference]") {
  CHECK(std::isnan(rms_norm({1, std::nanf("")}, {1, 1}, 0.1f)[0].value));
  CHECK(std::isinf(rms_norm({1e20f, 1}, {1, 1}, 0.1f)[1].bound));
}

TEST_CASE("SwiGLU is silu(gate) * up", "[reference]") {
  CHECK(swiglu({0, 0}, {5, 0}).value == 0);
  CHECK(swiglu({1, 0}, {2, 0}).value == Approx(1.4621171572600098).epsilon(1e-15));
  CHECK(swiglu({-1, 0}, {2, 0}).value == Approx(-0.5378828427399902).epsilon(1e-15));
  CHECK(swiglu({-800, 0}, {2, 0}).value == 0);
  CHECK(swiglu({800, 0}, {2, 0}).value == 1600);
  CHECK(std::isnan(swiglu({std::nan(""), 0}, {2, 0}).value));
}

TEST_CASE("SwiGLU's bound covers what its inputs may be", "[reference]") {
  const double spread = 1e-3;
  for (const double gate : {-30.0, -3.0, -1.3, -0.5, 0.0, 0.2, 1.0, 2.4, 9.0}) {
    for (const double up : {-7.0, 0.0, 0.25, 3.0}) {
      CAPTURE(gate, up);
      const Bounded within = swiglu({gate, spread}, {up, spread});
      for (const double g : {gate - spread, gate + spread}) {
        for (const double u : {up - spread, up + spread}) CHECK(within.admits(swiglu({g, 0}, {u, 0}).value));
      }
      const float g = static_cast<float>(gate), u = static_cast<float>(up);
      CHECK(swiglu({g, 0}, {u, 0}).admits(g / (1.0f + std::exp(-g)) * u));
    }
  }
  CHECK_FALSE(swiglu({1, 0}, {2, 0}).admits(1.46212));
}

TEST_CASE("a sum's bound is that of its parts and one rounding", "[reference]") {
  const Bounded sum = add({1, 1e-6}, {2, 2e-6});
  CHECK(sum.value == 3);
  CHECK(sum.bound == Approx(3e-6 + 3.000003 * std::ldexp(1.0, -24)).epsilon(1e-12));
  CHECK(add({1, 0}, {0x1p-30, 0}).admits(1.0f + 0x1p-30f));
}

}  // namespace
}  // namespace ptxgen::reference
