// `ptxgen cache`, `ptxgen pack` and `ptxgen bench --startup`.
#include <algorithm>
#include <fstream>
#include <set>

#include "ptxgen/executor.h"
#include "ptxgen/gguf.h"
#include "ptxgen/pack.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/support/ptxas.h"
#include "tests/support/status.h"

using namespace ptxgen;
using namespace ptxgen::testing;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

constexpr const char* kList =
    "# of a model\n"
    "q4k_dequant k=512 n=3 out_type=f16\n"
    "\n"
    "q6k_dequant k=256 n=7   # the rest by default\r\n"
    "copy vectors=5\n"
    "q4k_dequant k=512 n=3 out_type=f16\n";

std::string refusal(const Command& command, const Command::Arguments& arguments) {
  const Finished finished = command.run(arguments);
  INFO(finished.err);
  CHECK(finished.exit_status == 2);
  CHECK(finished.out.empty());
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  return finished.err;
}

std::string in_folder(const Command& command, const std::string& name) {
  return (command.folder() / name).string();
}

}  // namespace

TEST_CASE("a cache command that makes no sense is refused", "[cli]") {
  const Command command;
  CHECK(contains(refusal(command, {"cache"}), "choose one of ls, why, verify"));
  CHECK(contains(refusal(command, {"cache", "list"}), "'list' is no action"));
  CHECK(contains(refusal(command, {"cache", "ls", "x"}), "`ptxgen cache ls` takes none"));
  CHECK(contains(refusal(command, {"cache", "ls", "--max-bytes", "1"}), "--max-bytes is given"));
  CHECK(contains(refusal(command, {"cache", "gc", "--match", "x"}), "--match is given"));
  CHECK(contains(refusal(command, {"cache", "gc", "--max-bytes", "-1"}), "--max-bytes is '-1'"));
  CHECK(contains(refusal(command, {"cache", "verify", "--kernel", "copy"}), "--kernel is given"));
  CHECK(contains(refusal(command, {"cache", "ls", "--list", "x"}), "--gguf or --list is given"));
  CHECK(contains(refusal(command, {"cache", "export"}), "no FILE is given"));
  CHECK(contains(refusal(command, {"cache", "export", "x"}), "there is nothing to export"));
  CHECK(contains(refusal(command, {"cache", "import", "nowhere"}), "cannot open 'nowhere'"));
  CHECK(contains(refusal(command, {"cache", "ls", "--foo"}), "'--foo' is no option"));
  CHECK(contains(refusal(command, {"cache", "why"}), "--kernel is missing"));
  CHECK(contains(refusal(command, {"cache", "why", "--kernel", "copy"}), "choose a GPU with --device cuda"));
  CHECK(contains(refusal(command, {"cache", "prepare"}), "no kernels are given"));
  CHECK(contains(refusal(command, {"cache", "prepare", "--list", "nowhere"}), "'nowhere'"));
  CHECK(command.files().empty());
}

TEST_CASE("a cache directory that is not used is said so", "[cli]") {
  Command command;
  fs::create_directory(command.folder() / "open");
  fs::permissions(command.folder() / "open", fs::perms::all);
  command.environment["PTXGEN_CACHE_DIR"] = in_folder(command, "open");
  for (const char* action : {"ls", "verify", "gc", "clear"})
    CHECK(contains(refusal(command, {"cache", action}), "can be written by others"));
  command.environment["PTXGEN_CACHE_SHARED"] = "1";
  CHECK(command.run({"cache", "ls"}).exit_status == 0);
  command.environment["PTXGEN_CACHE_MAX_BYTES"] = "0";
  CHECK(contains(refusal(command, {"cache", "ls"}), "PTXGEN_CACHE_MAX_BYTES"));
}

