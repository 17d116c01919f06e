// What the emulator says of wgmma that is not waited for, not fenced, or not executed by a whole warpgroup.
#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

// Thread t: %t, of the first 128 its 32 bytes of tile at %s; %d0-3 are accumulators of zeros, %a0-3 are ones
// in f16, %b is the descriptor of 8 x 16 halves at the beginning of tile.
std::string text_of(std::string_view body) {
  return module_of(str_cat(R"(
.visible .entry k(.param .u64 in_param, .param .u64 out_param) {
  .reg .pred %p<10>; .reg .b32 %r<20>, %a<4>, %d<8>, %t, %s; .reg .b64 %rd<10>, %b, %in, %out;
  .shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bars[2];
  ld.param.u64 %in, [in_param]; ld.param.u64 %out, [out_param];
  mov.u32 %t, %tid.x; mad.wide.u32 %out, %t, 4, %out;
  setp.lt.u32 %p8, %t, 128; mul.lo.u32 %r0, %t, 32; mov.u32 %s, tile; add.u32 %s, %s, %r0;
  mov.b64 %b, )",
                           8 << 16 | std::uint64_t{16} << 32, R"(;
  mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
  mov.b32 %a0, 0x3c003c00; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0;
)",
                           body, "\nEND: ret;\n}\n"),
                   "sm_90a");
}

constexpr char kFill[] =
    "mov.b32 %r1, 0x3c003c00; @%p8 st.shared.v4.b32 [%s], {%r1, %r1, %r1, %r1};"
    "@%p8 st.shared.v4.b32 [%s+16], {%r1, %r1, %r1, %r1};\n";
constexpr char kStage[] =
    "mov.b32 %r1, 0x3c003c00; @%p8 st.shared.v4.b32 [%s], {%r1, %r1, %r1, %r1};"
    "@%p8 st.shared.v4.b32 [%s+16], {%r1, %r1, %r1, %r1};"
    "fence.proxy.async; bar.sync 0;\n";
constexpr char kFence[] = "wgmma.fence.sync.aligned;\n";
#define WGMMA "wgmma.mma_async.sync.aligned."
#define MMA(b) WGMMA "m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, " b ", 1, 1, 1, 0;\n"
constexpr char kMma[] = MMA("%b");
constexpr char kCommit[] = "wgmma.commit_group.sync.aligned;\n";
constexpr char kWait[] = "wgmma.wait_group.sync.aligned 0;\n";
constexpr char kWait1[] = "wgmma.wait_group.sync.aligned 1;\n";
constexpr char kKeep[] = "st.global.b32 [%out], %d0;\n";

std::string outcome(std::string_view body, std::uint32_t threads, std::uint64_t seed) {
  const std::string text = text_of(body);
  Memory memory;
  const std::uint64_t in = upload(memory, std::vector<std::uint32_t>(1024, 0x3c003c00), "in");
  const std::uint64_t out = upload(memory, std::vector<std::uint32_t>(1024), "out");
  const auto params = params_of(in, out);
  Options options;
  options.seed = seed;
  options.workers = 1;
  const auto stats =
      launch(*parsed(text), "k",
             {.grid = {}, .block = {threads}, .dynamic_shared_bytes = 0, .params = params}, memory, options);
  if (!stats.ok()) return std::string(stats.status().message());
  return "ok";
}

// Every order of warps and moments gives one of the two messages.
void check_fails(std::string_view body, std::string_view message, std::uint32_t threads = 128,
                 std::string_view other = "no other message") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::string said = outcome(body, threads, seed);
    INFO("seed " << seed << ": " << said << "\n" << body);
    CHECK((said.find(message) != std::string::npos || said.find(other) != std::string::npos));
  }
}
void check_passes(std::string_view body, std::uint32_t threads = 128) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    INFO("seed " << seed << "\n" << body);
    CHECK(outcome(body, threads, seed) == "ok");
  }
}

}  // namespace

TEST_CASE("wgmma as it should be", "[emulator][wgmma]") {
  check_passes(str_cat(kStage, kFence, kMma, kCommit, kWait, kKeep));
  check_passes(str_cat(kStage, kFence, kMma, kCommit, kWait, kKeep), 256);  // two warpgroups
  // Several on one accumulator, in one group or more, and an a that is read meanwhile.
  check_passes(
      str_cat(kStage, kFence, kMma, kMma, kCommit, kMma, kCommit, "add.u32 %r2, %a0, %a1;", kWait, kKeep));
  // The registers of a group that was waited for, while the next one goes on.
  check_passes(str_cat(kStage, kFence, kMma, kCommit,
                       WGMMA
                       "m64n8k16.f32.f16.f16 {%d4, %d5, %d6, %d7}, {%a0, %a1, %a2, %a3}, %b, 0, 1, 1, 0;",
                       kCommit, kWait1, kKeep, kWait));
}

