#include "ptxgen/target.h"

#include <algorithm>
#include <iterator>

#include "tests/support/catch.h"

using namespace ptxgen;

TEST_CASE("what an SM of each target holds", "[builder]") {
  struct Row {
    std::uint16_t sm;
    std::uint32_t shared_kib, cta_kib, threads, ctas;
  };
  const Row rows[] = {{75, 64, 64, 1024, 16},    {80, 164, 163, 2048, 32},  {86, 100, 99, 1536, 16},
                      {87, 164, 163, 1536, 16},  {89, 100, 99, 1536, 24},   {90, 228, 227, 2048, 32},
                      {100, 228, 227, 2048, 32}, {103, 228, 227, 2048, 32}, {110, 228, 227, 1536, 24},
                      {120, 100, 99, 1536, 24},  {121, 100, 99, 1536, 24}};
  for (const TargetInfo& info : kTargets) {
    INFO(info.target.to_string());
    const Row* row =
        std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.sm == info.target.sm; });
    REQUIRE(row != std::end(rows));
    const TargetLimits& found = limits(info.target);
    CHECK(found == info.limits);
    CHECK(found.shared_bytes_per_sm == row->shared_kib << 10);
    CHECK(found.shared_bytes_per_cta() == row->cta_kib << 10);
    CHECK(found.threads_per_sm() == row->threads);
    CHECK(found.warps_per_sm == row->threads / 32);
    CHECK(found.ctas_per_sm == row->ctas);
  }
}

TEST_CASE("a target without a row has the least limits", "[builder]") {
  const TargetLimits& least = limits({88, false});
  CHECK(least == limits({75, false}));
  CHECK(limits({90, true}) == limits({90, false}));
  CHECK(limits({120, true}) == limits({120, false}));
  for (const TargetInfo& info : kTargets) {
    CHECK(least.shared_bytes_per_sm <= info.limits.shared_bytes_per_sm);
    CHECK(least.shared_bytes_per_cta() <= info.limits.shared_bytes_per_cta());
    CHECK(least.warps_per_sm <= info.limits.warps_per_sm);
    CHECK(least.ctas_per_sm <= info.limits.ctas_per_sm);
    CHECK(info.since <= kNewestIsa);
  }
  CHECK(least.shared_bytes_per_cta() >= kMaxStaticSharedBytes);
}
