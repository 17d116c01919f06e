// Text from parts, whether or not Abseil's string_view is the standard one (it is not on Debian 12).
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ptxgen {
namespace detail {
template <class T>
decltype(auto) for_absl(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return absl::string_view(value.data(), value.size());
  } else {
    return value;
  }
}
}  // namespace detail

// absl::StrCat that takes std::string_view everywhere.
template <class... Ts>
std::string str_cat(const Ts&... parts) {
  return absl::StrCat(detail::for_absl(parts)...);
}
template <class... Ts>
void str_append(std::string* text, const Ts&... parts) {
  absl::StrAppend(text, detail::for_absl(parts)...);
}

}  // namespace ptxgen
