// Constants and scalars that are given as lists: every combination of them is one kernel, or one launch.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/kernels.h"

namespace ptxgen::tool {

// All combinations of what is given for `fields`, the last of them varying fastest. A number is a list,
// "4096,14336", and a part of it may be "1..64", which is 1 and its doubles up to 64; an enumeration is a
// list too, or "all". `shapes` are pairs of n and k, "14336x4096,1024x4096", instead of these two; empty
// where none are given. What is no list, or more than kMostCombinations, is refused in the name of `owner`;
// what becomes of a combination is left to whoever makes something of it.
inline constexpr std::size_t kMostCombinations = 10000;
absl::StatusOr<std::vector<FieldValues>> combinations(std::string_view owner,
                                                      const std::vector<FieldInfo>& fields,
                                                      const FieldValues& given, std::string_view shapes);

// The same of names with lists only.
absl::StatusOr<std::vector<FieldValues>> combinations(const FieldValues& lists);

}  // namespace ptxgen::tool
