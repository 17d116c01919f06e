// mbarriers and asynchronous copies: their results in whatever order copies land, and what the emulator says
// of code that does not wait, does not fence, counts wrongly or waits for ever.
#include <numeric>

#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"
#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

constexpr std::size_t kWords = 1024;

// Thread t: %t, its words %in + 4 t (in[i] is 100 + i), %out + 4 t and tile + 4 t at %s; %p0 is t == 0.
std::string text_of(std::string_view body) {
  return module_of(str_cat(R"(
.visible .entry k(.param .u64 in_param, .param .u64 out_param) {
  .reg .pred %p<10>; .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .b64 %in; .reg .b64 %out; .reg .b32 %t; .reg .b32 %s;
  .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[4];
  ld.param.u64 %in, [in_param]; ld.param.u64 %out, [out_param];
  mov.u32 %t, %tid.x; mad.wide.u32 %out, %t, 4, %out;
  mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s; setp.eq.u32 %p0, %t, 0;
)",
                           body, "\n}\n"));
}

struct Outcome {
  std::string message;  // "ok" or the fault
  std::vector<std::uint32_t> out;
};

Outcome outcome(const std::string& ptx, std::uint32_t threads, std::uint64_t seed, std::uint32_t ctas = 1) {
  INFO(ptx);
  Memory memory;
  std::vector<std::uint32_t> in(kWords);
  std::iota(in.begin(), in.end(), 100u);
  const std::uint64_t from = upload(memory, in, "in");
  const std::uint64_t to = upload(memory, std::vector<std::uint32_t>(kWords, 0xdeadbeef), "out");
  const auto params = params_of(from, to);
  Options options;
  options.seed = seed;
  options.workers = 1;
  const auto stats = launch(*parsed(ptx), "k",
                            {.grid = {ctas}, .block = {threads}, .dynamic_shared_bytes = 0, .params = params},
                            memory, options);
  return {stats.ok() ? "ok" : std::string(stats.status().message()),
          download<std::uint32_t>(memory, to, kWords)};
}

// The message at the last legal moment.
std::string says(std::string_view body, std::uint32_t threads = 32) {
  return outcome(text_of(body), threads, 0).message;
}

// Passes in every order, each thread t with out[t] = in[t + shift].
void check_passes(std::string_view body, std::uint32_t threads = 32, std::uint32_t shift = 0) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const Outcome o = outcome(text_of(body), threads, seed);
    INFO("seed " << seed << "\n" << body);
    CHECK(o.message == "ok");
    for (std::uint32_t t = 0; t < threads && o.message == "ok"; ++t) REQUIRE(o.out[t] == 100 + t + shift);
  }
}

// Fails in every order, with one of the messages.
void check_fails(std::string_view body, std::uint32_t threads, std::string_view first,
                 std::string_view other) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const std::string message = outcome(text_of(body), threads, seed).message;
    INFO("seed " << seed << ": " << message << "\n" << body);
    CHECK((message.find(first) != std::string::npos || message.find(other) != std::string::npos));
  }
}

constexpr char kInit[] =
    "@%p0 mbarrier.init.shared.b64 [bars], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;\n";
constexpr char kExpect[] = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 128;\n";
#define BULK "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
constexpr char kLoad[] = "@%p0 " BULK "[tile], [%in], 128, [bars];\n";
constexpr char kWait[] = "W0: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0; @!%p1 bra W0;\n";
constexpr char kPoll[] = "W0: mbarrier.test_wait.parity.shared.b64 %p1, [bars], 0; @!%p1 bra W0;\n";
constexpr char kKeep[] = "ld.shared.u32 %r0, [%s]; st.global.u32 [%out], %r0;\n";

}  // namespace

// ---- bulk copies into shared memory ----

TEST_CASE("a bulk copy lands when its mbarrier says so", "[emulator][async]") {
  check_passes(str_cat(kInit, kExpect, kLoad, kWait, kKeep));
  check_passes(str_cat(kInit, kLoad, kExpect, kWait, kKeep));  // completion may come before it is expected
  check_passes(str_cat(kInit, kExpect, kLoad, kPoll, kKeep));
  check_passes(str_cat(
      kInit, kExpect, kLoad,
      "W0: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [bars], 0, 100; @!%p1 bra W0;", kKeep));
}

