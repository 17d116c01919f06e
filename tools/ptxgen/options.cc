#include "tools/ptxgen/options.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ptxgen/environment.h"

namespace ptxgen::tool {

std::string option_of(std::string_view field) {
  return str_cat("--", absl::StrReplaceAll(std::string(field), {{"_", "-"}}));
}

std::string allowed_values(const FieldInfo& field) {
  if (!field.allowed_values.empty()) {
    std::string text;
    for (const std::string_view value : field.allowed_values)
      str_append(&text, text.empty() ? "" : ", ", value);
    return text;
  }
  return str_cat(field.bounds.to_string(), field.optional ? ", or 0: chosen by the kernel" : "");
}

CLI::Option* add_field(CLI::App& app, const FieldInfo& field) {
  return app.add_option(option_of(field.name))
      ->description(str_cat(field.meaning, " (", allowed_values(field), "); default ", field.default_value))
      ->type_name("VALUE")
      ->expected(1);
}

absl::StatusOr<std::vector<std::string>> split_list(std::string_view option, std::string_view text) {
  std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
  if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
    return absl::InvalidArgumentError(str_cat(option, " is '", text,
                                              "', and a part of it is empty; separate values by one comma "
                                              "each"));
  }
  return parts;
}

CLI::Validator whole_number(u64 min, u64 max) {
  const auto check = [=](std::string& text) {
    u64 value = 0;
    const bool digits = text.find_first_not_of("0123456789") == text.npos;
    if (!digits || !absl::SimpleAtoi(text, &value) || value < min || value > max)
      return str_cat("'", text, "' is no whole number from ", min, " to ", max);
    text = str_cat(value);  // a leading 0 would make it octal
    return std::string();
  };
  return CLI::Validator(check, "");
}

NamedKernel::NamedKernel(absl::Span<const std::string> arguments)
    : family_(absl::InvalidArgumentError(
          "--kernel is missing; name a kernel, as --kernel q4k_dequant: `ptxgen list` shows all")) {
  // What stands behind the option; nothing where it is not given.
  const auto value_of = [&](std::string_view option) -> std::optional<std::string> {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string_view argument = arguments[i];
      if (argument == option && i + 1 < arguments.size()) return arguments[i + 1];
      if (argument.starts_with(str_cat(option, "="))) return std::string(argument.substr(option.size() + 1));
    }
    return std::nullopt;
  };
  operation_ = value_of("--operation");
  const std::optional<std::string> kernel = value_of("--kernel");
  named_ = kernel.has_value();
  if (kernel) family_ = find_kernel(*kernel);
}

void add_operation(CLI::App& app, const std::string& meaning) {
  app.add_option("--operation")
      ->description(str_cat(meaning, ": gemm or gemv; its options are shown by --help behind it"))
      ->type_name("NAME")
      ->expected(1);
}

KernelOptions::KernelOptions(CLI::App& app, const NamedKernel& named) : named_(named) {
  app.add_option("--kernel")
      ->description("the kernel; its constants are options too, which --help shows beside it")
      ->type_name("NAME")
      ->expected(1);
  if (!named.family().ok()) {  // what its constants would be is not known: kernel() says what is wrong
    app.allow_extras();
    return;
  }
  for (const FieldInfo& field : (*named.family())->fields) {
    fields_.emplace_back(field.name,
                         add_field(app, field)->group(str_cat("Constants of ", (*named.family())->name)));
  }
}

FieldValues KernelOptions::given() const {
  FieldValues values;
  for (const auto& [name, option] : fields_) {
    if (option->count() > 0) values.emplace_back(name, option->as<std::string>());
  }
  return values;
}

absl::StatusOr<KernelType> KernelOptions::kernel() const {
  if (!family().ok()) return family().status();
  return (*family())->make(given());
}

TargetOption::TargetOption(CLI::App& app) {
  std::string all;
  for (const TargetInfo& info : kTargets) str_append(&all, all.empty() ? "" : ", ", info.target.to_string());
  app.add_option("--target", text_, str_cat("the GPU to generate for: ", all, "; default ", text_))
      ->type_name("TARGET");
}

CodegenOption::CodegenOption(CLI::App& app, bool several) {
  std::string all;
  for (const std::string_view name : kEnumNames<Codegen>) str_append(&all, all.empty() ? "" : ", ", name);
  app.add_option("--codegen", text_,
                 str_cat("what writes the PTX: ", all, several ? ", or a list of them" : "", "; default ",
                         text_))
      ->type_name("CODEGEN");
}