TEST_CASE("the registers of a wgmma in flight", "[emulator][wgmma]") {
  const std::string started = str_cat(kStage, kFence, kMma, kCommit);
  CHECK_THAT(
      outcome(str_cat(started, kKeep, kWait), 128, 0),
      Contains("reads %d0, which the `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16` at PTX line ") &&
          Contains("may still write; wait for its group with wgmma.wait_group first"));
  check_fails(str_cat(started, kKeep, kWait), "reads %d0, which");
  check_fails(str_cat(started, kWait1, kKeep, kWait), "reads %d0, which");
  check_fails(str_cat(started, "mov.b32 %d3, 0;", kWait), "writes %d3, which");
  check_fails(str_cat(started, "mov.b32 %a2, 0;", kWait),
              "of warp 1 may still read; wait for its group with wgmma.wait_group first", 128,
              "may still read; wait for its group");
  check_fails(str_cat(started, "setp.eq.u32 %p1, %t, 77; @%p1 mov.b32 %a2, 0;", kWait), "writes %a2, which");
  // One that accumulates in what another reads, or reads what another accumulates in.
  check_fails(
      str_cat(started, kFence,
              WGMMA "m64n8k16.f32.f16.f16 {%a0, %a1, %a2, %a3}, {%a0, %a1, %a2, %a3}, %b, 1, 1, 1, 0;"),
      "accumulates in %a0, which");
  check_fails(
      str_cat(started, kFence,
              WGMMA "m64n8k16.f32.f16.f16 {%d4, %d5, %d6, %d7}, {%d0, %a1, %a2, %a3}, %b, 0, 1, 1, 0;"),
      "reads %d0, which");
  check_fails(
      str_cat(started, kFence,
              WGMMA "m64n16k16.f16.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %b, 1, 1, 1, 0;"),
      "accumulates, in another shape, in %d0, which");
  // Never committed: no wait covers it.
  check_fails(str_cat(kStage, kFence, kMma, kWait, kKeep),
              "reads %d0, which the `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16` at PTX line", 128);
  check_fails(str_cat(kStage, kFence, kMma, kWait, kKeep),
              "no wgmma.commit_group has followed it, for which wgmma.wait_group could wait");
  check_fails(str_cat(kStage, kFence, kMma, kCommit),
              "the warp exits while this is still to be done; wait for");
  check_fails(str_cat(kStage, kFence, kMma, kWait),
              "still to be done; no wgmma.commit_group has followed it");
}

TEST_CASE("wgmma.fence between registers and wgmma", "[emulator][wgmma]") {
  check_fails(str_cat(kStage, kMma, kCommit, kWait),
              "there is no wgmma.fence before the first wgmma.mma_async of the warp");
  const std::string first = str_cat(kStage, kFence, kMma, kCommit, kWait);
  const std::string again = str_cat(kMma, kCommit, kWait, kKeep);
  check_passes(str_cat(first, again));
  check_fails(str_cat(first, "mov.b32 %a1, 0;", again),
              "reads %a1, which was written since the last wgmma.fence");
  check_passes(str_cat(first, "mov.b32 %a1, 0;", kFence, again));
  check_fails(str_cat(first, "mov.b32 %d1, 0;", again),
              "accumulates in %d1, which was written since the last wgmma.fence; put one between the two");
  check_fails(str_cat(first, kKeep, again), "accumulates in %d0, which was read since the last wgmma.fence");
  check_passes(str_cat(first, kKeep, kFence, again));
  const std::string other =
      WGMMA "m64n16k16.f16.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %b, 1, 1, 1, 0;\n";
  check_fails(str_cat(first, other, kCommit, kWait),
              "which was accumulated in by a wgmma of another shape since the last wgmma.fence");
  check_passes(str_cat(first, kFence, other, kCommit, kWait));
  // Accumulators that nothing has written.
  const std::string fresh =
      WGMMA "m64n8k16.f32.f16.f16 {%d4, %d5, %d6, %d7}, {%a0, %a1, %a2, %a3}, %b, %p1, 1, 1, 0;\n";
  check_passes(str_cat(kStage, "setp.ne.u32 %p1, %t, %t;", kFence, fresh, kCommit, kWait));
  check_fails(str_cat(kStage, "setp.eq.u32 %p1, %t, %t;", kFence, fresh, kCommit, kWait),
              "reads %d4, which nothing has written (lanes 0-31 of warp ");
}