TEST_CASE("who does not wait for a bulk copy is stopped", "[emulator][async]") {
  const std::string started = str_cat(kInit, kExpect, kLoad);
  CHECK_THAT(says(str_cat(started, kKeep)),
             Contains("reads 4 bytes at shared address 0x0, which the asynchronous copy at PTX line") &&
                 Contains("of thread (0,0,0) is still to write; wait for it first") &&
                 Contains("0 bytes into variable 'tile'"));
  CHECK_THAT(says(str_cat(started, "st.shared.u32 [%s], 1;", kWait)), Contains("is still to write"));
  CHECK_THAT(says(str_cat(started, kLoad, kWait)), Contains("is still to write"));
  // One try is not a wait, nor is another barrier.
  check_fails(str_cat(started, "mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0;", kKeep), 32,
              "still to write", "race in shared memory");
  check_fails(str_cat(started, "bar.sync 0;", kKeep), 32, "still to write",
              "which an asynchronous copy wrote");
  // The warp that does not wait, though another does.
  check_fails(
      str_cat(started, "bar.sync 0; setp.ge.u32 %p2, %t, 32; @%p2 bra NEXT;", kWait, "NEXT: @!%p2 bra DONE;",
              "ld.shared.u32 %r0, [tile]; st.global.u32 [%out], %r0; DONE: ret;"),
      64, "still to write", "with no wait between the two");
  CHECK_THAT(says(str_cat(started, "ret;")), Contains("the CTA exits while this copy is still to write"));
  // The wrong parity: that of the phase before the first.
  CHECK_THAT(
      says(str_cat(started,
                   "mbarrier.try_wait.parity.shared.b64 %p1, [bars], 1; @%p1 ld.shared.u32 %r0, [%s];")),
      Contains("still to write"));
}

TEST_CASE("an mbarrier that was not made ready", "[emulator][async]") {
  CHECK_THAT(
      says("mbarrier.arrive.shared.b64 %rd1, [bars];"),
      Contains(
          "uses an mbarrier of 8 bytes at shared address 0x1000, where no mbarrier has been initialised") &&
          Contains("variable 'bars'"));
  CHECK_THAT(says(str_cat(kInit, "@%p0 mbarrier.init.shared.b64 [bars], 1;")),
             Contains("which is in use already; mbarrier.inval comes before a second init"));
  CHECK(says(str_cat(kInit,
                     "@%p0 mbarrier.inval.shared.b64 [bars]; @%p0 mbarrier.init.shared.b64 [bars], 2;")) ==
        "ok");
  CHECK_THAT(says(str_cat(kInit, "@%p0 mbarrier.inval.shared.b64 [bars];", kWait)),
             Contains("where no mbarrier has been initialised"));
  CHECK_THAT(says(str_cat(kInit, kExpect, kLoad, "@%p0 mbarrier.inval.shared.b64 [bars];")),
             Contains("invalidates phase 0") && Contains("while copies are to complete it"));
  CHECK_THAT(says("mov.u32 %r1, bars; @%p0 mbarrier.init.shared.b64 [%r1+4], 1;"),
             Contains("not a multiple of 8"));
  CHECK_THAT(says("mov.u32 %r1, 8192; @%p0 mbarrier.init.shared.b64 [%r1], 1;"),
             Contains("bytes past the end"));
  CHECK_THAT(says("@%p0 mbarrier.init.shared.b64 [bars], 0;"),
             Contains("an mbarrier for 0 arrivals; the count lies in 1 to 1048575"));
  CHECK_THAT(says("@%p0 mbarrier.init.shared.b64 [bars], 1048576;"), Contains("1048576 arrivals"));
  // Initialised, and used with no barrier between; initialised, and not fenced for the async proxy.
  CHECK_THAT(
      says(str_cat("@%p0 mbarrier.init.shared.b64 [bars], 2; mbarrier.arrive.shared.b64 %rd1, [bars];")),
      Contains("race in shared memory") && Contains("thread (1,0,0): ") &&
          Contains("which thread (0,0,0) wrote at PTX line") && Contains("`@%p0 mbarrier.init"));
  CHECK_THAT(
      says(str_cat("@%p0 mbarrier.init.shared.b64 [bars], 1; bar.sync 0;", kExpect, kLoad)),
      Contains("completes phase 0") && Contains("with neither fence.mbarrier_init nor fence.proxy.async"));
  check_passes(str_cat("@%p0 mbarrier.init.shared.b64 [bars], 1; bar.sync 0; @%p0 fence.proxy.async;",
                       kExpect, kLoad, kWait, kKeep));
  // A thread's fence.mbarrier_init is for what it has initialised itself, and for nothing else.
  CHECK_THAT(says(str_cat("@%p0 mbarrier.init.shared.b64 [bars], 1; bar.sync 0; setp.eq.u32 %p2, %t, 1;"
                          "@%p2 fence.mbarrier_init.release.cluster; bar.sync 0;",
                          kExpect, kLoad)),
             Contains("which thread (0,0,0) wrote at") &&
                 Contains("with neither fence.mbarrier_init nor fence.proxy.async"));
  // Its bytes are nobody else's.
  CHECK_THAT(says(str_cat(kInit, "ld.shared.u64 %rd1, [bars];")),
             Contains("which is an mbarrier; until mbarrier.inval only mbarrier instructions may access it"));
  CHECK_THAT(says(str_cat(kInit, "@%p0 st.shared.u32 [bars+4], 1;")), Contains("which is an mbarrier"));
  CHECK_THAT(says(str_cat(kInit, kExpect, "mov.u32 %r1, bars; @%p0 " BULK "[%r1], [%in], 16, [bars];")),
             Contains("which is an mbarrier"));
}

