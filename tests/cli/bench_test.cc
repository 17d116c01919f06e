// ptxgen bench from the command line, on a driver that only pretends.
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/xml.h"

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
