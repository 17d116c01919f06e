#include "ptxgen/kernels.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"

using namespace ptxgen;
using namespace ptxgen::testing;

namespace {

const Command::Arguments kDump = {"dump",  "--kernel",   "q4k_dequant", "--k",      "4096", "--n",
                                  "11008", "--out-type", "f16",         "--target", "sm_90"};

std::string expected_ptx(Target target) {
  const absl::StatusOr<GeneratedKernel> generated =
      generate(DescriptorOf<Dequant>({.k = 4096, .n = 11008, .out_type = ElementType::kF16}),
               {.build = {.target = target}});
  REQUIRE(generated.ok());
  return generated->ptx;
}

}  // namespace

TEST_CASE("dump prints the kernel's PTX and nothing else", "[cli]") {
  const Command command;
  const Finished finished = command.run(kDump);
  CHECK(finished.exit_status == 0);
  CHECK(finished.err.empty());
  CHECK(finished.out == expected_ptx({90, false}));
}

TEST_CASE("dump writes every target's PTX", "[cli]") {
  const Command command;
  for (const TargetInfo& info : kTargets) {
    Command::Arguments arguments = kDump;
    arguments.back() = info.target.to_string();
    INFO(arguments.back());
    CHECK(command.run(arguments).out == expected_ptx(info.target));
  }
}

TEST_CASE("dump prints the same bytes in another environment", "[cli]") {
  const Command plain;
  Command other;
  other.environment = {{"HOME", "/nonexistent"},  {"PATH", ""},         {"LANG", "de_DE.UTF-8"},
                       {"LC_ALL", "tr_TR.UTF-8"}, {"TZ", "Asia/Tokyo"}, {"TMPDIR", "/nonexistent"}};
  REQUIRE(plain.folder() != other.folder());
  const Finished first = plain.run(kDump), second = other.run(kDump);
  CHECK(second.exit_status == 0);
  CHECK(first.out == second.out);
}

TEST_CASE("dump prints the descriptor", "[cli]") {
  const Command command;
  Command::Arguments arguments = kDump;
  arguments.insert(arguments.end(), {"--emit", "descriptor"});
  CHECK(command.run(arguments).out == "q4k_dequant k=4096 n=11008 out_type=f16\n");
  // The name in the Rust original, with what it fixes.
  CHECK(command.run({"dump", "--kernel", "q4k_dequant_fp16", "--n=7", "--emit=descriptor"}).out ==
        "q4k_dequant k=4096 n=7 out_type=f16\n");
}

TEST_CASE("dump writes to a file, whole or not at all", "[cli]") {
  const Command command;
  Command::Arguments arguments = kDump;
  arguments.insert(arguments.end(), {"-o", "kernel.ptx"});
  REQUIRE(write_file(command.folder() / "elsewhere", "old"));
  std::filesystem::create_symlink("elsewhere", command.folder() / "kernel.ptx");
  const Finished finished = command.run(arguments);
  CHECK(finished.exit_status == 0);
  CHECK(finished.out.empty());
  CHECK(finished.err.empty());
  CHECK(command.files() == std::vector<std::string>{"elsewhere", "kernel.ptx"});
  CHECK(std::filesystem::is_symlink(command.folder() / "kernel.ptx"));
  CHECK(read_file(command.folder() / "elsewhere") == expected_ptx({90, false}));

  for (const char* target : {"nowhere", "loop"}) {  // a link that leads to no file
    std::filesystem::create_symlink(target, command.folder() / "loop");
    arguments.back() = "loop";
    CHECK(command.run(arguments).exit_status == 2);
    CHECK(std::filesystem::is_symlink(command.folder() / "loop"));
    std::filesystem::remove(command.folder() / "loop");
  }

  arguments.back() = "/dev/full";
  CHECK(command.run(arguments).exit_status == 2);
  CHECK(std::filesystem::exists("/dev/full"));
}

TEST_CASE("a reader that goes away is no error, a full disk is", "[cli]") {
  Command command;
  const std::filesystem::path script = command.folder() / "pipe";
  command.stdout_path = "/dev/full";
  const Finished full = command.run(kDump);
  CHECK(full.exit_status == 2);
  CHECK(full.err.find("No space left") != std::string::npos);

  const std::string line = std::string("set -o pipefail; '") + PTXGEN_COMMAND + "' list --json 2>'" +
                           script.string() + "' | (exec 0<&-; sleep 0.2)";
  CHECK(std::system(("bash -c \"" + line + "\"").c_str()) == 0);
  CHECK(read_file(script) == "");
}