TEST_CASE("counts of an mbarrier", "[emulator][async]") {
  CHECK_THAT(says(str_cat(kInit, "mbarrier.arrive.noComplete.shared.b64 %rd1, [bars], 1;")),
             Contains("completes phase 0 (parity 0)") && Contains("which .noComplete may not"));
  CHECK_THAT(
      says(str_cat(kInit, "@%p0 mbarrier.arrive.shared.b64 %rd1, [bars], 2;")),
      Contains(
          "arrives 2 times at phase 0 (parity 0) of the mbarrier at shared address 0x1000, which lacks 1 of "
          "1 arrivals and 0 bytes"));
  CHECK_THAT(says(str_cat(kInit, "@%p0 mbarrier.arrive.shared.b64 %rd1, [bars], 0;")),
             Contains("arrives 0 times"));
  // The arrival is there, the bytes are not: nobody may arrive until they are.
  CHECK_THAT(says(str_cat(kInit, kExpect, "@%p0 mbarrier.arrive.shared.b64 %rd1, [bars];")),
             Contains("arrives 1 times") && Contains("lacks 0 of 1 arrivals and 128 bytes"));
  CHECK_THAT(says(str_cat(kInit, "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 1048576;")),
             Contains("expects 1048576 bytes more of phase 0") && Contains("1048575 is the most"));
  CHECK_THAT(says(str_cat(kInit,
                          "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 1048575;"
                          "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 1;")),
             Contains("expects 1 bytes more") && Contains("and 1048575 bytes"));
  CHECK_THAT(says(str_cat(kInit, "mov.u32 %r1, 2; mbarrier.test_wait.parity.shared.b64 %p1, [bars], %r1;")),
             Contains("the parity of a phase is 0 or 1, not 2"));
}

TEST_CASE("an mbarrier orders what threads did before they arrived", "[emulator][async]") {
  const std::string init = "@%p0 mbarrier.init.shared.b64 [bars], 64; bar.sync 0;";
  const std::string write = "add.u32 %r1, %t, 100; st.shared.u32 [%s], %r1;";
  const std::string neighbour =
      "xor.b32 %r2, %t, 32; mov.u32 %r3, tile; mad.lo.u32 %r3, %r2, 4, %r3;"
      "ld.shared.u32 %r0, [%r3]; xor.b32 %r2, %t, 32; sub.u32 %r2, %t, %r2;"
      "add.u32 %r0, %r0, %r2; st.global.u32 [%out], %r0;";
  const std::string state_wait = "W0: mbarrier.try_wait.shared.b64 %p1, [bars], %rd1; @!%p1 bra W0;";
  check_passes(str_cat(init, write, "mbarrier.arrive.shared.b64 %rd1, [bars];", state_wait, neighbour), 64);
  check_passes(str_cat(init, write, "mbarrier.arrive.shared.b64 _, [bars];", kWait, neighbour), 64);
  check_passes(str_cat(init, write, "mbarrier.arrive.shared.b64 %rd1, [bars];",
                       "W0: mbarrier.test_wait.shared.b64 %p1, [bars], %rd1; @!%p1 bra W0;", neighbour),
               64);
  check_fails(str_cat(init, write, "mbarrier.arrive.shared.b64 %rd1, [bars];", neighbour, state_wait), 64,
              "race in shared memory", "which nothing has written");
  // Relaxed arrivals order nothing.
  check_fails(str_cat(init, write, "mbarrier.arrive.relaxed.cta.shared::cta.b64 %rd1, [bars];", state_wait,
                      neighbour),
              64, "race in shared memory", "race in shared memory");
  // One lane of each warp arrives: for itself alone, unless its warp has met.
  const std::string two = "@%p0 mbarrier.init.shared.b64 [bars], 2; bar.sync 0;";
  const std::string first = "and.b32 %r4, %t, 31; setp.eq.u32 %p2, %r4, 0;";
  check_passes(str_cat(two, first, write, "bar.warp.sync -1; @%p2 mbarrier.arrive.shared.b64 _, [bars];",
                       kWait, neighbour),
               64);
  check_fails(str_cat(two, first, write, "@%p2 mbarrier.arrive.shared.b64 _, [bars];", kWait, neighbour), 64,
              "race in shared memory", "race in shared memory");
  // A lane that arrives with what it wrote itself.
  check_passes(str_cat("@%p0 mbarrier.init.shared.b64 [bars], 1; bar.sync 0; @%p0 st.shared.u32 [tile], 100;"
                       "@%p0 mbarrier.arrive.shared.b64 _, [bars];",
                       kWait, "ld.shared.u32 %r0, [tile]; add.u32 %r0, %r0, %t; st.global.u32 [%out], %r0;"),
               64);
}