TEST_CASE("the four warps of a warpgroup", "[emulator][wgmma]") {
  const std::string all = str_cat(kFence, kMma, kCommit, kWait);
  check_fails(str_cat(kStage, "setp.ge.u32 %p1, %t, 96; @%p1 bra END;", all),
              "all four warps of a warpgroup execute this together, but warp 3 has exited without it");
  check_fails(str_cat(kStage, "setp.ge.u32 %p1, %t, 96;", kFence, "@%p1 bra END;", kMma, kCommit, kWait),
              "but warp 3 has exited without it");
  check_fails(str_cat(kStage, all),
              "all four warps of a warpgroup execute this together, but of warps 0 to 3 the CTA has only 3",
              96);
  // Warps 1 to 4 are no warpgroup.
  check_fails(str_cat(kStage, "setp.lt.u32 %p1, %t, 32; @%p1 bra END;", all),
              "but warp 0 has exited without it", 160, "but of warps 4 to 7 the CTA has only 1");
  check_fails(
      str_cat(kStage, "setp.ge.u32 %p1, %t, 96;", kFence, "@%p1 bra OTHER;", kMma, "bra NEXT; OTHER: ", kMma,
              "NEXT:", kCommit, kWait),
      "the warps of a warpgroup execute this together, but another one executes kernel 'k', PTX line");
  check_fails(str_cat(kStage, "setp.ge.u32 %p1, %t, 96; @%p1 add.u64 %b, %b, 1;", all),
              "the warps of a warpgroup give different operands: descriptors ");
  check_fails(str_cat(kStage, "setp.eq.u32 %p1, %t, 96; @%p1 add.u64 %b, %b, 1;", all),
              "the lanes of a warp give different descriptors of b: ");
  check_fails(
      str_cat(kStage, "setp.eq.u32 %p1, %t, 37;", kFence,
              WGMMA "m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %b, %p1, 1, 1, 0;"),
      "the lanes of a warp give different scale-d: it is true in lane 5");
  check_fails(str_cat(kStage, "setp.lt.u32 %p1, %t, 16;", kFence, "@%p1 ", kMma),
              "all lanes of a warp execute this together, but the predicate is false in lanes 16-31");
}

TEST_CASE("the shared memory of a wgmma", "[emulator][wgmma]") {
  const std::string started = str_cat(kStage, kFence, kMma, kCommit);
  check_fails(str_cat(started, "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 1;", kWait),
              "which the `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16` at PTX line");
  check_fails(str_cat(started, "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 1;", kWait),
              "may still read; wait for its group with wgmma.wait_group first");
  // The warp has waited; another one may not have.
  check_fails(str_cat(started, kWait, "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 1;"),
              "may still read", 128, "race in shared memory");
  check_passes(str_cat(started, kWait, "bar.sync 0; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 1;"));
  check_fails(str_cat(kFill, "bar.sync 0;", kFence, kMma, kCommit, kWait),
              "through the async proxy, part of which thread (0,0,0) wrote at PTX line");
  check_fails(str_cat(kFill, "fence.mbarrier_init.release.cluster; bar.sync 0;", kFence, kMma, kCommit, kWait),
              "through the async proxy, part of which thread (0,0,0) wrote at PTX line");
  check_fails(str_cat(kFill, "fence.proxy.async;", kFence, kMma, kCommit, kWait), "race in shared memory",
              128, "which nothing has written");
  check_fails(
      str_cat(kFence, kMma, kCommit, kWait),
      "reads 16 bytes at shared address 0x0, which nothing has written: 0 bytes into variable 'tile'");
  check_fails(str_cat(kStage, "add.u64 %b, %b, 4096;", kFence, kMma, kCommit, kWait),
              "reads 16 bytes at shared address 0x10000: 61440 bytes past the end");
  check_fails(str_cat(kStage, "add.u64 %b, %b, 245;", kFence, kMma, kCommit, kWait),
              "reads 16 bytes at shared");
  for (const std::string_view bit : {"0x4000", "0x40000000", "0x400000000000", "0x10000000000000"}) {
    check_fails(
        str_cat(kStage, "or.b64 %b, %b, ", bit, ";", kFence, kMma, kCommit, kWait),
        str_cat(" of b sets bits that mean nothing: ", bit, "; those that do are 0xc00e3fff3fff3fff"));
  }
}

