// Whole kernels: several CTAs, several entries, parameters, workers, statistics, and what a launch is refused
// for.
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

const char kSaxpy[] = R"(
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
.maxntid 128, 1, 1
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.nc.L1::no_allocate.f32 %f2, [%rd1];
  ld.global.f32 %f3, [%rd2];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%rd2], %f4;
DONE:
  ret;
}
.visible .entry fill(.param .u64 out)
.reqntid 32
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mad.wide.u32 %rd1, %r0, 4, %rd0;
  st.global.u32 [%rd1], 7;
}
)";

TEST_CASE("a kernel over several CTAs touches exactly its elements", "[emulator]") {
  const auto program = parsed(module_of(kSaxpy));
  for (const unsigned workers : {1u, 2u}) {
    Memory memory;
    std::vector<float> x(1000), y(1000);
    for (int i = 0; i < 1000; ++i) {
      x[static_cast<std::size_t>(i)] = static_cast<float>(i);
      y[static_cast<std::size_t>(i)] = 0.5f;
    }
    const auto px = upload(memory, x, "x"), py = upload(memory, y, "y");
    const auto params = params_of(px, py, 2.0f, 999u);
    Options options;
    options.workers = workers;
    const LaunchStats stats =
        run(*program, "saxpy", {.grid = {8}, .block = {128}, .dynamic_shared_bytes = 0, .params = params},
            memory, options);
    const auto result = download<float>(memory, py, 1000);
    for (std::size_t i = 0; i < 999; ++i) REQUIRE(result[i] == 2.0f * x[i] + 0.5f);
    REQUIRE(result[999] == 0.5f);
    CHECK(stats.by_opcode.at("ld.param.u64") == 2 * 1024);
    CHECK(stats.by_opcode.at("fma.rn.f32") == 999);
    CHECK(stats.by_opcode.at("ret") == 1024);
    CHECK(stats.thread_instructions == 1024 * 9 + 25 + 999 * 8 + 1024);
    CHECK(stats.global_bytes_read == 2 * 4 * 999);
    CHECK(stats.global_bytes_written == 4 * 999);
  }
}

TEST_CASE("a module says what its entries take", "[emulator]") {
  const auto program = parsed(module_of(kSaxpy));
  CHECK(program->version() == PtxIsa{8, 3});
  CHECK(program->target() == Target{90, false});
  REQUIRE(program->entries().size() == 2);
  const EntryInfo& saxpy = program->entries()[0];
  CHECK(saxpy.name == "saxpy");
  CHECK(saxpy.param_bytes == 24);
  REQUIRE(saxpy.params.size() == 4);
  CHECK(saxpy.params[3].name == "n");
  CHECK(saxpy.params[3].offset == 20);
  CHECK(saxpy.params[0].size == 8);
  CHECK(saxpy.max_threads == Dim3{128, 1, 1});
  CHECK(program->find_entry("fill")->required_threads == Dim3{32, 1, 1});
  CHECK(program->find_entry("none") == nullptr);
}

TEST_CASE("launches that a device refuses", "[emulator]") {
  const auto program = parsed(module_of(kSaxpy));
  Memory memory;
  const auto out = memory.allocate(4096, "out");
  const auto params = params_of(*out, *out, 1.0f, 1u);
  const auto refusal = [&](std::string_view entry, Dim3 grid, Dim3 block, std::uint64_t shared = 0) {
    return failure(*program, entry,
                   {.grid = grid, .block = block, .dynamic_shared_bytes = shared, .params = params}, memory);
  };
  CHECK_THAT(refusal("nothing", {}, {}), Contains("no entry 'nothing'") && Contains("saxpy, fill"));
  CHECK_THAT(refusal("saxpy", {1}, {1025}), Contains("block (1025,1,1)") && Contains("1024 in all"));
  CHECK_THAT(refusal("saxpy", {1}, {32, 32, 2}), Contains("block (32,32,2)"));
  CHECK_THAT(refusal("saxpy", {1}, {129}), Contains(".maxntid allows 128"));
  CHECK_THAT(refusal("fill", {1}, {64}), Contains(".reqntid requires (32,1,1)"));
  CHECK_THAT(refusal("saxpy", {0}, {32}), Contains("grid (0,1,1)"));
  CHECK_THAT(refusal("saxpy", {0x80000000u}, {32}), Contains("2147483647"));
  CHECK_THAT(refusal("saxpy", {(std::uint64_t{1} << 32) + 1}, {32}), Contains("grid (4294967297,1,1)"));
  CHECK_THAT(refusal("saxpy", {1}, {std::uint64_t{1} << 32, std::uint64_t{1} << 32}),
             Contains("1024 in all"));
  CHECK_THAT(refusal("saxpy", {1}, {32}, ~std::uint64_t{0}), Contains("18446744073709551615 of dynamic"));
  CHECK_THAT(refusal("saxpy", {1, 65536}, {32}), Contains("65535"));
  CHECK_THAT(refusal("saxpy", {1, 1, 65536}, {32}), Contains("65535"));
  CHECK_THAT(refusal("saxpy", {1}, {32}, 227 * 1024 + 1), Contains("sm_90 allows 232448"));
  CHECK_THAT(failure(*program, "saxpy", {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 0, .params = {}},
                     memory),
             Contains("0 bytes of parameters; it reads 24"));
  Options options;
  options.device = Target{89, false};
  CHECK_THAT(
      failure(*program, "saxpy", {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 0, .params = params},
              memory, options),
      Contains("code for sm_90 does not run on sm_89"));
}

