// Between std::string_view and abseil's, which is a type of its own where abseil was built for C++14.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace ptxgen::internal {

inline absl::string_view view(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace ptxgen::internal