TEST_CASE("a pack is made without a GPU and holds code for every target", "[cli]") {
  const Command command;
  const std::string list = in_folder(command, "list"), output = in_folder(command, "model.ptxpack");
  REQUIRE(write_file(list, kList));
  const json report = command.run_json({"pack", "--list", list, "--target", "sm_90a,sm_80", "-o", output});
  CHECK(report["entries"].size() == 6);
  CHECK(report["notes"].empty());
  const Pack pack = take(Pack::open(output));
  REQUIRE(pack.size() == 6);
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < pack.size(); ++i) {
    const StoredKernel kernel = take(pack.entry(i));
    CHECK(kernel.image.kind == ImageKind::kCubin);
    CHECK(kernel.image.bytes.substr(0, 4) ==
          "\x7f"
          "ELF");
    CHECK(kernel.key.compiler.starts_with("ptxas 1"));
    CHECK(kernel.key.capability == (kernel.key.target == "sm_90a" ? "9.0" : "8.0"));
    CHECK(pack.find(kernel.key, kernel.ptx)->bytes == kernel.image.bytes);
    seen.push_back(kernel.key.descriptor + " " + kernel.key.target);
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen == std::vector<std::string>{
                    "copy vectors=5 sm_80", "copy vectors=5 sm_90a",
                    "q4k_dequant k=512 n=3 out_type=f16 sm_80", "q4k_dequant k=512 n=3 out_type=f16 sm_90a",
                    "q6k_dequant k=256 n=7 out_type=f32 sm_80", "q6k_dequant k=256 n=7 out_type=f32 sm_90a"});
  CHECK(command.run_json({"cache", "verify", output})["good"] == 6);
  CHECK(command.run({"cache", "verify", output}).exit_status == 0);

  std::string damaged = read_file(output).value();
  damaged[damaged.size() - 9] ^= 1;
  REQUIRE(write_file(output, damaged));
  const json verdict = command.run_json({"cache", "verify", output}, 1);
  CHECK(verdict["good"] == 5);
  CHECK(verdict["damaged"] == 1);
}

TEST_CASE("a pack of LLVM's work is used where there is no LLVM", "[cli][llvm]") {
  Command command;
  const std::string list = in_folder(command, "list"), output = in_folder(command, "llvm.ptxpack");
  REQUIRE(write_file(list, kList));
  const json report =
      command.run_json({"pack", "--list", list, "--codegen", "llvm", "--target", "sm_90a", "-o", output});
  CHECK(report["entries"].size() == 6);  // of each kernel PTX and cubin
  CHECK(command.run_json({"cache", "verify", output})["good"] == 6);
  command.environment["PTXGEN_LLVM_LIBRARY"] = "/nonexistent/libLLVM.so";
  command.environment["PTXGEN_EMULATOR_TARGET"] = "sm_90a";
  const std::vector<std::string> verify = {"verify", "--kernel",  "q6k_dequant", "--k",      "256",     "--n",
                                           "7",      "--codegen", "llvm",        "--device", "emulator"};
  CHECK(contains(refusal(command, verify), "LLVM could not be opened"));
  std::vector<std::string> packed = verify;
  packed.insert(packed.end(), {"--pack", output});
  CHECK(command.run(packed).exit_status == 0);
  packed.back() = list;
  CHECK(contains(refusal(command, packed), "is no pack"));
}

TEST_CASE("a pack has the work of several code generators", "[cli][llvm]") {
  const Command command;
  const std::string list = in_folder(command, "list"), output = in_folder(command, "both.ptxpack");
  REQUIRE(write_file(list, "copy vectors=5\nq8_0_gemm k=256 n=64 schedule=wgmma a_type=f16\n"));
  const Command::Arguments arguments = {"pack",     "--list", list, "--codegen", "direct,llvm",
                                        "--target", "sm_90a", "-o", output};
  const json entries = command.run_json(arguments)["entries"];
  std::vector<std::string> made;
  for (const json& row : entries) {
    const std::string kernel = row["kernel"], codegen = row["codegen"], kind = row["kind"];
    made.push_back(
        str_cat(kernel.substr(0, kernel.find(' ')), " ", codegen.substr(0, codegen.find(' ')), " ", kind));
  }
  CHECK(made == std::vector<std::string>{"copy direct cubin", "copy llvm PTX", "copy llvm cubin",
                                         "q8_0_gemm direct cubin", "q8_0_gemm llvm none"});
  CHECK(contains(entries[4]["detail"].get<std::string>(), "is not for the code generator llvm"));
  CHECK(take(Pack::open(output)).size() == 4);
  CHECK(contains(command.run(arguments).out, "codegen"));
  Command::Arguments twice = arguments;
  twice[4] = "llvm,llvm";
  CHECK(contains(refusal(command, twice), "--codegen gives llvm twice"));
}

