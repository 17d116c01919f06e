#include "src/runtime/driver_version.h"

#include "tests/support/catch.h"

namespace ptxgen::internal {

TEST_CASE("the highest PTX ISA follows from the driver's version", "[runtime]") {
  struct Row {
    int driver;
    PtxIsa isa;
  };
  // CUDA release notes: the ISA of each version; a patch release and an unknown newer driver keep the last
  // one.
  const Row rows[] = {{11080, {7, 8}}, {12000, {8, 0}}, {12010, {8, 1}}, {12020, {8, 2}}, {12030, {8, 3}},
                      {12040, {8, 4}}, {12050, {8, 5}}, {12060, {8, 5}}, {12070, {8, 6}}, {12080, {8, 7}},
                      {12090, {8, 8}}, {12091, {8, 8}}, {13000, {9, 0}}, {14020, {9, 0}}};
  for (const Row& row : rows) {
    INFO(row.driver);
    CHECK(highest_isa(row.driver) == row.isa);
  }
  CHECK(driver_version_text(12040) == "12.4");
  CHECK(driver_version_text(11080) == "11.8");
}

TEST_CASE("the target follows from compute capability and driver", "[runtime]") {
  struct Row {
    int major, minor;
    PtxIsa isa;
    Target target;
  };
  const Row rows[] = {
      {7, 5, {7, 8}, {75, false}},   {8, 0, {7, 8}, {80, false}},   {8, 6, {8, 4}, {86, false}},
      {8, 7, {8, 4}, {87, false}},   {8, 9, {8, 4}, {89, false}},   {9, 0, {8, 4}, {90, true}},
      {9, 0, {7, 8}, {90, false}},  // the driver is older than sm_90a
      {10, 0, {8, 7}, {100, true}},  {10, 3, {8, 8}, {103, false}}, {12, 0, {8, 7}, {120, false}},
      {12, 1, {8, 8}, {121, false}}, {12, 1, {8, 7}, {120, false}},  // the driver is older than sm_121
      {8, 8, {9, 0}, {87, false}},   {13, 0, {9, 0}, {121, false}},  // devices that the table does not know
  };
  for (const Row& row : rows) {
    INFO(row.major << "." << row.minor << " with ISA " << row.isa.to_string());
    REQUIRE(device_target(row.major, row.minor, row.isa).has_value());
    CHECK(device_target(row.major, row.minor, row.isa)->to_string() == row.target.to_string());
  }
  CHECK_FALSE(device_target(5, 2, {8, 4}).has_value());
  CHECK_FALSE(device_target(7, 0, {9, 0}).has_value());
}

}  // namespace ptxgen::internal