TEST_CASE("phases, states and drops", "[emulator][async]") {
  // The state holds the pending count before the arrival.
  check_passes(
      "@%p0 mbarrier.init.shared.b64 [bars], 40; bar.sync 0; mbarrier.arrive.shared.b64 %rd1, [bars];"
      "mbarrier.pending_count.b64 %r1, %rd1; sub.u32 %r0, 140, %r1; st.global.u32 [%out], %r0;");
  CHECK_THAT(
      says(
          "@%p0 mbarrier.init.shared.b64 [bars], 1; @%p0 mbarrier.arrive.shared.b64 %rd1, [bars];"
          "@%p0 mbarrier.arrive.shared.b64 _, [bars]; @%p0 mbarrier.test_wait.shared.b64 %p1, [bars], %rd1;"),
      Contains("is of no arrival in the current or the preceding phase of phase 2"));
  CHECK_THAT(says("@%p0 mbarrier.init.shared.b64 [bars], 1; @%p0 mbarrier.init.shared.b64 [bars+8], 1;"
                  "@%p0 mbarrier.arrive.shared.b64 %rd1, [bars]; @%p0 mbarrier.test_wait.shared.b64 %p1, "
                  "[bars+8], %rd1;"),
             Contains("is of no arrival"));
  // After a drop the next phase expects one less.
  check_passes(
      "@%p0 mbarrier.init.shared.b64 [bars], 2; bar.sync 0; @!%p0 bra END;"
      "mbarrier.arrive_drop.shared.b64 _, [bars]; mbarrier.arrive.shared.b64 _, [bars];"
      "mbarrier.arrive.shared.b64 _, [bars]; END: W0: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 1;"
      "@!%p1 bra W0; add.u32 %r0, %t, 100; st.global.u32 [%out], %r0;");
}

TEST_CASE("addresses and sizes of bulk copies", "[emulator][async]") {
  const std::string ready = str_cat(kInit, "mov.u32 %r1, 16; mov.u32 %r2, tile; @!%p0 bra END;");
  const auto copy = [&](std::string_view what, std::string_view prepare = "") {
    return says(str_cat(ready, prepare, BULK, what, "; END: ret;"));
  };
  CHECK_THAT(copy("[tile], [%in], %r1, [bars]", "mov.u32 %r1, 24;"),
             Contains("copies 24 bytes; a bulk copy is of a multiple of 16 above 0"));
  CHECK_THAT(copy("[tile], [%in], %r1, [bars]", "mov.u32 %r1, 0;"), Contains("copies 0 bytes"));
  CHECK_THAT(copy("[%r2+8], [%in], 16, [bars]"),
             Contains("writes 16 bytes at shared address 0x8, which is not a multiple of 16"));
  CHECK_THAT(copy("[tile], [%in+4], 16, [bars]"),
             Contains("reads 16 bytes at global address") &&
                 Contains("not a multiple of 16: 4 bytes into allocation 'in'"));
  CHECK_THAT(copy("[tile], [%in+4080], 32, [bars]"), Contains("reads 32 bytes at global address"));
  CHECK_THAT(copy("[%r2+4096], [%in], 4096, [bars]"), Contains("writes 4096 bytes at shared address 0x1000"));
  CHECK_THAT(copy("[tile], [%in], 16, [bars+8]"), Contains("where no mbarrier has been initialised"));
  CHECK_THAT(copy("[tile], [%in], 16, [bars]"), Contains("the CTA exits while this copy"));
  Memory memory;
  const auto unwritten = memory.allocate(64, "unwritten");
  const auto params = params_of(*unwritten, *unwritten);
  CHECK_THAT(failure(*parsed(text_of(str_cat(kInit, kExpect, kLoad))), "k",
                     {.grid = {}, .block = {32}, .dynamic_shared_bytes = 0, .params = params}, memory),
             Contains("reads 128 bytes at global address"));
}

// Thread 0 fills the tile twice; 32 others read it each time.
std::string refill(std::string_view after_read, std::string_view before_refill) {
  return str_cat(
      "@%p0 mbarrier.init.shared.b64 [bars], 1; @%p0 mbarrier.init.shared.b64 [bars+8], 1;"
      "@%p0 fence.mbarrier_init.release.cluster; bar.sync 0; setp.lt.u32 %p2, %t, 32; @!%p2 bra CONSUME; "
      "@!%p0 bra END;",
      kExpect, kLoad, before_refill, "add.u64 %in, %in, 128;", kExpect, kLoad, "bra END; CONSUME: ", kWait,
      "ld.shared.u32 %r1, [%s+-128]; and.b32 %r9, %t, 31; setp.eq.u32 %p4, %r9, 5;", after_read,
      "W2: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 1; @!%p1 bra W2;"
      "ld.shared.u32 %r0, [%s+-128]; st.global.u32 [%out], %r0; st.global.u32 [%out+-128], %r1; END: ret;");
}

