// Every check, by a kernel that violates it, and what the message says.
#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a fault names kernel, line, instruction, CTA, thread and the nearest allocation", "[emulator]") {
  const auto program = parsed(module_of(R"(
.visible .entry off_by_some(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.y;
  mad.wide.u32 %rd1, %r0, 512, %rd0;
  st.global.u32 [%rd1+12], 1;
})"));
  Memory memory;
  const auto out = memory.allocate(4096, "out");
  const auto params = params_of(*out);
  const std::string message =
      failure(*program, "off_by_some",
              {.grid = {1, 2}, .block = {2, 9}, .dynamic_shared_bytes = 0, .params = params}, memory);
  CHECK_THAT(
      message,
      Contains("kernel 'off_by_some', PTX line 10 `st.global.u32 [%rd1+12], 1`, CTA (0,0,0), thread (0,8,0): "
               "writes 4 bytes at global address 0x"));
  CHECK_THAT(message, Contains("12 bytes past the end of allocation 'out' (4096 bytes at 0x"));
}

TEST_CASE("global memory: bounds, alignment, freed and unwritten memory", "[emulator]") {
  CHECK_THAT(fault("ld.global.u32 %r0, [%out+4096];"),
             Contains("reads 4 bytes") && Contains("0 bytes past the end"));
  CHECK_THAT(fault("st.global.u32 [%out-4], 1;"), Contains("4 bytes before allocation 'out'"));
  CHECK_THAT(fault("mov.u64 %rd1, 0; ld.global.u32 %r0, [%rd1];"), Contains("global address 0x0"));
  CHECK_THAT(fault("st.global.u32 [%out+2], 1;"),
             Contains("which is not a multiple of 4") && Contains("2 bytes into"));
  CHECK_THAT(fault("st.global.v4.u32 [%out+8], {1, 2, 3, 4};"),
             Contains("writes 16 bytes") && Contains("not a multiple of 16"));
  CHECK_THAT(fault("ld.global.v2.u32 {%r0, %r1}, [%out];"),
             Contains("reads 8 bytes") && Contains("which nothing has written"));
  CHECK_THAT(fault("atom.global.add.u32 %r0, [%out], 1;"),
             Contains("atomically updates 4 bytes") && Contains("nothing has written"));
  CHECK_THAT(fault("st.global.u8 [%out], 1; st.global.u8 [%out+1], 1; st.global.u8 [%out+2], 1; "
                   "ld.global.u32 %r0, [%out];"),
             Contains("thread (0,0,0)") && Contains("nothing has written"));
  Memory memory;
  const auto old = memory.allocate(64, "old");
  REQUIRE(memory.free(*old).ok());
  const auto params = params_of(*old);
  CHECK_THAT(failure(*parsed(kernel_text("st.global.u32 [%out], 1;")), "k",
                     {.grid = {}, .block = {1}, .dynamic_shared_bytes = 0, .params = params}, memory),
             Contains("0 bytes into allocation 'old' (64 bytes") && Contains("already freed"));
}

TEST_CASE("shared, local, param and const memory: bounds and read-only spaces", "[emulator]") {
  const char shared[] = ".shared .align 4 .b8 tile[64]; mov.u32 %r1, tile;";
  CHECK_THAT(
      fault(std::string(shared) + "st.shared.u32 [%r1+64], 1;", 1),
      Contains("shared address 0x40") && Contains("0 bytes past the end of variable 'tile' (64 bytes)"));
  CHECK_THAT(fault(std::string(shared) + "st.shared.u32 [%r1+2], 1;", 1), Contains("not a multiple of 4"));
  CHECK_THAT(fault(std::string(shared) + "ld.shared.u32 %r0, [%r1+8];", 1),
             Contains("which nothing has written: 8 bytes into variable 'tile'"));
  CHECK_THAT(fault("ld.param.u32 %r0, [out_param+8];"),
             Contains("param address 0x8") && Contains("parameter 'out_param' (8 bytes)"));
  CHECK_THAT(fault("mov.u64 %rd1, out_param; cvta.param.u64 %rd1, %rd1; st.u32 [%rd1], 1;"),
             Contains("writes 4 bytes at param address 0x0, but that space is read-only"));
  CHECK_THAT(fault(".local .align 4 .b8 stack[8]; mov.u64 %rd1, stack; ld.local.u32 %r0, [%rd1+8];"),
             Contains("local address 0x8"));
  CHECK_THAT(fault(".local .align 4 .b8 stack[8]; ld.local.u32 %r0, [stack];"),
             Contains("nothing has written"));
  CHECK_THAT(fault(".const .b32 table[2] = {1, 2}; ld.const.u32 %r0, [table+8];"),
             Contains("const address 0x8") && Contains("variable 'table'"));
  CHECK_THAT(fault(".const .b32 table[2] = {1, 2}; mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1; "
                   "red.add.u32 [%rd1], 1;"),
             Contains("read-only"));
}

