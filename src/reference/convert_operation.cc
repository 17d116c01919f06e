#include "src/reference/convert_operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "src/reference/generate.h"

namespace ptxgen::reference {
namespace {

using Bytes = std::vector<std::byte>;

constexpr u64 kBlock = 32;  // values that random_activations_at makes together

std::vector<float> widened(FloatType type, absl::Span<const std::byte> bytes) {
  const std::size_t size = size_of(type);
  std::vector<float> values;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < size; ++i) bits |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    values.push_back(widen(type, bits));
  }
  return values;
}

// Activations from any place on, as `type`.
absl::Status make_values(FloatType type, u64 seed, u64 offset, absl::Span<std::byte> piece) {
  const u64 first = offset / size_of(type), skipped = first % kBlock;
  const u64 count = piece.size() / size_of(type);
  std::vector<float> values((skipped + count + kBlock - 1) / kBlock * kBlock);
  random_activations_at(seed, first - skipped, absl::MakeSpan(values));
  return narrow(type, absl::MakeConstSpan(values).subspan(skipped, count), piece);
}

absl::StatusOr<float> read_f32(ReadInput read, std::size_t argument) {
  Bytes bytes(sizeof(float));
  if (absl::Status s = read(argument, 0, absl::MakeSpan(bytes)); !s.ok()) return s;
  return widened(FloatType::kF32, bytes)[0];
}

// NaN is larger than anything.
float larger(float a, float b) {
  return std::isnan(a) || b <= a ? a : b;
}

class ConvertOperation final : public Operation {
 public:
  ConvertOperation(const Convert& kernel, ArgInfos arguments, float factor)
      : Operation(std::move(arguments)), kernel_(kernel), factor_(factor) {}

  u64 unit(std::size_t argument) const override {
    if (argument == kSrc) return bytes_of(kernel_.from);
    return argument == kDst ? bytes_of(kernel_.to) : sizeof(float);
  }

 private:
  static constexpr std::size_t kSrc = 0, kDst = 1, kFactors = 4, kAbsmax = 5;

  void make(std::size_t argument, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    if (argument == kSrc) {
      make_values(float_type(kernel_.from), seed, offset, piece).IgnoreError();  // whole values
    } else {
      const std::vector<float> values(piece.size() / sizeof(float), argument == kAbsmax ? 7.5f : 0.37f);
      narrow(FloatType::kF32, values, piece).IgnoreError();
    }
  }
  absl::StatusOr<float> factor(ReadInput read) const {
    if (kernel_.scale == ConvertScale::kNone) return 1.f;
    if (kernel_.scale == ConvertScale::kValue) return factor_;
    if (kernel_.scale == ConvertScale::kFactor) return read_f32(read, kFactors);
    const absl::StatusOr<float> most = absmax(read);
    if (!most.ok()) return most;
    return device_scale(kernel_.to, *most).factor;
  }
  absl::StatusOr<float> absmax(ReadInput read) const {
    Bytes bytes(arguments()[kAbsmax].bytes);
    if (absl::Status s = read(kAbsmax, 0, absl::MakeSpan(bytes)); !s.ok()) return s;
    float most = 0;
    for (const float part : widened(FloatType::kF32, bytes)) most = larger(most, part);
    return most;
  }
  absl::Status compute(std::size_t argument, u64 offset, ReadInput read,
                       absl::Span<std::byte> piece) const override {
    if (piece.empty()) return absl::OkStatus();
    if (argument != kDst) {
      const absl::StatusOr<float> most = absmax(read);
      if (!most.ok()) return most.status();
      return narrow(FloatType::kF32, {device_scale(kernel_.to, *most).inverse}, piece);
    }
    const absl::StatusOr<float> scale = factor(read);
    if (!scale.ok()) return scale.status();
    const u64 count = piece.size() / unit(kDst);
    Bytes source(count * unit(kSrc));
    if (absl::Status s = read(kSrc, offset / unit(kDst) * unit(kSrc), absl::MakeSpan(source)); !s.ok())
      return s;
    std::vector<float> values = widened(float_type(kernel_.from), source);
    if (kernel_.scale != ConvertScale::kNone) {
      for (float& value : values) value *= *scale;
    }
    return narrow(float_type(kernel_.to), values, piece);
  }
  std::optional<FloatType> type(std::size_t argument) const override {
    return argument == kDst ? float_type(kernel_.to) : FloatType::kF32;
  }

