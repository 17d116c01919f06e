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

// Calls whole(unit) by the threads whose eight numbers are below `count`, and one(index) for each number of
// the last unit where it is not whole. Thread t of the grid has unit t.
template <class Whole, class One>
void for_units(KernelBuilder& k, u32 threads, const Reg<u64>& count, Whole&& whole, One&& one) {
  const Reg<u64> cta = cvt<u64>(k.ctaid_x()) * u64{threads};
  const Reg<u64> unit = cta + cvt<u64>(k.tid_x());
  const Reg<u64> units = count >> 3;
  k.if_(
      unit < units, [&] { whole(unit); },
      [&] {
        k.if_(unit == units, [&] {
          for (u32 i = 0; i + 1 < kUnit; ++i) {
            const Reg<u64> index = (unit << 3) + u64{i};
            k.if_(index < count, [&] { one(index); });
          }
        });
      });
}

// Enough CTAs of `threads` for the units of `count` numbers.
constexpr u64 ctas_for(u64 count, u32 threads) {
  const u64 units = count / kUnit + (count % kUnit != 0);
  return units / threads + (units % threads != 0);
}

}  // namespace ptxgen::parts
