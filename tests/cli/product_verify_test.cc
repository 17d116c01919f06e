// ptxgen verify --operation from the command line.
#include <map>

#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

using namespace ptxgen::testing;
using nlohmann::json;

namespace {

Command::Arguments verify(Command::Arguments behind) {
  behind.insert(behind.begin(), {"verify", "--operation"});
  return behind;
}

// Result by kernel, or by path where none ran.
std::map<std::string, std::string> results(const json& report) {
  std::map<std::string, std::string> all;
  for (const json& row : report["tensors"]) all[row["kernel"]] = row["result"];
  return all;
}

}  // namespace

TEST_CASE("verify compares a matrix product by every path", "[cli]") {
  const Command command;
  const json report = command.run_json(
      verify({"gemm", "--n", "37", "--k", "512", "--m", "20", "--path", "all", "--seed", "5"}));
  const std::map<std::string, std::string> found = results(report);
  for (const char* path :
       {"tiled", "dp4a", "wmma", "wmma_multi_warp", "mma tile_m=32 tile_n=64 split_k=2", "wgmma tile_m=8"}) {
    CAPTURE(path);
    REQUIRE(found.count(path) == 1);
    CHECK(found.at(path) == "within bounds");
  }
  for (const char* path : {"sgemm", "hgemm", "dequant_hgemm", "fp8"}) CHECK(found.at(path) == "skipped");
  CHECK(report["summary"]["equal"] == 7);  // auto too
  CHECK(report["summary"]["values"] == 7 * 20 * 37);
  for (const json& row : report["tensors"]) {
    if (row["result"] == "skipped") continue;
    CHECK(row["share_of_bound"] > 0);
    CHECK(row["share_of_bound"] <= 1);
    CHECK(row["shape"] == "37 x 512, m = 20, a f32");
  }
}

TEST_CASE("verify compares products with prepared activations, of several formats and rows", "[cli]") {
  const Command command;
  const json gemm = command.run_json(verify({"gemm", "--format", "q4k,q8_0", "--n", "33", "--k", "256", "--m",
                                             "1,17", "--path", "auto,dp4a", "--a-type", "prepared"}));
  REQUIRE(gemm["tensors"].size() == 2 * 2 * 2);
  CHECK(gemm["verified"] == true);
  const std::map<std::string, std::string> found = results(gemm);
  CHECK(found.count("dp4a") == 1);
  CHECK(found.count("wgmma tile_m=8") == 1);
  const json gemv = command.run_json(verify(
      {"gemv", "--n", "33", "--k", "512", "--m", "1,5,17", "--path", "auto,multi_warp", "--a-type", "f32"}));
  REQUIRE(gemv["tensors"].size() == 3 * 2);
  CHECK(gemv["verified"] == true);
}

TEST_CASE("verify compares the paths of cuBLASLt", "[cli]") {
  Command command;
  command.environment["PTXGEN_CUBLASLT_LIBRARY"] = PTXGEN_FAKE_CUBLASLT;
  const json report = command.run_json(verify({"gemm", "--format", "q4k,q6k", "--n", "37", "--k", "512",
                                               "--m", "1,20", "--path", "sgemm,hgemm,dequant_hgemm,fp8"}));
  REQUIRE(report["tensors"].size() == 2 * 2 * 4);
  CHECK(report["verified"] == true);
  const json prepared = command.run_json(verify(
      {"gemm", "--n", "37", "--k", "512", "--m", "20", "--path", "hgemm,fp8", "--a-type", "prepared"}));
  CHECK(prepared["summary"]["equal"] == 2);
}

TEST_CASE("verify fails where a path that is asked for cannot be had", "[cli]") {
  const Command command;
  const json report =
      command.run_json(verify({"gemm", "--n", "8", "--k", "256", "--m", "3", "--path", "mma,hgemm"}), 1);
  CHECK(results(report).at("hgemm") == "failed");
  CHECK(report["summary"]["equal"] == 1);
  const Finished refused = command.run(verify({"gemm", "--k", "300", "--path", "all", "--m", "3"}));
  CHECK(refused.exit_status == 2);
  CHECK(contains(refused.err, "k is 300"));
}

#ifdef PTXGEN_FAKE_CUDA
TEST_CASE("verify sees products that are wrong", "[cli]") {
  Command command;
  command.environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA}};
  const json report = command.run_json(verify({"gemm", "--n", "37", "--k", "512", "--m", "3,20"}), 1);
  for (const json& row : report["tensors"]) {
    CHECK(row["result"] == "differs");
    CHECK(row["mismatches"] == row["values"]);
  }
}
#endif
