// The powers of two that fit rows of activations into f16 (gemm.h).
#pragma once

#include "src/kernels/parts/bytes.h"
#include "src/kernels/parts/reduce.h"

namespace ptxgen::gemm {

// What a row is multiplied with, and what its products are.
struct RowScale {
  Reg<f32> factor, inverse;
};

// From the bits of the row's largest |a|. Its exponent e becomes 14; the factor stays below 2^127, so that
// the inverse is a normal number. Rows with an infinity or a NaN stay as they are.
inline RowScale row_scale(const Reg<u32>& absmax) {
  constexpr u32 kBias = 127, kNotFinite = 255;
  const Reg<u32> exponent = absmax >> 23;
  const Reg<u32> raised = (min)(14 + 2 * kBias - exponent, 2 * kBias - 1);
  const Reg<u32> biased = selp(absmax.kernel()->constant<u32>(kBias), raised, exponent == kNotFinite);
  return {bitcast<f32>(biased << 23), bitcast<f32>((2 * kBias - biased) << 23)};
}

// The bits of the largest |a| among a row's `values`, of which this is thread `thread` of `threads`, its own.
inline Reg<u32> own_absmax(KernelBuilder& k, const GlobalPtr<const f32, 16>& row, u32 values,
                           const Reg<u32>& thread, u32 threads) {
  const u32 quads = values / 4;
  Var<u32> most = k.var<u32>(0u);
  // Several loads are under way at once; past the end the last one is repeated.
  constexpr u32 kAtOnce = 4;
  k.for_(thread, quads, threads * kAtOnce, [&](const Reg<u32>& first) {
    std::vector<std::array<Reg<f32>, 4>> loaded;
    for (u32 i = 0; i < kAtOnce; ++i) {
      const Reg<u32> quad = (min)(first + i * threads, quads - 1);
      loaded.push_back(ld_global_v4(at<f32>(at<parts::Bytes<16>>(row) + quad)));
    }
    Reg<u32> top = most;
    for (const auto& four : loaded) {
      for (const Reg<f32>& value : four) top = (max)(top, bitcast<u32>(value) & 0x7fffffffu);
    }
    most = top;
  });
  return most;
}
// The scales of a CTA's rows, in shared memory.
class RowScales {
 public:
  static constexpr u32 bytes(u32 rows) { return rows * 2 * sizeof(f32); }

  RowScales(KernelBuilder& k, const SharedPtr<f32>& shared, u32 rows)
      : k_(k), factors_(shared), inverses_(shared + rows), rows_(rows) {}

  // By all threads; a barrier must follow. row_of(i) is where row i begins.
  template <class RowOf>
  void find(u32 values, u32 threads, RowOf&& row_of) const {
    const Reg<u32> lane = k_.tid_x() & 31u;
    k_.for_(k_.tid_x() >> 5, rows_, threads / 32, [&](const Reg<u32>& row) {
      const Reg<u32> absmax = parts::warp_max(own_absmax(k_, row_of(row), values, lane, 32));
      const RowScale scale = row_scale(absmax);
      k_.if_(lane == 0u, [&] {
        st_shared(factors_ + row, scale.factor);
        st_shared(inverses_ + row, scale.inverse);
      });
    });
  }
  Reg<f32> factor(const Reg<u32>& row) const { return ld_shared(factors_ + row); }
  Reg<f32> inverse(const Reg<u32>& row) const { return ld_shared(inverses_ + row); }

 private:
  KernelBuilder& k_;
  SharedPtr<f32> factors_, inverses_;
  u32 rows_;
};

}  // namespace ptxgen::gemm
