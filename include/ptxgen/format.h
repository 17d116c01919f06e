// The ggml block formats that ptxgen reads, and the facts about each that do not depend on how it is decoded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ptxgen/export.h"

namespace ptxgen {

// A quantised block format, spelled as in ggml. The layouts are those of ggml/src/ggml-common.h.
enum class Format : std::uint8_t { kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K };

struct FormatInfo {
  Format format;
  std::string_view name;       // on the command line and in kernel names: "q4k"
  std::string_view ggml_name;  // as ggml prints it: "q4_K"
  std::uint32_t ggml_type;     // enum ggml_type in ggml.h, the type field of a GGUF tensor
  std::uint32_t block_values;  // values in a block; a row's length k is a multiple of it
  std::uint32_t block_bytes;   // size of a block; blocks follow each other without padding
  std::uint32_t alignment;  // largest power of two that divides every block's offset: 2 for 210-byte blocks
};

inline constexpr std::array<FormatInfo, 10> kFormats = {{
    {Format::kQ4_0, "q4_0", "q4_0", 2, 32, 18, 2},
    {Format::kQ4_1, "q4_1", "q4_1", 3, 32, 20, 4},
    {Format::kQ5_0, "q5_0", "q5_0", 6, 32, 22, 2},
    {Format::kQ5_1, "q5_1", "q5_1", 7, 32, 24, 8},
    {Format::kQ8_0, "q8_0", "q8_0", 8, 32, 34, 2},
    {Format::kQ2_K, "q2k", "q2_K", 10, 256, 84, 4},
    {Format::kQ3_K, "q3k", "q3_K", 11, 256, 110, 2},
    {Format::kQ4_K, "q4k", "q4_K", 12, 256, 144, 16},
    {Format::kQ5_K, "q5k", "q5_K", 13, 256, 176, 16},
    {Format::kQ6_K, "q6k", "q6_K", 14, 256, 210, 2},
}};

constexpr const FormatInfo& info(Format format) {
  return kFormats[static_cast<std::size_t>(format)];
}

// The format called `name` ("q4k") or, in any case, by ggml ("q4_K"); nothing when there is none.
PTXGEN_API std::optional<Format> find_format(std::string_view name);

// The format with ggml's type number `ggml_type`; nothing when ptxgen does not read that type.
PTXGEN_API std::optional<Format> find_format(std::uint32_t ggml_type);

}  // namespace ptxgen
