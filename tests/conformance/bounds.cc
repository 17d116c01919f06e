#include "tests/conformance/bounds.h"

#include <cmath>
#include <cstring>
#include <string_view>

namespace ptxgen::testing {
namespace {

// |approximation - exact| <= max(relative * |exact|, absolute): PTX ISA, 9.7.3 and 9.7.4, by method and type.
struct Bound {
  std::string_view method;
  Type type;
  double relative, absolute;
};
constexpr double kUlp = 0x1p-23;
constexpr Bound kBounds[] = {
    {"div_full", Type::kF32, 2 * kUlp, 0},
    {"div_approx", Type::kF32, 2 * kUlp, 0},
    {"div_approx_ftz", Type::kF32, 2 * kUlp, 0},
    {"rcp_approx", Type::kF32, kUlp, 0},
    {"rcp_approx_ftz", Type::kF32, kUlp, 0},
    {"sqrt_approx", Type::kF32, kUlp, 0},
    {"rsqrt_approx", Type::kF32, 0x1.12p-23, 0},  // 2^-22.9
    {"rsqrt_approx_ftz", Type::kF32, 0x1.12p-23, 0},
    {"rsqrt_approx", Type::kF64, 0x1.12p-23, 0},
    {"sin_approx", Type::kF32, 0, 0x1.6ap-21},  // 2^-20.5, of angles within 2 pi
    {"cos_approx", Type::kF32, 0, 0x1.6ap-21},
    {"lg2_approx", Type::kF32, 0x1p-22, 0x1p-22},
    {"lg2_approx_ftz", Type::kF32, 0x1p-22, 0x1p-22},
    {"ex2_approx", Type::kF32, 0x1.0p-22, 0},
    {"ex2_approx_ftz", Type::kF32, 0x1.0p-22, 0},
    {"tanh_approx", Type::kF32, 0x1p-11, 0},
    {"ex2_approx", Type::kF16, 0x1.12p-10, 0},   // 2^-9.9
    {"tanh_approx", Type::kF16, 0, 0x1.02p-11},  // 2^-10.987
    {"ex2_approx_ftz", Type::kBf16, 0x1p-7, 0},
    {"tanh_approx", Type::kBf16, 0, 0x1p-8},
};

Type element_of(Type type) {
  return type == Type::kF16x2 ? Type::kF16 : type == Type::kBf16x2 ? Type::kBf16 : type;
}

const Bound* bound_of(const ConformanceCase& c) {
  for (const Bound& bound : kBounds) {
    if (bound.method == row(c.op).method && bound.type == element_of(c.type)) return &bound;
  }
  return nullptr;
}

template <class T>
T at(absl::Span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double value_at(Type type, absl::Span<const std::byte> bytes, std::size_t index) {
  switch (type) {
    case Type::kF64: return at<double>(bytes, index);
    case Type::kF32: return at<float>(bytes, index);
    case Type::kBf16: {
      const u32 bits = u32{at<u16>(bytes, index)} << 16;
      return __builtin_bit_cast(float, bits);
    }
    default: {
      const u16 bits = at<u16>(bytes, index);
      const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
      if (exponent == 31) return mantissa ? NAN : bits & 0x8000 ? -INFINITY : INFINITY;
      const double magnitude =
          exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
      return bits & 0x8000 ? -magnitude : magnitude;
    }
  }
}

// Whether the ISA's bound covers these operands.
bool covered(std::string_view method, double a, double b) {
  if (method == "sin_approx" || method == "cos_approx")
    return !(std::fabs(a) > 6.2831853) || !std::isfinite(a);
  if (method.substr(0, 10) == "div_approx" || method == "div_full") {
    return !std::isfinite(b) || b == 0 || (std::fabs(b) >= 0x1p-126 && std::fabs(b) <= 0x1p126);
  }
  return true;
}

// The last place of the smallest numbers, which bounds cannot go below; with .ftz, or where subnormals are
// flushed inside, the smallest normal number.
double smallest(Type type) {
  switch (type) {
    case Type::kF64: return 0x1p-1022;
    case Type::kF16: return 0x1p-24;
    default: return 0x1p-126;
  }
}
double last_place(Type type) {
  switch (type) {
    case Type::kF16: return 0x1p-11;
    case Type::kBf16: return 0x1p-8;
    default: return 0;
  }
}

}  // namespace

bool has_bound(const ConformanceCase& c) {
  return bound_of(c) != nullptr;
}

bool agree(const ConformanceCase& c, absl::Span<const std::byte> input, absl::Span<const std::byte> a,
           absl::Span<const std::byte> b) {
  const Bound& bound = *bound_of(c);
  const Type type = bound.type;
  for (std::size_t i = 0; i < c.output_bytes / info(type).bytes; ++i) {
    const double x = value_at(type, input, i),
                 x2 = input.size() >= 16 ? value_at(type, input.subspan(8), i) : 0;
    if (!covered(bound.method, x, x2)) continue;
    const double p = value_at(type, a, i), q = value_at(type, b, i);
    if (std::isnan(p) != std::isnan(q)) return false;
    if (std::isnan(p) || p == q) continue;
    const double larger = std::max(std::fabs(p), std::fabs(q));
    const double allowed =
        std::max({bound.relative * larger, bound.absolute, smallest(type)}) + last_place(type) * larger;
    if (!(std::fabs(p - q) <= allowed)) return false;
  }
  return true;
}

}  // namespace ptxgen::testing
