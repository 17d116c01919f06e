// Constants and scalars that are given as lists: every combination of them is one kernel, or one launch.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/kernels.h"

namespace ptxgen::tool {

// All combinations of what is given for the family's constants, the last of them varying fastest. A number is
// a list, "4096,14336"; an enumeration too, or "all". `shapes` are pairs of n and k, "14336x4096,1024x4096",
// instead of these two; empty where none are given. What is no list, or more than kMostCombinations, is
// refused; what the family thinks of a combination is left to its make().
inline constexpr std::size_t kMostCombinations = 10000;
absl::StatusOr<std::vector<FieldValues>> combinations(const KernelFamily& family, const FieldValues& given,
                                                      std::string_view shapes);

// The same of names with lists only.
absl::StatusOr<std::vector<FieldValues>> combinations(const FieldValues& lists);

}  // namespace ptxgen::tool