TEST_CASE("a pack has the kernels of a model", "[cli]") {
  const Command command;
  const std::string output = in_folder(command, "layer.ptxpack");
  const json report = command.run_json({"pack", "--gguf", data_path("layer.gguf"), "--constant",
                                        "out_type=bf16", "--target", "sm_90a", "-o", output});
  REQUIRE_FALSE(report["entries"].empty());
  bool dequant = false;
  for (const json& row : report["entries"]) {
    INFO(row);
    CHECK(row["kind"] == "cubin");
    const std::string kernel = row["kernel"];
    dequant |= kernel.find("_dequant ") != kernel.npos && kernel.ends_with("out_type=bf16");
  }
  CHECK(dequant);
  // One entry a kernel, though several tensors want it.
  std::vector<std::string> kernels;
  for (const json& row : report["entries"]) kernels.push_back(row["kernel"]);
  std::sort(kernels.begin(), kernels.end());
  CHECK(std::adjacent_find(kernels.begin(), kernels.end()) == kernels.end());
}

// Also below sm_90, which has no schedule `stream`.
TEST_CASE("a pack of a model has what an executor runs on each target", "[cli]") {
  const Command command;
  const std::string output = in_folder(command, "layer.ptxpack");
  const json report = command.run_json(
      {"pack", "--gguf", data_path("layer.gguf"), "--target", "sm_90a,sm_80,sm_75", "-o", output});
  std::set<std::string> packed;
  for (const json& row : report["entries"]) {
    INFO(row);
    CHECK(row["kind"] == "cubin");
    packed.insert(str_cat(row["target"].get<std::string>(), " ", row["kernel"].get<std::string>()));
  }
  const gguf::File model = take(gguf::File::open(data_path("layer.gguf")));
  int products = 0;
  for (const Target target : {Target{90, true}, Target{80, false}, Target{75, false}}) {
    const DevicePolicy policy(DeviceProperties::of(target, DeviceKind::kCuda, 132), {}, {});
    for (const gguf::Tensor& tensor : model.tensors()) {
      if (!tensor.format()) continue;
      for (const u32 m : {1u, 2u, 3u, 7u}) {
        const GemvShape shape = {*tensor.format(), static_cast<u32>(tensor.n()), static_cast<u32>(tensor.k()),
                                 m};
        for (const KernelType& kernel : take(kernels_of(policy, shape))) {
          INFO(target.to_string() << " " << kernel->text());
          CHECK(packed.count(str_cat(target.to_string(), " ", kernel->text())) == 1);
          ++products;
        }
      }
    }
  }
  CHECK(products > 0);
}

TEST_CASE("without a ptxas a pack holds PTX and says so", "[cli]") {
  Command command;
  REQUIRE(write_file(command.folder() / "list", "copy vectors=5\n"));
  const Command::Arguments arguments = {"pack",  "--list", in_folder(command, "list"), "--target",
                                        "sm_75", "-o",     in_folder(command, "pack")};
  command.environment["PTXGEN_PTXAS"] = "/no/such/ptxas";
  CHECK(contains(refusal(command, arguments), "/no/such/ptxas is not an executable file"));
  CHECK_FALSE(fs::exists(command.folder() / "pack"));
}

