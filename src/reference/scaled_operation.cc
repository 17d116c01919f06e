#include "src/reference/scaled_operation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "src/reference/convert_operation.h"
#include "src/reference/dequantize.h"
#include "src/reference/half.h"
#include "src/reference/product.h"

namespace ptxgen::reference {
namespace {

constexpr std::size_t kWeights = 0, kA = 1;

// The largest |value|, which NaN exceeds.
float largest(float so_far, const std::vector<float>& values) {
  for (const float value : values) {
    if (std::isnan(so_far)) return so_far;
    so_far = std::isnan(value) ? value : std::max(so_far, std::abs(value));
  }
  return so_far;
}

void round_to(FloatType type, float factor, std::vector<float>& values) {
  for (float& value : values) {
    const float scaled = value * factor;
    value = type == FloatType::kF16 ? f16_to_f32(f32_to_f16(scaled)) : e4m3_to_f32(f32_to_e4m3(scaled));
  }
}

Bounded dot(FloatType type, const std::vector<float>& w, const std::vector<float>& a, double inverse) {
  constexpr double kE4m3Sums = 0x1p-10;
  double sum = 0, magnitude = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double product = static_cast<double>(w[i]) * static_cast<double>(a[i]);
    sum += product;
    magnitude += std::abs(product);
  }
  if (!std::isfinite(sum)) return {sum * inverse, 0};
  double bound = of_matrix_product({0, rounding_bound(w.size(), magnitude)}).bound;
  if (type == FloatType::kE4m3) bound += kE4m3Sums * magnitude;
  return {sum * inverse, bound * inverse + 0x1p-126};
}

class ScaledOperation final : public Operation {
 public:
  ScaledOperation(Format format, u32 n, u32 k, FloatType type, std::unique_ptr<Operation> plain)
      : Operation(plain->arguments()), format_(format), n_(n), k_(k), type_(type), plain_(std::move(plain)) {}

  u64 unit(std::size_t argument) const override { return plain_->unit(argument); }
  bool is_bounded(std::size_t) const override { return true; }
  void level(std::size_t argument, absl::Span<std::byte> all) const override { plain_->level(argument, all); }

 private:
  // What values are multiplied with before they are rounded, and what makes the sums results.
  struct Scales {
    float a = 1, w = 1;
    double inverse = 1;
  };

  void make(std::size_t argument, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    plain_->make_input(argument, seed, offset, piece).IgnoreError();  // the piece was found legal
  }
  std::optional<FloatType> type(std::size_t) const override { return FloatType::kF32; }

  u64 row_bytes(std::size_t argument) const {
    return argument == kA ? u64{k_} * sizeof(float)
                          : u64{k_} / info(format_).block_values * info(format_).block_bytes;
  }
  absl::StatusOr<std::vector<float>> row(std::size_t argument, u64 at, ReadInput read) const {
    std::vector<std::byte> bytes(row_bytes(argument));
    if (absl::Status s = read(argument, at * bytes.size(), absl::MakeSpan(bytes)); !s.ok()) return s;
    std::vector<float> values(k_);
    if (argument == kA) {
      std::memcpy(values.data(), bytes.data(), bytes.size());
    } else if (absl::Status s = dequantize(format_, bytes, absl::MakeSpan(values)); !s.ok()) {
      return s;
    }
    return values;
  }
  absl::StatusOr<float> largest_of(std::size_t argument, ReadInput read) const {
    float most = 0;
    for (u64 at = 0; at < arguments()[argument].bytes / row_bytes(argument); ++at) {
      const absl::StatusOr<std::vector<float>> values = row(argument, at, read);
      if (!values.ok()) return values.status();
      most = largest(most, *values);
    }
    return most;
  }

  absl::StatusOr<Scales> scales(ReadInput read) const {
    const bool e4m3 = type_ == FloatType::kE4m3;
    const ElementType to = e4m3 ? ElementType::kE4m3 : ElementType::kF16;
    const absl::StatusOr<float> a = largest_of(kA, read);
    if (!a.ok()) return a.status();
    const DeviceScale of_a = device_scale(to, *a);
    Scales scales{of_a.factor, 1, of_a.inverse};
    if (!e4m3) return scales;
    const absl::StatusOr<float> w = largest_of(kWeights, read);
    if (!w.ok()) return w.status();
    const DeviceScale of_w = device_scale(to, *w);
    scales.w = of_w.factor;
    scales.inverse *= of_w.inverse;
    return scales;
  }

  absl::StatusOr<std::vector<Bounded>> compute_bounded(std::size_t, u64 offset, ReadInput read,
                                                       std::size_t count) const override {
    const absl::StatusOr<Scales> scales = this->scales(read);
    if (!scales.ok()) return scales.status();
    const auto rounded = [&](std::size_t argument, u64 at) {
      absl::StatusOr<std::vector<float>> values = row(argument, at, read);
      if (values.ok()) round_to(type_, argument == kA ? scales->a : scales->w, *values);
      return values;
    };
    std::vector<Bounded> results;
    std::vector<float> a;
    u64 a_row = ~u64{0};
    for (u64 element = offset / sizeof(float); results.size() < count; ++element) {
      if (element / n_ != a_row) {
        a_row = element / n_;
        absl::StatusOr<std::vector<float>> next = rounded(kA, a_row);
        if (!next.ok()) return next.status();
        a = *std::move(next);
      }
      const absl::StatusOr<std::vector<float>> w = rounded(kWeights, element % n_);
      if (!w.ok()) return w.status();
      results.push_back(dot(type_, *w, a, scales->inverse));
    }
    return results;
  }

  const Format format_;
  const u32 n_, k_;
  const FloatType type_;
  const std::unique_ptr<Operation> plain_;
};

}  // namespace

std::unique_ptr<Operation> scaled_operation(Format format, u32 n, u32 k, FloatType type,
                                            std::unique_ptr<Operation> plain) {
  return std::make_unique<ScaledOperation>(format, n, k, type, std::move(plain));
}

}  // namespace ptxgen::reference
