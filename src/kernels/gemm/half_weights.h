// Weights as f16: f16(q * f16(d * scale) + f16(m * min)), in pairs.
#pragma once

#include <bit>
#include <vector>

#include "src/kernels/formats/format.h"
#include "src/kernels/parts/narrow.h"

namespace ptxgen::gemm {

// Both halves of an f16x2 that holds `value`, which f16 must represent as a normal number.
constexpr f16x2 both(f32 value) {
  const u32 bits = std::bit_cast<u32>(value);
  const f16 half = {static_cast<u16>((bits >> 16 & 0x8000) | (((bits >> 13) - (112u << 10)) & 0x7fff))};
  return {half, half};
}
inline Reg<f16x2> both(KernelBuilder& k, const Reg<f32>& value) {
  return bitcast<f16x2>(parts::narrow_pair(k, ElementType::kF16, value, value));
}

// The scales and mins of a part's runs.
template <class F>
class HalfScales {
 public:
  template <u32 W>
  HalfScales(KernelBuilder& k, const formats::Part<W>& part) : k_(k) {
    for (const formats::Run<W>& run : part.runs) {
      scales_.push_back(both(k, run.scale ? run.scale->value() * part.d : part.d));
      if (part.m) mins_.push_back(both(k, run.min ? run.min->value() * *part.m : *part.m));
    }
  }

  // Four values of a run from their bytes, decoded in place: the first two, and the last.
  std::array<Reg<f16x2>, 2> four(u32 run, const Reg<u32>& bytes) const {
    const Reg<u32> stored = F::kSigned ? bytes ^ 0x80808080u : bytes;
    return {two(run, stored, 0x4140), two(run, stored, 0x4342)};
  }

 private:
  // The last bit of an f16 from 1024 on counts ones: a byte put below 0x64 makes 1024 + byte.
  Reg<f16x2> two(u32 run, const Reg<u32>& stored, u32 select) const {
    constexpr u32 kBias = F::kBias + (F::kSigned ? 128 : 0);
    const u32 unit = formats::unit_of<F>(run, formats::Packing::kInPlace);
    const Reg<f16x2> raised = bitcast<f16x2>(prmt(stored, 0x64646464u, select));
    const f32 offset = -(1024.f / static_cast<f32>(unit) + static_cast<f32>(kBias));
    const Reg<f16x2> q = unit == 1 ? add_rn(raised, k_.constant<f16x2>(both(offset)))
                                   : fma_rn(raised, k_.constant<f16x2>(both(1.f / static_cast<f32>(unit))),
                                            k_.constant<f16x2>(both(offset)));
    return mins_.empty() ? q * scales_[run] : fma_rn(q, scales_[run], mins_[run]);
  }

  KernelBuilder& k_;
  std::vector<Reg<f16x2>> scales_, mins_;
};

}  // namespace ptxgen::gemm
