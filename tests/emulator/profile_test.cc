// What a profile counts and a trace shows, for kernels whose figures are known by hand.
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

LaunchStats profiled(std::string_view body, std::uint32_t threads = 32, std::size_t bytes = 1 << 16) {
  Memory memory;
  const auto out = memory.allocate(bytes, "out");
  REQUIRE(out.ok());
  REQUIRE(memory.fill(*out, std::byte{1}, bytes).ok());
  const auto params = params_of(*out);
  Options options;
  options.profile = true;
  return run(*parsed(kernel_text(body)), "k",
             {.grid = {}, .block = {threads}, .dynamic_shared_bytes = 0, .params = params}, memory, options);
}

// Of one shared access of 32 lanes with this many bytes from lane to lane.
SharedAccesses shared(int stride, const std::string& access, const std::string& offset = "0") {
  const LaunchStats stats =
      profiled(".shared .align 16 .b8 s[8192]; mov.u32 %r9, s; mad.lo.u32 %r9, %t, " +
               std::to_string(stride) + ", %r9; add.u32 %r9, %r9, " + offset + ";\n" + access);
  return stats.profile->shared;
}

void check(const SharedAccesses& counted, std::uint64_t wavefronts, std::uint64_t conflicts) {
  CHECK(counted.requests == 1);
  CHECK(counted.wavefronts == wavefronts);
  CHECK(counted.conflicts == conflicts);
}

TEST_CASE("bank conflicts of shared memory", "[emulator][profile]") {
  const std::string word = "st.shared.u32 [%r9], %t;";
  check(shared(4, word), 1, 0);                       // a bank each
  check(shared(8, word), 2, 1);                       // every second bank, twice
  check(shared(128, word), 32, 31);                   // one bank
  check(shared(132, word), 1, 0);                     // rows padded by a word
  check(shared(12, word), 1, 0);                      // 3 and 32 have no common factor
  check(shared(1, "st.shared.u8 [%r9], %t;"), 1, 0);  // four lanes a word
}

TEST_CASE("wide accesses go by half and quarter warps", "[emulator][profile]") {
  check(shared(8, "mov.u64 %rd1, 7; st.shared.u64 [%r9], %rd1;"), 2, 0);
  check(shared(16, "mov.u64 %rd1, 7; st.shared.u64 [%r9], %rd1;"), 4, 2);
  check(shared(16, "st.shared.v4.u32 [%r9], {%t, %t, %t, %t};"), 4, 0);
  check(shared(32, "st.shared.v4.u32 [%r9], {%t, %t, %t, %t};"), 8, 4);
  check(shared(128, "st.shared.v4.u32 [%r9], {%t, %t, %t, %t};"), 32, 28);
}

TEST_CASE("lanes that read one word share it", "[emulator][profile]") {
  const LaunchStats stats = profiled(R"(
    .shared .b32 s[32];
    setp.eq.u32 %p0, %t, 0;
    mov.u32 %r9, s;
    @%p0 st.shared.u32 [%r9], 5;
    bar.sync 0;
    ld.shared.u32 %r0, [s];)");
  CHECK(stats.profile->shared.requests == 2);
  CHECK(stats.profile->shared.wavefronts == 2);
  CHECK(stats.profile->shared.conflicts == 0);
}

// Of one load of 8 or 16 bytes, at this address within `s` by the number of the lane in %t, or by the guard %p2.
SharedAccesses wide_load(const std::string& address, const std::string& load) {
  const LaunchStats stats = profiled(R"(
    .shared .align 16 .b8 s[8192];
    mov.u32 %r9, s;
    mad.lo.u32 %r8, %t, 32, %r9;
    st.shared.v4.u32 [%r8], {%t, %t, %t, %t};
    st.shared.v4.u32 [%r8+16], {%t, %t, %t, %t};
    bar.sync 0;
  )" + address + "; add.u32 %r9, %r8, %r9;\n" + load);
  SharedAccesses counted = stats.profile->shared;
  counted.requests -= 2;  // those of the stores
  counted.wavefronts -= 16;
  counted.conflicts -= 8;
  return counted;
}

