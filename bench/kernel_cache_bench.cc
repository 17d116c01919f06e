// What a warm kernel costs: to find it, and to launch it on a device that does next to nothing.
#include <benchmark/benchmark.h>

#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"

namespace ptxgen {
namespace {

// A cache with as many kernels as a model with four shapes in three formats needs, on the emulated device.
KernelCache& cache() {
  static KernelCache& instance = *[] {
    auto* made = new KernelCache(Device::open({.choice = DeviceChoice::kEmulator}).value(), {.dump = ""});
    for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ8_0}) {
      for (const u32 n : {1024u, 4096u, 11008u, 14336u}) {
        (void)made->get(Dequant{.format = format, .k = 4096, .n = n}).value();
      }
    }
    return made;
  }();
  return instance;
}

void BM_CacheHit(benchmark::State& state) {
  KernelCache& warm = cache();
  const Dequant descriptor = {.format = Format::kQ6_K, .k = 4096, .n = 11008};
  for (auto _ : state) benchmark::DoNotOptimize(warm.get(descriptor));
}
BENCHMARK(BM_CacheHit)->Threads(1)->Threads(2)->UseRealTime();

void BM_CacheHitTypeErased(benchmark::State& state) {
  KernelCache& warm = cache();
  const KernelType type = Dequant{.format = Format::kQ6_K, .k = 4096, .n = 11008};
  for (auto _ : state) benchmark::DoNotOptimize(warm.get(type));
}
BENCHMARK(BM_CacheHitTypeErased);

}  // namespace
}  // namespace ptxgen
