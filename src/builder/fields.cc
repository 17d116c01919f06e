#include "ptxgen/fields.h"

#include <limits>

#include "absl/strings/numbers.h"

namespace ptxgen {

std::string Bounds::to_string() const {
  std::string text = str_cat(min, " to ", max);
  if (multiple > 1) str_append(&text, ", a multiple of ", multiple);
  if (!block_of.empty()) str_append(&text, " (a block of ", block_of, ")");
  return text;
}

namespace detail {

absl::Status parse_integer(std::string_view name, std::string_view text, u32& value) {
  u64 wide = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits || !absl::SimpleAtoi(for_absl(text), &wide) || wide > std::numeric_limits<u32>::max()) {
    return absl::InvalidArgumentError(
        str_cat(name, " is '", text, "'; give a whole number from 0 to 4294967295"));
  }
  value = static_cast<u32>(wide);
  return absl::OkStatus();
}

absl::Status check_bounds(std::string_view name, u32 value, const Bounds& bounds) {
  if (value >= bounds.min && value <= bounds.max && value % bounds.multiple == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat(name, " is ", value, "; it must be from ", bounds.to_string()));
}

absl::Status unknown_name(std::string_view field, std::string_view text,
                          const std::vector<std::string_view>& allowed) {
  std::string message = str_cat(field, " is '", text, "'; choose one of ");
  for (std::size_t i = 0; i < allowed.size(); ++i) str_append(&message, i ? ", " : "", allowed[i]);
  return absl::InvalidArgumentError(message);
}

}  // namespace detail
}  // namespace ptxgen
