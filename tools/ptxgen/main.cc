// The ptxgen command: finds the command that is asked for, prints its outcome, and says what is wrong on one
// line.
#include <algorithm>
#include <csignal>
#include <new>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"

namespace ptxgen::tool {
namespace {

struct Command {
  const char* name;
  const char* summary;
  const char* example;
  Declare* declare;
};

constexpr Command kCommands[] = {
    {"list", "Lists the kernels: constants with bounds and defaults, arguments, lowest target", "ptxgen list",
     declare_list},
    {"dump", "Prints a kernel's PTX; needs no GPU",
     "ptxgen dump --kernel q4k_dequant --k 4096 --n 11008 --out-type f16 --target sm_90", declare_dump},
    {"run", "Runs a kernel on raw little-endian files, one an argument",
     "ptxgen run --kernel q4k_dequant --k 4096 --n 32 --in weights=w.bin --out out=x.bin", declare_run},
    {"verify", "Runs kernels, or products of the executor, and compares every result with the reference",
     "ptxgen verify --gguf model.gguf --tensor 'blk.0.*'", declare_verify},
    {"explain", "Shows a kernel's geometry, instructions, memory traffic, registers and occupancy",
     "ptxgen explain --kernel q4k_dequant --k 4096 --n 11008 --target sm_90", declare_explain},
    {"emulate", "Runs anyone's PTX on the emulator, with every check",
     "ptxgen emulate k.ptx --entry k --grid 8 --block 128 --in 0=x.bin --out 1=y.bin:4096 --arg 2=u32:1000",
     declare_emulate},
    {"bench", "Times kernels, or products of the executor, beside kernels that only move as many bytes",
     "ptxgen bench --kernel q4k_dequant --shapes 14336x4096,1024x4096 --out-type all --plot times.svg",
     declare_bench},
    {"tune", "Finds the fastest variant of products on this GPU, and keeps it for the executor",
     "ptxgen tune --format q4k,q6k --n 4096,14336 --k 4096 --m 1,4", declare_tune},
    {"cache", "Shows, checks and tidies the machine code that is kept on disk",
     "ptxgen cache why --kernel q4k_dequant --k 4096 --n 11008", declare_cache},
    {"pack", "Compiles many kernels for many GPUs into one file; needs no GPU",
     "ptxgen pack --gguf model.gguf --target sm_90a,sm_89 -o model.ptxpack", declare_pack},
    {"devices", "Shows the devices here, and the environment variables that ptxgen reads", "ptxgen devices",
     declare_devices},
};

std::string names_of_commands() {
  return absl::StrJoin(kCommands, ", ", [](std::string* out, const Command& c) { out->append(c.name); });
}

std::string names_of_options(const CLI::App& app) {
  return absl::StrJoin(app.get_options(), ", ",
                       [](std::string* out, const CLI::Option* o) { out->append(o->get_name()); });
}

// "--k=", which the parser would complete with the argument after it.
absl::Status check_values(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (absl::StartsWith(argument, "--") && argument.find('=') + 1 == argument.size())
      return absl::InvalidArgumentError(
          str_cat("'", argument, "' has no value; write one behind it, or leave it out"));
  }
  return absl::OkStatus();
}

// What the parser refused, in our words: what was given, what is allowed, what to do.
absl::Status explain_refusal(const CLI::App& root, const CLI::App& app, const CLI::ParseError& error) {
  const std::string help =
      str_cat("`", &app == &root ? "" : "ptxgen ", app.get_name(), " --help` explains it");
  std::vector<std::string> extras = app.remaining();
  if (extras.empty()) extras = root.remaining();  // what stands behind "--"
  if (!extras.empty() && &app == &root) {
    return absl::InvalidArgumentError(
        str_cat("'", extras.front(), "' is no command; commands are ", names_of_commands(), "; ", help));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1 && option->results().size() > 1) {
      return absl::InvalidArgumentError(
          str_cat(option->get_name(), " is given ", option->results().size(), " times; give it once"));
    }
  }
  if (!extras.empty()) {
    return absl::InvalidArgumentError(str_cat("'", extras.front(), "' is no option of ", app.get_name(),
                                              app.get_option_no_throw("--kernel") ? " with this kernel" : "",
                                              "; it has ", names_of_options(app), "; ", help));
  }
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {  // "--k: 1 required VALUE missing"
    return absl::InvalidArgumentError(
        str_cat(what.substr(0, what.find(':')), " has no value; write one behind it, or leave it out"));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error))  // only flags are converted
    return absl::InvalidArgumentError(str_cat(what, "; a flag takes no value: leave it out"));
  return absl::InvalidArgumentError(str_cat(what, "; ", help));
}

absl::StatusOr<Outcome> run_command(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (absl::Status s = check_values(arguments); !s.ok()) return s;
  CLI::App root("Generates NVIDIA PTX kernels, runs and verifies them.", "ptxgen");
  root.set_version_flag("--version", "ptxgen " PTXGEN_VERSION, "Print the version and exit");
  root.require_subcommand(0, 1);
  root.get_formatter()->column_width(28);
  root.footer("`ptxgen COMMAND --help` shows a command's options and an example.");
  const NamedKernel named(arguments);
  std::vector<Action> actions;
  for (const Command& command : kCommands) {
    CLI::App* app = root.add_subcommand(command.name, command.summary);
    app->footer(str_cat("Example:\n  ", command.example));
    actions.push_back(command.declare(*app, named));
  }

  const auto parsed = [&]() -> const CLI::App& {
    return root.get_subcommands().empty() ? root : *root.get_subcommands().front();
  };
  try {
    root.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Outcome{root.help()};
  } catch (const CLI::CallForVersion& version) {
    return Outcome{str_cat(version.what(), "\n")};
  } catch (const CLI::ParseError& error) {
    return explain_refusal(root, parsed(), error);
  }
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (root.got_subcommand(kCommands[i].name)) return actions[i]();
  }
  return absl::InvalidArgumentError(
      str_cat("no command is given; commands are ", names_of_commands(), "; `ptxgen --help` explains them"));
}

int run(int argc, char** argv) {
  absl::Status status;
  try {
    const absl::StatusOr<Outcome> outcome = run_command(argc, argv);
    status = outcome.ok() ? write_stdout(outcome->text) : outcome.status();
    if (status.ok()) return outcome->exit_status;
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError(
        "there is not enough host memory for this; choose smaller constants or tensors");
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  say(str_cat(status.message()));
  return kRefused;
}

}  // namespace
}  // namespace ptxgen::tool

int main(int argc, char** argv) {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);  // write() says so instead
  return ptxgen::tool::run(argc, argv);
}
