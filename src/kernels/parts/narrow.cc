#include "src/kernels/parts/narrow.h"

namespace ptxgen::parts {
namespace {

constexpr Target kHasPairedConversion = {80, false};

// bf16 is the upper half of an f32: add just under half a unit, or half where the last kept bit is odd (ties
// to even).
Reg<u32> round_to_upper_half(const Reg<f32>& value) {
  const Reg<u32> bits = bitcast<u32>(value);
  const Reg<u32> rounded = bits + (bfe(bits, 16, 1) + 0x7fffu);
  return selp(0x7fff0000u, rounded, setp_nan(value, value));
}

}  // namespace

Reg<u32> narrow_pair(KernelBuilder& k, OutType type, const Reg<f32>& low, const Reg<f32>& high) {
  if (k.target().supports(kHasPairedConversion)) {
    return type == OutType::kF16 ? bitcast<u32>(cvt_rn<f16x2>(high, low))
                                 : bitcast<u32>(cvt_rn<bf16x2>(high, low));
  }
  if (type == OutType::kF16) return pack<u32>(cvt_rn<f16>(low), cvt_rn<f16>(high));
  constexpr u32 kUpperHalves = 0x7632;  // bytes 2, 3 of the first operand, then of the second
  return prmt(round_to_upper_half(low), round_to_upper_half(high), kUpperHalves);
}

}  // namespace ptxgen::parts
