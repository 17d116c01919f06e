#include "tools/ptxgen/combinations.h"

#include <algorithm>

#include "tools/ptxgen/options.h"

namespace ptxgen::tool {
namespace {

using Choices = std::vector<FieldValues>;  // each takes its place in turn

// Every combination so far with every one of `choices` behind it.
absl::Status multiply(std::vector<FieldValues>& combinations, const Choices& choices) {
  if (combinations.size() * choices.size() > kMostCombinations) {
    return absl::InvalidArgumentError(
        str_cat("the lists have more than ", kMostCombinations, " combinations; give shorter ones"));
  }
  std::vector<FieldValues> longer;
  for (const FieldValues& combination : combinations) {
    for (const FieldValues& choice : choices) {
      longer.push_back(combination);
      longer.back().insert(longer.back().end(), choice.begin(), choice.end());
    }
  }
  combinations = std::move(longer);
  return absl::OkStatus();
}

// "1..64": 1, 2, 4 ... 64; what is no range stays as it is.
absl::StatusOr<std::vector<std::string>> expanded(std::string_view option, const std::string& part) {
  const std::size_t dots = part.find("..");
  if (dots == part.npos) return std::vector<std::string>{part};
  u32 first = 0, last = 0;
  const auto parsed = [](const std::string& text, u32& value) {
    return ptxgen::detail::parse_integer("", text, value).ok();
  };
  if (!parsed(part.substr(0, dots), first) || !parsed(part.substr(dots + 2), last) || first == 0 ||
      last < first) {
    return absl::InvalidArgumentError(
        str_cat(option, " has '", part,
                "'; a range is a number and one that is not less, as 1..64, which is 1, 2, 4 ... 64"));
  }
  std::vector<std::string> values;
  for (u64 value = first; value < last; value *= 2) values.push_back(str_cat(value));
  values.push_back(str_cat(last));
  return values;
}

absl::StatusOr<Choices> choices_of(std::string_view option, std::string_view name, std::string_view list) {
  const absl::StatusOr<std::vector<std::string>> values = split_list(option, list);
  if (!values.ok()) return values.status();
  Choices choices;
  for (const std::string& part : *values) {
    const absl::StatusOr<std::vector<std::string>> all = expanded(option, part);
    if (!all.ok()) return all.status();
    for (const std::string& value : *all) choices.push_back({{std::string(name), value}});
  }
  return choices;
}

absl::StatusOr<Choices> shapes_of(std::string_view owner, const std::vector<FieldInfo>& fields,
                                  const FieldValues& given, std::string_view shapes) {
  for (const std::string_view name : {"n", "k"}) {
    const auto is_called = [&](const FieldInfo& field) { return field.name == name; };
    if (std::none_of(fields.begin(), fields.end(), is_called)) {
      return absl::InvalidArgumentError(
          str_cat("--shapes is given, and ", owner, " has no constant '", name, "'; leave it out"));
    }
    if (std::any_of(given.begin(), given.end(), [&](const auto& value) { return value.first == name; })) {
      return absl::InvalidArgumentError(str_cat("--shapes and --", name, " are both given; leave one out"));
    }
  }
  const absl::StatusOr<std::vector<std::string>> pairs = split_list("--shapes", shapes);
  if (!pairs.ok()) return pairs.status();
  Choices choices;
  for (const std::string& pair : *pairs) {
    const std::size_t x = pair.find('x');
    if (x == pair.npos || x == 0 || x + 1 == pair.size()) {
      return absl::InvalidArgumentError(
          str_cat("--shapes has '", pair, "'; give rows x values in a row, as 14336x4096"));
    }
    choices.push_back({{"n", pair.substr(0, x)}, {"k", pair.substr(x + 1)}});
  }
  return choices;
}

std::string all_of(const FieldInfo& field) {
  std::string list;
  for (const std::string_view value : field.allowed_values) str_append(&list, list.empty() ? "" : ",", value);
  return list;
}

// As the kernel's text has them.
void put_in_order(const std::vector<FieldInfo>& fields, FieldValues& values) {
  const auto place = [&](std::string_view name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const FieldInfo& field) { return field.name == name; });
  };
  std::sort(values.begin(), values.end(),
            [&](const auto& a, const auto& b) { return place(a.first) < place(b.first); });
}

}  // namespace

absl::StatusOr<std::vector<FieldValues>> combinations(std::string_view owner,
                                                      const std::vector<FieldInfo>& fields,
                                                      const FieldValues& given, std::string_view shapes) {
  std::vector<FieldValues> all = {{}};
  if (!shapes.empty()) {
    const absl::StatusOr<Choices> choices = shapes_of(owner, fields, given, shapes);
    if (!choices.ok()) return choices.status();
    if (absl::Status s = multiply(all, *choices); !s.ok()) return s;
  }
  for (const FieldInfo& field : fields) {
    for (const auto& [name, list] : given) {
      if (std::string_view(name) != field.name) continue;
      const bool every = list == "all" && !field.allowed_values.empty();
      const absl::StatusOr<Choices> choices = choices_of(option_of(name), name, every ? all_of(field) : list);
      if (!choices.ok()) return choices.status();
      if (absl::Status s = multiply(all, *choices); !s.ok()) return s;
    }
  }
  for (FieldValues& combination : all) put_in_order(fields, combination);
  return all;
}

absl::StatusOr<std::vector<FieldValues>> combinations(const FieldValues& lists) {
  std::vector<FieldValues> all = {{}};
  for (const auto& [name, list] : lists) {
    const absl::StatusOr<Choices> choices = choices_of(str_cat("--arg ", name), name, list);
    if (!choices.ok()) return choices.status();
    if (absl::Status s = multiply(all, *choices); !s.ok()) return s;
  }
  return all;
}

}  // namespace ptxgen::tool
