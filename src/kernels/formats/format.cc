#include "ptxgen/format.h"

#include "absl/strings/match.h"

namespace ptxgen {
namespace {

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
    return name == format.name || absl::EqualsIgnoreCase(name, format.ggml_name);
  });
}

std::optional<Format> find_format(std::uint32_t ggml_type) {
  return first_format([ggml_type](const FormatInfo& format) { return ggml_type == format.ggml_type; });
}

}  // namespace ptxgen
