// What is wrong ends with status 2, one line on stderr that says what was given and what is allowed, nothing
// on stdout and no file.
#include <algorithm>

#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace ptxgen::testing;

namespace {

struct Refusal {
  Command::Arguments arguments;
  std::vector<std::string> said;  // each is in the line
};

void check(const Command& command, const Refusal& refusal) {
  const std::vector<std::string> before = command.files();
  const Finished finished = command.run(refusal.arguments);
  std::string line;
  for (const std::string& argument : refusal.arguments) line += " '" + argument + "'";
  INFO(line << " says: " << finished.err);
  CHECK(finished.exit_status == 2);
  CHECK(finished.out.empty());
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  CHECK(finished.err.starts_with("ptxgen: "));
  CHECK(finished.err.ends_with("\n"));
  for (const std::string& part : refusal.said) {
    INFO("is missing: " << part);
    CHECK(finished.err.find(part) != std::string::npos);
  }
  CHECK(command.files() == before);
}

// `ptxgen dump --kernel q4k_dequant` with these behind.
Refusal dump(Command::Arguments behind, std::vector<std::string> said) {
  behind.insert(behind.begin(), {"dump", "--kernel", "q4k_dequant"});
  return {behind, std::move(said)};
}

Refusal run_copy(Command::Arguments behind, std::vector<std::string> said) {
  behind.insert(behind.begin(), {"run", "--kernel", "copy", "--vectors", "2"});
  return {behind, std::move(said)};
}

}  // namespace

TEST_CASE("refused: commands and options", "[cli]") {
  const Command command;
  const std::string commands = "list, dump, run, verify, ";
  const std::vector<Refusal> refusals = {
      {{}, {"no command", commands}},
      {{"dmp"}, {"'dmp'", commands}},
      {{""}, {"''", commands}},
      {{"--json"}, {"'--json'"}},
      {{"list", "dump"}, {"'dump'", "--json"}},
      {{"list", "--jsn"}, {"'--jsn'", "--json", "ptxgen list --help"}},
      {{"list", "--json=maybe"}, {"--json = maybe", "takes no value"}},
      {{"new\nline\x1b[31m"}, {"'new | line?[31m'"}},
      {{"dump"}, {"--kernel is missing", "ptxgen list"}},
      {{"dump", "--k", "256"}, {"--kernel is missing"}},
      {{"dump", "--kernel"}, {"--kernel has no value"}},
      {{"dump", "--kernel="}, {"'--kernel=' has no value"}},
      {{"dump", "--kernel", ""}, {"''"}},
      {{"dump", "--kernel", "q4kk", "--k", "256"}, {"'q4kk'", "did you mean 'q4k_dequant'"}},
      {{"dump", "--kernel", "q4_K_dequant"}, {"did you mean 'q4k_dequant'"}},
      {{"dump", "--kernel", "q6"}, {"did you mean 'q6k_dequant'"}},
      {{"dump", "--kernel", "copy", "--kernel", "q4k_dequant"}, {"--kernel is given 2 times"}},
      {{"explain", "--kernel", "copy", "--k", "256"}, {"'--k'", "--vectors"}},
      dump({"--bogus", "1"}, {"'--bogus'", "--k, --n, --out-type"}),
      dump({"extra"}, {"'extra'"}),
      dump({"--", "extra"}, {"'extra'"}),
  };
  for (const Refusal& refusal : refusals) check(command, refusal);
}

TEST_CASE("refused: constants, targets, outputs", "[cli]") {
  const Command command;
  std::filesystem::create_directory(command.folder() / "folder");
  const std::vector<Refusal> refusals = {
      dump({"--k", "257"}, {"257", "multiple of 256"}),
      dump({"--k", "0"}, {"k is 0", "256 to 16777216", "block of q4_K"}),
      dump({"--k", "-256"}, {"'-256'", "whole number"}),
      dump({"--k=-256"}, {"'-256'"}),
      dump({"--k", ""}, {"''", "whole number"}),
      dump({"--k=", "--n", "32"}, {"'--k='"}),
      dump({"--k", "nan"}, {"'nan'"}),
      dump({"--k", "256.0"}, {"'256.0'"}),
      dump({"--k", "0x100"}, {"'0x100'"}),
      dump({"--k", "256 "}, {"'256 '"}),
      dump({"--k", "1e3"}, {"'1e3'"}),
      dump({"--k", "4294967552"}, {"'4294967552'"}),  // 2^32 + 256
      dump({"--k", "99999999999999999999999"}, {"'99999999999999999999999'"}),
      dump({"--k"}, {"--k has no value"}),
      dump({"--k", "256", "--k", "256"}, {"--k is given 2 times"}),
      dump({"--n", "0"}, {"n is 0"}),
      dump({"--k", "16777216", "--n", "268435456"}, {"blocks"}),
      dump({"--out-type", "f64"}, {"'f64'", "f32, f16, bf16"}),
      dump({"--out-type", "F32"}, {"'F32'"}),
      {{"dump", "--kernel", "q4k_dequant_fp16", "--out-type", "f32"}, {"'--out-type'"}},
      dump({"--target", "sm_91"}, {"'sm_91'", "sm_90a"}),
      dump({"--target", ""}, {"''"}),
      dump({"--target=90"}, {"'90'"}),
      dump({"--emit", "cubin"}, {"'cubin'", "ptx, descriptor"}),
      dump({"-o", "folder"}, {"'folder'", "directory"}),
      dump({"-o", "missing/kernel.ptx"}, {"'missing/kernel.ptx'", "folder that exists"}),
      dump({"-o", "folder/"}, {"'folder/'"}),
      dump({"-o", ""}, {"''"}),
      dump({"-o", "/dev/full"}, {"'/dev/full'", "No space left"}),
      dump({"-o", "unfinished.ptx", "--k", "255"}, {"255"}),
  };
  for (const Refusal& refusal : refusals) check(command, refusal);
}

