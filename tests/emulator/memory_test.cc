// State spaces, vector accesses, atomics, barriers, and Memory itself.
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;
using Values = std::vector<std::uint32_t>;

TEST_CASE("loads extend and stores truncate", "[emulator]") {
  CHECK(r0("mov.b32 %r1, 0x12345680; st.global.b32 [%out], %r1; ld.global.s8 %r0, [%out];") == 0xffffff80);
  CHECK(r0("mov.b32 %r1, 0x12345680; st.global.b32 [%out], %r1; ld.global.u8 %r0, [%out+1];") == 0x56);
  CHECK(r0("mov.b32 %r1, 0x1234d680; st.global.b32 [%out], %r1; ld.global.s16 %r0, [%out];") == 0xffffd680);
  CHECK(h0("mov.b16 %h1, 0x80ff; st.global.b16 [%out], %h1; ld.global.s8 %h0, [%out];") == 0xffff);
  CHECK(rd0("st.global.s32 [%out], -5; ld.global.s32 %rd0, [%out];") == static_cast<std::uint64_t>(-5));
  CHECK(r0("st.global.b32 [%out], 0x11223344; mov.b32 %r1, 0xaabbccdd; st.global.u8 [%out+2], %r1; "
           "ld.global.u32 %r0, [%out];") == 0x11dd3344);
}

TEST_CASE("mov packs and unpacks", "[emulator]") {
  CHECK(rd0("mov.b32 %r1, 1; mov.b32 %r2, 2; mov.b64 %rd0, {%r1, %r2};") == 0x200000001);
  CHECK(r0("mov.b64 %rd1, 0x1122334455667788; mov.b64 {%r1, %r0}, %rd1;") == 0x11223344);
  CHECK(h0("mov.b64 %rd1, 0x1122334455667788; mov.b64 {%h1, %h2, %h0, _}, %rd1;") == 0x3344);
  CHECK(r0("mov.b16 %h1, 0x1234; mov.b32 %r0, {%h1, %h1};") == 0x12341234);
  CHECK(r0("mov.f32 %f1, 0f3f800000; mov.b32 %r0, %f1;") == 0x3f800000);
}

TEST_CASE("vectors, cache hints and qualifiers", "[emulator]") {
  const char text[] = R"(
.visible .entry copy(.param .u64 from, .param .u64 to) {
  .reg .b64 %rd<8>; .reg .b32 %r<20>; .reg .b16 %h<9>;
  ld.param.u64 %rd0, [from];
  ld.param.u64 %rd1, [to];
  ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r0, %r1, %r2, %r3}, [%rd0];
  st.global.cs.v4.u32 [%rd1], {%r3, %r2, %r1, %r0};
  ld.volatile.global.v2.u64 {%rd2, %rd3}, [%rd0+16];
  st.global.v2.u64 [%rd1+16], {%rd2, %rd3};
  ld.relaxed.gpu.global.L1::evict_last.u32 %r4, [%rd0+32];
  st.release.sys.global.u32 [%rd1+32], %r4;
  ld.acquire.cta.u32 %r5, [%rd0+36];
  st.wt.u32 [%rd1+36], %r5;
  ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%rd0+40];
  st.global.v4.u8 [%rd1+40], {%h4, %h3, %h2, %h1};
  ld.global.L1::evict_first.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd0+64];
  st.global.v8.b32 [%rd1+64], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};
  prefetch.global.L2 [%rd0+4096000];
  griddepcontrol.wait;
  griddepcontrol.launch_dependents;
}
)";
  Memory memory;
  Values in(24);
  for (std::uint32_t i = 0; i < 24; ++i) in[i] = 0x01020304 * (i + 1);
  const auto from = upload(memory, in, "from"), to = upload(memory, Values(24), "to");
  const auto params = params_of(from, to);
  const LaunchStats stats =
      run(*parsed(module_of(text)), "copy",
          {.grid = {}, .block = {1}, .dynamic_shared_bytes = 0, .params = params}, memory);
  const Values out = download<std::uint32_t>(memory, to, 24);
  for (std::uint32_t i = 0; i < 4; ++i) REQUIRE(out[i] == in[3 - i]);
  for (std::uint32_t i = 4; i < 10; ++i) REQUIRE(out[i] == in[i]);
  CHECK(out[10] == __builtin_bswap32(in[10]));
  for (std::uint32_t i = 16; i < 24; ++i) REQUIRE(out[i] == in[16 + 23 - i]);
  CHECK(stats.global_bytes_read == 76);
  CHECK(stats.global_bytes_written == 76);
}

