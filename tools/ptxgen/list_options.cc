#include "tools/ptxgen/list_options.h"

namespace ptxgen::tool {

ListOptions::ListOptions(CLI::App& app, std::string owner, std::vector<FieldInfo> fields, std::string_view m)
    : owner_(std::move(owner)), fields_(std::move(fields)) {
  for (const FieldInfo& info : fields_) {
    lists_.emplace_back(std::string(info.name), "");
    const std::string values =
        info.name == "m" ? std::string(m) : str_cat(allowed_values(info), "; default ", info.default_value);
    options_.push_back(app.add_option(option_of(info.name), lists_.back().second,
                                      str_cat(info.meaning, ": a list of ", values))
                           ->type_name("LIST"));
  }
  app.add_option("--shapes", shapes_, "rows x values in a row, instead of --n and --k: 14336x4096,1024x4096")
      ->type_name("LIST");
}

FieldValues ListOptions::given() const {
  FieldValues given;
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    if (options_[i]->count() > 0) given.push_back(lists_[i]);
  }
  return given;
}

}  // namespace ptxgen::tool
