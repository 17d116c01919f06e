// The operands of wgmma.m64nNk16 on f16 that a warpgroup has in registers.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "src/kernels/gemm/row_units.h"

namespace ptxgen::gemm {

using WarpgroupA = Fragment<Matrix::kA, f16, 64, 16>;

// The accumulators of a warpgroup, whose number the instruction's type has.
class WarpgroupSums {
 public:
  virtual ~WarpgroupSums() = default;
  virtual void add(const WarpgroupA& a, const MatrixDescriptor<f16>& b) = 0;
  virtual void scale(const Reg<f32>& upper, const Reg<f32>& lower) = 0;
  virtual Reg<f32> operator[](u32 i) const = 0;
};
template <u32 N>
class WarpgroupSumsOf final : public WarpgroupSums {
 public:
  explicit WarpgroupSumsOf(KernelBuilder& k) : sums_(k) {}
  void add(const WarpgroupA& a, const MatrixDescriptor<f16>& b) override {
    wgmma_mma_async(sums_, a, b, true);
  }
  void scale(const Reg<f32>& upper, const Reg<f32>& lower) override { scale_rows(sums_, upper, lower); }
  Reg<f32> operator[](u32 i) const override { return sums_[i]; }

 private:
  Accumulator<f32, 64, N> sums_;
};
// Of so many rows of a, a multiple of 8 up to 256.
inline std::unique_ptr<WarpgroupSums> make_warpgroup_sums(KernelBuilder& k, u32 columns) {
  constexpr u32 kStep = 8, kMost = 256;
  std::unique_ptr<WarpgroupSums> sums;
  const auto make_if = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    constexpr u32 kColumns = (I + 1) * kStep;
    if (columns == kColumns) sums = std::make_unique<WarpgroupSumsOf<kColumns>>(k);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (make_if(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<kMost / kStep>{});
  return sums;
}

}  // namespace ptxgen::gemm
