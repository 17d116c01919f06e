#include "tests/support/golden.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/support/files.h"

namespace ptxgen::testing {
namespace {

namespace fs = std::filesystem;

// One line of a diff: kept (' '), only before ('-') or only after ('+').
struct DiffLine {
  char mark;
  std::string_view text;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    if (end == text.size()) lines.push_back("\\ no newline at the end");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The shortest edit by the longest common subsequence of what equal beginnings and ends leave over. Texts too
// different for its quadratic table are shown as one replacement.
std::vector<DiffLine> edit_script(const std::vector<std::string_view>& a,
                                  const std::vector<std::string_view>& b) {
  constexpr std::size_t kMaxTable = std::size_t{1} << 24;
  std::size_t head = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const std::size_t rows = a.size() - head - tail;
  const std::size_t columns = b.size() - head - tail;

  // common[i * stride + j]: the longest common subsequence of the i-th and j-th lines onwards.
  const std::size_t stride = columns + 1;
  const bool fits = (rows + 1) * stride <= kMaxTable;
  std::vector<std::uint32_t> common(fits ? (rows + 1) * stride : 0);
  for (std::size_t i = rows; fits && i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      common[i * stride + j] = a[head + i] == b[head + j]
                                   ? common[(i + 1) * stride + j + 1] + 1
                                   : std::max(common[(i + 1) * stride + j], common[i * stride + j + 1]);
    }
  }

  std::vector<DiffLine> script;
  for (std::size_t i = 0; i < head; ++i) script.push_back({' ', a[i]});
  std::size_t i = 0, j = 0;
  while (i < rows || j < columns) {
    if (fits && i < rows && j < columns && a[head + i] == b[head + j]) {
      script.push_back({' ', a[head + i]});
      ++i, ++j;
    } else if (i < rows &&
               (j == columns || !fits || common[(i + 1) * stride + j] >= common[i * stride + j + 1])) {
      script.push_back({'-', a[head + i++]});
    } else {
      script.push_back({'+', b[head + j++]});
    }
  }
  for (std::size_t k = a.size() - tail; k < a.size(); ++k) script.push_back({' ', a[k]});
  return script;
}

// `text` as one word of a shell.
std::string shell_quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string bless_command() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  // Catch2 reads a comma, a bracket, a star or a backslash in a test's name as a pattern.
  const std::string test = absl::StrReplaceAll(
      Catch::getResultCapture().getCurrentTestName(),
      {{"\\", "\\\\"}, {",", "\\,"}, {"[", "\\["}, {"]", "\\]"}, {"*", "\\*"}, {"\"", "\\\""}});
  return absl::StrCat("PTXGEN_BLESS=1 ", shell_quote(program.string()), " ", shell_quote(test));
}

}  // namespace

GoldenMode golden_mode() {
  const char* bless = std::getenv("PTXGEN_BLESS");
  const bool set = bless != nullptr && *bless != '\0' && std::string_view(bless) != "0";
  return set ? GoldenMode::kBless : GoldenMode::kCompare;
}

GoldenVerdict check_golden(const fs::path& folder, std::string_view name, std::string_view text,
                           GoldenMode mode) {
  const fs::path path = folder / fs::path(name);
  const std::optional<std::string> expected = read_file(path);
  if (expected == text) return {.ok = true, .message = ""};
  if (mode == GoldenMode::kBless) {
    if (write_file(path, text)) return {.ok = true, .message = ""};
    return {.ok = false, .message = absl::StrCat("cannot write ", path.string())};
  }
  const std::string what =
      expected.has_value() ? absl::StrCat(path.string(), " (-) differs from what the code gives now (+):\n",
                                          line_diff(*expected, text))
                           : absl::StrCat("there is no golden ", path.string(), " yet\n");
  return {.ok = false,
          .message = absl::StrCat(what, "If the new text is right, write it with\n  ", bless_command())};
}

bool matches_golden(std::string_view name, std::string_view text) {
  const GoldenVerdict verdict = check_golden(golden_folder(), name, text);
  if (!verdict.ok) std::cout << verdict.message << std::endl;
  return verdict.ok;
}

std::string line_diff(std::string_view before, std::string_view after, std::size_t max_lines) {
  constexpr std::size_t kContext = 2;
  if (before == after) return "";
  const std::vector<DiffLine> script = edit_script(lines_of(before), lines_of(after));
  std::vector<bool> shown(script.size());
  for (std::size_t i = 0; i < script.size(); ++i) {
    if (script[i].mark == ' ') continue;
    const std::size_t end = std::min(script.size(), i + kContext + 1);
    for (std::size_t k = i - std::min(i, kContext); k < end; ++k) shown[k] = true;
  }

  std::string diff;
  std::size_t printed = 0, before_line = 1, after_line = 1;
  for (std::size_t i = 0; i < script.size(); ++i) {
    if (shown[i] && printed == max_lines) return absl::StrCat(diff, "... and more\n");
    if (shown[i]) {
      if (i == 0 || !shown[i - 1]) absl::StrAppend(&diff, "@@ -", before_line, " +", after_line, " @@\n");
      diff.append(1, script[i].mark).append(script[i].text).append("\n");
      ++printed;
    }
    before_line += script[i].mark != '+';
    after_line += script[i].mark != '-';
  }
  return diff;
}

}  // namespace ptxgen::testing
