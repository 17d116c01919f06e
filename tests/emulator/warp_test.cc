// Exchange between lanes, and the ways a warp diverges and comes together again.
#include <algorithm>

#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Values = std::vector<std::uint32_t>;

Values warp_results(std::string_view body, std::uint32_t threads = 32) {
  return results<std::uint32_t>(std::string(body) + "\n  st.global.b32 [%out], %r0;", threads);
}

TEST_CASE("shuffles move values within their segments", "[emulator]") {
  const auto shuffle = [](const char* how) {
    return warp_results(std::string("add.u32 %r1, %t, 100; shfl.sync.") + how + ";");
  };
  const Values up = shuffle("up.b32 %r0, %r1, 1, 0, -1"), down = shuffle("down.b32 %r0, %r1, 4, 31, -1");
  const Values bfly = shuffle("bfly.b32 %r0, %r1, 16, 31, -1"), idx = shuffle("idx.b32 %r0, %r1, 5, 31, -1");
  // Segments of 8: c = (32 - 8) << 8 | clamp.
  const Values down8 = shuffle("down.b32 %r0, %r1, 3, 0x181f, -1"),
               idx8 = shuffle("idx.b32 %r0, %r1, 9, 0x181f, -1");
  const Values up8 = shuffle("up.b32 %r0, %r1, 2, 0x1800, -1");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    REQUIRE(up[lane] == 100 + (lane == 0 ? 0 : lane - 1));
    REQUIRE(down[lane] == 100 + (lane + 4 > 31 ? lane : lane + 4));
    REQUIRE(bfly[lane] == 100 + (lane ^ 16));
    REQUIRE(idx[lane] == 105);
    REQUIRE(down8[lane] == 100 + (lane % 8 + 3 > 7 ? lane : lane + 3));
    REQUIRE(idx8[lane] == 100 + lane / 8 * 8 + 1);
    REQUIRE(up8[lane] == 100 + (lane % 8 < 2 ? lane : lane - 2));
  }
  const Values valid = warp_results("shfl.sync.down.b32 %r1|%p1, %t, 4, 31, -1; selp.u32 %r0, 1, 0, %p1;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) REQUIRE(valid[lane] == (lane < 28 ? 1 : 0));
}

TEST_CASE("a tree of shuffles sums a warp", "[emulator]") {
  for (const std::uint32_t sum : warp_results(R"(
    mov.u32 %r0, %t;
    shfl.sync.bfly.b32 %r1, %r0, 16, 31, -1; add.u32 %r0, %r0, %r1;
    shfl.sync.bfly.b32 %r1, %r0, 8, 31, -1;  add.u32 %r0, %r0, %r1;
    shfl.sync.bfly.b32 %r1, %r0, 4, 31, -1;  add.u32 %r0, %r0, %r1;
    shfl.sync.bfly.b32 %r1, %r0, 2, 31, -1;  add.u32 %r0, %r0, %r1;
    shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;  add.u32 %r0, %r0, %r1;)")) {
    REQUIRE(sum == 496);
  }
}

TEST_CASE("votes, matches and reductions", "[emulator]") {
  CHECK(warp_results("setp.lt.u32 %p1, %t, 5; vote.sync.ballot.b32 %r0, %p1, -1;")[9] == 0x1f);
  CHECK(warp_results("setp.lt.u32 %p1, %t, 5; vote.sync.ballot.b32 %r0, !%p1, -1;")[9] == 0xffffffe0);
  const auto vote = [](const char* how) {
    return warp_results(std::string("setp.lt.u32 %p1, %t, 5; vote.sync.") + how +
                        "; selp.u32 %r0, 1, 0, %p2;")[31];
  };
  CHECK(vote("any.pred %p2, %p1, -1") == 1);
  CHECK(vote("all.pred %p2, %p1, -1") == 0);
  CHECK(vote("uni.pred %p2, %p1, -1") == 0);
  const Values match = warp_results("and.b32 %r1, %t, 3; match.any.sync.b32 %r0, %r1, -1;");
  CHECK(match[6] == 0x44444444);
  CHECK(warp_results("match.all.sync.b32 %r0|%p1, 7, -1;")[3] == 0xffffffff);
  CHECK(warp_results("match.all.sync.b32 %r1|%p1, %t, -1; selp.u32 %r0, 1, %r1, %p1;")[3] == 0);
  CHECK(warp_results("redux.sync.add.u32 %r0, %t, -1;")[1] == 496);
  CHECK(warp_results("sub.s32 %r1, %t, 5; redux.sync.min.s32 %r0, %r1, -1;")[1] == 0xfffffffb);
  CHECK(warp_results("sub.s32 %r1, %t, 5; redux.sync.max.u32 %r0, %r1, -1;")[1] == 0xffffffff);
  CHECK(warp_results("shl.b32 %r1, 1, %t; redux.sync.xor.b32 %r0, %r1, -1;")[1] == 0xffffffff);
  const Values elected = warp_results("elect.sync %r1|%p1, -1; selp.u32 %r0, 1, %r1, %p1;");
  CHECK(elected[0] == 1);
  CHECK(elected[31] == 0);
  CHECK(warp_results("activemask.b32 %r0;", 20)[0] == 0xfffff);
}

