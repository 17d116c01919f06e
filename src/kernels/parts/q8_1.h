// int8 activations: quantising, and integer dot products with them.
#pragma once

#include "ptxgen/gemv.h"
#include "src/kernels/formats/format.h"
#include "src/kernels/parts/reduce.h"

namespace ptxgen::parts {

// A block of int8 activations has N bytes: a word with d and the sum, and the last 32 are q. BlockQ8_1 is the
// shortest.
template <std::size_t N>
inline constexpr std::size_t kQOffset = N - 32;

// ---- Quantising: four neighbouring lanes hold the 32 values of a block, 8 each.

// What one lane holds of a block.
struct Quantized {
  std::array<Reg<u32>, 2> q;  // 8 signed bytes
  Reg<u32> d;                 // of the block: bf16, in the low half
};

// 1 / d, correctly rounded, of a normal d of 8 significant bits whose inverse is normal too: an approximation
// within 2 ulp and one step of Newton's, whose residual fma_rn gives exactly. rcp.rn would do the same behind
// a branch for the other values.
inline Reg<f32> reciprocal_of_bf16(const Reg<f32>& d) {
  const Reg<f32> near = rcp_approx_ftz(d);
  return fma_rn(-fma_rn(d, near, -1.f), near, near);
}

// See BlockQ8_1 for what d and q are.
inline Quantized quantize(const std::array<Reg<f32>, 8>& x) {
  // As integers, the bits of |x| order as the values do, with infinity and NaN on top.
  Reg<u32> top = bitcast<u32>(x[0]) & 0x7fffffffu;
  for (u32 i = 1; i < 8; ++i) top = (max)(top, bitcast<u32>(x[i]) & 0x7fffffffu);
  top = over_lanes(top, 4, [](const Reg<u32>& a, const Reg<u32>& b) { return (max)(a, b); });

  // d, rounded up to bf16. What is not finite becomes the NaN 0x7fff; what is too small to divide by, zero.
  // The inverse of what is not finite is NaN as well.
  constexpr u32 kInfinity = 0x7f800000, kTwoToMinus118 = 0x04800000;
  KernelBuilder& k = *top.kernel();
  const Pred zero = top < kTwoToMinus118;
  const Reg<u32> exact = bitcast<u32>(bitcast<f32>(top) * (1.f / 127.f));
  const Reg<u32> rounded = (exact + 0xffffu) & 0xffff0000u;
  const Reg<u32> finite = selp(k.constant<u32>(0), rounded >> 16, zero);
  const Reg<u32> d = selp(k.constant<u32>(0x7fff), finite, top >= kInfinity);
  const Reg<f32> inverse = selp(k.constant<f32>(0.f), reciprocal_of_bf16(bitcast<f32>(rounded)), zero);

  // 1.5 * 2^23 plus a value of at most 127 rounds it to an integer, whose low byte ends the sum's bits.
  constexpr f32 kMagic = 12582912.f;
  const auto rounded_q = [&](u32 i) { return bitcast<u32>(fma_rn(x[i], inverse, kMagic)); };
  const auto four = [&](u32 i) {
    const Reg<u32> low = prmt(rounded_q(i), rounded_q(i + 1), 0x0040);
    const Reg<u32> high = prmt(rounded_q(i + 2), rounded_q(i + 3), 0x0040);
    return prmt(low, high, 0x5410);
  };
  return {{four(0), four(4)}, d};
}

// The sum of signed bytes.
template <std::size_t N>
Reg<s32> sum_of_bytes(const std::array<Reg<u32>, N>& words) {
  KernelBuilder& k = *words[0].kernel();
  Reg<s32> sum = k.constant<s32>(0);
  for (const Reg<u32>& word : words) sum = dp4a(bitcast<s32>(word), k.constant<s32>(0x01010101), sum);
  return sum;
}
inline Reg<s32> sum_over_lanes(const Reg<s32>& value, u32 lanes) {
  return over_lanes(value, lanes, [](const Reg<s32>& a, const Reg<s32>& b) { return a + b; });
}

// Stores what lane `part` (0..3) of a block holds; lane 0 stores d and the sum.
template <Space S, std::size_t N, std::size_t Align>
void store(KernelBuilder& k, const Quantized& values, const Reg<s32>& sum,
           const Ptr<S, Bytes<N>, Align>& block, const Reg<u32>& part) {
  const auto put = [](const auto& p, const auto& value) {
    if constexpr (S == Space::kGlobal) {
      st_global(p, value);
    } else {
      st_shared(p, value);
    }
  };
  const auto q = at<u32, kQOffset<N>>(block) + part * 2u;
  put(q, values.q[0]);
  put(q + 1, values.q[1]);
  k.if_(part == 0u, [&] { put(at<u32>(block), prmt(values.d, bitcast<u32>(sum), 0x5410)); });
}

// ---- Products. An accumulator that starts at the bits of 1.5 * 2^23 is, seen as a float, that value plus
// the integer: no conversion, exact for |integer| < 2^22.
inline constexpr s32 kMagicBits = 0x4b400000;
inline constexpr f32 kMagicFloat = 12582912.f;

// The activations that a run of weights meets.
template <u32 W>
struct Int8Run {
  formats::Words<W> q;
  Reg<f32> d;      // x = d * q; over the weights' unit
  Reg<f32> sum;    // of x as quantised, for formats with m
  Reg<s32> start;  // of the accumulator, for formats with a bias
};

inline Reg<f32> d_of(const Reg<u32>& header) {
  return bitcast<f32>(header << 16);
}

// What `sum`, the integer sum of a run's activations, makes of a product's accumulator: kMagicBits minus what
// the bias of the weights, in their unit, contributes.
template <class F>
Reg<s32> start_of(const Reg<s32>& sum, u32 unit) {
  return kMagicBits - sum * static_cast<s32>(F::kBias * unit);
}

// acc + the product of a run with its activations.
template <class F, u32 W>
Reg<f32> add_product(const formats::Part<W>& part, const formats::Run<W>& run, const Int8Run<W>& x,
                     const Reg<f32>& acc) {
  Reg<s32> integer = x.start;
  for (u32 i = 0; i < run.q.size(); ++i) {
    if constexpr (F::kSigned) {
      integer = dp4a(bitcast<s32>(run.q[i]), bitcast<s32>(x.q[i]), integer);
    } else {
      integer = dp4a(run.q[i], bitcast<s32>(x.q[i]), integer);
    }
  }
  const Reg<f32> scale = run.scale ? run.scale->value() * part.d : part.d;
  const Reg<f32> products = fma_rn(scale * x.d, bitcast<f32>(integer) - kMagicFloat, acc);
  if (!part.m) return products;
  return fma_rn(run.min ? run.min->value() * *part.m : *part.m, x.sum, products);
}

}  // namespace ptxgen::parts
