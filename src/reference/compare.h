// Compares two buffers of floats, or of bytes, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/reference/narrow.h"

namespace ptxgen::reference {

// One differing element; the bits of a narrower type stand in the low part.
struct Mismatch {
  std::size_t index;
  std::uint32_t expected;
  std::uint32_t actual;

  bool operator==(const Mismatch&) const = default;
};

struct Comparison {
  std::optional<FloatType> type;  // nothing: bytes
  std::size_t values = 0;
  std::size_t mismatches = 0;
  std::vector<Mismatch> first;  // the first few, in order of index

  bool equal() const { return mismatches == 0; }

  // Counts those of the piece that follows too, and keeps its first differences where this has none.
  void append(const Comparison& piece);

  // "3 of 1024 values differ: [17] expected 0x3f800000 (1), got 0x3f800001 (1.0000001); ...", on one line;
  // "3 of 1024 bytes differ: [17] expected 0x2a, got 0x2b; ...".
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

}  // namespace ptxgen::reference
