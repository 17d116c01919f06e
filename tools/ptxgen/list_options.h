// Options that take lists, one for each field of a shape, and --shapes.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ptxgen/combinations.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {

class ListOptions {
 public:
  // For the fields of `owner`, as messages call it. `m`: which values the field of that name has.
  ListOptions(CLI::App& app, std::string owner, std::vector<FieldInfo> fields, std::string_view m);
  ListOptions(const ListOptions&) = delete;

  // A shape for every combination of what is given, in the order of the fields, those of --shapes first; the
  // other fields are as in `defaults`. Bounds are left to the caller.
  template <class Shape>
  absl::StatusOr<std::vector<Shape>> shapes(const Shape& defaults) const {
    const absl::StatusOr<std::vector<FieldValues>> all = combinations(owner_, fields_, given(), shapes_);
    if (!all.ok()) return all.status();
    std::vector<Shape> shapes;
    for (const FieldValues& values : *all) {
      shapes.push_back(defaults);
      for (const auto& [name, value] : values) {
        if (absl::Status s = set_field(shapes.back(), name, value); !s.ok()) return s;
      }
    }
    return shapes;
  }

 private:
  FieldValues given() const;

  const std::string owner_;
  const std::vector<FieldInfo> fields_;
  std::deque<std::pair<std::string, std::string>> lists_;  // the parser keeps the addresses of the texts
  std::vector<CLI::Option*> options_;
  std::string shapes_;
};

}  // namespace ptxgen::tool