TEST_CASE("refused: run", "[cli]") {
  const Command command;
  REQUIRE(write_file(command.folder() / "32", std::string(32, 'x')));
  REQUIRE(write_file(command.folder() / "33", std::string(33, 'x')));
  REQUIRE(write_file(command.folder() / "31", std::string(31, 'x')));
  REQUIRE(write_file(command.folder() / "0", ""));
  const std::vector<Refusal> refusals = {
      run_copy({}, {"--in src=", "missing"}),
      run_copy({"--in", "src=32"}, {"--out dst=", "missing"}),
      run_copy({"--in", "src=33", "--out", "dst=new"}, {"33 bytes", "exactly 32"}),
      run_copy({"--in", "src=31", "--out", "dst=new"}, {"31 bytes", "exactly 32"}),
      run_copy({"--in", "src=0", "--out", "dst=new"}, {"0 bytes", "exactly 32"}),
      run_copy({"--in", "src=/dev/zero", "--out", "dst=new"}, {"more than 32 bytes"}),
      run_copy({"--in", "src=/dev/null", "--out", "dst=new"}, {"has 0 bytes"}),
      run_copy({"--in", "src=.", "--out", "dst=new"}, {"'.'", "directory"}),
      run_copy({"--in", "src=absent", "--out", "dst=new"}, {"'absent'", "No such file"}),
      run_copy({"--in", "src=32", "--out", "dst=missing/new"}, {"'missing/new'"}),
      run_copy({"--in", "src=32", "--out", "dst=."}, {"'.'", "directory"}),
      run_copy({"--in", "src=32", "--out", "dst=/dev/full"}, {"No space left"}),
      run_copy({"--in", "32", "--out", "dst=new"}, {"'32'", "NAME=FILE"}),
      run_copy({"--in", "src=", "--out", "dst=new"}, {"'src='", "NAME=FILE"}),
      run_copy({"--in", "=32", "--out", "dst=new"}, {"'=32'"}),
      run_copy({"--in", "", "--out", "dst=new"}, {"''"}),
      run_copy({"--in", "src=32", "--in", "src=32", "--out", "dst=new"}, {"'src' twice"}),
      run_copy({"--in", "src=32", "--in", "weights=32", "--out", "dst=new"},
               {"'weights'", "the kernel has src"}),
      run_copy({"--in", "src=32", "--in", "dst=32", "--out", "dst=new"}, {"'dst'"}),
      run_copy({"--in", "src=32", "--out", "dst=new", "--out", "src=other"}, {"'src'"}),
      run_copy({"--in", "src=32", "--out", "dst=new", "--arg", "m=1"}, {"--arg", "'m'", "takes none"}),
      run_copy({"--in", "src=32", "--out", "dst=new", "--device", "gpu"}, {"\"gpu\"", "emulator"}),
      run_copy({"--in", "src=32", "--out", "dst=new", "--device", "cuda:-1"}, {"\"cuda:-1\""}),
      run_copy({"--in", "src=32", "--out", "dst=new", "--device", ""}, {"\"\""}),
      run_copy({"--in", "src=32", "other", "--out", "dst=new"}, {"'other'"}),
      {{"run", "--kernel", "copy", "--vectors", "2147483648", "--in", "src=32", "--out", "dst=new"}, {}},
  };
  for (const Refusal& refusal : refusals) check(command, refusal);
}

