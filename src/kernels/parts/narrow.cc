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

// The e4m3 nearest to a value, in integers. What lies beyond 448 is clamped first, so that nothing overflows.
// From 2^-6 up the upper bits of an f32 are those of an e4m3 but for the exponent's bias, and rounding is
// that of round_to_upper_half, 20 bits off. Below, 2^14 plus the value rounds it to a multiple of 2^-9, which
// is what the last bits of the sum count.
Reg<u32> round_to_e4m3(const Reg<f32>& value) {
  constexpr u32 kLargest = 0x43e00000, kSmallestNormal = 0x3c800000, kBias = (127 - 7) << 3;
  const Reg<u32> bits = bitcast<u32>(value);
  const Reg<u32> magnitude = bits & 0x7fffffffu;
  const Reg<u32> clamped = (min)(magnitude, kLargest);
  const Reg<u32> normal = ((clamped + (bfe(clamped, 20, 1) + 0x7ffffu)) >> 20) - kBias;
  const Reg<u32> subnormal = bitcast<u32>(bitcast<f32>(clamped) + 0x1p14f) & 0xfu;
  const Reg<u32> rounded = selp(subnormal, normal, clamped < kSmallestNormal) | ((bits >> 24) & 0x80u);
  return selp(0x7fu, rounded, magnitude > 0x7f800000u);
}

// cvt.rn.satfinite.e4m3x2.f32 (PTX ISA, "cvt").
bool has_e4m3(const KernelBuilder& k) {
  return k.target().supports({89, false}) && k.max_isa() >= PtxIsa{8, 1};
}

}  // namespace

Reg<u32> narrow_pair(KernelBuilder& k, ElementType type, const Reg<f32>& low, const Reg<f32>& high) {
  if (type == ElementType::kE4m3) {
    if (has_e4m3(k)) return cvt<u32>(bitcast<u16>(cvt_rn_satfinite<e4m3x2>(high, low)));
    return round_to_e4m3(low) | (round_to_e4m3(high) << 8);
  }
  if (k.target().supports(kHasPairedConversion)) {
    return type == ElementType::kF16 ? bitcast<u32>(cvt_rn<f16x2>(high, low))
                                     : bitcast<u32>(cvt_rn<bf16x2>(high, low));
  }
  if (type == ElementType::kF16) return pack<u32>(cvt_rn<f16>(low), cvt_rn<f16>(high));
  constexpr u32 kUpperHalves = 0x7632;  // bytes 2, 3 of the first operand, then of the second
  return prmt(round_to_upper_half(low), round_to_upper_half(high), kUpperHalves);
}

}  // namespace ptxgen::parts
