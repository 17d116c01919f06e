// Stores the outputs that a lane has in the accumulators of a matrix product (fragment.h, C): two
// neighbouring rows of a in each group of 8, rows lane / 4, lane / 4 + 8 ... of the weights.
#pragma once

#include "src/kernels/gemm/schedules.h"
#include "src/kernels/gemm/tensor_order.h"

namespace ptxgen::gemm {

// What rows of staged activations are multiplied with at the end.
inline GlobalPtr<const f32> staged_inverses(const Gemm& g, const GlobalPtr<const std::byte, 16>& a,
                                            const Reg<u32>& m) {
  const Reg<u64> groups = cvt<u64>((m + (kSlabGroupRows - 1)) / kSlabGroupRows);
  return assume_aligned<4>(at<f32>(a + groups * (staged_f16_slabs(g.k) * kGroupBytes)));
}

// The lane's first output is (first_m, first_n). sum(group, j, r) is that of row j of the pair in group
// `group` and row 8 r of the weights; inverse(row) belongs to row `row` from first_m on.
template <class Sum, class Inverse>
void store_outputs(KernelBuilder& k, const Gemm& g, const Reg<u32>& m, const Reg<u32>& first_m,
                   const Reg<u32>& first_n, u32 groups, u32 rows, bool whole_tiles, Sum&& sum,
                   Inverse&& inverse) {
  const auto c = k.param(&Gemm::Args::c) + (cvt<u64>(first_m) * u64{g.n} + cvt<u64>(first_n));
  for (u32 group = 0; group < groups; ++group) {
    for (u32 j = 0; j < 2; ++j) {
      const u32 row = group * kSlabGroupRows + j;
      k.if_(first_m + row < m, [&] {
        const Reg<f32> factor = inverse(row);
        for (u32 r = 0; r < rows; ++r) {
          const Reg<f32> value = sum(group, j, r);
          const auto put = [&] { st_global(c + (u64{row} * g.n + r * 8), value * factor); };
          if (whole_tiles) {
            put();
          } else {
            k.if_(first_n + r * 8 < g.n, put);
          }
        }
      });
    }
  }
}

}  // namespace ptxgen::gemm
