// Scalar arguments as text.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ptxgen/types.h"

namespace ptxgen::tool {

// The bits of `text` as a value of `type`, as ArgValues holds them. Integers are decimal; floats may be "nan"
// and "inf", and are rounded to nearest even.
absl::StatusOr<u64> parse_scalar(std::string_view name, Type type, std::string_view text);

// The text of such bits; in hexadecimal where parse_scalar() knows none.
std::string scalar_text(Type type, u64 bits);

}  // namespace ptxgen::tool
