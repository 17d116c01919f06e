// Eight neighbouring numbers of any element type as f32 values, and back.
#pragma once

#include <vector>

#include "src/kernels/parts/bytes.h"
#include "src/kernels/parts/narrow.h"

namespace ptxgen::parts {

inline constexpr u32 kUnit = 8;  // numbers that a thread takes at once
using Values = std::vector<Reg<f32>>;

// Loads unit `unit` of numbers of `type`: all eight of them, 8 to 32 bytes; or the number with index `unit`.
Values load_unit(ElementType type, const GlobalPtr<const std::byte, 16>& src, const Reg<u64>& unit);
Reg<f32> load_one(ElementType type, const GlobalPtr<const std::byte, 16>& src, const Reg<u64>& index);

// Stores, each rounded to `type` as narrow_pair and e4m3_pair do.
void store_unit(KernelBuilder& k, ElementType type, const GlobalPtr<std::byte, 16>& dst, const Reg<u64>& unit,
                const Values& values);
void store_one(KernelBuilder& k, ElementType type, const GlobalPtr<std::byte, 16>& dst, const Reg<u64>& index,
               const Reg<f32>& value);

// CTAs of so many units each for `count` numbers.
constexpr u64 ctas_for(u64 count, u32 units_of_cta) {
  const u64 units = count / kUnit + (count % kUnit != 0);
  return units / units_of_cta + (units % units_of_cta != 0);
}

}  // namespace ptxgen::parts
