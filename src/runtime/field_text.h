// Reading what text_of_fields() writes.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "ptxgen/fields.h"

namespace ptxgen::internal {

// Sets the fields that `text` names, "n=4096 k=512"; commas may stand for the spaces. The bounds are left to
// check_fields().
template <class D>
absl::Status parse_fields(D& owner, std::string_view text) {
  while (true) {
    const std::size_t begin = text.find_first_not_of(" ,");
    if (begin == text.npos) return absl::OkStatus();
    text.remove_prefix(begin);
    const std::string_view part = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(part.size());
    const std::size_t equals = part.find('=');
    if (equals == part.npos)
      return absl::InvalidArgumentError(str_cat("'", part, "' is no field: write name=value"));
    const absl::Status set = set_field(owner, part.substr(0, equals), part.substr(equals + 1));
    if (!set.ok()) return set;
  }
}

}  // namespace ptxgen::internal
