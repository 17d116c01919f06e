// Products of one part of a block with its activations.
#pragma once

#include <optional>
#include <vector>

#include "src/kernels/parts/q8_1.h"

namespace ptxgen::parts {

template <u32 W, class X>
std::vector<Reg<f32>> load_floats(const X& x) {
  std::vector<Reg<f32>> values;
  if constexpr (W == 1) {
    values.push_back(load(at<f32>(x)));
  } else {
    for (u32 i = 0; i < W; i += 4) {
      const auto four = load_v4(at<f32>(x + i / 4));
      values.insert(values.end(), four.begin(), four.end());
    }
  }
  return values;
}

// acc + the part's values times the block's activations, which begin at x; `base` is the first one's.
template <class F, u32 W, Space S, std::size_t Align>
Reg<f32> add_part(const formats::Part<W>& part, const formats::Index& base, const Ptr<S, const f32, Align>& x,
                  Reg<f32> acc) {
  constexpr u32 kStep = W == 1 ? 1 : 4;  // values in an element of the pointer
  const auto load = [&](u32 r) {
    return load_floats<W>(at<Bytes<4 * kStep>>(x) + base / kStep + r * F::kRunStride / kStep);
  };
  // Of short runs all are loaded before the first is used: there are registers enough.
  std::vector<std::vector<Reg<f32>>> loaded;
  for (u32 r = 0; W <= 4 && r < F::kRuns; ++r) loaded.push_back(load(r));
  for (u32 r = 0; r < F::kRuns; ++r) {
    const formats::Run<W>& run = part.runs[r];
    const auto values = loaded.empty() ? load(r) : loaded[r];
    std::optional<Reg<f32>> product, sum;
    for (u32 i = 0; i < W; ++i) {
      const Reg<f32> q = integer_to_f32(run.q[i / 4], i % 4, F::kBias, F::kSigned);
      product = product ? fma_rn(q, values[i], *product) : q * values[i];
      if (part.m) sum = sum ? *sum + values[i] : values[i];
    }
    acc = fma_rn(*product, run.scale ? run.scale->value() * part.d : part.d, acc);
    if (part.m) acc = fma_rn(*sum, run.min ? run.min->value() * *part.m : *part.m, acc);
  }
  return acc;
}

// The same with int8 activations. A run lies within one of their blocks.
template <class F, u32 W, Space S, std::size_t N, std::size_t Align>
Reg<f32> add_part(const formats::Part<W>& part, const formats::Base& base,
                  const Ptr<S, const Bytes<N>, Align>& x, Reg<f32> acc) {
  for (u32 r = 0; r < F::kRuns; ++r) {
    const u32 offset = r * F::kRunStride;
    const auto block = x + base.block + offset / 32;
    const Reg<f32> d = d_of(load(at<u32>(block)));
    const auto q = load_words<W / 4>(
        at<std::byte>(at<Bytes<W>, kQOffset<N>>(block) + base.in_block / W + offset % 32 / W));
    const Reg<s32> sum = sum_of_bytes(q);
    const Int8Run<W> run = {q, d, cvt_rn<f32>(sum) * d, start_of<F>(sum, 1)};
    acc = add_product<F, W>(part, part.runs[r], run, acc);
  }
  return acc;
}

}  // namespace ptxgen::parts
