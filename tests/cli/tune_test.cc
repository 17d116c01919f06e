// ptxgen tune from the command line, on a driver that only pretends.
#include <algorithm>

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
  CHECK(contains(refusal({"tune", "--m", "1,3"}), "m is 3; kernels are made for 1, 2, 4, 8 and 16 rows"));
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

#ifdef PTXGEN_FAKE_CUDA

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
