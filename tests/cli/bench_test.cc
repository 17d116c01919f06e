// ptxgen bench from the command line, on a driver that only pretends.
#include "ptxgen/pack.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"
#include "tests/support/xml.h"

using namespace ptxgen;
using namespace ptxgen::testing;
using nlohmann::json;

#ifdef PTXGEN_FAKE_CUDA
namespace {

struct OnFakeDriver : Command {
  OnFakeDriver() { environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA}}; }
};

Command::Arguments bench(Command::Arguments behind) {
  behind.insert(behind.begin(), {"bench", "--calls", "2", "--replays", "1", "--kernel", "q4k_dequant"});
  return behind;
}

}  // namespace

TEST_CASE("bench measures every combination of lists, and shows what is refused", "[cli]") {
  const OnFakeDriver command;
  const json report = command.run_json(bench({"--shapes", "3x512,1x300,2x256", "--out-type", "f16,f32"}));
  const json& rows = report["rows"];
  REQUIRE(rows.size() == 6);
  CHECK(rows[0]["kernel"] == "q4k_dequant k=512 n=3 out_type=f16");
  CHECK(rows[0]["bytes"] == 3 * 2 * 144 + 3 * 512 * 2);
  CHECK(rows[0]["calls"] == 2);
  CHECK(rows[0]["launch"] == "plain");
  CHECK(rows[0]["microseconds"] > 0);
  CHECK(rows[0]["over_read"] > 0);
  CHECK(rows[0]["over_copy"] > 0);
  CHECK(rows[0]["over_read_pdl"].is_null());
  CHECK(rows[0]["registers"] == 40);
  CHECK(rows[0]["ctas_per_sm"] == 2048 / 256);
  CHECK(rows[2]["kernel"] == "q4k_dequant k=300 n=1 out_type=f16");
  CHECK(rows[2]["microseconds"].is_null());
  CHECK(rows[2]["refused"].get<std::string>().starts_with("k is 300; it must be"));
  CHECK(rows[5]["constants"] == json({{"k", 256}, {"n", 2}, {"out_type", "f32"}}));
  CHECK(report["floors"].size() == 2 * 4);  // read and copy, for each number of bytes
}

TEST_CASE("bench shows a copy of as many bytes beside a kernel that writes much", "[cli]") {
  const OnFakeDriver command;
  const json report = command.run_json(
      {"bench", "--kernel", "q4k_dequant", "--k", "512", "--n", "6", "--calls", "010", "--replays", "3"});
  REQUIRE(report["rows"].size() == 1);
  CHECK(report["rows"][0]["kernel"] == "q4k_dequant k=512 n=6 out_type=f32");
  CHECK(report["rows"][0]["bytes"] == 6 * (2 * 144 + 512 * 4));
  CHECK(report["rows"][0]["calls"] == 10);
  REQUIRE(report["floors"].size() == 2);
  CHECK(report["floors"][0]["kernel"].get<std::string>().starts_with("read vectors=876 ctas="));
  CHECK(report["floors"][1]["kernel"] == "copy vectors=438");
  CHECK(report["floors"][1]["bytes"] == 438 * 32);
  CHECK(command.run_json({"bench", "--kernel", "read", "--calls", "1"})["rows"][0]["over_copy"].is_null());
}

TEST_CASE("bench prints a table and writes a plot", "[cli]") {
  const OnFakeDriver command;
  const Finished finished = command.run(bench({"--k", "256,512", "--n", "8", "--plot", "plot.svg"}));
  CHECK(finished.exit_status == 0);
  CHECK(finished.err.empty());
  for (const char* part : {"Fake A100", "GB/s", "/ copy", "q4k_dequant k=256", "q4k_dequant k=512", "read "})
    CHECK(finished.out.find(part) != std::string::npos);
  CHECK(command.files() == std::vector<std::string>{"plot.svg"});
  const auto svg = parse_xml(read_file(command.folder() / "plot.svg").value_or(""));
  REQUIRE(svg);
  CHECK((*svg)[0].name == "svg");
}

TEST_CASE("bench takes the code of both generators out of one pack, and says where code is from",
          "[cli][llvm]") {
  OnFakeDriver command;
  const std::string list = (command.folder() / "list").string();
  const std::string path = (command.folder() / "both.ptxpack").string();
  REQUIRE(write_file(list, "q4k_dequant k=256 n=8\n"));
  command.run_json({"pack", "--list", list, "--codegen", "direct,llvm", "--target", "sm_80", "-o", path});
  command.environment["PTXGEN_LLVM_LIBRARY"] = "/nonexistent/libLLVM.so";
  std::vector<StoredKernel> direct, by_llvm;
  const Pack pack = take(Pack::open(path));
  for (std::size_t i = 0; i < pack.size(); ++i) {
    StoredKernel kernel = take(pack.entry(i));
    // The fake driver loads only what it could have made.
    if (kernel.image.kind == ImageKind::kCubin)
      kernel.image.bytes =
          "\x7f"
          "ELF of the fake for 8.0\n" +
          kernel.ptx + '\0';
    (kernel.key.codegen == "direct" ? direct : by_llvm).push_back(std::move(kernel));
  }
  const auto rows = [&](const std::vector<StoredKernel>& kernels) {
    REQUIRE(write_file(path, make_pack(kernels)));
    return command.run_json(
        bench({"--k", "256", "--n", "8", "--codegen", "direct,llvm", "--pack", path}))["rows"];
  };
  const json none = rows(direct);
  CHECK(none[0]["origin"] == "pack");
  CHECK(none[1]["refused"].get<std::string>().find("LLVM could not be opened") != std::string::npos);
  const json half = rows(by_llvm);
  CHECK(half[0]["origin"] == "compiled");
  CHECK(half[1]["origin"] == "pack");
  by_llvm.insert(by_llvm.end(), direct.begin(), direct.end());
  const json both = rows(by_llvm);
  for (const json& row : both) CHECK(row["origin"] == "pack");
  CHECK(both[0]["constants"]["codegen"] == "direct");
  CHECK(both[1]["constants"]["codegen"] == "llvm");
}

TEST_CASE("bench is refused when nothing is left to measure, or the plot cannot be written", "[cli]") {
  const OnFakeDriver command;
  Finished finished = command.run(bench({"--k", "300,301", "--plot", "plot.svg"}));
  CHECK(finished.exit_status == 2);
  CHECK(finished.err.find("k is 300") != std::string::npos);
  finished = command.run(bench({"--plot", "missing/plot.svg"}));
  CHECK(finished.exit_status == 2);
  CHECK(finished.err.find("missing/plot.svg") != std::string::npos);
  CHECK(command.files().empty());
}
#endif
