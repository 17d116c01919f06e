// The content of a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/gguf.h"

namespace ptxgen::gguf {

struct Parsed {
  std::uint32_t version = 0;
  std::uint32_t alignment = 32;
  std::vector<Entry> metadata;
  std::vector<Tensor> tensors;
  // Positions in the two vectors.
  absl::flat_hash_map<std::string_view, std::size_t> metadata_by_key;
  absl::flat_hash_map<std::string_view, std::size_t> tensors_by_name;
};

// Reads the whole file; the result points into `bytes`.
absl::StatusOr<Parsed> parse(absl::Span<const std::byte> bytes);

}  // namespace ptxgen::gguf
