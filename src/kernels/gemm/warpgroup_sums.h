// The operands of wgmma.m64nNk16 on f16 that a warpgroup has in registers.
#pragma once

#include <memory>

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
inline std::unique_ptr<WarpgroupSums> make_warpgroup_sums(KernelBuilder& k, u32 columns) {
  switch (columns) {
    case 8: return std::make_unique<WarpgroupSumsOf<8>>(k);
    case 16: return std::make_unique<WarpgroupSumsOf<16>>(k);
    case 32: return std::make_unique<WarpgroupSumsOf<32>>(k);
    case 64: return std::make_unique<WarpgroupSumsOf<64>>(k);
    case 128: return std::make_unique<WarpgroupSumsOf<128>>(k);
    default: return std::make_unique<WarpgroupSumsOf<256>>(k);
  }
}

}  // namespace ptxgen::gemm