TEST_CASE("a register that nothing wrote", "[emulator]") {
  CHECK_THAT(fault("add.u32 %r0, %r1, 1;"),
             Contains("`add.u32 %r0, %r1, 1`") && Contains("reads %r1, which nothing has written"));
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 7; @%p1 mov.u32 %r1, 5; add.u32 %r0, %r1, 1;"),
             Contains("thread (7,0,0)") && Contains("lanes 7-31 of warp 0"));
  CHECK_THAT(fault("@%p3 mov.u32 %r1, 5;"), Contains("reads %p3"));
  CHECK_THAT(fault("addc.u32 %r0, 1, 2;"), Contains("the condition code"));
}

TEST_CASE("races in shared memory", "[emulator]") {
  const std::string tile =
      ".shared .align 16 .b32 tile[64]; mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 4, %r1; xor.b32 %r3, %t, 1;"
      "mad.lo.u32 %r3, %r3, 4, %r1;";
  // Write, then a neighbour reads without a barrier: within a warp and between warps.
  CHECK_THAT(fault(tile + "st.shared.u32 [%r2], %t; ld.shared.u32 %r0, [%r3];"),
             Contains("race in shared memory: reads 4 bytes at shared address") &&
                 Contains("thread (1,0,0) wrote at PTX line") && Contains("`st.shared.u32 [%r2], %t`") &&
                 Contains("into variable 'tile'"));
  CHECK_THAT(fault(tile + "st.shared.u32 [%r2], %t; bar.warp.sync -1; setp.ge.u32 %p1, %t, 32;"
                          "@%p1 ld.shared.u32 %r0, [%r2+-128];",
                   64),
             Contains("race in shared memory: reads") && Contains("thread (32,0,0)"));
  // Read, then a neighbour overwrites.
  CHECK_THAT(
      fault(tile + "st.shared.u32 [%r2], %t; bar.sync 0; ld.shared.u32 %r0, [%r3]; st.shared.u32 [%r2], 9;",
            64),
      Contains("race in shared memory: writes") && Contains("read at PTX line"));
  // Two writes in different instructions, and two in one with different values.
  CHECK_THAT(fault(tile + "st.shared.u32 [%r2], 1; st.shared.u32 [%r3], 1;"),
             Contains("race in shared memory: writes") && Contains("wrote"));
  CHECK_THAT(fault(tile + "st.shared.u32 [%r1], %t;"), Contains("race in shared memory: writes"));
  // An atomic against a plain access.
  CHECK_THAT(
      fault(tile + "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [%r1], 0; red.shared.add.u32 [%r1], 1;"),
      Contains("race"));
  Options options;
  options.check_races = false;
  Memory memory;
  const auto out = memory.allocate(4096, "out");
  const auto params = params_of(*out);
  CHECK(launch(*parsed(kernel_text(tile + "st.shared.u32 [%r2], %t; ld.shared.u32 %r0, [%r3];")), "k",
               {.grid = {}, .block = {32}, .dynamic_shared_bytes = 0, .params = params}, memory, options)
            .ok());
}

// Every thread of 4 warps reads tile[0], which thread 0 wrote; then thread 64 does `last`. Its own warp has
// synchronised. The warp that completes a barrier goes on first, so warps 3, 0 and 1 read before it.
std::string all_read(std::string_view read, std::string_view between, std::string_view last) {
  return str_cat(
      ".shared .align 4 .b32 tile[1]; setp.eq.u32 %p0, %t, 0; setp.eq.u32 %p1, %t, 64;"
      "@%p0 st.shared.u32 [tile], 5; bar.sync 0;",
      read, " %r0, [tile]; bar.warp.sync -1;", between, " @%p1 ", last, " [tile], 6;");
}

