// Weights of a decoder's layer in miniature, with activations, for tests of the executor.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "ptxgen/executor.h"
#include "src/reference/operation.h"
#include "tests/support/status.h"

namespace ptxgen::testing {

// The library's own choices, whatever records this machine has.
inline ExecutorOptions untuned() {
  ExecutorOptions options;
  options.tuned = TuneRecords{};
  return options;
}

// Valid blocks.
inline std::vector<std::byte> random_blocks(Format format, u32 n, u32 k, u64 seed) {
  const Gemv gemv = {.format = format, .k = k, .n = n};
  const KernelType kernel(gemv);
  const auto operation = take(reference::operation_of(kernel, kernel->default_arguments()));
  std::vector<std::byte> blocks(gemv.weight_bytes({}));
  ok(operation->make_input(0, seed, 0, absl::MakeSpan(blocks)));
  return blocks;
}

// A handle that owns the blocks. They begin `offset` bytes into their buffer.
inline WeightMatrix weights_of(const Device& device, Format format, u32 n, u32 k,
                               const std::vector<std::byte>& blocks, u64 offset = 0) {
  auto buffer = std::make_shared<Buffer>(take(device.allocate(offset + blocks.size(), "weights")));
  ok(buffer->copy_from_host(blocks.data(), blocks.size(), offset));
  return take(WeightMatrix::own(format, n, k, std::move(buffer), offset));
}
inline WeightMatrix random_weights(const Device& device, Format format, u32 n, u32 k, u64 seed,
                                   u64 offset = 0) {
  return weights_of(device, format, n, k, random_blocks(format, n, k, seed), offset);
}

inline std::vector<float> random_values(std::size_t count, u64 seed) {
  std::vector<float> values(count);
  u64 state = seed * 0x9e3779b97f4a7c15 + 1;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<double>(state >> 40) / (1 << 23) - 1);
  }
  return values;
}

inline Buffer to_device(const Device& device, const std::vector<float>& values, std::string_view name) {
  Buffer buffer = take(device.allocate(values.size() * sizeof(float), name));
  ok(buffer.copy_from_host(values.data(), values.size() * sizeof(float)));
  return buffer;
}

inline std::vector<float> to_host(const Buffer& buffer) {
  std::vector<float> values(buffer.bytes() / sizeof(float));
  ok(buffer.copy_to_host(values.data(), buffer.bytes()));
  return values;
}

// y = W x, m rows, of the library's schedule `warp`: f32 activations throughout.
inline std::vector<float> plain_product(KernelCache& cache, const WeightMatrix& w,
                                        const std::vector<float>& x) {
  const u32 m = static_cast<u32>(x.size() / w.k());
  const Buffer in = to_device(cache.device(), x, "x");
  Buffer out = take(cache.device().allocate(u64{m} * w.n() * sizeof(float), "y"));
  const auto kernel =
      take(cache.get(Gemv{.format = w.format(), .k = w.k(), .n = w.n(), .schedule = Schedule::kWarp}));
  for (u32 row = 0; row < m; ++row) {
    ok(kernel.launch(cache.device().default_stream(), {.weights = {w.address()},
                                                       .x = in.ptr<const std::byte>(u64{row} * w.k() * 4),
                                                       .y = out.ptr<f32>(u64{row} * w.n() * 4)}));
  }
  ok(cache.device().synchronize());
  return to_host(out);
}

// Whether two products agree to what int8 activations cost: a small part of their largest value.
inline bool near(const std::vector<float>& a, const std::vector<float>& b, float part = 0.03f) {
  if (a.size() != b.size() || a.empty()) return false;
  float largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    apart = std::max(apart, std::abs(a[i] - b[i]));
  }
  return largest > 0 && apart <= part * largest;
}

}  // namespace ptxgen::testing
