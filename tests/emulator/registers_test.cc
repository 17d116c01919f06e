// setmaxnreg: a CTA's registers go from one warpgroup to another, and what cannot be.
#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

// Warpgroup %g of a CTA of `threads`; %p0: it is the first.
std::string says(std::string_view body, std::uint32_t threads = 384,
                 std::string_view bounds = ".maxntid 384 .minnctapersm 1") {
  const std::string ptx =
      module_of(str_cat(".visible .entry k() ", bounds,
                        " { .reg .b32 %g; .reg .b32 %w; .reg .pred %p<4>; mov.u32 %g, %tid.x;",
                        "shr.u32 %w, %g, 5; shr.u32 %g, %g, 7; setp.eq.u32 %p0, %g, 0;", body, " }"),
                "sm_90a", "8.3");
  Memory memory;
  LaunchConfig config;
  config.block = {threads};
  const auto stats = launch(*parsed(ptx), "k", config, memory);
  return stats.ok() ? "ok" : std::string(stats.status().message());
}

std::string failure_of(std::string_view instruction) {
  return parse_failure(module_of(str_cat(".visible .entry k() { ", instruction, "; }"), "sm_90a", "8.3"));
}

}  // namespace

TEST_CASE("warpgroups give registers to each other", "[emulator][registers]") {
  // 65536 / 384 threads leave 168 registers each: 3 * 168 = 40 + 2 * 232.
  CHECK(
      says("@%p0 bra P; setmaxnreg.inc.sync.aligned.u32 232; ret; P: setmaxnreg.dec.sync.aligned.u32 40;") ==
      "ok");
  CHECK(says("@%p0 bra P; setmaxnreg.inc.sync.aligned.u32 232; ret; P: setmaxnreg.dec.sync.aligned.u32 40;",
             384, ".maxnreg 168") == "ok");
  CHECK(says("setmaxnreg.dec.sync.aligned.u32 120; bar.sync 0; setmaxnreg.inc.sync.aligned.u32 168;") ==
        "ok");
  CHECK_THAT(
      says("@%p0 bra P; setmaxnreg.inc.sync.aligned.u32 240; ret; P: setmaxnreg.dec.sync.aligned.u32 40;"),
      Contains("deadlock") &&
          Contains("`setmaxnreg.inc.sync.aligned.u32 240` for registers: it has 168 a thread, and "
                   "the CTA's pool holds "));
  CHECK_THAT(says("setmaxnreg.inc.sync.aligned.u32 176;"),
             Contains("the CTA's pool holds 0 more for each thread of a warp"));
}

TEST_CASE("setmaxnreg is for whole warpgroups that have met", "[emulator][registers]") {
  CHECK_THAT(says("setp.eq.u32 %p1, %w, 2; @%p1 bra END; setmaxnreg.dec.sync.aligned.u32 40; END: ret;"),
             Contains("warp 2 of the warpgroup never executes this; all warps of a warpgroup execute the "
                      "same setmaxnreg"));
  CHECK_THAT(says("setp.lt.u32 %p1, %w, 2; @%p1 bra B; setmaxnreg.dec.sync.aligned.u32 40; ret; B: "
                  "setmaxnreg.dec.sync.aligned.u32 48;"),
             Contains("of the warpgroup has executed another one, at kernel 'k', PTX line"));
  CHECK_THAT(
      says("setmaxnreg.dec.sync.aligned.u32 120; setmaxnreg.inc.sync.aligned.u32 128;"),
      Contains("follows the one at kernel 'k', PTX line") && Contains("before the warpgroup has met: warp "));
  CHECK_THAT(says("setmaxnreg.dec.sync.aligned.u32 40;", 64),
             Contains("the last 2 warps of the CTA are no warpgroup"));
  CHECK_THAT(says("setp.eq.u32 %p1, %tid.x, 5; @!%p1 setmaxnreg.dec.sync.aligned.u32 40;"),
             Contains("all lanes of a warp execute this together"));
}

TEST_CASE("register counts of setmaxnreg", "[emulator][registers]") {
  CHECK_THAT(says("setmaxnreg.dec.sync.aligned.u32 176;"),
             Contains("the thread has 168 registers, which .dec cannot make 176"));
  CHECK_THAT(says("setmaxnreg.inc.sync.aligned.u32 160;"),
             Contains("the thread has 168 registers, which .inc cannot make 160"));
  CHECK_THAT(
      says("setmaxnreg.dec.sync.aligned.u32 40;", 384, ".maxntid 384"),
      Contains(
          "nothing says how many registers a thread begins with, so ptxas ignores this: give .maxnreg, or "
          ".maxntid and .minnctapersm"));
  CHECK_THAT(failure_of("setmaxnreg.dec.sync.aligned.u32 16"),
             Contains("16 registers; setmaxnreg takes a multiple of 8 from 24 to 256"));
  CHECK_THAT(failure_of("setmaxnreg.inc.sync.aligned.u32 264"), Contains("264 registers"));
  CHECK_THAT(failure_of("setmaxnreg.inc.sync.aligned.u32 100"), Contains("100 registers"));
  CHECK_THAT(failure_of("setmaxnreg.inc.u32 64"), Contains("setmaxnreg is .sync.aligned"));
}

}  // namespace ptxgen::emulator