// As Nsight Compute counts them on an H200.
TEST_CASE("two parts of a wide load are served together where neighbours agree", "[emulator][profile]") {
  const std::string two = "ld.shared.v2.u32 {%r0, %r1}, [%r9];";
  check(wide_load("mov.u32 %r8, 40", two), 1, 0);                              // all the same
  check(wide_load("and.b32 %r8, %t, 1; shl.b32 %r8, %r8, 3", two), 1, 0);      // lane ^ 2 agrees
  check(wide_load("and.b32 %r8, %t, 3; shl.b32 %r8, %r8, 3", two), 2, 0);      // lane ^ 4 does not help
  check(wide_load("shr.u32 %r8, %t, 1; shl.b32 %r8, %r8, 3", two), 1, 0);      // lane ^ 1 agrees
  check(wide_load("shl.b32 %r8, %t, 3", two), 2, 0);                           // nobody
  const std::string even = "and.b32 %r2, %t, 1; setp.eq.u32 %p2, %r2, 0; @%p2 ";
  check(wide_load("shl.b32 %r8, %t, 3", even + two), 2, 1);  // no neighbour takes part
  const std::string four = "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r9];";
  check(wide_load("mov.u32 %r8, 80", four), 2, 0);  // two quarters of a half warp
  check(wide_load("shr.u32 %r8, %t, 1; shl.b32 %r8, %r8, 4", four), 2, 0);
  check(wide_load("and.b32 %r8, %t, 3; shl.b32 %r8, %r8, 4", four), 4, 0);
  check(wide_load("shl.b32 %r8, %t, 4", even + four), 4, 2);
  // The whole warp must agree, not a half of it.
  check(wide_load("max.u32 %r8, %t, 16; shl.b32 %r8, %r8, 4", four), 4, 0);
}

TEST_CASE("lanes of an atomic that meet in a word wait for one another", "[emulator][profile]") {
  const auto atomic = [](const std::string& address) {
    return profiled(R"(
      .shared .align 16 .b8 s[256];
      mov.u32 %r9, s;
      mad.lo.u32 %r8, %t, 8, %r9;
      st.shared.v2.u32 [%r8], {%t, %t};
      bar.sync 0;
    )" + address + "; add.u32 %r9, %r8, %r9; atom.shared.add.u32 %r0, [%r9], 1;").profile->shared;
  };
  CHECK(atomic("mov.u32 %r8, 0").wavefronts == 2 + 32);
  CHECK(atomic("mov.u32 %r8, 0").conflicts == 31);
  CHECK(atomic("shl.b32 %r8, %t, 2").wavefronts == 2 + 1);
  CHECK(atomic("shl.b32 %r8, %t, 3").wavefronts == 2 + 2);
}

TEST_CASE("lanes of an atomic that meet at an address of global memory take turns", "[emulator][profile]") {
  const auto sectors = [](const std::string& address) {
    const GlobalAccesses stores =
        profiled("mul.wide.u32 %rd1, %t, 4; sub.u64 %rd2, %out, %rd1; " + address +
                 "; cvt.u64.u32 %rd3, %r8; add.u64 %rd3, %rd2, %rd3; red.global.add.u32 [%rd3], 1;")
            .profile->stores;
    CHECK(stores.requests == 1);
    return stores.sectors;
  };
  CHECK(sectors("mov.u32 %r8, 64") == 32);
  CHECK(sectors("shl.b32 %r8, %t, 2") == 4);
  CHECK(sectors("and.b32 %r8, %t, 7; shl.b32 %r8, %r8, 2") == 4);   // four turns of one sector
  CHECK(sectors("and.b32 %r8, %t, 15; shl.b32 %r8, %r8, 2") == 4);  // two of two
  CHECK(sectors("shl.b32 %r8, %t, 4") == 16);
}

TEST_CASE("ldmatrix reads eight rows a tile", "[emulator][profile]") {
  const std::string fill = R"(
    .shared .align 16 .b8 s[4096];
    mov.u32 %r9, s;
    mad.lo.u32 %r8, %t, 128, %r9;
    st.shared.v4.u32 [%r8], {%t, %t, %t, %t};
    bar.sync 0;
  )";
  const LaunchStats apart = profiled(fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r8];");
  CHECK(apart.profile->shared.requests == 2);
  CHECK(apart.profile->shared.wavefronts == 32 + 8);  // eight rows that begin at one bank
  const LaunchStats one = profiled(fill + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [s];");
  CHECK(one.profile->shared.wavefronts == 32 + 4);  // a tile each, though all rows are one
}

// Of one load of 32 lanes with this many bytes from lane to lane.
GlobalAccesses load_of(int stride, int offset, const std::string& load) {
  // %out is the base plus 4 bytes a thread.
  return profiled("mul.wide.u32 %rd1, %t, 4; sub.u64 %rd2, %out, %rd1; mad.wide.u32 %rd3, %t, " +
                  std::to_string(stride) + ", %rd2; add.u64 %rd3, %rd3, " + std::to_string(offset) + ";\n" +
                  load)
      .profile->loads;
}

void check(const GlobalAccesses& counted, std::uint64_t sectors, std::uint64_t bytes) {
  CHECK(counted.requests == 1);
  CHECK(counted.sectors == sectors);
  CHECK(counted.bytes == bytes);
  CHECK(counted.sectors_per_request() == static_cast<double>(sectors));
}

