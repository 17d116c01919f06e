// Goldens: texts that the suite compares with a file under tests/golden/. A run with PTXGEN_BLESS=1 writes
// the files instead; a failure shows what differs and the command that does so.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ptxgen::testing {

struct GoldenVerdict {
  bool ok = false;
  std::string message;  // what differs and the command that rewrites; empty when ok
};

enum class GoldenMode { kCompare, kBless };

// kBless when PTXGEN_BLESS is set and not "0".
GoldenMode golden_mode();

// Compares `text` with the file `name` in `folder`, or writes it there.
GoldenVerdict check_golden(const std::filesystem::path& folder, std::string_view name, std::string_view text,
                           GoldenMode mode = golden_mode());

// Whether `text` is what tests/golden/`name` holds: CHECK(matches_golden("q4k_dequant_f16.ptx", ptx)). The
// message goes to std::cout, because Catch2 breaks the lines of its own messages, and a command or PTX so
// broken is of no use.
bool matches_golden(std::string_view name, std::string_view text);

// The lines to drop from `before` (-) and to add (+) to get `after`, with two lines of context; at most
// `max_lines` of it. Empty when the texts are equal.
std::string line_diff(std::string_view before, std::string_view after, std::size_t max_lines = 60);

}  // namespace ptxgen::testing
