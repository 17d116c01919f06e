// ptxgen bench --operation from the command line, on a driver that only pretends; and what both refuse.
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"
#include "tests/support/xml.h"

using namespace ptxgen::testing;
using nlohmann::json;

TEST_CASE("products to time are refused by name, and on the emulated device", "[cli]") {
  const Command command;
  const auto refusal = [&](Command::Arguments behind) {
    behind.insert(behind.begin(), {"bench", "--operation"});
    const Finished finished = command.run(behind);
    CHECK(finished.exit_status == 2);
    CHECK(finished.out.empty());
    return finished.err;
  };
  CHECK(contains(refusal({"gemm"}), "only a CUDA device can be timed"));
  CHECK(contains(refusal({"gem"}), "--operation is 'gem'; choose one of gemv, gemm"));
  CHECK(contains(refusal({"gemm", "--m", "0"}), "m is 0; it must be "));
  CHECK(contains(refusal({"gemm", "--m", "64..1"}), "--m has '64..1'"));
  CHECK(contains(refusal({"gemm", "--format", "q7k"}), "q7k"));
  CHECK(contains(refusal({"gemm", "--path", "mma,"}), "--path is 'mma,'"));
  CHECK(contains(refusal({"gemm", "--path", "stream"}), "--path 'stream'"));
  CHECK(contains(refusal({"gemv", "--path", "stream,wgmma"}), "wgmma"));
  CHECK(contains(refusal({"gemm", "--path", "mma tile_m=1000"}), "tile_m"));
  CHECK(contains(refusal({"gemm", "--a-type", "f64"}), "f32, prepared"));
  CHECK(contains(refusal({"gemm", "--shapes", "8x256", "--n", "8"}), "--shapes and --n"));
  CHECK(contains(refusal({"gemm", "--kernel", "copy"}), "'--kernel' is no option of bench"));
}

#ifdef PTXGEN_FAKE_CUDA
namespace {

struct OnFakeDriver : Command {
  OnFakeDriver() {
    environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA}, {"PTXGEN_CUBLASLT_LIBRARY", PTXGEN_FAKE_CUBLASLT}};
  }

  json bench(Command::Arguments behind) const {
    behind.insert(behind.begin(), {"bench", "--calls", "2", "--replays", "1", "--operation"});
    return run_json(behind);
  }
};

}  // namespace

TEST_CASE("bench times a product by the policy's choice for every m", "[cli]") {
  const json report = OnFakeDriver().bench({"gemm", "--n", "64", "--k", "512", "--m", "1..4,33"});
  const json& rows = report["rows"];
  REQUIRE(rows.size() == 4);
  const std::vector<int> numbers = {1, 2, 4, 33};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(rows[i]["m"] == numbers[i]);
    CHECK(rows[i]["path"] == "auto");
    CHECK(rows[i]["calls"] == 2);
    CHECK(rows[i]["microseconds"] > 0);
    CHECK(rows[i]["prepared_microseconds"].is_null());
    CHECK(rows[i]["over_read"] > 0);
    CHECK(rows[i]["over_read_pdl"].is_null());  // no Hopper
    CHECK(rows[i]["weight_bytes"] == 64 * 2 * 144);
    CHECK(rows[i]["kernels"].size() == (numbers[i] > 16 ? 2 : 1));  // staged first
    CHECK(rows[i]["refused"].is_null());
  }
  CHECK(contains(rows[0]["reason"].get<std::string>(), "m is at most 16"));
  CHECK(rows[3]["ran"] == "mma tile_m=64 tile_n=64 split_k=2");
  CHECK(contains(rows[3]["reason"].get<std::string>(), "shipped default"));
  CHECK(report["floors"].size() == 1);
}

TEST_CASE("bench puts all paths side by side, with what is refused", "[cli]") {
  const json report = OnFakeDriver().bench(
      {"gemm", "--shapes", "64x512", "--m", "20", "--path", "all", "--a-type", "f32,prepared"});
  std::map<std::string, json> rows;
  for (const json& row : report["rows"]) {
    const std::string type = row["refused"].is_null() ? row["a_type"] : json("refused");
    rows[row["path"].get<std::string>() + " " + type] = row;
  }
  CHECK(rows["hgemm f16_rows"]["prepared_microseconds"] > 0);
  CHECK(rows["dequant_hgemm f32"]["scratch_bytes"] > 0);
  for (const char* name : {"sgemm f32", "sgemm refused", "hgemm f32", "hgemm f16_rows", "dequant_hgemm f32",
                           "dequant_hgemm f16_rows", "fp8 refused"}) {
    CAPTURE(name);
    CHECK(rows.count(name) == 1);
  }
  REQUIRE(report["cublas"].size() == 1);
  CHECK(report["cublas"][0]["microseconds"] > 0);
  CHECK(report["no_cublas"].is_null());
  CHECK(rows["auto f32"]["over_cublas"] ==
        rows["auto f32"]["microseconds"].get<double>() / report["cublas"][0]["microseconds"].get<double>());
  for (const char* name : {"auto f32", "auto f16", "tiled f32", "tiled refused", "dp4a f32", "dp4a q8_1",
                           "wmma f32", "wmma_multi_warp f32", "mma f32", "mma f16", "wgmma refused"}) {
    CAPTURE(name);
    CHECK(rows.count(name) == 1);
  }
  CHECK(contains(rows["wgmma refused"]["refused"].get<std::string>(), "needs sm_90a"));
  CHECK(rows["mma f16"]["prepared_microseconds"] > 0);
  CHECK(rows["mma f32"]["prepared_microseconds"].is_null());
  CHECK(rows["dp4a q8_1"]["ran"] == "dp4a");
}

