// Words for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ptxgen/strings.h"

namespace ptxgen::emulator {

// "0x1f"
inline std::string hex(std::uint64_t value) {
  return absl::StrCat("0x", absl::Hex(value));
}

// Text as it may stand in a message, whatever bytes it holds.
inline std::string escaped(std::string_view text) {
  return absl::CHexEscape(absl::string_view(text.data(), text.size()));
}

// Without the line breaks and runs of blanks that the text of an instruction may have.
inline std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

}  // namespace ptxgen::emulator