TEST_CASE("a destination that somebody may still read is not filled again", "[emulator][async]") {
  const std::string wait_full = "F1: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0; @!%p1 bra F1;";
  const std::string wait_empty = "E1: mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], 0; @!%p1 bra E1;";
  const std::string arrive = "bar.warp.sync -1; @%p4 mbarrier.arrive.shared.b64 _, [bars+8];";
  check_passes(refill(arrive, wait_empty), 64);
  // The producer knows that the copy has landed, and not that it was read.
  check_fails(refill("", wait_full), 64, "race in shared memory: writes 128 bytes", "still to write");
  // The lane that arrives speaks for itself alone.
  check_fails(refill("@%p4 mbarrier.arrive.shared.b64 _, [bars+8];", wait_empty), 64,
              "race in shared memory: writes 128 bytes", "race");
  // Ordinary writes of the destination, not fenced for the async proxy.
  const std::string zero = "st.shared.u32 [%s], 0;";
  CHECK_THAT(
      says(str_cat(zero, kInit, kExpect, kLoad, kWait)),
      Contains("writes 128 bytes at shared address 0x0 through the async proxy, part of which thread (0,0,0) "
               "wrote at PTX line") &&
          Contains("with no fence.proxy.async between"));
  check_passes(str_cat(zero, "fence.proxy.async.shared::cta;", kInit, kExpect, kLoad, kWait, kKeep));
  CHECK_THAT(says(str_cat(kInit, zero, kExpect, kLoad, kWait)),
             Contains("race in shared memory: writes 128 bytes"));
}

// ---- bulk copies out of shared memory ----

TEST_CASE("a bulk copy out of shared memory", "[emulator][async]") {
  const std::string fill = "add.u32 %r1, %t, 100; st.shared.u32 [%s], %r1;";
  const std::string fence = "fence.proxy.async.shared::cta;";
  const std::string store =
      "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;"
      "@%p0 cp.async.bulk.commit_group;";
  const std::string wait_read = "@%p0 cp.async.bulk.wait_group.read 0;",
                    wait = "@%p0 cp.async.bulk.wait_group 0;";
  check_passes(str_cat(fill, fence, "bar.sync 0;", store, wait));
  check_passes(str_cat(fill, fence, "bar.sync 0;", store, wait_read, "bar.sync 0; st.shared.u32 [%s], 7;"));
  check_passes(str_cat(fill, "bar.sync 0; @%p0 fence.proxy.async;", store, wait_read));
  // A fence counts however often another warp's threads fence after it.
  check_passes(str_cat(fill, fence,
                       "setp.lt.u32 %p3, %t, 32; mov.u32 %r5, 0; @%p3 bra MEET; AGAIN: fence.proxy.async;"
                       "add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 100; @%p4 bra AGAIN; MEET: bar.sync 0;"
                       "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 256;"
                       "@%p0 cp.async.bulk.commit_group;",
                       wait),
               64);
  CHECK_THAT(
      says(str_cat(fill, "bar.sync 0;", store, wait)),
      Contains("reads 128 bytes at shared address 0x0 through the async proxy, part of which thread") &&
          Contains("`st.shared.u32 [%s], %r1` with no fence.proxy.async between"));
  // The fence of a thread that does not yet know of the writes.
  CHECK_THAT(says(str_cat(fill, "@%p0 fence.proxy.async; bar.sync 0;", store, wait)),
             Contains("part of which thread (1,0,0) wrote"));
  CHECK_THAT(says(str_cat(fence, fill, "bar.sync 0;", store, wait)), Contains("part of which thread"));
  CHECK_THAT(says(str_cat(fill, fence, store, wait)), Contains("race in shared memory: reads 128 bytes"));
  CHECK_THAT(says(str_cat(fill, fence, "bar.sync 0;", store, "bar.sync 0; st.shared.u32 [%s], 7;", wait)),
             Contains("may still read; wait for it with cp.async.bulk.wait_group.read first"));
  CHECK_THAT(
      says(str_cat(fill, fence, "bar.sync 0;", store, wait_read, "st.shared.u32 [%s], 7;")),
      Contains("race in shared memory: writes 4 bytes") && Contains("thread (0,0,0) read at PTX line"));
  // The wait of thread 0 is not ordered before the writes of the other warp, whichever comes first.
  check_fails(str_cat(fill, fence, "bar.sync 0;", store, "bar.sync 0;", wait_read,
                      "setp.ge.u32 %p2, %t, 32; @%p2 st.shared.u32 [%s+-128], 7;"),
              64, "may still read", "race in shared memory: writes 4 bytes");
  CHECK_THAT(says(str_cat(fill, fence, "bar.sync 0;", store)),
             Contains("the CTA exits while this copy is still to read its shared memory"));
  // A wait for groups before the last one, and one without a commit.
  CHECK_THAT(says(str_cat(fill, fence, "bar.sync 0;", store, "@%p0 cp.async.bulk.wait_group.read 1;")),
             Contains("still to read"));
  CHECK_THAT(says(str_cat(fill, fence,
                          "bar.sync 0; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;",
                          wait_read)),
             Contains("still to read"));
  CHECK_THAT(says(str_cat("@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;")),
             Contains("reads 128 bytes at shared address 0x0, which nothing has written"));
  CHECK_THAT(
      says(str_cat(fill, fence,
                   "bar.sync 0; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out+4], [tile], 16;")),
      Contains("writes 16 bytes at global address"));
  // Until it is waited for, global memory has the old content.
  const Outcome late = outcome(text_of(str_cat(fill, fence, "bar.sync 0;", store, wait_read,
                                               "@%p0 ld.global.u32 %r5, [%out];"
                                               "@%p0 st.global.u32 [%out+256], %r5;")),
                               32, 0);
  CHECK(late.message == "ok");
  CHECK(late.out[64] == 0xdeadbeef);
  CHECK(late.out[31] == 131);
}