TEST_CASE("module and function variables: const, global, shared, local, params by generic address",
          "[emulator]") {
  const char text[] = R"(
.const .align 8 .b32 table[4] = {10, 20, 0x1e, -1};
.global .align 4 .u32 counter = 5;
.global .f32 factors[2] = {0f3f800000, 2.5};
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .u32 word;
.visible .entry k(.param .u64 out_param, .param .align 8 .b8 block[16]) {
  .reg .b64 %rd<10>; .reg .b32 %r<20>; .reg .f32 %f<4>;
  .local .align 4 .b8 stack[8];
  ld.param.u64 %rd0, [out_param];
  ld.const.u32 %r0, [table+4];
  st.global.u32 [%rd0], %r0;
  mov.u64 %rd1, table;
  cvta.const.u64 %rd1, %rd1;
  ld.u32 %r1, [%rd1+12];
  st.global.u32 [%rd0+4], %r1;
  ld.global.u32 %r2, [counter];
  add.u32 %r2, %r2, 1;
  st.global.u32 [counter], %r2;
  st.global.u32 [%rd0+8], %r2;
  mov.u64 %rd2, factors;
  ld.global.f32 %f0, [%rd2+4];
  st.global.f32 [%rd0+12], %f0;
  mov.u32 %r3, dynamic;
  st.shared.u32 [%r3+60], 77;
  mov.u64 %rd3, dynamic;
  cvta.shared.u64 %rd3, %rd3;
  ld.u32 %r4, [%rd3+60];
  st.global.u32 [%rd0+16], %r4;
  st.shared.u32 [word], 3;
  mov.u32 %r5, %dynamic_smem_size;
  st.global.u32 [%rd0+20], %r5;
  st.local.u32 [stack+4], 99;
  mov.u64 %rd4, stack;
  cvta.local.u64 %rd5, %rd4;
  ld.u32 %r6, [%rd5+4];
  st.global.u32 [%rd0+24], %r6;
  mov.b64 %rd6, block;
  ld.param.u32 %r7, [%rd6+8];
  st.global.u32 [%rd0+28], %r7;
  isspacep.shared %p, %rd3;
  selp.u32 %r8, 1, 0, %p;
  isspacep.global %p, %rd3;
  selp.u32 %r9, 1, 0, %p;
  add.u32 %r8, %r8, %r9;
  st.global.u32 [%rd0+32], %r8;
  cvta.to.shared.u64 %rd7, %rd3;
  cvt.u32.u64 %r10, %rd7;
  st.global.u32 [%rd0+36], %r10;
  .reg .pred %p;
}
)";
  std::string body = text;
  body.replace(body.find("  .reg .pred %p;\n}"), 17, "");
  body.replace(body.find(".reg .f32 %f<4>;"), 16, ".reg .f32 %f<4>; .reg .pred %p;");
  Memory memory;
  const auto program = parsed(module_of(body));
  CHECK(program->entries()[0].static_shared_bytes == 4);
  const auto out = memory.allocate(64, "out");
  const auto params = params_of(*out, std::uint64_t{0}, std::uint64_t{42});
  const LaunchConfig config{.grid = {}, .block = {1}, .dynamic_shared_bytes = 64, .params = params};
  run(*program, "k", config, memory);
  CHECK(download<std::uint32_t>(memory, *out, 10) ==
        Values{20, 0xffffffff, 6, 0x40200000, 77, 64, 99, 42, 1, 16});
  run(*program, "k", config, memory);  // a .global variable lives as long as the module
  CHECK(download<std::uint32_t>(memory, *out, 3)[2] == 7);
}