TEST_CASE("refused: bench", "[cli]") {
  const Command command;
  const auto bench = [](Command::Arguments behind, std::vector<std::string> said) {
    behind.insert(behind.begin(), {"bench", "--kernel", "copy", "--vectors", "2"});
    return Refusal{behind, std::move(said)};
  };
  const std::vector<Refusal> refusals = {
      {{"bench"}, {"--kernel is missing"}},
      bench({}, {"emulated device", "--device cuda"}),
      bench({"--device", "emulator"}, {"emulated device", "--device cuda"}),
      bench({"--device", "cuda:99"}, {"cuda:99"}),
      bench({"--calls", "0"}, {"--calls", "0", "1", "10000"}),
      bench({"--calls", "10001"}, {"--calls", "10001", "1", "10000"}),
      bench({"--calls", "-1"}, {"--calls", "-1", "1", "10000"}),
      bench({"--calls", "1.5"}, {"--calls", "'1.5'"}),
      bench({"--calls", "many"}, {"--calls", "'many'", "whole number from 1 to 10000"}),
      bench({"--calls", ""}, {"--calls", "''"}),
      bench({"--calls"}, {"--calls has no value"}),
      bench({"--calls", "2", "--calls", "3"}, {"--calls is given 2 times"}),
      bench({"--replays", "0"}, {"--replays", "0", "1", "10000"}),
      bench({"--replays", "10001"}, {"--replays", "10001"}),
      bench({"--vectors", "0"}, {"--vectors is given 2 times"}),
      bench({"--arg", "m=1"}, {"--arg", "'m'", "takes none"}),
      bench({"--arg", "m=1,2"}, {"--arg", "'m'", "takes none"}),
      bench({"--shapes", "1x256"}, {"--shapes", "copy", "'n'"}),
      {{"bench", "--kernel", "read", "--arg", "least=1,"}, {"--arg least", "'1,'"}},
      {{"bench", "--kernel", "q4k_dequant", "--k", "256,"}, {"--k is '256,'", "empty"}},
      {{"bench", "--kernel", "q4k_dequant", "--shapes", "1x"}, {"'1x'", "14336x4096"}},
      {{"bench", "--kernel", "q4k_dequant", "--shapes", "1x256", "--k", "256"}, {"--shapes and --k"}},
  };
  for (const Refusal& refusal : refusals) check(command, refusal);
}

TEST_CASE("refused: verify and the environment", "[cli]") {
  Command command;
  REQUIRE(write_file(command.folder() / "no.gguf", "GGUG"));
  REQUIRE(write_file(command.folder() / "empty.gguf", ""));
  const std::string layer = data_path("layer.gguf");
  const std::vector<Refusal> refusals = {
      {{"verify"}, {"--kernel NAME", "--gguf FILE"}},
      {{"verify", "--k", "256"}, {"'--k'"}},
      {{"verify", "--kernel", "nope"}, {"'nope'"}},
      {{"verify", "--kernel", "copy", "--gguf", layer}, {"both"}},
      {{"verify", "--kernel", "copy", "--seed", "-1"}, {"'-1'", "whole number"}},
      {{"verify", "--kernel", "copy", "--seed", ""}, {"''"}},
      {{"verify", "--kernel", "copy", "--seed", "18446744073709551616"}, {"'18446744073709551616'"}},
      {{"verify", "--kernel", "copy", "--tensor", "x"}, {"--tensor"}},
      {{"verify", "--gguf", layer, "--seed", "1"}, {"--seed"}},
      {{"verify", "--gguf", layer, "--arg", "m=1"}, {"--arg", "leave it out"}},
      {{"verify", "--kernel", "copy", "--arg", "m=1"}, {"--arg", "'m'", "takes none"}},
      {{"verify", "--kernel", "copy", "--arg", "m"}, {"'m'", "NAME=VALUE"}},
      {{"explain", "--kernel", "copy", "--arg", "m=1"}, {"--arg", "'m'", "takes none"}},
      {{"explain", "--kernel", "copy", "--arg", "src=1"}, {"--arg", "'src'", "takes none"}},
      {{"verify", "--gguf", layer, "--out-type", "f8"}, {"'f8'", "f32, f16, bf16"}},
      {{"verify", "--gguf", layer, "--k", "256"}, {"'--k'"}},
      {{"verify", "--gguf", layer, "--device", "cpu"}, {"\"cpu\""}},
      {{"verify", "--gguf", "absent.gguf"}, {"absent.gguf"}},
      {{"verify", "--gguf", "."}, {"'.'"}},
      {{"verify", "--gguf", "no.gguf"}, {"magic"}},
      {{"verify", "--gguf", "empty.gguf"}, {"gguf"}},
      {{"verify", "--kernel", "q4k_dequant", "--k", "65536", "--n", "16000000"},
       {"choose smaller constants"}},
  };
  for (const Refusal& refusal : refusals) check(command, refusal);

  command.environment["PTXGEN_DEVICE"] = "toaster";
  check(command, {{"verify", "--kernel", "copy"}, {"PTXGEN_DEVICE", "toaster"}});
  command.environment = {{"PTXGEN_DEVICE", "emulator"}, {"PTXGEN_EMULATOR_THREADS", "0"}};
  check(command, {{"verify", "--kernel", "copy"}, {"PTXGEN_EMULATOR_THREADS=0"}});
  command.environment = {{"PTXGEN_DEVICE", "cuda"}, {"PTXGEN_LIBCUDA", "/nonexistent"}};
  check(command, {{"verify", "--kernel", "copy"}, {"/nonexistent", "emulator"}});
}