TEST_CASE("a pack that cannot be made is refused, and leaves nothing", "[cli]") {
  const Command command;
  const std::string list = in_folder(command, "list"), output = in_folder(command, "pack");
  REQUIRE(write_file(list, "copy vectors=5\n"));
  const auto refused = [&](Command::Arguments more) {
    more.insert(more.begin(), "pack");
    return refusal(command, more);
  };
  CHECK(contains(refused({"--list", list, "-o", output}), "--target is missing"));
  CHECK(contains(refused({"--list", list, "--target", "sm_80"}), "-o is missing"));
  CHECK(contains(refused({"--target", "sm_80", "-o", output}), "no kernels are given"));
  CHECK(contains(refused({"--list", list, "--gguf", list, "--target", "sm_80", "-o", output}), "both given"));
  CHECK(contains(refused({"--list", list, "--target", "sm_80,sm_42", "-o", output}), "sm_42"));
  CHECK(contains(refused({"--list", list, "--target", "sm_80,,sm_89", "-o", output}), "empty"));
  CHECK(contains(refused({"--list", list, "--target", "sm_80,sm_80", "-o", output}), "twice"));
  CHECK(contains(refused({"--list", list, "--target", "sm_80", "-o", "/no/such/folder/pack"}),
                 "/no/such/folder"));
  CHECK(contains(refused({"--list", list, "--constant", "n=1", "--target", "sm_80", "-o", output}),
                 "--constant"));
  CHECK(contains(refused({"--gguf", list, "--target", "sm_80", "-o", output}), "gguf"));
  CHECK(contains(refused({"--gguf", data_path("layer.gguf"), "--constant", "colour=red", "--target", "sm_80",
                          "-o", output}),
                 "--constant colour"));
  for (const auto& [text, says] :
       {std::pair("copy vectors=0\n", "line 1"), std::pair("\n\nwat\n", "line 3"),
        std::pair("copy vectors\n", "NAME=VALUE"), std::pair("# nothing\n", "lists no kernel"),
        std::pair("copy wings=2\n", "wings")}) {
    REQUIRE(write_file(list, text));
    CHECK(contains(refused({"--list", list, "--target", "sm_80", "-o", output}), says));
  }
  CHECK(command.files() == std::vector<std::string>{"list"});
}

#ifdef PTXGEN_FAKE_CUDA

namespace {

// A command with the fake driver, whose cache holds the kernels of kList.
struct Prepared {
  Prepared() {
    command.environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA},
                           {"PTXGEN_DEVICE", "cuda"},
                           {"PTXGEN_CACHE_DIR", in_folder(command, "cache")}};
    REQUIRE(write_file(command.folder() / "list", kList));
    first = command.run_json({"cache", "prepare", "--list", in_folder(command, "list")});
  }
  std::vector<fs::path> cubins() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(command.folder() / "cache" / "cubins"))
      if (entry.path().extension() == ".cubin") paths.push_back(entry.path());
    return paths;
  }
  Command command;
  json first;
};

}  // namespace

TEST_CASE("kernels are prepared, listed and verified", "[cli][fake]") {
  const Prepared p;
  CHECK(p.first["compiled"] == 3);
  const json second =
      p.command.run_json({"cache", "prepare", "--list", in_folder(p.command, "list"), "--jobs", "2"});
  CHECK(second["compiled"] == 0);
  CHECK(second["from_disk"] == 3);

  const json listed = p.command.run_json({"cache", "ls"});
  CHECK(listed["kernels"].size() == 3);
  CHECK(listed["directory"] == in_folder(p.command, "cache/cubins"));
  for (const json& row : listed["kernels"]) {
    CHECK(row["state"] == "ok");
    CHECK(row["target"] == "sm_80");
    CHECK(row["compiler"] == "driver 12.4");
  }
  CHECK(p.command.run_json({"cache", "ls", "--match", "q4k_*"})["kernels"].size() == 1);
  const Finished text = p.command.run({"cache", "ls"});
  CHECK(contains(text.out, "3 kernels, "));
  CHECK(contains(text.out, "q6k_dequant k=256 n=7 out_type=f32"));

  CHECK(p.command.run_json({"cache", "verify"})["good"] == 3);
  fs::resize_file(p.cubins().at(0), 100);
  const json verdict = p.command.run_json({"cache", "verify"}, 1);
  CHECK(verdict["good"] == 2);
  CHECK(verdict["damaged"] == 1);
  CHECK(p.command.run_json({"cache", "prepare", "--list", in_folder(p.command, "list")})["compiled"] == 1);
  CHECK(p.command.run_json({"cache", "verify"})["good"] == 3);
}