// ---- cp.async ----

TEST_CASE("cp.async lands when its group is waited for", "[emulator][async]") {
  const std::string mine = "mad.wide.u32 %rd1, %t, 16, %in; mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 16, %r1;";
  const std::string copy = "cp.async.cg.shared.global [%r2], [%rd1], 16;";
  const std::string next =
      "add.u32 %r3, %t, 1; and.b32 %r3, %r3, 31; mad.lo.u32 %r3, %r3, 16, %r1;"
      "ld.shared.u32 %r4, [%r3]; ld.shared.u32 %r0, [%s]; st.global.u32 [%out], %r0;";
  const std::string own =
      "ld.shared.u32 %r0, [%r2]; mul.lo.u32 %r5, %t, 3; sub.u32 %r0, %r0, %r5;"
      "st.global.u32 [%out], %r0;";
  check_passes(str_cat(mine, copy, "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;", next));
  check_passes(str_cat(mine, copy, "cp.async.wait_all; bar.warp.sync -1;", next));
  check_passes(str_cat(mine, copy, "cp.async.wait_all;", own));
  check_fails(str_cat(mine, copy, own), 32, "is still to write", "which an asynchronous copy wrote");
  check_fails(str_cat(mine, copy, "cp.async.wait_group 0;", own), 32, "is still to write",
              "which an asynchronous copy wrote");  // nothing was committed
  check_fails(str_cat(mine, copy, "cp.async.commit_group; cp.async.wait_group 1;", own), 32,
              "is still to write", "which an asynchronous copy wrote");
  check_fails(str_cat(mine, copy, "cp.async.commit_group; bar.sync 0;", own), 32, "is still to write",
              "which an asynchronous copy wrote");
  check_fails(str_cat(mine, copy, "cp.async.wait_all;", next), 32, "race in shared memory: reads", "race");
  check_passes(str_cat(mine, copy,
                       "cp.async.commit_group; add.u32 %r6, %r2, 512; cp.async.ca.shared.global [%r6], "
                       "[%rd1+512], 8; cp.async.commit_group; cp.async.wait_group 1;",
                       own));
  CHECK_THAT(says(str_cat(mine, "cp.async.ca.shared.global [%r2], [%rd1+4], 8;")),
             Contains("reads 8 bytes at global address") && Contains("not a multiple of 8"));
  CHECK_THAT(says(str_cat(mine, copy, copy)), Contains("is still to write"));
  CHECK_THAT(says(str_cat("st.shared.u32 [tile], 7;", mine, copy)),
             Contains("race in shared memory: writes 16 bytes"));
}

TEST_CASE("cp.async fills with zeros", "[emulator][async]") {
  const auto word = [](std::string_view copy, int at) {
    const Outcome o =
        outcome(text_of(str_cat("mov.u32 %r1, 6; setp.ne.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 0;"
                                "mov.u64 %rd1, 0; @!%p0 bra END;",
                                copy, "cp.async.wait_all; ld.shared.u32 %r0, [tile+", at,
                                "]; st.global.u32 [%out], %r0; END: ret;")),
                32, 0);
    return o.message == "ok" ? std::to_string(o.out[0]) : o.message;
  };
  CHECK(word("cp.async.ca.shared.global [tile], [%in], 16, %r1;", 0) == "100");
  CHECK(word("cp.async.ca.shared.global [tile], [%in+16], 16, %r1;", 4) ==
        "105");  // 6 bytes: 2 of a small word
  CHECK(word("cp.async.ca.shared.global [tile], [%in], 16, %r1;", 8) == "0");
  CHECK(word("cp.async.cg.shared.global.L2::128B [tile], [%in], 16, 0;", 0) == "0");
  CHECK(word("cp.async.cg.shared.global [tile], [%rd1], 16, 0;", 12) == "0");  // nothing is read
  CHECK(word("cp.async.ca.shared.global [tile], [%in], 4, %p1;", 0) == "0");
  CHECK(word("cp.async.ca.shared.global [tile], [%in], 4, %p2;", 0) == "100");
  CHECK_THAT(word("cp.async.ca.shared.global [tile], [%in], 4, %r1;", 0),
             Contains("the source has 6 bytes, of a copy of 4"));
}

