// ptxgen tune from the command line, on a driver that only pretends.
#include <algorithm>

#include <map>
#include <set>

#include "ptxgen/device_policy.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"
#include "tools/ptxgen/candidates.h"

using namespace ptxgen;
using namespace ptxgen::testing;
using nlohmann::json;

TEST_CASE("tune needs a GPU, and products that exist", "[cli]") {
  const Command command;
  const auto refusal = [&](const Command::Arguments& arguments) {
    const Finished finished = command.run(arguments);
    CHECK(finished.exit_status == 2);
    CHECK(finished.out.empty());
    return finished.err;
  };
  CHECK(contains(refusal({"tune"}), "only a CUDA device can be tuned for"));
  CHECK(contains(refusal({"tune", "--m", "1,5"}),
                 "m is 5; it must be 3 or a power of two from 1 to 16: kernels are made for so many rows"));
  CHECK(contains(refusal({"tune", "--operation", "gemm"}), "only a CUDA device can be tuned for"));
  CHECK(contains(refusal({"tune", "--operation", "gemm", "--m", "50"}),
                 "m is 50; it must be 56, which stands for it"));
  CHECK(contains(refusal({"tune", "--operation", "gem"}), "choose one of gemv, gemm"));
  CHECK(contains(refusal({"tune", "--operation", "gemm", "--x-type", "f32"}),
                 "'--x-type' is no option of tune"));
  CHECK(contains(refusal({"tune", "--k", "100"}), "k is 100"));
  CHECK(contains(refusal({"tune", "--format", "q7k"}), "q7k"));
  CHECK(contains(refusal({"tune", "--n", ""}), "--n"));
  const json listed = command.run_json({"tune", "--list"});
  CHECK(listed["records"].empty());
  CHECK(listed["broken"].empty());
}

TEST_CASE("candidates are legal, different, and begin with the default", "[cli]") {
  for (const Format format : {Format::kQ4_K, Format::kQ8_0}) {
    for (const u32 m : {1u, 2u, 4u, 8u, 16u}) {
      const GemvShape shape = {.format = format, .n = 4096, .k = 4096, .m = m};
      const GemvVariant by_default = {.schedule = m > kMostStreamRows ? Schedule::kMma : Schedule::kStream};
      const std::vector<GemvVariant> all = tool::candidates(shape, by_default, 132);
      CHECK(all.size() > 20);
      CHECK(all.size() < 600);
      CHECK(all[0] == by_default);
      std::size_t schedules = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(kernel_of(shape, all[i])->validate().ok());
        CHECK(std::count(all.begin(), all.end(), all[i]) == 1);
        schedules += i > 0 && all[i].schedule != all[i - 1].schedule;
      }
      // All of one row, or those of several that take so many.
      CHECK(schedules == (m == 1 ? 9u : m <= kMostStreamRows ? 2u : 1u));
    }
  }
}

TEST_CASE("candidates of matrix products are what a device has, with tiles for m", "[cli]") {
  const DevicePolicy policy(DeviceProperties::of({90, true}, DeviceKind::kCuda, 132), {}, {});
  const auto all_of = [&](Activations type, u32 m) {
    const GemmShape shape = {.n = 4096, .k = 4096, .m = m, .a_type = type};
    const GemmVariant by_default = take(policy.choose(shape, true)).variant;
    const std::vector<GemmVariant> all =
        tool::candidates(shape, by_default, 132, policy.gemm_variants(shape, true));
    CHECK(all[0] == by_default);
    std::set<std::string> names;
    for (const GemmVariant& variant : all) {
      CHECK(names.insert(variant.to_string()).second);
      CHECK((variant.path != GemmPath::kFused || kernel_of(shape, variant).tile_m <= std::max(m, 16u)));
    }
    return names;
  };
  const auto of_f16 = all_of(Activations::kF16, 32);
  for (const char* name :
       {"wgmma tile_m=8", "wgmma tile_m=32 split_k=8", "wgmma tile_m=8 tile_n=64 split_k=2",
        "mma tile_m=16 tile_n=64", "mma tile_m=32 tile_n=128", "mma tile_m=32 tile_n=128 split_k=2"})
    CHECK(of_f16.count(name) == 1);
  CHECK(of_f16.size() == 3 * 5 + 2 * 5 + 2 * 3 * 2);
  const auto of_f32 = all_of(Activations::kF32, 512);
  for (const char* name : {"tiled tile_m=16", "dp4a tile_m=1", "wmma", "wmma_multi_warp",
                           "mma tile_m=128 tile_n=32", "sgemm", "hgemm", "dequant_hgemm", "fp8"})
    CHECK(of_f32.count(name) == 1);
  CHECK(all_of(Activations::kF16Rows, 512) == std::set<std::string>{"dequant_hgemm", "hgemm"});
}

