// A step of activations (tensor_order.h): 16 values of a row become one row of two octets.
#pragma once

#include "src/kernels/gemm/tensor_order.h"
#include "src/kernels/parts/narrow.h"

namespace ptxgen::gemm {

using Sixteen = std::vector<std::array<Reg<f32>, 4>>;  // those of lanes 0 to 3

// Step `step` of a row.
inline Sixteen load_step(const TensorOrder& order, const GlobalPtr<const f32, 16>& row,
                         const Reg<u32>& step) {
  const Reg<u32> in_block = step % order.steps();
  const Reg<u32> first = step / order.steps() * order.block_values +
                         in_block % order.runs * order.run_stride + in_block / order.runs * 4u;
  const auto quads = at<parts::Bytes<16>>(row) + (first >> 2);
  Sixteen sixteen;
  for (u32 lane = 0; lane < 4; ++lane) sixteen.push_back(ld_global_v4(at<f32>(quads + order.base(lane) / 4)));
  return sixteen;
}

// The bits of the largest absolute value.
inline Reg<u32> absmax_of(const Sixteen& sixteen) {
  std::vector<Reg<u32>> bits;
  for (const auto& four : sixteen) {
    for (const Reg<f32>& value : four) bits.push_back(bitcast<u32>(value) & 0x7fffffffu);
  }
  for (std::size_t half = bits.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) bits[i] = (max)(bits[i], bits[i + half]);
  }
  return bits[0];
}

// Its rows of both octets, of the scaled values.
template <class Scaled>
std::array<std::array<Reg<u32>, 4>, 2> octets_of(KernelBuilder& k, const Sixteen& sixteen, Scaled&& scaled) {
  const auto pair = [&](u32 octet, u32 lane) {
    return parts::narrow_pair(k, ElementType::kF16, scaled(sixteen[lane][octet]),
                              scaled(sixteen[lane][octet + 2]));
  };
  const auto row = [&](u32 octet) {
    return std::array<Reg<u32>, 4>{pair(octet, 0), pair(octet, 1), pair(octet, 2), pair(octet, 3)};
  };
  return {row(0), row(1)};
}

}  // namespace ptxgen::gemm