TEST_CASE("cp.async arrives at an mbarrier", "[emulator][async]") {
  const std::string mine = "mad.wide.u32 %rd1, %t, 4, %in;";
  const std::string copy = "cp.async.ca.shared.global [%s], [%rd1], 4;";
  const std::string other =
      "xor.b32 %r2, %t, 32; mov.u32 %r3, tile; mad.lo.u32 %r3, %r2, 4, %r3;"
      "ld.shared.u32 %r0, [%r3]; sub.u32 %r2, %t, %r2; add.u32 %r0, %r0, %r2;"
      "st.global.u32 [%out], %r0;";
  const std::string init64 = "@%p0 mbarrier.init.shared.b64 [bars], 64; bar.sync 0;";
  check_passes(str_cat(init64, mine, copy, "cp.async.mbarrier.arrive.noinc.shared.b64 [bars];", kWait, other),
               64);
  check_passes(str_cat(init64, mine, copy,
                       "cp.async.mbarrier.arrive.shared.b64 [bars];"
                       "mbarrier.arrive.shared.b64 _, [bars];",
                       kWait, other),
               64);
  check_passes(str_cat(init64, mine, copy,
                       "cp.async.mbarrier.arrive.noinc.shared.b64 [bars]; cp.async.wait_all;", kWait, other),
               64);
  // The copy after the arrival is not part of it.
  check_fails(str_cat(init64, mine, "cp.async.mbarrier.arrive.noinc.shared.b64 [bars];", copy, kWait, other),
              64, "still to write", "which an asynchronous copy wrote");
  CHECK_THAT(says(str_cat(kInit, kExpect,
                          "@%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [bars]; @%p0 cp.async.wait_all;")),
             Contains("arrives at phase 0") && Contains("more arrivals than it waits for"));
}

// Arrivals of a thread cover all copies before them; an earlier one stays what its own mbarrier's waiters
// get.
TEST_CASE("a copy that landed for one mbarrier is not another's alone", "[emulator][async]") {
  const std::string body =
      "@%p0 mbarrier.init.shared.b64 [bars], 32; @%p0 mbarrier.init.shared.b64 [bars+8], 32;"
      "@%p0 st.shared.u32 [bars+16], 0; bar.sync 0;"
      "mad.wide.u32 %rd1, %t, 4, %in; setp.ge.u32 %p3, %t, 32; @%p3 bra FIRST;"
      "cp.async.ca.shared.global [%s], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bars];"
      "cp.async.ca.shared.global [%s+2048], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bars+8];"
      "bra END;"
      // The second warp has waited for the first copy when the third one's wait makes the second land.
      "FIRST: setp.ge.u32 %p3, %t, 64; @%p3 bra SECOND;"
      "W0: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0; @!%p1 bra W0;"
      "F0: ld.volatile.shared.u32 %r1, [bars+16]; setp.eq.u32 %p2, %r1, 0; @%p2 bra F0;"
      "ld.shared.u32 %r0, [%s+-128]; st.global.u32 [%out], %r0; bra END;"
      "SECOND: mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], 0; @!%p1 bra SECOND;"
      "st.volatile.shared.u32 [bars+16], 1;"
      "END: ret;";
  for (std::uint64_t seed = 0; seed < 16; ++seed) CHECK(outcome(text_of(body), 96, seed).message == "ok");
}

// ---- waiting for ever ----

TEST_CASE("a deadlock says who waits for what", "[emulator][async]") {
  CHECK_THAT(says(str_cat(kInit, kWait)),
             Contains("deadlock, every live thread waits; warp 0 lanes 0-31 at PTX line") &&
                 Contains("`mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0` for phase 0 (parity 0) of "
                          "the mbarrier at "
                          "shared address 0x1000, which lacks 1 of 1 arrivals and 0 bytes (0 bytes into "
                          "variable 'bars'"));
  CHECK_THAT(says(str_cat(kInit, kPoll)),
             Contains("deadlock") && Contains("again and again for phase 0 (parity 0)"));
  // 16 bytes more than arrive, and 16 fewer.
  CHECK_THAT(says(str_cat(kInit, "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 144;", kLoad, kWait)),
             Contains("deadlock") && Contains("which lacks 0 of 1 arrivals and 16 bytes"));
  CHECK_THAT(says(str_cat(kInit, "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 112;", kLoad, kWait)),
             Contains("deadlock") && Contains("which lacks 0 of 1 arrivals and -16 bytes"));
  // The wrong phase, beside a barrier that others wait at.
  CHECK_THAT(
      says(str_cat(
               kInit, kExpect, kLoad, kWait,
               "setp.lt.u32 %p2, %t, 32; @!%p2 bra B; W2: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 1;"
               "@!%p1 bra W2; B: bar.sync 0;"),
           64),
      Contains("deadlock, every live thread waits; warp 0 lanes 0-31") && Contains("phase 1 (parity 1)") &&
          Contains("warp 1 lanes 0-31") && Contains("for the threads that have not arrived at the barrier"));
}