TEST_CASE("sectors of global memory", "[emulator][profile]") {
  const std::string word = "ld.global.u32 %r0, [%rd3];";
  check(load_of(4, 0, word), 4, 128);    // contiguous and aligned
  check(load_of(4, 4, word), 5, 128);    // one more where it begins within a sector
  check(load_of(4, 32, word), 4, 128);   // at another sector
  check(load_of(8, 0, word), 8, 128);    // every second word
  check(load_of(32, 0, word), 32, 128);  // a sector each
  check(load_of(1024, 0, word), 32, 128);
  check(load_of(0, 0, word), 1, 128);  // all the same
  check(load_of(16, 0, "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd3];"), 16, 512);
  check(load_of(1, 0, "ld.global.u8 %r0, [%rd3];"), 1, 32);
  const LaunchStats stores = profiled("st.global.u32 [%out], %t;");
  CHECK(stores.profile->loads.requests == 0);
  check(stores.profile->stores, 4, 128);
}

TEST_CASE("cp.async counts on both of its sides", "[emulator][profile]") {
  const Profile p = *profiled(R"(
    .shared .align 16 .b8 s[4096];
    mov.u32 %r9, s;
    mad.lo.u32 %r9, %t, 16, %r9;
    mul.wide.u32 %rd1, %t, 12;
    add.u64 %rd2, %out, %rd1;
    cp.async.cg.shared.global [%r9], [%rd2], 16;
    cp.async.wait_all;)")
                         .profile;
  CHECK(p.loads.sectors == 16);
  CHECK(p.shared.wavefronts == 4);
  CHECK(p.shared.conflicts == 0);
  REQUIRE(p.instructions.size() == 2);
  CHECK(p.instructions[0].line == p.instructions[1].line);
}

TEST_CASE("divergence", "[emulator][profile]") {
  // Half of the warp takes a branch, and the other executes two instructions for it.
  const LaunchStats half = profiled(R"(
    setp.lt.u32 %p0, %t, 16;
    @%p0 bra SKIP;
    mov.u32 %r0, 1;
    mov.u32 %r1, 2;
SKIP:
  )");
  CHECK(half.profile->branches.executed == 1);
  CHECK(half.profile->branches.divergent == 1);
  // ld.param, mov, mad, setp, bra and ret with 32 lanes, two with 16.
  CHECK(half.warp_instructions == 8);
  CHECK(half.profile->active_lanes == 6 * 32 + 2 * 16);
  CHECK(half.thread_instructions == 5 * 32 + 16 + 2 * 16);

  const LaunchStats none = profiled("setp.lt.u32 %p0, %t, 64;\n@%p0 bra SKIP;\nmov.u32 %r0, 1;\nSKIP:\n");
  CHECK(none.profile->branches.executed == 1);
  CHECK(none.profile->branches.divergent == 0);
  CHECK(none.profile->active_lanes == none.warp_instructions * 32);
}

TEST_CASE("instructions by kind, bytes by space, and where they come from", "[emulator][profile]") {
  const Profile p = *profiled(R"(
    .local .align 8 .b8 stack[64];
    .shared .b32 s[64];
    st.local.u64 [stack], %out;
    ld.local.u64 %rd1, [stack];
    mov.u32 %r9, s;
    mad.lo.u32 %r9, %t, 8, %r9;
    st.shared.u32 [%r9], %t;
    ld.global.u32 %r0, [%out];
    add.u32 %r0, %r0, 1;
    mul.rn.f32 %f0, 0f3F800000, 0f40000000;)")
                         .profile;
  CHECK(p.by_kind.at("integer arithmetic") == 3 * 32);
  CHECK(p.by_kind.at("floating point") == 32);
  CHECK(p.by_kind.at("load and store") == 5 * 32);
  CHECK(p.by_kind.at("move") == 2 * 32);
  CHECK(p.bytes_by_space.at("local").written == 8 * 32);
  CHECK(p.bytes_by_space.at("local").read == 8 * 32);
  CHECK(p.bytes_by_space.at("param").read == 8 * 32);
  CHECK(p.bytes_by_space.at("shared").written == 4 * 32);
  CHECK(p.bytes_by_space.at("global").read == 4 * 32);
  CHECK_FALSE(p.bytes_by_space.contains("const"));
  REQUIRE(p.instructions.size() == 2);
  CHECK(p.instructions[0].function == "k");
  CHECK(p.instructions[0].text == "st.shared.u32 [%r9], %t");
  CHECK(p.instructions[0].shared.conflicts == 1);
  CHECK(p.instructions[1].text == "ld.global.u32 %r0, [%out]");
  CHECK(p.instructions[1].line == p.instructions[0].line + 1);
}

