// Options that several commands share.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/device.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"

namespace ptxgen::tool {

// "--out-type" for the field "out_type".
std::string option_of(std::string_view field);
// "256 to 16777216, a multiple of 256 (a block of q4_K)", "f32, f16, bf16".
std::string allowed_values(const FieldInfo& field);
// An option for one constant of a kernel; its text is left to KernelFamily::make().
CLI::Option* add_field(CLI::App& app, const FieldInfo& field);

// The parts of a list, "4096,14336". An empty one is refused in the name of `option`.
absl::StatusOr<std::vector<std::string>> split_list(std::string_view option, std::string_view text);

// Accepts decimal numbers from `min` to `max`, for options that are none of a kernel's.
CLI::Validator whole_number(u64 min, u64 max);

// The kernel that the arguments name, or that they name an operation of the executor: found before they are
// parsed, because the options depend on it.
class NamedKernel {
 public:
  explicit NamedKernel(absl::Span<const std::string> arguments);

  bool is_named() const { return named_; }
  bool is_operation() const { return operation_.has_value(); }
  std::string operation() const { return operation_.value_or(""); }
  // The status says that none was named, or that none is called so.
  const absl::StatusOr<const KernelFamily*>& family() const { return family_; }

 private:
  bool named_ = false;
  std::optional<std::string> operation_;
  absl::StatusOr<const KernelFamily*> family_;
};

// --operation, for the help of commands without it: with it they have other options.
void add_operation(CLI::App& app, const std::string& meaning);

// --kernel and the constants of the kernel that it names.
class KernelOptions {
 public:
  KernelOptions(CLI::App& app, const NamedKernel& named);

  absl::StatusOr<KernelType> kernel() const;

  // The parts of kernel(): which family, and what is given of its constants.
  const absl::StatusOr<const KernelFamily*>& family() const { return named_.family(); }
  FieldValues given() const;

 private:
  const NamedKernel named_;
  std::vector<std::pair<std::string, CLI::Option*>> fields_;
};

// --target
class TargetOption {
 public:
  explicit TargetOption(CLI::App& app);
  absl::StatusOr<Target> target() const { return Target::parse(text_); }

 private:
  std::string text_ = "sm_90";
};

// --codegen
class CodegenOption {
 public:
  // `several`: a list of them may be given.
  explicit CodegenOption(CLI::App& app, bool several = false);
  absl::StatusOr<Codegen> codegen() const;
  absl::StatusOr<std::vector<Codegen>> codegens() const;

 private:
  std::string text_ = std::string(kEnumNames<Codegen>.front());
};

// --codegen and --pack
class CacheOptions {
 public:
  explicit CacheOptions(CLI::App& app, bool several = false);
  absl::StatusOr<KernelCacheOptions> options() const;
  // Of each code generator.
  absl::StatusOr<std::vector<KernelCacheOptions>> each() const;

 private:
  CodegenOption codegen_;
  std::string pack_;
};

// --device
class DeviceOption {
 public:
  explicit DeviceOption(CLI::App& app);
  // Without the option, the device that PTXGEN_DEVICE asks for.
  absl::StatusOr<Device> open() const;
  // The same; an emulated one is refused, which cannot be `done` ("timed").
  absl::StatusOr<Device> open_cuda(std::string_view done) const;

 private:
  std::string text_;
  CLI::Option* option_;
};

// NAME=VALUE, given any number of times under one option. `name` stands for the name in messages.
class NamedValues {
 public:
  NamedValues(CLI::App& app, const std::string& option, const std::string& value, const std::string& meaning,
              const std::string& name = "NAME");

  // Values by name; a text without '=', without a name or value, or a name given twice is refused.
  absl::StatusOr<FieldValues> parse() const;

  const std::string& option() const { return option_; }
  bool any() const { return !texts_.empty(); }

 private:
  std::string option_, value_, name_;
  std::vector<std::string> texts_;
};

}  // namespace ptxgen::tool