TEST_CASE("atomics of many CTAs lose nothing", "[emulator]") {
  const char text[] = R"(
.visible .entry k(.param .u64 out_param) {
  .reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .f64 %d<3>;
  ld.param.u64 %rd0, [out_param];
  atom.global.add.u32 %r0, [%rd0], 1;
  red.global.add.f32 [%rd0+4], 0f3f800000;
  red.global.max.u32 [%rd0+8], %r0;
  atom.global.inc.u32 %r1, [%rd0+12], 9;
  mov.b32 %r8, 0x00003c00;
  red.relaxed.gpu.global.add.noftz.f16x2 [%rd0+16], %r8;
  mov.u32 %r2, %ctaid.x;
  atom.global.min.s32 %r3, [%rd0+20], %r2;
  atom.global.add.u64 %rd1, [%rd0+24], 3;
  red.global.add.f64 [%rd0+32], 0d3ff0000000000000;
  red.or.b32 [%rd0+40], %r2;
  atom.global.dec.u32 %r4, [%rd0+44], 6;
}
)";
  Memory memory;
  Values initial(12);
  initial[5] = 1000;
  const auto out = upload(memory, initial, "out");
  const auto params = params_of(out);
  Options options;
  options.workers = 2;
  run(*parsed(module_of(text)), "k",
      {.grid = {20}, .block = {50}, .dynamic_shared_bytes = 0, .params = params}, memory, options);
  const Values v = download<std::uint32_t>(memory, out, 12);
  CHECK(v[0] == 1000);
  CHECK(v[1] == 0x447a0000);
  CHECK(v[2] == 999);
  CHECK(v[3] == 0);
  CHECK(v[4] == 0x000063d0);
  CHECK(v[5] == 0);
  CHECK(v[6] == 3000);
  CHECK(v[9] == 0x408f4000);
  CHECK(v[10] == 31);
  CHECK(v[11] == 1);  // 0, 6, 5, ... in a circle of 7: 1000 = 142 * 7 + 6
}

TEST_CASE("compare and swap, exchange, and what an atomic returns", "[emulator]") {
  CHECK(r0("st.global.u32 [%out], 5; atom.global.cas.b32 %r1, [%out], 5, 9; ld.global.u32 %r2, [%out]; "
           "mad.lo.u32 %r0, %r1, 100, %r2;") == 509);
  CHECK(r0("st.global.u32 [%out], 5; atom.cas.b32 %r1, [%out], 4, 9; ld.global.u32 %r2, [%out]; mad.lo.u32 "
           "%r0, %r1, 100, %r2;") == 505);
  CHECK(r0("st.global.u32 [%out], 5; atom.exch.b32 %r0, [%out], 8;") == 5);
  CHECK(h0("st.global.u16 [%out], 5; mov.b16 %h1, 5; mov.b16 %h2, 6; atom.global.cas.b16 %h3, [%out], %h1, "
           "%h2; ld.global.u16 %h0, [%out];") == 6);
}

// What a cell that held `before` holds after `add`, which adds %f1 = `value` at [%rd0] (%f2: what it
// returned).
std::vector<std::uint32_t> added(std::string_view space, std::string_view add, std::string_view before,
                                 std::string_view value) {
  const bool shared = space == "shared";
  const std::string at = shared ? "[%r1]" : "[%out]",
                    generic = shared ? "cvta.shared.u64 %rd0, cell;" : "mov.b64 %rd0, %out;";
  const std::string body =
      std::string(".shared .align 4 .b32 cell; mov.u32 %r1, cell; mov.f32 %f2, 0f3f800000;")
          .append(generic)
          .append("st.")
          .append(space)
          .append(".b32 ")
          .append(at)
          .append(", ")
          .append(before)
          .append("; mov.b32 %f1, ")
          .append(value)
          .append(";")
          .append(add)
          .append("ld.")
          .append(space)
          .append(".b32 %r0, ")
          .append(at)
          .append("; mov.b32 %r2, %f2; mov.b64 %rd1, {%r0, %r2}; st.global.b64 [%out], %rd1;");
  const std::uint64_t both = results<std::uint64_t>(body)[0];
  return {static_cast<std::uint32_t>(both), static_cast<std::uint32_t>(both >> 32)};
}

