#include "ptxgen/format.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace ptxgen {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char left, char right) {
    return absl::ascii_tolower(static_cast<unsigned char>(left)) ==
           absl::ascii_tolower(static_cast<unsigned char>(right));
  });
}

template <typename Predicate>
std::optional<Format> first_format(Predicate matches) {
  for (const FormatInfo& format : kFormats) {
    if (matches(format)) return format.format;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Format> find_format(std::string_view name) {
  return first_format([name](const FormatInfo& format) {
    return name == format.name || equal_ignoring_case(name, format.ggml_name);
  });
}

std::optional<Format> find_format(std::uint32_t ggml_type) {
  return first_format([ggml_type](const FormatInfo& format) { return ggml_type == format.ggml_type; });
}

}  // namespace ptxgen