absl::StatusOr<Codegen> CodegenOption::codegen() const {
  Codegen codegen{};
  if (absl::Status s = ptxgen::detail::parse_field("--codegen", text_, {}, codegen); !s.ok()) return s;
  return codegen;
}

absl::StatusOr<std::vector<Codegen>> CodegenOption::codegens() const {
  const auto names = split_list("--codegen", text_);
  if (!names.ok()) return names.status();
  std::vector<Codegen> codegens(names->size());
  for (std::size_t i = 0; i < names->size(); ++i) {
    if (absl::Status s = ptxgen::detail::parse_field("--codegen", (*names)[i], {}, codegens[i]); !s.ok())
      return s;
    if (std::find(codegens.begin(), codegens.begin() + i, codegens[i]) != codegens.begin() + i) {
      return absl::InvalidArgumentError(
          str_cat("--codegen gives ", (*names)[i], " twice; give each code generator once"));
    }
  }
  return codegens;
}

CacheOptions::CacheOptions(CLI::App& app, bool several) : codegen_(app, several) {
  app.add_option("--pack", pack_, "take what this pack has from there, before anything is compiled")
      ->type_name("FILE");
}

absl::StatusOr<KernelCacheOptions> CacheOptions::options() const {
  const absl::StatusOr<Codegen> codegen = codegen_.codegen();
  if (!codegen.ok()) return codegen.status();
  absl::StatusOr<std::vector<KernelCacheOptions>> options = each();
  if (!options.ok()) return options.status();
  return std::move(options->front());
}

absl::StatusOr<std::vector<KernelCacheOptions>> CacheOptions::each() const {
  const absl::StatusOr<std::vector<Codegen>> codegens = codegen_.codegens();
  if (!codegens.ok()) return codegens.status();
  std::vector<Pack> packs;
  if (!pack_.empty()) {
    absl::StatusOr<Pack> pack = Pack::open(pack_);
    if (!pack.ok()) return pack.status();
    packs.push_back(*std::move(pack));
  }
  std::vector<KernelCacheOptions> options;
  for (const Codegen codegen : *codegens) options.push_back({.codegen = codegen, .packs = packs});
  return options;
}

DeviceOption::DeviceOption(CLI::App& app)
    : option_(app.add_option("--device", text_,
                             str_cat("where to run: ", env::kDevice.values, "; default ", env::kDevice.name,
                                     ", else ", env::kDevice.default_value))
                  ->type_name("DEVICE")) {}

absl::StatusOr<Device> DeviceOption::open() const {
  if (option_->count() == 0) return Device::open();
  const absl::StatusOr<DeviceOptions> options = DeviceOptions::parse(text_);
  if (!options.ok()) return absl::InvalidArgumentError(str_cat("--", options.status().message()));
  return Device::open(*options);
}

absl::StatusOr<Device> DeviceOption::open_cuda(std::string_view done) const {
  absl::StatusOr<Device> device = open();
  if (!device.ok() || device->kind() == DeviceKind::kCuda) return device;
  return absl::FailedPreconditionError(str_cat("only a CUDA device can be ", done, ", and this is the ",
                                               device->description(), "; choose one with --device cuda"));
}

NamedValues::NamedValues(CLI::App& app, const std::string& option, const std::string& value,
                         const std::string& meaning, const std::string& name)
    : option_(option), value_(value), name_(name) {
  app.add_option(option, texts_, meaning)->type_name(str_cat(name, "=", value))->allow_extra_args(false);
}

absl::StatusOr<FieldValues> NamedValues::parse() const {
  FieldValues parsed;
  for (const std::string& text : texts_) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      return absl::InvalidArgumentError(
          str_cat(option_, " is '", text, "'; give it as ", option_, " ", name_, "=", value_));
    }
    parsed.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    const auto same = [&](const auto& other) { return other.first == parsed.back().first; };
    if (std::count_if(parsed.begin(), parsed.end(), same) > 1) {
      return absl::InvalidArgumentError(
          str_cat(option_, " gives '", parsed.back().first, "' twice; give each name once"));
    }
  }
  return parsed;
}

}  // namespace ptxgen::tool
