// What a command of the tool is, and the table's entries: one file each.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {

// Exit statuses. What is wrong with the arguments, files or devices is a status, which main() prints.
inline constexpr int kSuccess = 0, kNotVerified = 1, kRefused = 2;

// What goes to stdout, and the exit status.
struct Outcome {
  std::string text;
  int exit_status = kSuccess;
};

// What to do once the options are parsed.
using Action = std::function<absl::StatusOr<Outcome>()>;

// Declares a command's options on `app`; those of the kernel that --kernel names are among them.
using Declare = Action(CLI::App& app, const NamedKernel& named);

Declare declare_cache, declare_pack, declare_list, declare_dump, declare_run, declare_verify, declare_explain,
    declare_bench, declare_tune, declare_devices, declare_emulate;

// The same commands with --operation instead of --kernel.
Action declare_product_bench(CLI::App& app);
Action declare_product_verify(CLI::App& app);

}  // namespace ptxgen::tool