TEST_CASE("a profile is the same however many workers there are, and absent when none is wanted",
          "[emulator][profile]") {
  const auto program =
      parsed(kernel_text(".shared .b32 s[64]; mov.u32 %r9, s; mad.lo.u32 %r9, %t, 8, %r9;\n"
                         "st.shared.u32 [%r9], %t; st.global.u32 [%out], %t;"));
  const auto stats_of = [&](unsigned workers, bool profile) {
    Memory memory;
    const auto params = params_of(*memory.allocate(256, "out"));
    Options options;
    options.workers = workers;
    options.profile = profile;
    return run(*program, "k", {.grid = {16}, .block = {32}, .dynamic_shared_bytes = 0, .params = params},
               memory, options);
  };
  CHECK_FALSE(stats_of(1, false).profile);
  for (const unsigned workers : {1u, 3u}) {
    const Profile p = *stats_of(workers, true).profile;
    CHECK(p.shared.requests == 16);
    CHECK(p.shared.conflicts == 16);
    CHECK(p.stores.sectors == 64);
  }
}

// ---- traces ----

std::vector<std::string> traced(const std::string& body, Dim3 thread, absl::Status* status = nullptr) {
  Memory memory;
  const auto out = memory.allocate(4096, "out");
  const auto params = params_of(*out);
  Options options;
  std::vector<std::string> steps;
  options.trace.thread = thread;
  options.trace.sink = [&](const TraceStep& step) {
    std::string line(step.text);
    for (const TraceValue& v : step.reads) line += " " + std::string(v.name) + "=" + std::to_string(v.bits);
    line += step.executed ? " ->" : " skipped";
    for (const TraceValue& v : step.writes) line += " " + std::string(v.name) + "=" + std::to_string(v.bits);
    steps.push_back(line);
  };
  const auto stats =
      launch(*parsed(body), "k", {.grid = {2}, .block = {64}, .dynamic_shared_bytes = 0, .params = params},
             memory, options);
  if (status) *status = stats.status();
  if (!status) REQUIRE(stats.ok());
  return steps;
}

TEST_CASE("a trace shows each instruction of one thread with its values", "[emulator][profile]") {
  const auto steps = traced(module_of(R"(
.func (.param .b32 r) half(.param .b32 x) {
  .reg .b32 %a<3>;
  ld.param.b32 %a1, [x];
  shr.u32 %a2, %a1, 1;
  st.param.b32 [r], %a2;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<3>;
  mov.u32 %r1, %tid.x;
  setp.gt.u32 %p, %r1, 50;
  @%p add.u32 %r1, %r1, 100;
  @!%p mov.u32 %r1, 7;
  { .param .b32 a; .param .b32 b;
  st.param.b32 [a], %r1;
  call (b),
    half, (a);
  ld.param.b32 %r2, [b]; }
  ret;
})"),
                            {51, 0, 0});
  const std::vector<std::string> expected = {
      "mov.u32 %r1, %tid.x %tid.x=51 -> %r1=51",
      "setp.gt.u32 %p, %r1, 50 %r1=51 -> %p=1",
      "@%p add.u32 %r1, %r1, 100 %p=1 %r1=51 -> %r1=151",
      "@!%p mov.u32 %r1, 7 %p=1 skipped",
      "st.param.b32 [a], %r1 %r1=151 ->",
      "call (b), half, (a) ->",
      "ld.param.b32 %a1, [x] -> %a1=151",
      "shr.u32 %a2, %a1, 1 %a1=151 -> %a2=75",
      "st.param.b32 [r], %a2 %a2=75 ->",
      "ret ->",
      "ld.param.b32 %r2, [b] -> %r2=75",
      "ret ->",
  };
  CHECK(steps == expected);
}

TEST_CASE("a trace ends at the fault, with what led to it", "[emulator][profile]") {
  absl::Status status;
  const auto steps = traced(kernel_text("bar.sync 0; setp.eq.u32 %p0, %t, 3;\nadd.u64 %rd1, %out, 100000;\n"
                                        "@%p0 st.global.u32 [%rd1], %t;"),
                            {3, 0, 0}, &status);
  CHECK_FALSE(status.ok());
  REQUIRE(steps.size() == 7);
  CHECK(steps[3] == "bar.sync 0 ->");  // once, though its thread comes back to it
  CHECK_THAT(steps[6], Contains("st.global.u32 [%rd1], %t %p0=1 %rd1=") && Contains("%t=3 ->"));
}

}  // namespace
}  // namespace ptxgen::emulator