TEST_CASE("add.f32 flushes subnormals on global memory and keeps them on shared memory", "[emulator]") {
  using Words = std::vector<std::uint32_t>;
  constexpr std::uint32_t kUntouched = 0x3f800000;
  for (const std::string_view space : {"global", "shared"}) {
    const bool keeps = space == "shared";
    const auto pick = [&](std::uint32_t kept, std::uint32_t flushed) { return keeps ? kept : flushed; };
    const std::string direct =
        std::string("atom.").append(space).append(".add.f32 %f2, ") + (keeps ? "[%r1]" : "[%out]") + ", %f1;";
    for (const std::string& add : {direct, std::string("atom.add.f32 %f2, [%rd0], %f1;")}) {
      // Inputs, with either sign; the old value is returned as it was.
      CHECK(added(space, add, "0x00000003", "0x00000004") == Words{pick(7, 0), 3});
      CHECK(added(space, add, "0x80000003", "0x80000004") == Words{pick(0x80000007, 0x80000000), 0x80000003});
      CHECK(added(space, add, "0x00800000", "0x00000004") == Words{pick(0x00800004, 0x00800000), 0x00800000});
      // A result.
      CHECK(added(space, add, "0x80800005", "0x00800000") == Words{pick(0x80000005, 0x80000000), 0x80800005});
      CHECK(added(space, add, "0x3f800000", "0x40000000") == Words{0x40400000, 0x3f800000});
    }
    CHECK(added(space, "red.add.f32 [%rd0], %f1;", "0x00000003", "0x00000004") ==
          Words{pick(7, 0), kUntouched});
  }
}

TEST_CASE("barriers order shared memory between warps", "[emulator]") {
  // Every thread reads what the thread opposite wrote, twice, so each barrier matters.
  const Values values = results<std::uint32_t>(R"(
    .shared .align 4 .b32 tile[128];
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %t, 4, %r1;
    sub.u32 %r3, 127, %t;
    mad.lo.u32 %r3, %r3, 4, %r1;
    st.shared.u32 [%r2], %t;
    bar.sync 0;
    ld.shared.u32 %r4, [%r3];
    barrier.sync 0;
    add.u32 %r4, %r4, 1000;
    st.shared.u32 [%r2], %r4;
    barrier.cta.sync.aligned 1, 128;
    ld.shared.u32 %r0, [%r3];
    st.global.u32 [%out], %r0;)",
                                               128);
  for (std::uint32_t t = 0; t < 128; ++t) REQUIRE(values[t] == 1000 + t);
}

