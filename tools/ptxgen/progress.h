// How far the work is, on stderr, where that is a terminal; gone when the work is done.
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/types.h"

namespace ptxgen::tool {

class ProgressBar {
 public:
  explicit ProgressBar(u64 total);
  ~ProgressBar() { show("\r\x1b[K"); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Shows the bar with what comes next or was last, as `name`.
  void show_at(std::string_view name);
  void advance(u64 by) { done_ += by; }

 private:
  void show(const std::string& text) const;

  u64 total_, done_ = 0;
  bool shown_;
};

}  // namespace ptxgen::tool