TEST_CASE("why names the field that makes a miss", "[cli][fake]") {
  const Prepared p;
  const Command::Arguments kept = {"cache", "why", "--kernel", "q4k_dequant", "--k",
                                   "512",   "--n", "3",        "--out-type",  "f16"};
  CHECK(p.command.run_json(kept)["kept"] == true);
  CHECK(contains(p.command.run(kept).out, "is kept"));

  Command::Arguments other = kept;
  other[7] = "4";
  const json constant = p.command.run_json(other, 1);
  CHECK(constant["kept"] == false);
  CHECK(constant["differences"].at(0) ==
        "descriptor: kept is 'q4k_dequant k=512 n=3 out_type=f16', wanted is 'q4k_dequant k=512 n=4 "
        "out_type=f16'");

  Command::Arguments elsewhere = kept;
  elsewhere.insert(elsewhere.end(), {"--device", "cuda:1"});
  const json device = p.command.run_json(elsewhere, 1);
  REQUIRE(device["differences"].size() == 2);
  CHECK(device["differences"].at(0) == "target: kept is 'sm_80', wanted is 'sm_89'");
  CHECK(device["differences"].at(1) == "capability: kept is '8.0', wanted is '8.9'");

  const Finished unknown = p.command.run({"cache", "why", "--kernel", "q5_1_dequant"});
  CHECK(unknown.exit_status == 1);
  CHECK(contains(unknown.out, "neither is any kernel of that name"));
  for (const fs::path& path : p.cubins()) fs::resize_file(path, 60);
  CHECK(contains(p.command.run(kept).out, "3 damaged"));
}

TEST_CASE("kernels move as one file", "[cli][fake]") {
  Prepared p;
  const std::string file = in_folder(p.command, "moved.ptxpack");
  CHECK(p.command.run_json({"cache", "export", file, "--match", "q*"})["exported"] == 2);
  CHECK(p.command.run_json({"cache", "verify", file})["good"] == 2);
  p.command.environment["PTXGEN_CACHE_DIR"] = in_folder(p.command, "other");
  CHECK(p.command.run_json({"cache", "import", file, "--match", "q6*"})["imported"] == 1);
  CHECK(p.command.run_json({"cache", "import", file})["imported"] == 2);
  const json prepared = p.command.run_json({"cache", "prepare", "--list", in_folder(p.command, "list")});
  CHECK(prepared["from_disk"] == 2);
  CHECK(prepared["compiled"] == 1);

  std::string damaged = read_file(file).value();
  damaged.back() ^= 1;
  REQUIRE(write_file(file, damaged));
  CHECK(p.command.run_json({"cache", "import", file}, 1)["damaged"] == 1);
  REQUIRE(write_file(p.command.folder() / "short", "copy vectors=9\n"));
  const Finished packed =
      p.command.run({"pack", "--list", in_folder(p.command, "short"), "--target", "sm_80", "-o", file});
  CHECK(packed.exit_status == 0);
  CHECK(p.command.run_json({"cache", "import", file})["not_by_a_driver"] == 1);
}

TEST_CASE("kernels are evicted and cleared", "[cli][fake]") {
  const Prepared p;
  CHECK(p.command.run_json({"cache", "gc"})["removed"] == 0);
  CHECK(p.command.run_json({"cache", "clear", "--match", "copy *"})["removed"] == 1);
  std::uintmax_t largest = 0;
  for (const fs::path& path : p.cubins()) largest = std::max(largest, fs::file_size(path));
  CHECK(p.command.run_json({"cache", "gc", "--max-bytes", std::to_string(largest)})["kept"] == 1);
  CHECK(contains(p.command.run({"cache", "clear"}).out, "removed 1 file"));
  CHECK(p.cubins().empty());
}

TEST_CASE("a startup is measured", "[cli][fake]") {
  const Prepared p;
  const json report = p.command.run_json({"bench", "--startup", "--jobs", "4"});
  CHECK(report["kernels"] == 32);
  CHECK(report["second_start_compiles"] == 0);
  CHECK(report["hit_ns"] > 0);
  CHECK(contains(p.command.run({"bench", "--startup"}).out, "compiled by the second start 0"));
  CHECK(p.cubins().size() == 3);  // untouched
  CHECK(contains(refusal(p.command, {"bench", "--startup", "--calls", "3"}),
                 "--calls is given with --startup"));
  CHECK(contains(refusal(p.command, {"bench", "--startup", "--foo"}), "--foo"));
  CHECK(contains(refusal(p.command, {"bench", "--kernel", "copy", "--jobs", "3"}), "--jobs"));
  CHECK(contains(refusal(p.command, {"bench", "--startup", "--device", "emulator"}), "only a CUDA device"));
}

#endif