TEST_CASE("bench --trace times the kernels of a call one by one", "[cli]") {
  const OnFakeDriver command;
  const json gemm =
      command.bench({"gemm", "--n", "64", "--k", "512", "--m", "20", "--a-type", "prepared", "--trace"});
  const json& phases = gemm["rows"][0]["phases"];
  REQUIRE(phases.size() == 2);
  CHECK(phases[0]["kernel"] == "prepare activations f16");
  CHECK(contains(phases[1]["kernel"].get<std::string>(), "q4k_gemm k=512 n=64 schedule=mma a_type=f16"));
  CHECK(gemm["rows"][0]["phases_microseconds"] ==
        phases[0]["microseconds"].get<double>() + phases[1]["microseconds"].get<double>());
  // Seventeen rows of a vector product are sixteen and one.
  const json gemv =
      command.bench({"gemv", "--n", "64", "--k", "512", "--m", "17", "--path", "mma_direct", "--trace"});
  REQUIRE(gemv["rows"][0]["phases"].size() == gemv["rows"][0]["kernels"].size());
  CHECK(gemv["rows"][0]["kernels"].size() == 2);
}

TEST_CASE("bench --trace times what cuBLASLt does too, and parts of weights together", "[cli]") {
  const json report = OnFakeDriver().bench(
      {"gemm", "--n", "64", "--k", "512", "--m", "20", "--path", "hgemm,dequant_hgemm", "--trace"});
  std::vector<std::string> names;
  for (const json& phase : report["rows"][0]["phases"]) names.push_back(phase["kernel"]);
  REQUIRE(names.size() == 3);
  CHECK(names[2] == "cublaslt m=20 n=64 k=512 type=f16");
  CHECK(report["rows"][1]["phases"].size() == 4);  // the weights are dequantised too
  // A device whose L2 has room for few rows.
  const json parts = OnFakeDriver().bench(
      {"gemm", "--n", "100000", "--k", "512", "--m", "1", "--path", "dequant_hgemm", "--trace"});
  std::size_t launches = 0;
  for (const json& phase : parts["rows"][0]["phases"]) launches += phase["launches"].get<std::size_t>();
  CHECK(launches == parts["rows"][0]["kernels"].size());
  CHECK(launches > parts["rows"][0]["phases"].size());
}

TEST_CASE("bench says why it has no cuBLAS to compare with", "[cli]") {
  OnFakeDriver command;
  command.environment["PTXGEN_CUBLASLT_LIBRARY"] = "/nowhere/libcublasLt.so";
  const json report = command.bench({"gemm", "--n", "64", "--k", "512", "--m", "20", "--path", "auto,hgemm"});
  CHECK(report["rows"][0]["over_cublas"].is_null());
  CHECK(report["cublas"].empty());
  CHECK(contains(report["no_cublas"].get<std::string>(), "/nowhere/libcublasLt.so"));
  CHECK(contains(report["rows"][1]["refused"].get<std::string>(), "/nowhere/libcublasLt.so"));
}

TEST_CASE("bench --cliffs measures m + 1 too", "[cli]") {
  const OnFakeDriver command;
  const json report = command.bench({"gemm", "--n", "64", "--k", "512", "--m", "16..32", "--cliffs"});
  std::vector<int> numbers;
  for (const json& row : report["rows"]) numbers.push_back(row["m"]);
  CHECK(numbers == std::vector<int>{16, 17, 32, 33});
  CHECK(report["cliffs"].is_array());
}

TEST_CASE("bench times vector products, and plots", "[cli]") {
  const OnFakeDriver command;
  const Finished finished =
      command.run({"bench", "--operation=gemv", "--calls", "2", "--replays", "1", "--n", "64", "--k", "512",
                   "--m", "1,2", "--path", "auto,multi_warp num_warps=4", "--plot", "plot.svg"});
  CHECK(finished.err.empty());
  CHECK(finished.exit_status == 0);
  for (const char* part : {"Fake A100", "multi_warp num_warps=4", "TFLOP/s", "/ read", "cliffs"}) {
    CAPTURE(part);
    CHECK(contains(finished.out, part));
  }
  CHECK(command.files() == std::vector<std::string>{"plot.svg"});
  REQUIRE(parse_xml(read_file(command.folder() / "plot.svg").value_or("")));
}

TEST_CASE("bench is refused when every product is", "[cli]") {
  const OnFakeDriver command;
  Finished finished = command.run({"bench", "--operation", "gemm", "--path", "wgmma", "--plot", "plot.svg"});
  CHECK(finished.exit_status == 2);
  CHECK(contains(finished.err, "wgmma"));
  finished = command.run({"bench", "--operation", "gemm", "--k", "300", "--calls", "1"});
  CHECK(finished.exit_status == 2);
  CHECK(contains(finished.err, "k is 300"));
  CHECK(command.files().empty());
}
#endif