// Every CTA takes a ticket: out[ticket] = ctaid.
TEST_CASE("the order of CTAs is that of their numbers, or another one for each seed", "[emulator]") {
  const auto program = parsed(module_of(R"(
.visible .entry k(.param .u64 next, .param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<3>;
  ld.param.u64 %rd0, [next]; ld.param.u64 %rd1, [out];
  atom.global.add.u32 %r0, [%rd0], 1;
  mov.u32 %r1, %ctaid.x;
  mad.wide.u32 %rd2, %r0, 4, %rd1;
  st.global.u32 [%rd2], %r1;
})"));
  const auto order = [&](std::uint64_t seed) {
    Memory memory;
    const std::uint64_t next = upload(memory, std::vector<std::uint32_t>{0}, "next");
    const auto out = memory.allocate(37 * 4, "out");
    const auto params = params_of(next, *out);
    Options options;
    options.workers = 1;
    options.seed = seed;
    run(*program, "k", {.grid = {37}, .block = {1}, .dynamic_shared_bytes = 0, .params = params}, memory,
        options);
    return download<std::uint32_t>(memory, *out, 37);
  };
  std::vector<std::uint32_t> ascending(37);
  std::iota(ascending.begin(), ascending.end(), 0u);
  CHECK(order(0) == ascending);
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    std::vector<std::uint32_t> one = order(seed);
    CHECK(order(seed) == one);
    orders.insert(one);
    std::sort(one.begin(), one.end());
    CHECK(one == ascending);
  }
  CHECK(orders.size() == 8);
}

// CTA i waits for CTA i + 1 (the last one for nobody), and adds one to what that one left.
TEST_CASE("a CTA may wait for a higher-numbered one", "[emulator]") {
  const auto program = parsed(module_of(R"(
.visible .entry k(.param .u64 sums) {
  .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p<3>;
  ld.param.u64 %rd0, [sums];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; sub.u32 %r1, %r1, 1;
  mad.wide.u32 %rd1, %r0, 4, %rd0;
  mov.u32 %r2, 0;
  setp.eq.u32 %p0, %r0, %r1;
  @%p0 bra ADD;
SPIN:
  ld.acquire.gpu.global.u32 %r2, [%rd1+4];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra SPIN;
ADD:
  add.u32 %r2, %r2, 1;
  st.release.gpu.global.u32 [%rd1], %r2;
})"));
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const unsigned workers : {1u, 3u}) {
      Memory memory;
      const std::uint64_t sums = upload(memory, std::vector<std::uint32_t>(60), "sums");
      const auto params = params_of(sums);
      Options options;
      options.workers = workers;
      options.seed = seed;
      const auto stats =
          run(*program, "k", {.grid = {60}, .block = {32}, .dynamic_shared_bytes = 0, .params = params},
              memory, options);
      const auto left = download<std::uint32_t>(memory, sums, 60);
      for (std::uint32_t i = 0; i < 60; ++i) REQUIRE(left[i] == 60 - i);
      CHECK(stats.by_opcode.at("st.release.gpu.global.u32") == 60 * 32);
    }
  }
}

}  // namespace
}  // namespace ptxgen::emulator
