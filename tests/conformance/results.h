// What a GPU computed for the conformance cases, as files: tests/data/conformance/<chapter>.results.
//
// A file is a sequence of records, little-endian: u16 length and text of the case's name; u32 hash of its
// input; u8 whether the results follow as they are (1) or as u32 hashes, one for each kBlock threads (0); u32
// number of bytes; the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/conformance/cases.h"

namespace ptxgen::testing {

// Threads whose results share a hash: what a mismatch can be narrowed down to without a GPU.
inline constexpr unsigned kBlock = 128;

struct RecordedResults {
  std::uint32_t input_hash = 0;
  bool verbatim = false;
  std::vector<std::byte> data;  // output_bytes of each thread, or the hashes
};
using RecordedFile = std::map<std::string, RecordedResults>;  // by case

std::uint32_t hash_of(absl::Span<const std::byte> bytes);

// As it is kept: as it is where PTX does not define every bit.
RecordedResults record(const ConformanceCase& c, absl::Span<const std::byte> input,
                       absl::Span<const std::byte> output);

absl::StatusOr<RecordedFile> read_results(const std::filesystem::path& path);
bool write_results(const std::filesystem::path& path, const RecordedFile& file);

}  // namespace ptxgen::testing
