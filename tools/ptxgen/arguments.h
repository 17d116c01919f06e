// What the command line gives for a kernel's arguments.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/kernel_type.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {

// A text for each argument of the kernel, where one is given.
using Texts = std::vector<std::optional<std::string>>;

// The texts of `given` at the places of their arguments; one whose name no argument of these directions has
// is refused.
absl::StatusOr<Texts> match(const NamedValues& given, const ArgInfos& arguments,
                            std::initializer_list<Direction> directions);

// The same for files: every argument of these directions must be given.
absl::StatusOr<Texts> match_all(const NamedValues& given, const ArgInfos& arguments,
                                std::initializer_list<Direction> directions);

// --arg
class ScalarOptions {
 public:
  explicit ScalarOptions(CLI::App& app);

  // What the kernel is asked about and launched with: the scalars that are given, the others as the kernel
  // has them by default, and null buffers.
  absl::StatusOr<std::vector<u64>> values(const Descriptor& kernel) const;
  // The same for texts that were made from what parse() returns.
  absl::StatusOr<std::vector<u64>> values(const Descriptor& kernel, FieldValues given) const;
  absl::StatusOr<FieldValues> parse() const { return given_.parse(); }

  bool given() const { return given_.any(); }

 private:
  NamedValues given_;
};

}  // namespace ptxgen::tool