#ifdef PTXGEN_FAKE_CUDA

TEST_CASE("tune keeps a record of a matrix product, and the executor takes it", "[cli]") {
  Command command;
  command.environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA},
                         {"PTXGEN_CUBLASLT_LIBRARY", PTXGEN_FAKE_CUBLASLT},
                         {"PTXGEN_CACHE_DIR", (command.folder() / "cache").string()}};
  const json tuned = command.run_json({"tune", "--operation", "gemm", "--n", "64", "--k", "512", "--m",
                                       "32..64", "--a-type", "f32,f16", "--calls", "2", "--replays", "1"});
  const json& rows = tuned["rows"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["product"] == "format=q4k n=64 k=512 m=32 a_type=f32");
  CHECK(rows[0]["microseconds"] > 0);
  CHECK(rows[0]["by_default"] > 0);
  CHECK(rows[0]["tried"] > 15);
  CHECK(rows[1]["product"] == "format=q4k n=64 k=512 m=32 a_type=f16");
  CHECK(rows[1]["tried"] == 2 * 3 * 2);  // no Hopper
  const json listed = command.run_json({"tune", "--list"});
  REQUIRE(listed["records"].size() == 4);
  std::map<std::string, std::string> variants;
  for (const json& record : listed["records"]) {
    CHECK(record["operation"] == "gemm");
    CHECK(record["ignored"].is_null());
    variants[record["product"]] = record["variant"];
  }
  for (const json& row : rows) CHECK(variants[row["product"]] == row["variant"]);
  const json bench = command.run_json({"bench", "--operation", "gemm", "--n", "64", "--k", "512", "--m", "60",
                                       "--a-type", "prepared", "--calls", "1", "--replays", "1"});
  CHECK(bench["rows"][0]["ran"] == variants["format=q4k n=64 k=512 m=64 a_type=f16"]);
  CHECK(contains(bench["rows"][0]["reason"].get<std::string>(), "ptxgen tune measured it"));
  // What is no matrix product.
  const json few = command.run_json({"tune", "--operation", "gemm", "--n", "64", "--k", "512", "--m", "16,24",
                                     "--calls", "2", "--replays", "1"});
  CHECK(
      few["rows"][0]["refused"] ==
      "m is 16, and the executor computes up to 16 rows of f32 as gemv_batch(); tune that, with --operation "
      "gemv");
  CHECK(few["rows"][1]["refused"].is_null());
}

TEST_CASE("tune keeps a record of each product, and lists them", "[cli]") {
  Command command;
  command.environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA},
                         {"PTXGEN_CACHE_DIR", (command.folder() / "cache").string()}};
  const json tuned = command.run_json({"tune", "--format", "q4k,q8_0", "--n", "64", "--k", "512", "--m",
                                       "1,2", "--calls", "2", "--replays", "1"});
  const json& rows = tuned["rows"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["product"] == "format=q4k n=64 k=512 m=1 x_type=f32");
  CHECK(rows[0]["microseconds"] > 0);
  CHECK(rows[0]["by_default"] > 0);
  CHECK(rows[0]["tried"] > 10);
  CHECK(rows[0]["refused"].is_null());
  const json listed = command.run_json({"tune", "--list"});
  REQUIRE(listed["records"].size() == 4);
  // Two rows whose activations do not fit shared memory.
  const json refused = command.run_json({"tune", "--n", "8", "--k", "65536", "--m", "1,2", "--calls", "2"});
  CHECK(contains(refused["rows"][1]["refused"].get<std::string>(), "no kernel takes 2 rows at once here"));
  CHECK(refused["rows"][1]["file"].is_null());
  CHECK(listed["records"][0]["product"] == rows[0]["product"]);
  CHECK(listed["records"][0]["variant"] == rows[0]["variant"]);
  CHECK(listed["records"][0]["ignored"].is_null());

  REQUIRE(write_file(command.folder() / "cache/tuning/zz.txt", "ptxgen tuning 9\n"));
  command.environment["PTXGEN_DEVICE"] = "cuda:1";
  const json elsewhere = command.run_json({"tune", "--list"});
  REQUIRE(elsewhere["records"].size() == 5);
  CHECK(contains(elsewhere["records"][0]["ignored"].get<std::string>(), "measured with device"));
  REQUIRE(elsewhere["broken"].size() == 1);
  CHECK(contains(elsewhere["broken"][0].get<std::string>(), "zz.txt: it does not begin with"));
}

#endif
