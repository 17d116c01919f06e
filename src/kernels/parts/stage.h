// Activations in shared memory, put there by all threads of a CTA.
#pragma once

#include <optional>

#include "src/kernels/parts/q8_1.h"

namespace ptxgen::parts {

inline void stage_floats(KernelBuilder& k, const GlobalPtr<const f32, 16>& x,
                         const SharedPtr<f32, 16>& staged, u32 values, u32 threads) {
  k.for_(k.tid_x(), values / 4, threads, [&](const Reg<u32>& i) {
    const auto four = ld_global_v4(at<f32>(at<Bytes<16>>(x) + i));
    st_shared_v4(at<f32>(at<Bytes<16>>(staged) + i), four);
  });
}

// Values 8 unit to 8 unit + 7.
inline std::array<Reg<f32>, 8> load_eight(const GlobalPtr<const f32, 16>& x, const Reg<u32>& unit) {
  const auto eight = at<Bytes<32>>(x) + unit;
  const auto low = ld_global_v4(at<f32>(eight));
  const auto high = ld_global_v4(at<f32, 16>(eight));
  return {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
}

// Four neighbouring lanes write a block, those for which it counts. By whole warps.
template <std::size_t N, std::size_t Align>
void stage_eight(KernelBuilder& k, const std::array<Reg<f32>, 8>& x, const SharedPtr<Bytes<N>, Align>& staged,
                 const Reg<u32>& unit, const std::optional<Pred>& counts = {}) {
  const Quantized quantized = quantize(x);
  const Reg<s32> sum = sum_over_lanes(sum_of_bytes(quantized.q), 4);
  const auto put = [&] { store(k, quantized, sum, staged + (unit >> 2), unit & 3u); };
  if (!counts) return put();
  k.if_(*counts, put);
}

template <std::size_t N, std::size_t Align>
void stage_q8_1(KernelBuilder& k, const GlobalPtr<const f32, 16>& x, const SharedPtr<Bytes<N>, Align>& staged,
                u32 values, u32 threads) {
  // Whole warps stay together for the shuffles; lanes past the end repeat the last 8 values.
  const u32 units = values / 8;
  const bool whole_warps = units % 32 == 0;
  k.for_(whole_warps ? k.tid_x() : k.tid_x() & ~31u, units, threads, [&](const Reg<u32>& first) {
    if (whole_warps) return stage_eight(k, load_eight(x, first), staged, first);
    const Reg<u32> wanted = first + (k.tid_x() & 31u);
    const Reg<u32> unit = (min)(wanted, units - 1);
    const std::array<Reg<f32>, 8> eight = load_eight(x, unit);
    stage_eight(k, eight, staged, unit, wanted < units);
  });
}

}  // namespace ptxgen::parts
