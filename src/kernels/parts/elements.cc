#include "src/kernels/parts/elements.h"

namespace ptxgen::parts {
namespace {

Reg<f32> from_f16(const Reg<u16>& bits) {
  return cvt<f32>(bitcast<f16>(bits));
}
Reg<f32> from_bf16(const Reg<u32>& bits) {
  return bitcast<f32>(bits << 16);
}

// Exponent and mantissa of an e4m3 lie right in an f32 but for the exponents' bias: 2^120 too small, and
// multiplying by that makes subnormals right as well. 0x7f is NaN.
Reg<f32> from_e4m3(const Reg<u32>& bits) {
  constexpr f32 kTwoTo120 = 0x1p120f;
  const Reg<u32> magnitude = bits & 0x7fu;
  const Reg<u32> sign = (bits & 0x80u) << 24;
  const Reg<f32> value = bitcast<f32>((magnitude << 20) | sign) * kTwoTo120;
  return selp(bitcast<f32>(bits.kernel()->constant<u32>(0x7fffffff)), value, magnitude == 0x7fu);
}

// The two halves of each word, and the four bytes.
Values from_words(ElementType type, const std::vector<Reg<u32>>& words) {
  Values values;
  for (const Reg<u32>& word : words) {
    if (type == ElementType::kE4m3) {
      for (u32 i = 0; i < 4; ++i) values.push_back(from_e4m3(bfe(word, 8 * i, 8)));
    } else if (type == ElementType::kF16) {
      const auto [low, high] = unpack(word);
      values.push_back(from_f16(low));
      values.push_back(from_f16(high));
    } else {
      values.push_back(from_bf16(word));
      values.push_back(bitcast<f32>(word & 0xffff0000u));
    }
  }
  return values;
}

}  // namespace

Values load_unit(ElementType type, const GlobalPtr<const std::byte, 16>& src, const Reg<u64>& unit) {
  if (type == ElementType::kF32) {
    const auto from = at<Bytes<kUnit * 4>>(src) + unit;
    const auto low = ld_global_v4(assume_aligned<16>(at<f32>(from)));
    const auto high = ld_global_v4(assume_aligned<16>(at<f32, 16>(from)));
    return {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
  }
  if (type == ElementType::kE4m3) {
    const auto words = ld_global_v2(assume_aligned<8>(at<u32>(at<Bytes<kUnit>>(src) + unit)));
    return from_words(type, {words[0], words[1]});
  }
  const auto words = ld_global_v4(assume_aligned<16>(at<u32>(at<Bytes<kUnit * 2>>(src) + unit)));
  return from_words(type, {words[0], words[1], words[2], words[3]});
}

Reg<f32> load_one(ElementType type, const GlobalPtr<const std::byte, 16>& src, const Reg<u64>& index) {
  switch (type) {
    case ElementType::kF32: return ld_global(at<f32>(src) + index);
    case ElementType::kF16: return from_f16(ld_global(at<u16>(src) + index));
    case ElementType::kBf16: return from_bf16(cvt<u32>(ld_global(at<u16>(src) + index)));
    case ElementType::kE4m3: break;
  }
  return from_e4m3(cvt<u32>(ld_global(at<u8>(src) + index)));
}

void store_unit(KernelBuilder& k, ElementType type, const GlobalPtr<std::byte, 16>& dst, const Reg<u64>& unit,
                const Values& values) {
  const auto pair = [&](u32 i) { return narrow_pair(k, type, values[2 * i], values[2 * i + 1]); };
  if (type == ElementType::kF32) {
    const auto to = at<Bytes<kUnit * 4>>(dst) + unit;
    st_global_v4(assume_aligned<16>(at<f32>(to)), {values[0], values[1], values[2], values[3]});
    st_global_v4(assume_aligned<16>(at<f32, 16>(to)), {values[4], values[5], values[6], values[7]});
  } else if (type == ElementType::kE4m3) {
    constexpr u32 kLowHalves = 0x5410;  // bytes 0, 1 of the first operand, then of the second
    const auto four = [&](u32 i) { return prmt(pair(i), pair(i + 1), kLowHalves); };
    st_global_v2(assume_aligned<8>(at<u32>(at<Bytes<kUnit>>(dst) + unit)), {four(0), four(2)});
  } else {
    st_global_v4(assume_aligned<16>(at<u32>(at<Bytes<kUnit * 2>>(dst) + unit)),
                 {pair(0), pair(1), pair(2), pair(3)});
  }
}

void store_one(KernelBuilder& k, ElementType type, const GlobalPtr<std::byte, 16>& dst, const Reg<u64>& index,
               const Reg<f32>& value) {
  if (type == ElementType::kF32) return st_global(at<f32>(dst) + index, value);
  const Reg<u32> bits = narrow_pair(k, type, value, value);
  if (type == ElementType::kE4m3) return st_global(at<u8>(dst) + index, cvt<u8>(bits));
  st_global(at<u16>(dst) + index, cvt<u16>(bits));
}

}  // namespace ptxgen::parts