  const Convert kernel_;
  const float factor_;
};

class AbsmaxOperation final : public Operation {
 public:
  AbsmaxOperation(const Absmax& kernel, ArgInfos arguments)
      : Operation(std::move(arguments)), type_(float_type(kernel.from)), parts_(kernel.parts) {}

  u64 unit(std::size_t argument) const override { return argument == kSrc ? size_of(type_) : sizeof(float); }

 private:
  static constexpr std::size_t kSrc = 0, kAbsmax = 1;

  void make(std::size_t argument, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    if (argument == kSrc) {
      make_values(type_, seed, offset, piece).IgnoreError();  // whole values
    } else {
      std::fill(piece.begin(), piece.end(), std::byte{0});
    }
  }
  absl::Status compute(std::size_t, u64 offset, ReadInput read, absl::Span<std::byte> piece) const override {
    const u64 count = arguments()[kSrc].bytes / size_of(type_);
    if (parts_ == 0) {
      const absl::StatusOr<float> before = read_f32(read, kAbsmax);
      if (!before.ok()) return before.status();
      return write_largest(*before, 0, count, read, piece);
    }
    constexpr u64 kMultiple = 8;
    const u64 of_part = ((count + kMultiple - 1) / kMultiple + parts_ - 1) / parts_ * kMultiple;
    for (u64 at = 0; at < piece.size(); at += sizeof(float)) {
      const u64 first = std::min(count, (offset + at) / sizeof(float) * of_part);
      const u64 end = std::min(count, first + of_part);
      if (absl::Status s = write_largest(0, first, end, read, piece.subspan(at, sizeof(float))); !s.ok())
        return s;
    }
    return absl::OkStatus();
  }
  // Of `most` and values `first` to `end`.
  absl::Status write_largest(float most, u64 first, u64 end, ReadInput read, absl::Span<std::byte> to) const {
    constexpr u64 kAtOnce = 1 << 18;
    for (u64 at = first; at < end; at += kAtOnce) {
      Bytes source(std::min(kAtOnce, end - at) * size_of(type_));
      if (absl::Status s = read(kSrc, at * size_of(type_), absl::MakeSpan(source)); !s.ok()) return s;
      for (const float value : widened(type_, source)) most = larger(most, std::abs(value));
    }
    return narrow(FloatType::kF32, {most}, to);
  }
  std::optional<FloatType> type(std::size_t) const override { return FloatType::kF32; }

  const FloatType type_;
  const u32 parts_;
};

}  // namespace

FloatType float_type(ElementType type) {
  switch (type) {
    case ElementType::kF16: return FloatType::kF16;
    case ElementType::kBf16: return FloatType::kBf16;
    case ElementType::kE4m3: return FloatType::kE4m3;
    case ElementType::kF32: break;
  }
  return FloatType::kF32;
}

DeviceScale device_scale(ElementType to, float absmax) {
  if (to == ElementType::kF16) {
    if (!std::isfinite(absmax)) return {1.f, 1.f};
    const int exponent = absmax < std::numeric_limits<float>::min() ? -127 : std::ilogb(absmax);
    const int raised = std::min(14 - exponent, 126);
    return {std::ldexp(1.f, raised), std::ldexp(1.f, -raised)};
  }
  if (std::isnan(absmax)) return {absmax, absmax};
  if (absmax == 0) return {1.f, 1.f};
  return {std::min(448.f / absmax, std::numeric_limits<float>::max()), absmax / 448.f};
}

std::unique_ptr<Operation> convert_operation(const Convert& kernel, ArgInfos arguments, float factor) {
  return std::make_unique<ConvertOperation>(kernel, std::move(arguments), factor);
}
std::unique_ptr<Operation> absmax_operation(const Absmax& kernel, ArgInfos arguments) {
  return std::make_unique<AbsmaxOperation>(kernel, std::move(arguments));
}

}  // namespace ptxgen::reference