TEST_CASE("a write races with the read of any warp", "[emulator]") {
  const auto outcome = [](const std::string& body, std::uint32_t ctas = 1) {
    Memory memory;
    const auto out = memory.allocate(4096, "out");
    const auto params = params_of(*out);
    Options options;
    options.workers = 1;
    const auto stats = launch(*parsed(kernel_text(body)), "k",
                              {.grid = {ctas}, .block = {128}, .dynamic_shared_bytes = 0, .params = params},
                              memory, options);
    return stats.ok() ? "ok" : std::string(stats.status().message());
  };
  const std::string weak = "ld.shared.u32", strong = "ld.volatile.shared.u32", store = "st.shared.u32",
                    strong_store = "st.volatile.shared.u32";
  const auto expect_race = [&](const std::string& body) {
    const std::string message = outcome(body);
    CHECK_THAT(message, Contains("race in shared memory: writes") && Contains("thread (64,0,0): ") &&
                            Contains("read at PTX line"));
    return message;
  };
  const std::string two_warps =
      "shr.u32 %r5, %t, 5; sub.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 2; @%p2 bar.sync 1, 64;";
  for (const std::string& read : {weak, strong}) {
    expect_race(all_read(read, "", store));
    CHECK(outcome(all_read(read, "bar.sync 0;", store), 3) == "ok");
    // A barrier of warps 1 and 2 leaves the others out.
    const std::string message = expect_race(all_read(read, two_warps, store)), blamed = "which thread (";
    const int warp = std::stoi(message.substr(message.find(blamed) + blamed.size())) / 32;
    CHECK((warp == 0 || warp == 3));
    // The reads before a write in order are forgotten, those after it are not.
    expect_race(all_read(read,
                         str_cat("bar.sync 0; @%p1 st.shared.u32 [tile], 8; bar.sync 0;", read,
                                 " %r1, [tile]; bar.warp.sync -1;"),
                         store));
  }
  expect_race(all_read(weak, "", strong_store));
  CHECK(outcome(all_read(strong, "", strong_store)) == "ok");
  // A strong read does not hide the weak one before it from a strong write.
  CHECK_THAT(expect_race(all_read("setp.eq.u32 %p3, %t, 97; @%p3 ld.shared.u32",
                                  "@%p1 ld.volatile.shared.u32 %r1, [tile];", strong_store)),
             Contains("which thread (97,0,0) read"));
  // The one reader writes with its whole warp, all the same value: lane 1's write races with lane 0's read.
  CHECK_THAT(fault(".shared .align 4 .b32 tile[1]; setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [tile], 5;"
                   "bar.sync 0; @%p0 ld.shared.u32 %r0, [tile]; st.shared.u32 [tile], 7;"),
             Contains("race in shared memory: writes") && Contains("thread (0,0,0) read"));
}

TEST_CASE("what is no race", "[emulator]") {
  const std::string tile =
      ".shared .align 16 .b32 tile[64]; mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 4, %r1; xor.b32 %r3, %t, 1;"
      "mad.lo.u32 %r3, %r3, 4, %r1;";
  const auto passes = [&](std::string_view body, std::uint32_t threads = 32) {
    return results<std::uint32_t>(tile + std::string(body) + " st.global.u32 [%out], %r0;", threads);
  };
  CHECK(passes("st.shared.u32 [%r2], %t; bar.warp.sync -1; ld.shared.u32 %r0, [%r3];")[4] == 5);
  CHECK(
      passes("st.shared.u32 [%r2], %t; shfl.sync.idx.b32 %r5, %t, 0, 31, -1; ld.shared.u32 %r0, [%r3];")[4] ==
      5);
  CHECK(passes("st.shared.u32 [%r1], 8; bar.sync 0; ld.shared.u32 %r0, [%r1];")[4] ==
        8);  // one value for all lanes
  CHECK(passes("setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [%r1], 0; bar.sync 0; red.shared.add.u32 [%r1], "
               "1; bar.sync 0; ld.shared.u32 %r0, [%r1];",
               64)[9] == 64);
  // Bytes of one word belong to different threads.
  CHECK(passes("add.u32 %r4, %r1, %t; st.shared.u8 [%r4], %t; bar.sync 0; ld.shared.u8 %r0, [%r4];")[7] == 7);
  // A flag with release and acquire orders plain data between warps.
  CHECK(passes(R"(
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [%r1], 0;
    bar.sync 0;
    setp.ge.u32 %p2, %t, 32;
    @%p2 bra WAIT;
    @!%p1 bra DONE;
    st.shared.u32 [%r1+4], 123;
    st.release.cta.shared.u32 [%r1], 1;
    bra.uni DONE;
  WAIT:
    ld.acquire.cta.shared.u32 %r4, [%r1];
    setp.eq.u32 %p3, %r4, 0;
    @%p3 bra WAIT;
    ld.shared.u32 %r0, [%r1+4];
    st.global.u32 [%out], %r0;
    exit;
  DONE:
    mov.u32 %r0, 1;)",
               64)[40] == 123);
}

