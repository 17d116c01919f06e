#include "src/reference/compare.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ptxgen::reference {
namespace {

std::uint32_t load(FloatType type, const std::byte* bytes) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < size_of(type); ++i) bits |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return bits;
}

float to_f32(FloatType type, std::uint32_t bits) {
  switch (type) {
    case FloatType::kF32: return std::bit_cast<float>(bits);
    case FloatType::kF16: return f16_to_f32(static_cast<std::uint16_t>(bits));
    case FloatType::kBf16: return bf16_to_f32(static_cast<std::uint16_t>(bits));
  }
  return 0;
}

bool is_nan(FloatType type, std::uint32_t bits) {
  const float value = to_f32(type, bits);
  return value != value;
}

}  // namespace

std::string Comparison::to_string() const {
  std::string text = absl::StrFormat("%d of %d values differ", mismatches, values);
  const int digits = static_cast<int>(2 * size_of(type));
  const char* separator = ": ";
  for (const Mismatch& mismatch : first) {
    absl::StrAppendFormat(&text, "%s[%d] expected 0x%0*x (%.9g), got 0x%0*x (%.9g)", separator,
                          mismatch.index, digits, mismatch.expected, to_f32(type, mismatch.expected), digits,
                          mismatch.actual, to_f32(type, mismatch.actual));
    separator = "; ";
  }
  if (mismatches > first.size() && !first.empty()) absl::StrAppend(&text, "; ...");
  return text;
}

absl::StatusOr<Comparison> compare(FloatType type, absl::Span<const std::byte> expected,
                                   absl::Span<const std::byte> actual, std::size_t keep) {
  const std::size_t size = size_of(type);
  if (expected.size() != actual.size() || expected.size() % size != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "compare: %d expected and %d actual bytes are not the same whole number of %d-byte values",
        expected.size(), actual.size(), size));
  }
  Comparison result{type, expected.size() / size, 0, {}};
  for (std::size_t i = 0; i < result.values; ++i) {
    const Mismatch found = {i, load(type, &expected[i * size]), load(type, &actual[i * size])};
    if (found.expected == found.actual) continue;
    if (is_nan(type, found.expected) && is_nan(type, found.actual)) continue;
    ++result.mismatches;
    if (result.first.size() < keep) result.first.push_back(found);
  }
  return result;
}

}  // namespace ptxgen::reference
