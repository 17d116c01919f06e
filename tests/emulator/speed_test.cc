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
  const LaunchConfig config{.grid = {ctas}, .block = {256}, .dynamic_shared_bytes = 0, .params = params};
  // Processor time of all workers: what one core does while nobody else uses it.
  const std::clock_t begin = std::clock();
  const LaunchStats stats = run(*program, "nibbles", config, memory, options);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double millions = static_cast<double>(stats.thread_instructions) * 1e-6;
  std::printf(
      "%s: %.1f million thread instructions in %.3f s of processor time: %.1f million a second and core\n",
      what, millions, seconds, millions / seconds);
  const auto values = download<float>(memory, *out, 8);
  for (unsigned i = 0; i < 8; ++i) {
    REQUIRE(values[i] == 0.25f * static_cast<float>(words[0] >> (4 * i) & 15) - 2.0f);
  }
}

TEST_CASE("speed of a dequantisation", "[.bench]") {
  measure("one core", 1, 1000);
  measure("two cores", 2, 2000);
}

}  // namespace
}  // namespace ptxgen::emulator
