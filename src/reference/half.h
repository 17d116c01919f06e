// Products of f16, as schedules on tensor cores compute them (ptxgen/gemm.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ptxgen/gemm.h"
#include "src/reference/bounded.h"

namespace ptxgen::reference {

// A row of activations: values that f16 represents, and what products with them are multiplied with.
struct HalfRow {
  std::vector<float> values;
  float inverse = 1;
};

// f16(x * 2^e), 2^e bringing the largest |x| into [2^14, 2^15) but at most 2^126; e is 0 where the row has an
// infinity or a NaN.
HalfRow half_row(absl::Span<const float> x);

// m rows of k values in the memory order of StageF16, and row `row` of them back.
std::vector<std::byte> stage_f16(StagedOrder order, absl::Span<const float> a, std::size_t m, std::size_t k);
HalfRow staged_row(StagedOrder order, absl::Span<const std::byte> staged, std::size_t m, std::size_t k,
                   std::size_t row);

// How a schedule has weights (ptxgen/gemm.h): as f16, or as f16 times a power of two of its own for each row.
enum class HalfWeights { kAsTheyAre, kInRowUnits };

// One row of blocks times x: weights rounded as gemm.h says, products exact, their sum within
// of_matrix_product(rounding_bound()), and in row units what their last bits are worth besides.
Bounded dot(Format format, absl::Span<const std::byte> row, const HalfRow& x, HalfWeights weights);

// `value` bounded for the sums of a matrix product, which add more terms one after the other than those of a
// vector do (product.h, rounding_bound): up to k / 4 additions, and a tensor core cuts off where it should
// round. 4 times that bound has room for both.
Bounded of_matrix_product(Bounded value);

}  // namespace ptxgen::reference