TEST_CASE("lanes named by a member mask meet, whatever path they took", "[emulator]") {
  // The upper half takes a longer way round, placed behind the end, and both exchange afterwards.
  const Values values = warp_results(R"(
    setp.ge.u32 %p1, %t, 16;
    mov.u32 %r1, %t;
    @%p1 bra FAR;
  MEET:
    shfl.sync.bfly.b32 %r0, %r1, 16, 31, -1;
    bra.uni DONE;
  FAR:
    add.u32 %r1, %r1, 1000;
    bra.uni MEET;
  DONE:)");
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    REQUIRE(values[lane] == (lane < 16 ? lane + 1016 : lane - 16));
}

TEST_CASE("nested divergence reaches every branch", "[emulator]") {
  const Values values = warp_results(R"(
    and.b32 %r1, %t, 1;
    and.b32 %r2, %t, 2;
    setp.ne.u32 %p1, %r1, 0;
    setp.ne.u32 %p2, %r2, 0;
    mov.u32 %r0, 0;
    @!%p1 bra EVEN;
    @%p2 bra ODD3;
    add.u32 %r0, %r0, 1;
    bra.uni JOIN;
  ODD3:
    add.u32 %r0, %r0, 3;
    bra.uni JOIN;
  EVEN:
    @%p2 add.u32 %r0, %r0, 2;
  JOIN:
    add.u32 %r0, %r0, 10;
    activemask.b32 %r3;
    setp.ne.u32 %p3, %r3, -1;
    @%p3 add.u32 %r0, %r0, 100;)");
  for (std::uint32_t lane = 0; lane < 32; ++lane) REQUIRE(values[lane] == 10 + lane % 4);
}

TEST_CASE("loops run as often as each lane needs", "[emulator]") {
  const Values values = warp_results(R"(
    mov.u32 %r1, 0; mov.u32 %r0, 0;
  LOOP:
    add.u32 %r0, %r0, %r1;
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p1, %r1, %t;
    @%p1 bra LOOP;)",
                                     45);
  for (std::uint32_t t = 0; t < 45; ++t) REQUIRE(values[t] == t * (t + 1) / 2);
}

TEST_CASE("lanes that exit early leave the others in step", "[emulator]") {
  Memory memory;
  const auto out = upload<std::uint32_t>(memory, Values(32, 7), "out");
  const auto params = params_of(out);
  run(*parsed(kernel_text(R"(
    setp.lt.u32 %p1, %t, 10;
    @%p1 exit;
    redux.sync.add.u32 %r0, %t, 0xfffffc00;
    vote.sync.ballot.b32 %r1, 1, 0xffffffff;
    add.u32 %r0, %r0, %r1;
    st.global.u32 [%out], %r0;)")),
      "k", {.grid = {}, .block = {32}, .dynamic_shared_bytes = 0, .params = params}, memory);
  const Values values = download<std::uint32_t>(memory, out, 32);
  for (std::uint32_t t = 0; t < 32; ++t) REQUIRE(values[t] == (t < 10 ? 7 : 451 + 0xfffffc00u));
}

TEST_CASE("a lane that spins does not starve the one it waits for", "[emulator]") {
  // A lock taken lane after lane: whoever holds it is at a higher address than those who spin.
  const Values values = warp_results(R"(
    .shared .u32 lock; .shared .u32 count;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [lock], 0;
    @%p1 st.shared.u32 [count], 0;
    bar.warp.sync -1;
  SPIN:
    atom.acquire.cta.shared.cas.b32 %r1, [lock], 0, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra SPIN;
    ld.shared.u32 %r0, [count];
    add.u32 %r2, %r0, 1;
    st.shared.u32 [count], %r2;
    atom.release.cta.shared.exch.b32 %r3, [lock], 0;)");
  Values sorted = values;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < 32; ++i) REQUIRE(sorted[i] == i);
}

TEST_CASE("special registers", "[emulator]") {
  const auto special = [](const char* name, std::uint32_t thread) {
    return warp_results(std::string("mov.u32 %r0, ") + name + ";", 70)[thread];
  };
  CHECK(special("%tid.x", 69) == 69);
  CHECK(special("%tid.y", 69) == 0);
  CHECK(special("%ntid.x", 1) == 70);
  CHECK(special("%nctaid.z", 1) == 1);
  CHECK(special("%laneid", 69) == 5);
  CHECK(special("%warpid", 69) == 3);  // a slot of the SM, not the warp's number in its CTA
  CHECK(special("%nwarpid", 0) == 64);
  CHECK(special("%lanemask_lt", 36) == 0xf);
  CHECK(special("%lanemask_le", 36) == 0x1f);
  CHECK(special("%lanemask_eq", 36) == 0x10);
  CHECK(special("%lanemask_ge", 36) == 0xfffffff0);
  CHECK(special("%lanemask_gt", 36) == 0xffffffe0);
  CHECK(special("%total_smem_size", 0) == 0);
  CHECK(special("%cluster_nctarank", 0) == 1);
  CHECK(special("WARP_SZ", 0) == 32);
  CHECK(r0("mov.u64 %rd1, %clock64; mov.u64 %rd2, %clock64; setp.gt.u64 %p1, %rd2, %rd1; selp.u32 %r0, 1, 0, "
           "%p1;") == 1);
}

}  // namespace
}  // namespace ptxgen::emulator
