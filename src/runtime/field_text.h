// Reading and writing fields as text.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// A variant's schedule stands first, without its name: "multi_warp num_warps=8".
inline constexpr std::string_view kScheduleName = "schedule=";

template <class Variant>
std::string text_of_variant(const Variant& variant) {
  return text_of_fields(variant).substr(kScheduleName.size());
}

// Reads that, and checks it by check(variant).
template <class Variant, class Check>
absl::StatusOr<Variant> parse_variant(std::string_view text, std::string_view example, Check&& check) {
  std::string fields(text);
  const std::size_t first = fields.find_first_not_of(" ,");
  if (first != fields.npos && fields.find('=', first) >= fields.find_first_of(" ,", first))
    fields.insert(first, kScheduleName);
  Variant variant;
  absl::Status status = parse_fields(variant, fields);
  if (status.ok() && fields.find(kScheduleName) == fields.npos)
    status = absl::InvalidArgumentError("no schedule is given");
  if (status.ok()) status = check(variant);
  if (status.ok()) return variant;
  return absl::InvalidArgumentError(str_cat("'", text, "': ", status.message(),
                                            "; write a schedule and, where wanted, its constants: '", example,
                                            "'"));
}

}  // namespace ptxgen::internal
