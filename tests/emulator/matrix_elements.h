// The elements of matrices as bits, for the tests of the tensor cores.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "src/emulator/numerics.h"

namespace ptxgen::emulator {

// How a value looks as an element of `type`, to the nearest one.
inline std::uint32_t element_bits(double x, std::string_view type) {
  if (type == "u8" || type == "s8") return static_cast<std::uint32_t>(static_cast<int>(x)) & 0xff;
  if (type == "s32") return static_cast<std::uint32_t>(static_cast<std::int64_t>(x));
  if (type == "f16") return encode(x, kF16, Rounding::kNearestEven);
  if (type == "bf16") return encode(x, kBf16, Rounding::kNearestEven);
  if (type == "e4m3") return encode_fp8(x, kE4m3);
  if (type == "e5m2") return encode_fp8(x, kE5m2);
  return std::bit_cast<std::uint32_t>(static_cast<float>(x));
}
inline double element_value(std::uint32_t bits, std::string_view type) {
  if (type == "s32") return static_cast<std::int32_t>(bits);
  if (type == "f16") return decode(bits, kF16);
  return std::bit_cast<float>(bits);
}
inline int element_width(std::string_view type) {
  if (type == "u8" || type == "s8" || type == "e4m3" || type == "e5m2") return 8;
  return type == "f16" || type == "bf16" ? 16 : 32;
}

}  // namespace ptxgen::emulator
