#include <algorithm>
#include <random>

#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace ptxgen::testing;

namespace {

// Whatever stands on the command line: a status of 0, 1 or 2, and one line where it is 2.
void check(const Command& command, const Command::Arguments& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  const Finished finished = command.run(arguments);
  INFO("ptxgen" << line << " says: " << finished.err);
  CHECK(finished.exit_status >= 0);
  CHECK(finished.exit_status <= 2);
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') <= 1);
  if (finished.exit_status == 2) {
    CHECK(finished.err.starts_with("ptxgen: "));
    CHECK(finished.out.empty());
  }
}

}  // namespace

TEST_CASE("random command lines end in order", "[cli]") {
  const Command command;
  REQUIRE(write_file(command.folder() / "input", std::string(64, 'i')));
  const std::string layer = data_path("layer.gguf");
  const std::vector<std::string> commands = {"list", "dump", "run", "verify", "explain", "bench", "devices"};
  const std::vector<std::string> options = {
      "--kernel", "--k",    "--n",   "--out-type", "--vectors", "--target", "--emit",  "-o",
      "--in",     "--out",  "--arg", "--gguf",     "--tensor",  "--seed",   "--calls", "--device",
      "--json",   "--help", "-h",    "--version",  "--",        "-",        "--x",     "--codegen"};
  const std::vector<std::string> values = {"q4k_dequant",
                                           "q6k_dequant",
                                           "copy",
                                           "q4k_dequant_fp16",
                                           "32",
                                           "256",
                                           "1",
                                           "0",
                                           "-1",
                                           "257",
                                           "nan",
                                           "",
                                           "x",
                                           "4294967295",
                                           "18446744073709551616",
                                           "f16",
                                           "bf16",
                                           "sm_75",
                                           "sm_90a",
                                           "ptx",
                                           "descriptor",
                                           "result",
                                           "src=input",
                                           "dst=result",
                                           "weights=input",
                                           "out=/dev/null",
                                           "=",
                                           "a=b=c",
                                           "[a,b]",
                                           "\xff\xfe",
                                           "\n",
                                           layer,
                                           "blk.*",
                                           "emulator",
                                           "cuda:7",
                                           "list",
                                           std::string(5000, 'y')};
  std::mt19937 random(20240229);
  const auto one_of = [&](const std::vector<std::string>& all) { return all[random() % all.size()]; };
  for (int i = 0; i < 300; ++i) {
    Command::Arguments arguments;
    if (random() % 16 != 0) arguments.push_back(one_of(commands));
    // Half of them begin well, and small, and so get further.
    if (random() % 2 == 0)
      arguments.insert(arguments.end(), {"--kernel", "q4k_dequant", "--k", "256", "--n", "3"});
    for (unsigned more = random() % 5; more > 0; --more) {
      const std::string option = one_of(options);
      if (random() % 4 == 0) {
        arguments.push_back(option + "=" + one_of(values));
      } else {
        arguments.push_back(option);
        if (random() % 8 != 0) arguments.push_back(one_of(values));
      }
    }
    check(command, arguments);
  }
}
