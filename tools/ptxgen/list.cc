// ptxgen list: every kernel with its constants, arguments, lowest target and names in the Rust original.
#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/scalar.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

Table parameters_of(const KernelFamily& family) {
  Table table({{"name", ""},
               {"option", "option"},
               {"meaning", "meaning"},
               {"min", ""},
               {"max", ""},
               {"multiple", ""},
               {"optional", ""},
               {"values", "allowed"},
               {"default", "default"}});
  for (const FieldInfo& field : family.fields) {
    const bool integer = field.allowed_values.empty();
    const auto bound = [&](u32 value) { return integer ? Json(value) : Json(); };
    Json initial = field.default_value;
    u32 number = 0;
    if (integer && absl::SimpleAtoi(field.default_value, &number)) initial = number;
    table.add({field.name,
               option_of(field.name),
               field.meaning,
               bound(field.bounds.min),
               bound(field.bounds.max),
               bound(field.bounds.multiple),
               field.optional,
               {integer ? Json() : Json(field.allowed_values), allowed_values(field)},
               {initial, field.default_value}});
  }
  return table;
}

std::string_view name_of(Direction direction) {
  switch (direction) {
    case Direction::kIn: return "in";
    case Direction::kOut: return "out";
    case Direction::kInOut: return "in and out";
    case Direction::kScalar: break;
  }
  return "scalar";
}

Table arguments_of(const KernelFamily& family) {
  const std::vector<u64> values = family.defaults->default_arguments();
  const ArgInfos arguments = family.defaults->arguments(values);
  const auto is_scalar = [](const ArgInfo& a) { return a.direction == Direction::kScalar; };
  const bool scalars = std::any_of(arguments.begin(), arguments.end(), is_scalar);
  Table table({{"name", "argument"},
               {"direction", "direction"},
               {"type", scalars ? "type" : ""},
               {"default", scalars ? "default" : ""}});
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ArgInfo& argument = arguments[i];
    const bool scalar = is_scalar(argument);
    table.add({argument.name, name_of(argument.direction), scalar ? Json(info(argument.type).name) : Json(),
               scalar ? Json(scalar_text(argument.type, values[i])) : Json()});
  }
  return table;
}

Json to_json(const KernelFamily& family) {
  return {{"name", family.name},
          {"summary", family.summary},
          {"lowest_target", family.lowest_target().to_string()},
          {"original_names", family.original_names},
          {"parameters", parameters_of(family).json()},
          {"arguments", arguments_of(family).json()}};
}

std::string to_paragraph(const KernelFamily& family) {
  std::string text = str_cat(family.name, ": ", family.summary, "\n  runs on ",
                             family.lowest_target().to_string(), " and later");
  if (!family.original_names.empty())
    str_append(&text, "; in the Rust original: ", absl::StrJoin(family.original_names, ", "));
  return str_cat(text, "\n", parameters_of(family).text("  "), arguments_of(family).text("  "));
}

absl::StatusOr<Outcome> list(bool json) {
  Outcome outcome;
  Json kernels = Json::array();
  for (const KernelFamily& family : kernel_families()) {
    if (json) {
      kernels.push_back(to_json(family));
    } else {
      str_append(&outcome.text, outcome.text.empty() ? "" : "\n", to_paragraph(family));
    }
  }
  if (json) outcome.text = to_text({{"kernels", std::move(kernels)}});
  return outcome;
}

}  // namespace

Action declare_list(CLI::App& app, const NamedKernel&) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json] { return list(*json); };
}

}  // namespace ptxgen::tool