TEST_CASE("who waits does not hold up others", "[emulator][async]") {
  // Lane 0 polls, lanes 1-31 of its warp bring about what it waits for.
  for (const char* wait : {kWait, kPoll}) {
    check_passes(str_cat("@%p0 mbarrier.init.shared.b64 [bars], 31; bar.sync 0; @!%p0 bra OTHERS;", wait,
                         "bra END; OTHERS: mbarrier.arrive.shared.b64 _, [bars]; END: add.u32 %r0, %t, 100;"
                         "st.global.u32 [%out], %r0;"));
  }
  // A warp spins on a flag in shared memory that another sets once its copy has landed.
  check_passes(
      str_cat("@%p0 st.shared.u32 [tile+1024], 0;", kInit,
              "setp.lt.u32 %p2, %t, 32; @%p2 bra COPY;"
              "SPIN: ld.acquire.cta.shared.u32 %r1, [tile+1024]; setp.eq.u32 %p3, %r1, 0; @%p3 bra SPIN;"
              "ld.shared.u32 %r0, [%s+-128]; add.u32 %r0, %r0, 32; st.global.u32 [%out], %r0; bra END; COPY:",
              kExpect, kLoad, kWait, kKeep, "@%p0 st.release.cta.shared.u32 [tile+1024], 1; END: ret;"),
      64);
  // A bounded number of tries is no deadlock.
  check_passes(str_cat(kInit,
                       "mov.u32 %r1, 0; L: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0; @%p1 bra END;"
                       "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 100; @%p2 bra L; END:"
                       "add.u32 %r0, %t, %r1; st.global.u32 [%out], %r0;"));
}

// ---- a pipeline, as the builder writes it ----

namespace {

struct PipelineArgs {
  DevicePtr<const u32, 16> in;
  DevicePtr<u32, 16> out;
  static constexpr auto fields() {
    return std::tuple(input("in_param", &PipelineArgs::in, nullptr),
                      output("out_param", &PipelineArgs::out, nullptr));
  }
};

// Warp 0 produces 8 tiles of 64 words through 2 stages, warps 1 and 2 add them up and meet at barrier 1.
std::string pipeline(bool wait_empty, bool meet_before_arrival) {
  constexpr u32 kTiles = 8, kStages = 2, kTileWords = 64;
  KernelBuilder k("k", {{90, false}, {8, 3}});
  k.declare_parameters<PipelineArgs>();
  const auto tiles = k.shared<u32, 128>(kStages * kTileWords);
  const auto full = k.shared<MBarrier>(kStages), empty = k.shared<MBarrier>(kStages);
  const auto tid = k.tid_x();
  k.if_(tid == 0, [&] {
    for (u32 s = 0; s < kStages; ++s) {
      mbarrier_init(full + s, 1);
      mbarrier_init(empty + s, 2);
    }
    k.fence_mbarrier_init_release_cluster();
  });
  k.bar_sync(0);
  k.if_(
      tid < 32,
      [&] {
        k.if_(k.elect_sync(0xffffffff), [&] {
          k.for_(0u, kTiles, 1, [&](const Reg<u32>& i) {
            const auto stage = i & (kStages - 1), round = i / kStages;
            if (wait_empty) k.mbarrier_wait_parity(empty + stage, (round & 1) ^ 1u);
            mbarrier_arrive_expect_tx(full + stage, kTileWords * 4);
            cp_async_bulk_shared_global(assume_aligned<16>(tiles + stage * kTileWords),
                                        assume_aligned<16>(k.param(&PipelineArgs::in) + i * kTileWords),
                                        kTileWords * 4, full + stage);
          });
        });
      },
      [&] {
        auto sum = k.var<u32>(0);
        k.for_(0u, kTiles, 1, [&](const Reg<u32>& i) {
          const auto stage = i & (kStages - 1), round = i / kStages;
          k.mbarrier_wait_parity(full + stage, round & 1u);
          const auto value = ld_shared(tiles + (stage * kTileWords + (tid - 32u)));
          sum = sum + value;
          if (meet_before_arrival) k.bar_warp_sync(0xffffffff);
          k.if_((tid & 31u) == 0, [&] { mbarrier_arrive(empty + stage); });
        });
        k.bar_sync(1, 64);
        st_global(k.param(&PipelineArgs::out) + (tid - 32u), sum);
      });
  const auto kernel = k.finish();
  INFO(kernel.status().ToString());
  REQUIRE(kernel.ok());
  return print_ptx(*kernel);
}

}  // namespace

TEST_CASE("a pipeline of bulk copies with full and empty mbarriers", "[emulator][async]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const Outcome good = outcome(pipeline(true, true), 96, seed, 3);
    REQUIRE(good.message == "ok");
    for (std::uint32_t t = 0; t < 64; ++t) {
      std::uint32_t sum = 0;
      for (std::uint32_t i = 0; i < 8; ++i) sum += 100 + 64 * i + t;
      REQUIRE(good.out[t] == sum);
    }
    CHECK_THAT(outcome(pipeline(true, false), 96, seed).message,
               Contains("race in shared memory: writes 256 bytes"));
    const std::string overrun = outcome(pipeline(false, true), 96, seed).message;
    INFO(overrun);
    CHECK((overrun.find("race in shared memory") != std::string::npos ||
           overrun.find("still to write") != std::string::npos ||
           overrun.find("arrives 1 times") != std::string::npos));
  }
}

}  // namespace ptxgen::emulator
