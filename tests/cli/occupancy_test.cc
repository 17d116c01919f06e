#include "tools/ptxgen/occupancy.h"

#include "tests/support/catch.h"

using namespace ptxgen;
using namespace ptxgen::tool;

TEST_CASE("occupancy follows the resource that is used up first", "[cli]") {
  const TargetLimits& h = limits({90, false});
  CHECK(ctas_per_sm(h, 256, 32, 0) == 8);          // 64 warps
  CHECK(ctas_per_sm(h, 32, 16, 0) == 32);          // CTAs
  CHECK(ctas_per_sm(h, 256, 33, 0) == 6);          // 40 registers a thread: 12 warps in each of 4 parts
  CHECK(ctas_per_sm(h, 1024, 64, 0) == 1);         // 8 warps a part
  CHECK(ctas_per_sm(h, 256, 255, 0) == 1);         // 2 warps a part
  CHECK(ctas_per_sm(h, 1024, 65, 0) == 0);         // 7 warps a part: not one CTA
  CHECK(ctas_per_sm(h, 128, 32, 48 << 10) == 4);   // 49 KiB of 228
  CHECK(ctas_per_sm(h, 128, 32, 227 << 10) == 1);  // all that a CTA can have
  const TargetLimits& turing = limits({75, false});
  CHECK(ctas_per_sm(turing, 256, 32, 0) == 4);
  CHECK(ctas_per_sm(turing, 256, 32, 32 << 10) == 2);  // nothing is reserved before 8.0
}