TEST_CASE("barrier reductions and barriers for part of a CTA", "[emulator]") {
  const auto reduce = [](const char* how, const char* result) {
    return results<std::uint32_t>(
        std::string("setp.lt.u32 %p1, %t, 40; bar.red.") + how + ";" + result + "st.global.u32 [%out], %r0;",
        96)[95];
  };
  CHECK(reduce("popc.u32 %r0, 0, %p1", "") == 40);
  CHECK(reduce("popc.u32 %r0, 0, 96, !%p1", "") == 56);
  CHECK(reduce("and.pred %p2, 0, %p1", "selp.u32 %r0, 1, 2, %p2;") == 2);
  CHECK(reduce("or.pred %p2, 0, %p1", "selp.u32 %r0, 1, 2, %p2;") == 1);
  // Warp 0 produces for warp 1; warp 2 has left already.
  const Values values = results<std::uint32_t>(R"(
    .shared .align 4 .b32 tile[32];
    shr.u32 %r1, %t, 5;
    mov.u32 %r5, %laneid;
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %r5, 4, %r2;
    st.global.u32 [%out], 5;
    setp.eq.u32 %p1, %r1, 2;
    @%p1 exit;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra PRODUCE;
    bar.sync 3, 64;
    ld.shared.u32 %r0, [%r2];
    st.global.u32 [%out], %r0;
    bra.uni DONE;
  PRODUCE:
    st.shared.u32 [%r2], %t;
    bar.arrive 3, 64;
  DONE:
    bar.sync 0;)",
                                               96);
  for (std::uint32_t t = 0; t < 32; ++t) {
    REQUIRE(values[t] == 5);
    REQUIRE(values[32 + t] == t);
    REQUIRE(values[64 + t] == 5);
  }
}

TEST_CASE("a barrier in a loop of uniform length", "[emulator]") {
  const Values values = results<std::uint32_t>(R"(
    .shared .align 4 .b32 sums[64];
    mov.u32 %r1, sums;
    mad.lo.u32 %r2, %t, 4, %r1;
    add.u32 %r3, %t, 1;
    and.b32 %r3, %r3, 63;
    mad.lo.u32 %r3, %r3, 4, %r1;
    mov.u32 %r0, %t;
    mov.u32 %r4, 0;
  LOOP:
    st.shared.u32 [%r2], %r0;
    bar.sync 0;
    ld.shared.u32 %r5, [%r3];
    bar.sync 0;
    mov.u32 %r0, %r5;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 10;
    @%p1 bra LOOP;
    st.global.u32 [%out], %r0;)",
                                               64);
  for (std::uint32_t t = 0; t < 64; ++t) REQUIRE(values[t] == (t + 10) % 64);
}

TEST_CASE("memory on the host's side", "[emulator]") {
  Memory memory;
  const auto a = memory.allocate(100, "a"), b = memory.allocate(std::size_t{1} << 36, "large");
  REQUIRE(a.ok());
  REQUIRE(b.ok());  // 64 GiB cost what is touched
  CHECK(*a % 256 == 0);
  CHECK(*b - *a >= 100 + 65536);
  std::vector<std::byte> bytes(10, std::byte{3});
  CHECK(memory.write(*a + 90, bytes).ok());
  CHECK(memory.write(*b + (std::uint64_t{1} << 35), bytes).ok());
  CHECK_THAT(std::string(memory.write(*a + 91, bytes).message()),
             Contains("91 bytes into allocation 'a' (100 bytes"));
  CHECK(memory.read(*a, absl::MakeSpan(bytes)).ok());
  CHECK_THAT(std::string(memory.read(*a + 85, absl::MakeSpan(bytes), true).message()),
             Contains("85 bytes into allocation 'a'"));
  CHECK(memory.fill(*a, std::byte{1}, 100).ok());
  CHECK(memory.read(*a, absl::MakeSpan(bytes), true).ok());
  CHECK(bytes[0] == std::byte{1});
  CHECK_THAT(memory.describe(*a + 112), Contains("12 bytes past the end of allocation 'a'"));
  CHECK_THAT(memory.describe(*b - 8), Contains("8 bytes before allocation 'large'"));
  CHECK(memory.free(*a).ok());
  CHECK_THAT(std::string(memory.free(*a).message()), Contains("free already"));
  CHECK_FALSE(memory.free(*b + 1).ok());
  CHECK_FALSE(memory.read(*a, absl::MakeSpan(bytes)).ok());
  CHECK_FALSE(memory.allocate(0, "nothing").ok());
  const auto c = memory.allocate(100, "c");
  CHECK(*c > *b);  // a freed address does not come back
}

}  // namespace
}  // namespace ptxgen::emulator
