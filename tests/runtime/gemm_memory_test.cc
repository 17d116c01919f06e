// Matrix products by cuBLASLt on a device whose memory runs out: a fake driver with a stand-in for the
// library.
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/fake_library.h"
#include "tests/runtime/layer.h"

namespace ptxgen {
namespace {

using testing::contains;
using testing::ok;
using testing::take;

constexpr u32 kN = 16, kK = 256;

WeightMatrix zeros(const Device& device) {
  auto buffer = std::make_shared<Buffer>(take(device.allocate(kN * kK / 256 * 144, "weights")));
  ok(buffer->fill(0));
  return take(WeightMatrix::own(Format::kQ4_K, kN, kK, std::move(buffer)));
}

TEST_CASE("where device memory runs out, a path that needs less serves", "[runtime][gemm][paths]") {
  testing::FakeDriver driver;
  testing::FakeLibrary library;
  library.open();
  const Device device = take(driver.open(1));
  KernelCache cache(device);
  Executor executor(cache, library.with(testing::untuned()));
  const Stream stream = take(device.create_stream());
  const Buffer a = take(device.allocate(u64{64} * kK * 4, "a")), c = take(device.allocate(64 * kN * 4, "c"));
  const auto run = [&](const WeightMatrix& weights, u32 m, GemmPath path) {
    return take(executor.gemm(stream, weights, a.ptr<const f32>(), m, c.ptr<f32>(),
                              {.variant = GemmVariant{.path = path}}));
  };
  const WeightMatrix first = zeros(device), second = zeros(device);
  CHECK(run(first, 20, GemmPath::kHgemm).path == "hgemm");

  driver->fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);  // the copy
  const GemmReport without = run(second, 20, GemmPath::kHgemm);
  CHECK(without.path == "dequant_hgemm");
  CHECK(contains(without.reason, "the call asks for it; hgemm cannot be had: "));
  CHECK(contains(without.reason, "CUDA_ERROR_OUT_OF_MEMORY"));
  CHECK(run(second, 20, GemmPath::kHgemm).path == "hgemm");  // there is room again

  driver->fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);  // a larger scratch
  const GemmReport kernel = run(first, 64, GemmPath::kDequantHgemm);
  CHECK(kernel.path == "mma tile_m=64 tile_n=64");
  CHECK(contains(kernel.reason, "dequant_hgemm cannot be had: "));
  CHECK(kernel.scratch_bytes == staged_f16_bytes(kK, 64));

  // Not even for staged activations.
  driver->fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  const Stream other = take(device.create_stream());
  const GemmReport unstaged = take(executor.gemm(other, first, a.ptr<const f32>(), 20, c.ptr<f32>(),
                                                 {.variant = GemmVariant{.schedule = GemmSchedule::kMma}}));
  CHECK(unstaged.path == "wmma_multi_warp");
  CHECK(contains(unstaged.reason, "the call asks for it; mma tile_m=32 tile_n=64 split_k=2 cannot be had: "));
  CHECK(unstaged.scratch_bytes == 0);
  // Who asks for that kernel afterwards is told so, and nothing else.
  const GemmReport asked =
      take(executor.gemm(other, first, a.ptr<const f32>(), 20, c.ptr<f32>(),
                         {.variant = GemmVariant{.schedule = GemmSchedule::kWmmaMultiWarp}}));
  CHECK(asked.reason == "the call asks for it");
  CHECK(run(first, 64, GemmPath::kFp8).path == "fp8");
  executor.release_weights(first);
  CHECK(run(first, 64, GemmPath::kHgemm).path == "hgemm");
}

}  // namespace
}  // namespace ptxgen