TEST_CASE("barriers that do not come together", "[emulator]") {
  // The two sides of a branch wait at different barriers.
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 16; @%p1 bra A; bar.sync 0; bra.uni B; A: bar.sync 0; B:"),
             Contains("deadlock") && Contains("warp 0 lanes 16-31 at PTX line") &&
                 Contains("warp 0 lanes 0-15 at") && Contains("for the other lanes of the warp"));
  // A warp waits at a barrier that nobody else comes to.
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 1; bra.uni B; A: bar.sync 2; B:", 64),
             Contains("deadlock") && Contains("warp 0 lanes 0-31 at PTX line") && Contains("`bar.sync 2`") &&
                 Contains("have not arrived at the barrier"));
  CHECK_THAT(fault("bar.sync 1, 96;", 64), Contains("deadlock"));
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96;", 64),
             Contains("barrier 1 with 96 threads, while others wait at it with 64 threads"));
  CHECK_THAT(fault("bar.sync 1, 33;"), Contains("a multiple of 32"));
  CHECK_THAT(fault("bar.sync 16;"), Contains("barrier 16; a CTA has barriers 0 to 15"));
  CHECK_THAT(fault("bar.sync %t;"), Contains("different barrier numbers: 0 and 1"));
  CHECK_THAT(fault("bar.arrive 1, 32; bar.arrive 1, 64;", 64), Contains("barrier 1"));
}

TEST_CASE("warp-wide operations with the wrong lanes", "[emulator]") {
  CHECK_THAT(fault("shfl.sync.idx.b32 %r0, %t, 0, 31, 0xffff;"),
             Contains("the member mask 0xffff does not name lane 16"));
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 16; @%p1 shfl.sync.idx.b32 %r0, %t, 20, 31, 0xffff;"),
             Contains("lane 0 reads from lane 20, which does not take part"));
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 16; @%p1 exit; shfl.sync.idx.b32 %r0, %t, 3, 31, -1;"),
             Contains("lane 16 reads from lane 3"));
  // Half of the named lanes wait elsewhere.
  CHECK_THAT(fault("setp.lt.u32 %p1, %t, 16; @%p1 bra A; shfl.sync.idx.b32 %r0, %t, 16, 31, -1; bra.uni B; "
                   "A: vote.sync.any.pred %p2, 1, -1; B:"),
             Contains("deadlock") && Contains("`shfl.sync.idx.b32") && Contains("`vote.sync.any.pred"));
}

TEST_CASE("traps, endless kernels, fault of the lowest CTA", "[emulator]") {
  CHECK_THAT(fault("setp.eq.u32 %p1, %t, 3; @%p1 trap;"), Contains("thread (3,0,0): the kernel traps"));
  Options options;
  options.max_warp_instructions = 1000;
  CHECK_THAT(fault("L: bra.uni L;", 32, options), Contains("has executed 1000 warp instructions"));
  CHECK_THAT(fault("L: bra.uni L;", 64, options), Contains("endless"));
}

TEST_CASE("shared memory beyond the target's limits", "[emulator]") {
  const auto refusal = [](std::string_view target, std::string_view version, std::size_t bytes,
                          std::uint32_t dynamic) {
    const auto program =
        parsed(module_of(".visible .entry k() { .shared .b8 tile[" + std::to_string(bytes) +
                             "]; .reg .b32 %r<2>; mov.u32 %r0, tile; st.shared.u8 [%r0], 1; }",
                         target, version));
    Memory memory;
    auto stats = launch(*program, "k",
                        {.grid = {}, .block = {1}, .dynamic_shared_bytes = dynamic, .params = {}}, memory);
    return stats.ok() ? std::string("ok") : std::string(stats.status().message());
  };
  CHECK_THAT(refusal("sm_90", "8.3", 48 * 1024 + 1, 0),
             Contains("49153 bytes of shared memory; 49152 is the most"));
  CHECK(refusal("sm_90", "8.3", 48 * 1024, 0) == "ok");
  CHECK(refusal("sm_75", "6.3", 1024, 63 * 1024) == "ok");
  CHECK_THAT(refusal("sm_75", "6.3", 1024, 63 * 1024 + 1), Contains("sm_75 allows 65536"));
  CHECK_THAT(refusal("sm_80", "7.0", 1024, 162 * 1024 + 1), Contains("sm_80 allows 166912"));
  CHECK_THAT(refusal("sm_120", "8.7", 1024, 98 * 1024 + 1), Contains("sm_120 allows 101376"));
  CHECK_THAT(refusal("sm_100", "8.6", 1024, 226 * 1024 + 1), Contains("sm_100 allows 232448"));
}

}  // namespace
}  // namespace ptxgen::emulator
