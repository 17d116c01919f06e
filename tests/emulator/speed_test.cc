// How fast the emulator is: ptxgen_tests "[.bench]" prints it. Nothing is asserted about time.
#include <cstdio>
#include <ctime>

#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

// out[8 * i ..] = scale * (nibble - 8) for the 8 nibbles of word i: the instructions of a dequantisation.
const char kNibbles[] = R"(
.visible .entry nibbles(.param .u64 words, .param .u64 out, .param .f32 scale)
{
  .reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .f32 %f<32>;
  ld.param.u64 %rd1, [words];
  ld.param.u64 %rd2, [out];
  ld.param.f32 %f0, [scale];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mad.wide.u32 %rd3, %r4, 4, %rd1;
  mad.wide.u32 %rd4, %r4, 32, %rd2;
  ld.global.nc.u32 %r5, [%rd3];
  mul.rn.f32 %f1, %f0, 0fc1000000;
)";

std::string nibbles_kernel() {
  std::string text = kNibbles;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(10 + i), shift = std::to_string(4 * i);
    text += "  shr.u32 %r" + n + ", %r5, " + shift + ";\n  and.b32 %r" + n + ", %r" + n +
            ", 15;\n  cvt.rn.f32.u32 %f" + n + ", %r" + n + ";\n  mul.rn.f32 %f" + n + ", %f" + n +
            ", %f0;\n  add.rn.f32 %f" + n + ", %f" + n + ", %f1;\n";
  }
  return text +
         "  st.global.v4.f32 [%rd4], {%f10, %f11, %f12, %f13};\n  st.global.v4.f32 [%rd4+16], {%f14, %f15, "
         "%f16, %f17};\n}\n";
}

// Every thread sums the 256 values that the CTA wrote, 16 times over with a barrier between: the accesses of
// a tiled kernel, each value read by every warp.
const char kTile[] = R"(
.visible .entry tile(.param .u64 out)
{
  .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
  .shared .align 16 .b32 values[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, values;
  mad.lo.u32 %r3, %r1, 4, %r2;
  mov.u32 %r4, 0;
  mov.u32 %r5, 0;
ROUND:
  add.u32 %r6, %r1, %r5;
  st.shared.u32 [%r3], %r6;
  bar.sync 0;
  mov.u32 %r7, 0;
VALUE:
  add.u32 %r8, %r1, %r7;
  and.b32 %r8, %r8, 255;
  mad.lo.u32 %r8, %r8, 4, %r2;
  ld.shared.u32 %r9, [%r8];
  add.u32 %r4, %r4, %r9;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, 256;
  @%p1 bra VALUE;
  bar.sync 0;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 16;
  @%p2 bra ROUND;
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  st.global.u32 [%rd2], %r4;
}
)";

// Processor time of all workers: what one core does while nobody else uses it.
LaunchStats timed(const char* what, const Program& program, std::string_view entry,
                  const LaunchConfig& config, Memory& memory, const Options& options) {
  const std::clock_t begin = std::clock();
  const LaunchStats stats = run(program, entry, config, memory, options);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double millions = static_cast<double>(stats.thread_instructions) * 1e-6;
  std::printf(
      "%s: %.1f million thread instructions in %.3f s of processor time: %.1f million a second and core\n",
      what, millions, seconds, millions / seconds);
  return stats;
}

void measure(const char* what, unsigned workers, std::uint32_t ctas) {
  const auto program = parsed(module_of(nibbles_kernel()));
  Memory memory;
  std::vector<std::uint32_t> words(ctas * 256u);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i * 2654435761u);
  const auto in = upload(memory, words, "words");
  const auto out = memory.allocate(words.size() * 32, "out");
  REQUIRE(out.ok());
  const auto params = params_of(in, *out, 0.25f);
  Options options;
  options.workers = workers;
  timed(what, *program, "nibbles",
        {.grid = {ctas}, .block = {256}, .dynamic_shared_bytes = 0, .params = params}, memory, options);
  const auto values = download<float>(memory, *out, 8);
  for (unsigned i = 0; i < 8; ++i) {
    REQUIRE(values[i] == 0.25f * static_cast<float>(words[0] >> (4 * i) & 15) - 2.0f);
  }
}

TEST_CASE("speed of a dequantisation", "[.bench]") {
  measure("one core", 1, 1000);
  measure("two cores", 2, 2000);
}

TEST_CASE("speed of shared memory", "[.bench]") {
  const auto program = parsed(module_of(kTile));
  for (const bool check_races : {true, false}) {
    Memory memory;
    const auto out = memory.allocate(256 * 4, "out");
    REQUIRE(out.ok());
    const auto params = params_of(*out);
    Options options;
    options.workers = 1;
    options.check_races = check_races;
    timed(check_races ? "shared memory, races looked for" : "shared memory, races not looked for", *program,
          "tile", {.grid = {20}, .block = {256}, .dynamic_shared_bytes = 0, .params = params}, memory,
          options);
    REQUIRE(download<std::uint32_t>(memory, *out, 256)[255] == 16 * (255 * 256 / 2) + 256 * (15 * 16 / 2));
  }
}

}  // namespace
}  // namespace ptxgen::emulator
