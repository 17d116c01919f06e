// Conversions between f32 and the narrower floats, in integer arithmetic: no compiler flag, rounding mode or
// host instruction has a say. Narrowing rounds to nearest even and equals the GPU's cvt of the same name
// for all 2^32 inputs, NaNs included (compared with an H200's).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ptxgen::reference {

// cvt.rn.f16.f32 and cvt.rn.bf16.f32 (PTX ISA, "cvt"): overflow gives Inf, subnormals are kept, and every NaN
// gives the canonical 0x7fff.
std::uint16_t f32_to_f16(float value);
std::uint16_t f32_to_bf16(float value);

// cvt.rn.satfinite.e4m3x2.f32, one element: |value| above 448 and Inf give 448 with value's sign, subnormals
// are kept, and every NaN gives 0x7f.
std::uint8_t f32_to_e4m3(float value);

// Exact. A NaN stays a NaN with its sign and payload; e4m3 has no Inf, and 0x7f and 0xff are its only NaNs.
float f16_to_f32(std::uint16_t bits);
float bf16_to_f32(std::uint16_t bits);
float e4m3_to_f32(std::uint8_t bits);

// The floats that a result is stored as.
enum class FloatType : std::uint8_t { kF32, kF16, kBf16, kE4m3 };

constexpr std::size_t size_of(FloatType type) {
  return type == FloatType::kF32 ? 4 : type == FloatType::kE4m3 ? 1 : 2;
}

// The value whose bits are the low ones of `bits`.
float widen(FloatType type, std::uint32_t bits);

// Stores `values` as `type` into `out`, little-endian without padding; `out` must hold exactly that many
// bytes, else InvalidArgument.
absl::Status narrow(FloatType type, absl::Span<const float> values, absl::Span<std::byte> out);

}  // namespace ptxgen::reference
