// The emulator takes every instruction that the builder can write, with every type.
#include "tests/builder/rows.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

TEST_CASE("every row of the instruction table is decoded", "[emulator]") {
  testing::RowSuite suite;
  for (const auto add : {&testing::add_integer_rows, &testing::add_float_rows, &testing::add_half_rows,
                         &testing::add_comparison_rows, &testing::add_logic_rows,
                         &testing::add_conversion_rows, &testing::add_memory_rows, &testing::add_warp_rows,
                         &testing::add_matrix_rows, &testing::add_wgmma_rows, &testing::add_atomic_rows,
                         &testing::add_cta_rows, &testing::add_async_rows, &testing::add_internal_rows}) {
    add(suite);
  }
  REQUIRE(suite.cases().size() > 500);
  for (const testing::RowCase& row : suite.cases()) {
    if (!row.problem.empty()) continue;  // instruction_table_test.cc reports it
    const auto program = Program::parse(module_of(row.entry, "sm_121", "9.0"));
    INFO(row.expected << "\n" << program.status().ToString());
    CHECK(program.ok());
  }
}

}  // namespace
}  // namespace ptxgen::emulator
