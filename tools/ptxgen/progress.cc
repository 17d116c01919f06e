#include "tools/ptxgen/progress.h"

#include <unistd.h>

#include "ptxgen/strings.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {

ProgressBar::ProgressBar(u64 total) : total_(total), shown_(::isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show_at(std::string_view name) {
  constexpr u64 kWidth = 30;
  const u64 filled = total_ ? done_ * kWidth / total_ : 0;
  show(str_cat("\r\x1b[K[", std::string(filled, '#'), std::string(kWidth - filled, '.'), "] ",
               total_ ? done_ * 100 / total_ : 0, "% ", printable(name)));
}

void ProgressBar::show(const std::string& text) const {
  if (shown_ && ::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace ptxgen::tool
