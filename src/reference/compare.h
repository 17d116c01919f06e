// Compares two buffers of floats, or of bytes: bit for bit, or f32 values within bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/reference/bounded.h"
#include "src/reference/narrow.h"

namespace ptxgen::reference {

// One differing element; the bits of a narrower type stand in the low part. Where there are bounds,
// `expected` is the value rounded to f32.
struct Mismatch {
  std::size_t index;
  std::uint32_t expected;
  std::uint32_t actual;
  double bound = 0;

  bool operator==(const Mismatch&) const = default;
};

struct Comparison {
  std::optional<FloatType> type;  // nothing: bytes
  std::size_t values = 0;
  std::size_t mismatches = 0;
  std::vector<Mismatch> first;  // the first few, in order of index
  bool bounded = false;         // compared within bounds
  double worst = 0;             // then the largest error of all, as a share of its bound

  bool equal() const { return mismatches == 0; }

  // Counts those of the piece that follows too, and keeps its first differences where this has none.
  void append(const Comparison& piece);

  // "3 of 1024 values differ: [17] expected 0x3f800000 (1), got 0x3f800001 (1.0000001); ...", on one line;
  // "3 of 1024 bytes differ: [17] expected 0x2a, got 0x2b; ..."; "3 of 1024 values differ: [17] expected
  // 0x3f800000 (1) within 1e-06, got 0x3fc00000 (1.5); ...".
  std::string to_string() const;
};

constexpr std::size_t size_of(std::optional<FloatType> type) {
  return type ? size_of(*type) : 1;
}

// Counts the elements whose bits differ, so +0 is not -0; a NaN equals a NaN of any sign and payload. Keeps
// the first `keep` differences. Buffers of different length, or of a length that is no whole number of
// elements, are an InvalidArgument.
absl::StatusOr<Comparison> compare(std::optional<FloatType> type, absl::Span<const std::byte> expected,
                                   absl::Span<const std::byte> actual, std::size_t keep = 4);

// Counts the f32 values that their bounds do not admit.
absl::StatusOr<Comparison> compare(absl::Span<const Bounded> expected, absl::Span<const std::byte> actual,
                                   std::size_t keep = 4);

}  // namespace ptxgen::reference
