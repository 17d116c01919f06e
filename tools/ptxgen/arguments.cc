#include "tools/ptxgen/arguments.h"

#include <algorithm>

#include "tools/ptxgen/scalar.h"

namespace ptxgen::tool {

namespace {

absl::StatusOr<Texts> match(std::string_view option, FieldValues values, const ArgInfos& arguments,
                            std::initializer_list<Direction> directions) {
  Texts texts(arguments.size());
  std::string names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (std::count(directions.begin(), directions.end(), arguments[i].direction) == 0) continue;
    str_append(&names, names.empty() ? "" : ", ", arguments[i].name);
    const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) {
      return std::string_view(value.first) == arguments[i].name;
    });
    if (found == values.end()) continue;
    texts[i] = std::move(found->second);
    values.erase(found);
  }
  if (!values.empty()) {
    return absl::InvalidArgumentError(str_cat(option, " names '", values.front().first, "'; ",
                                              names.empty() ? "the kernel takes none" : "the kernel has ",
                                              names));
  }
  return texts;
}

}  // namespace

absl::StatusOr<Texts> match(const NamedValues& given, const ArgInfos& arguments,
                            std::initializer_list<Direction> directions) {
  absl::StatusOr<FieldValues> values = given.parse();
  if (!values.ok()) return values.status();
  return match(given.option(), *std::move(values), arguments, directions);
}

absl::StatusOr<Texts> match_all(const NamedValues& given, const ArgInfos& arguments,
                                std::initializer_list<Direction> directions) {
  absl::StatusOr<Texts> texts = match(given, arguments, directions);
  if (!texts.ok()) return texts;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool wanted = std::count(directions.begin(), directions.end(), arguments[i].direction) > 0;
    if (wanted && !(*texts)[i]) {
      return absl::InvalidArgumentError(str_cat(given.option(), " ", arguments[i].name,
                                                "=... is missing; give every argument of the kernel once"));
    }
  }
  return texts;
}

ScalarOptions::ScalarOptions(CLI::App& app)
    : given_(app, "--arg", "VALUE",
             "the value of a scalar argument, once for each; default: the kernel's own, which `ptxgen list` "
             "shows") {}

absl::StatusOr<std::vector<u64>> ScalarOptions::values(const Descriptor& kernel) const {
  absl::StatusOr<FieldValues> given = parse();
  if (!given.ok()) return given.status();
  return values(kernel, *std::move(given));
}

absl::StatusOr<std::vector<u64>> ScalarOptions::values(const Descriptor& kernel, FieldValues given) const {
  std::vector<u64> values = kernel.default_arguments();
  const ArgInfos arguments = kernel.arguments(values);
  const absl::StatusOr<Texts> texts =
      match(given_.option(), std::move(given), arguments, {Direction::kScalar});
  if (!texts.ok()) return texts.status();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!(*texts)[i]) continue;
    const absl::StatusOr<u64> value = parse_scalar(arguments[i].name, arguments[i].type, *(*texts)[i]);
    if (!value.ok()) return value.status();
    values[i] = *value;
  }
  return values;
}

}  // namespace ptxgen::tool
