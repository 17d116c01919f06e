#include "src/reference/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ptxgen::reference {
namespace {

std::uint32_t load(const std::byte* bytes, std::size_t size) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return bits;
}

// How far off a value is, in bounds.
double share_of_bound(const Bounded& expected, double actual) {
  if (!std::isfinite(expected.value) || std::isinf(expected.bound)) return 0;
  const double error = std::abs(actual - expected.value);
  return error == 0 ? 0 : error / expected.bound;  // infinite where nothing is allowed
}

bool is_nan(FloatType type, std::uint32_t bits) {
  const float value = widen(type, bits);
  return value != value;
}

}  // namespace

bool Bounded::admits(double actual) const {
  if (std::isinf(bound)) return true;
  if (std::isnan(value)) return std::isnan(actual);
  if (std::isinf(value)) return !std::isfinite(actual);
  return std::abs(actual - value) <= bound;
}

void Comparison::append(const Comparison& piece) {
  type = piece.type;
  values += piece.values;
  mismatches += piece.mismatches;
  bounded = piece.bounded;
  worst = std::max(worst, piece.worst);
  if (first.empty()) first = piece.first;
}

std::string Comparison::to_string() const {
  std::string text = absl::StrFormat("%d of %d %s differ", mismatches, values, type ? "values" : "bytes");
  const int digits = static_cast<int>(2 * size_of(type));
  const char* separator = ": ";
  for (const Mismatch& mismatch : first) {
    const auto bits_and_value = [&](std::uint32_t bits) {
      const std::string value = type ? absl::StrFormat(" (%.9g)", widen(*type, bits)) : "";
      return absl::StrFormat("0x%0*x%s", digits, bits, value);
    };
    absl::StrAppend(&text, separator, "[", mismatch.index, "] expected ", bits_and_value(mismatch.expected),
                    bounded ? absl::StrFormat(" within %.3g", mismatch.bound) : "", ", got ",
                    bits_and_value(mismatch.actual));
    separator = "; ";
  }
  if (mismatches > first.size() && !first.empty()) absl::StrAppend(&text, "; ...");
  return text;
}

absl::StatusOr<Comparison> compare(std::optional<FloatType> type, absl::Span<const std::byte> expected,
                                   absl::Span<const std::byte> actual, std::size_t keep) {
  const std::size_t size = size_of(type);
  if (expected.size() != actual.size() || expected.size() % size != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "compare: %d expected and %d actual bytes are not the same whole number of %d-byte values",
        expected.size(), actual.size(), size));
  }
  Comparison result;
  result.type = type;
  result.values = expected.size() / size;
  for (std::size_t i = 0; i < result.values; ++i) {
    const Mismatch found = {i, load(&expected[i * size], size), load(&actual[i * size], size), 0};
    if (found.expected == found.actual) continue;
    if (type && is_nan(*type, found.expected) && is_nan(*type, found.actual)) continue;
    ++result.mismatches;
    if (result.first.size() < keep) result.first.push_back(found);
  }
  return result;
}

absl::StatusOr<Comparison> compare(absl::Span<const Bounded> expected, absl::Span<const std::byte> actual,
                                   std::size_t keep) {
  constexpr std::size_t kSize = size_of(FloatType::kF32);
  if (actual.size() != expected.size() * kSize) {
    return absl::InvalidArgumentError(
        absl::StrFormat("compare: %d actual bytes are not %d values of f32", actual.size(), expected.size()));
  }
  Comparison result;
  result.type = FloatType::kF32;
  result.values = expected.size();
  result.bounded = true;
  for (std::size_t i = 0; i < result.values; ++i) {
    const std::uint32_t bits = load(&actual[i * kSize], kSize);
    const double value = std::bit_cast<float>(bits);
    const double share = share_of_bound(expected[i], value);
    if (share > result.worst) result.worst = share;
    if (expected[i].admits(value)) continue;
    ++result.mismatches;
    if (result.first.size() >= keep) continue;
    result.first.push_back(
        {i, std::bit_cast<std::uint32_t>(static_cast<float>(expected[i].value)), bits, expected[i].bound});
  }
  return result;
}

}  // namespace ptxgen::reference
