// How long a kernel takes to build and print: a GEMV-like body of about 300 instructions, a warp a row of
// Q4_K-shaped blocks, dequantised, multiplied with x and summed over the lanes.

#include <algorithm>

#include <benchmark/benchmark.h>

#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"

namespace ptxgen {
namespace {

struct Args {
  DevicePtr<const u32, 16> weights;
  DevicePtr<const f32, 16> x;
  DevicePtr<f32> y;
  u32 blocks_per_row = 0;
  static constexpr auto fields() {
    return std::tuple(input("weights", &Args::weights, nullptr), input("x", &Args::x, nullptr),
                      output("y", &Args::y, nullptr), scalar("blocks_per_row", &Args::blocks_per_row));
  }
};

// The products of the 8 nibbles of `word` with x[0..8), added to `sum`.
Reg<f32> dot_nibbles(Reg<u32> word, Reg<f32> scale, Reg<f32> min, const GlobalPtr<const f32, 16>& x,
                     Reg<f32> sum) {
  for (u32 half = 0; half < 2; ++half) {
    const auto values = ld_global_nc_v4(assume_aligned<16>(x + 4 * half));
    for (u32 i = 0; i < 4; ++i) {
      const auto nibble = cvt_rn<f32>(bfe(word, 4 * (4 * half + i), 4));
      sum = fma_rn(fma_rn(scale, nibble, min), values[i], sum);
    }
  }
  return sum;
}

void build_gemv(KernelBuilder& k) {
  constexpr u32 kBlockWords = 36;
  const auto lane = k.laneid();
  const auto blocks = k.param(&Args::blocks_per_row);
  const auto row = k.param(&Args::weights) + k.ctaid_x() * blocks * kBlockWords;
  const auto x = k.param(&Args::x);
  auto acc = k.var<f32>(0);
  k.for_(0u, blocks, 1, [&](Reg<u32> b) {
    const auto block = assume_aligned<16>(row + b * kBlockWords);
    const auto header = ld_global_nc_v4(block);
    const auto [d, dmin] = unpack(bitcast<f16x2>(header[0]));
    const auto words = ld_global_nc_v4(assume_aligned<16>(block + 4 + lane * 4));
    Reg<f32> sum = acc;
    for (u32 w = 0; w < 4; ++w) {
      const auto shift = (lane >> 3) * 8;
      const auto scale = cvt<f32>(d) * cvt_rn<f32>(bfe(header[1 + w % 3], shift, 6));
      const auto min = cvt<f32>(dmin) * cvt_rn<f32>(bfe(header[1 + (w + 1) % 3], shift, 6));
      sum = dot_nibbles(words[w], scale, -min, assume_aligned<16>(x + b * 256 + lane * 32 + w * 8), sum);
    }
    acc = sum;
  });
  for (u32 offset = 16; offset > 0; offset /= 2) {
    const Reg<f32> mine = acc;
    acc = mine + shfl_sync_bfly(mine, offset, 31, 0xffffffff);
  }
  k.if_(lane == 0, [&] { st_global(k.param(&Args::y) + k.ctaid_x(), acc); });
}

Kernel built() {
  KernelBuilder k("gemv", {{90, false}, {9, 0}});
  k.declare_parameters<Args>();
  build_gemv(k);
  return *k.finish();
}

void build_and_print(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(print_ptx(built()));
  const std::string ptx = print_ptx(built());
  state.counters["instructions"] = static_cast<double>(std::count(ptx.begin(), ptx.end(), ';'));
}
BENCHMARK(build_and_print)->Unit(benchmark::kMicrosecond);

void build_only(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(built());
}
BENCHMARK(build_only)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ptxgen

BENCHMARK_MAIN();