TEST_CASE("wgmma and bulk copies", "[emulator][wgmma][async]") {
  const std::string init =
      "setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared.b64 [bars], 1; @%p0 "
      "fence.mbarrier_init.release.cluster;"
      "bar.sync 0; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 512;\n";
  const std::string load =
      "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 512, [bars];\n";
  const std::string wait = "W0: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0; @!%p1 bra W0;\n";
  const std::string multiply = str_cat(kFence, kMma, kCommit);
  check_passes(str_cat(init, load, wait, multiply, kWait, kKeep));
  check_fails(str_cat(init, load, "bar.sync 0;", multiply, kWait, wait),
              "is still to write; wait for it first", 128, "race in shared memory");
  // The slot is handed out again while it is read.
  check_fails(str_cat(init, load, wait, multiply, "bar.sync 0;",
                      "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 512;", load, kWait),
              "may still read; wait for its group with wgmma.wait_group first");
  check_passes(str_cat(init, load, wait, multiply, kWait,
                       "bar.sync 0; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], 512;", load,
                       "W1: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 1; @!%p1 bra W1;"));
}

TEST_CASE("wgmma that does not exist is a parse error", "[emulator][wgmma]") {
  const auto says = [](std::string_view text) { return parse_failure(text_of(text)); };
  const std::string_view a = "{%a0, %a1, %a2, %a3}", d = "{%d0, %d1, %d2, %d3}";
  const auto mma = [&](std::string_view shape_and_types, std::string_view rest = ", 1, 1, 1, 0;") {
    return says(str_cat(WGMMA, shape_and_types, " ", d, ", ", a, ", %b", rest));
  };
  CHECK_THAT(mma("m64n12k16.f32.f16.f16"),
             Contains("PTX line ") && Contains("does not exist: n is 8 to 256"));
  CHECK_THAT(mma("m64n264k16.f32.f16.f16"), Contains("does not exist"));
  CHECK_THAT(mma("m64n0k16.f32.f16.f16"), Contains("does not exist"));
  CHECK_THAT(mma("m64n40k32.s32.s8.s8", ", 1;"),
             Contains("does not exist") && Contains("of 16 above 32 for s32"));
  CHECK_THAT(mma("m64n8k16.f16.bf16.bf16"), Contains("does not exist"));
  CHECK_THAT(mma("m64n8k16.f32.f16.bf16"), Contains("does not exist"));
  CHECK_THAT(mma("m64n8k16.satfinite.f32.f16.f16"), Contains("does not exist"));
  CHECK_THAT(mma("m64n8k32.f32.f16.f16"),
             Contains("takes a type from .e4m3, .e5m2") || Contains("takes a type from"));
  CHECK_THAT(mma("m64n8k4.f32.f16.f16"), Contains("takes a type from"));
  CHECK_THAT(mma("m32n8k16.f32.f16.f16"), Contains("needs a shape: .m64nNk8, .m64nNk16 or .m64nNk32"));
  CHECK_THAT(mma("m64n8k16.f32.f16.f16", ", 1, 1, 1;"), Contains("takes 7 operands, not 6"));
  CHECK_THAT(mma("m64n8k8.f32.tf32.tf32", ", 1, 1, 1, 0;"), Contains("takes 6 operands, not 7"));
  CHECK_THAT(mma("m64n8k32.s32.s8.s8", ", 1, 1, 1;"), Contains("takes 4 operands, not 6"));
  CHECK_THAT(mma("m64n8k16.f32.f16.f16", ", 1, 0, 1, 0;"), Contains("imm-scale-a is 1 or -1, not 0"));
  CHECK_THAT(mma("m64n8k16.f32.f16.f16", ", 1, 1, 1, 2;"), Contains("imm-trans-b is 0 or 1, not 2"));
  CHECK_THAT(mma("m64n8k16.f32.f16.f16", ", 1, %a0, 1, 0;"),
             Contains("where imm-scale-a, a constant, is expected"));
  CHECK_THAT(mma("m64n16k16.f32.f16.f16"), Contains("is a vector of 8 registers"));
  CHECK_THAT(says(WGMMA "m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1}, %b, 1, 1, 1, 0;"),
             Contains("is a vector of 4 registers"));
  CHECK_THAT(says(WGMMA "m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {1, %a1, %a2, %a3}, %b, 1, 1, 1, 0;"),
             Contains("'1' where a register is expected"));
  CHECK_THAT(says("wgmma.mma_async.aligned.m64n8k16.f32.f16.f16 {%d0}, %b, %b, 1, 1, 1, 0, 0;"),
             Contains("wgmma needs .sync.aligned"));
  CHECK_THAT(says("wgmma.wait_group.sync.aligned %r1;"),
             Contains("where a number of groups, a constant, is expected"));
}

}  // namespace ptxgen::emulator
