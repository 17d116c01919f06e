#include "tests/builder/rows.h"

namespace ptxgen::testing {
namespace {

// wgmma into fresh accumulators.
template <class E, u32 N, class A, class B, class... Scales>
void multiply(KernelBuilder& k, const A& a, const B& b, const Pred& scale_d, Scales... scales) {
  Accumulator<E, 64, N> d(k);
  wgmma_mma_async(d, a, b, scale_d, scales...);
}
template <u32 N, class A, class B>
void multiply_satfinite(KernelBuilder& k, const A& a, const B& b, const Pred& scale_d) {
  Accumulator<s32, 64, N> d(k);
  wgmma_mma_async_satfinite(d, a, b, scale_d);
}

// A fragment of a whose registers are all `r`; a matrix in shared memory.
template <class T>
auto fragment(const Reg<ptxgen::detail::packed_t<T>>& r) {
  return Fragment<Matrix::kA, T, 64, 32 / sizeof(T)>({r, r, r, r});
}
template <class T, Major M = Major::kK>
auto matrix(const Reg<u64>& descriptor) {
  return MatrixDescriptor<T, M>(descriptor);
}

#define WGMMA "wgmma.mma_async.sync.aligned.m64n8"
#define D2 "{d0, d1}"
#define D4 "{d0, d1, d2, d3}"
#define A4 "{a, a, a, a}"
#define FP8 "(e4m3|e5m2).(e4m3|e5m2)"

void add_floats(RowSuite& suite) {
  ROW(wgmma_m64k16_f32, (multiply<f32, 8>(k, fragment<T>(a), matrix<T>(b), c)),
      WGMMA "k16.f32.(f16.f16|bf16.bf16) " D4 ", " A4 ", b, c, 1, 1, 0")
  ROW(wgmma_m64k16_f32,
      (multiply<f32, 8>(k, fragment<T>(a), matrix<T, Major::kMn>(b), c, ImmScale::kMinusOne)),
      WGMMA "k16.f32.(f16.f16|bf16.bf16) " D4 ", " A4 ", b, c, -1, 1, 1")
  ROW(wgmma_m64k16_f32, (multiply<f32, 24>(k, fragment<T>(a), matrix<T>(b), c)),
      "wgmma.mma_async.sync.aligned.m64n24k16.f32.(f16.f16|bf16.bf16) "
      "{d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, d11}, " A4 ", b, c, 1, 1, 0")
  ROW(wgmma_m64k16_f32_desc, (multiply<f32, 8>(k, matrix<T>(a), matrix<T>(b), c)),
      WGMMA "k16.f32.(f16.f16|bf16.bf16) " D4 ", a, b, c, 1, 1, 0, 0")
  ROW(wgmma_m64k16_f32_desc,
      (multiply<f32, 8>(k, matrix<T, Major::kMn>(a), matrix<T>(b), c, ImmScale::kOne, ImmScale::kMinusOne)),
      WGMMA "k16.f32.(f16.f16|bf16.bf16) " D4 ", a, b, c, 1, -1, 1, 0")
  ROW(wgmma_m64k16_f16, (multiply<f16, 8>(k, fragment<T>(a), matrix<T>(b), c)),
      WGMMA "k16.f16.f16.f16 " D2 ", " A4 ", b, c, 1, 1, 0")
  ROW(wgmma_m64k16_f16_desc, (multiply<f16, 16>(k, matrix<T>(a), matrix<T, Major::kMn>(b), c)),
      "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 " D4 ", a, b, c, 1, 1, 0, 1")
  ROW(wgmma_m64k8_tf32, (multiply<f32, 8>(k, fragment<T>(a), matrix<T>(b), c)),
      WGMMA "k8.f32.tf32.tf32 " D4 ", " A4 ", b, c, 1, 1")
  ROW(wgmma_m64k8_tf32_desc, (multiply<f32, 8>(k, matrix<T>(a), matrix<T>(b), c)),
      WGMMA "k8.f32.tf32.tf32 " D4 ", a, b, c, 1, 1")
  ROW(wgmma_m64k32_f8_f32, (multiply<f32, 8>(k, fragment<D>(a), matrix<T>(b), c)),
      WGMMA "k32.f32." FP8 " " D4 ", " A4 ", b, c, 1, 1")
  ROW(wgmma_m64k32_f8_f32_desc, (multiply<f32, 8>(k, matrix<D>(a), matrix<T>(b), c)),
      WGMMA "k32.f32." FP8 " " D4 ", a, b, c, 1, 1")
  ROW(wgmma_m64k32_f8_f16, (multiply<f16, 8>(k, fragment<D>(a), matrix<T>(b), c)),
      WGMMA "k32.f16." FP8 " " D2 ", " A4 ", b, c, 1, 1")
  ROW(wgmma_m64k32_f8_f16_desc, (multiply<f16, 8>(k, matrix<D>(a), matrix<T>(b), c)),
      WGMMA "k32.f16." FP8 " " D2 ", a, b, c, 1, 1")
}

void add_integers(RowSuite& suite) {
  ROW(wgmma_m64k32_i8, (multiply<s32, 8>(k, fragment<T>(a), matrix<T>(b), c)),
      WGMMA "k32.s32.(u8.u8|s8.s8) " D4 ", " A4 ", b, c")
  ROW(wgmma_m64k32_i8_desc, (multiply<s32, 8>(k, matrix<T>(a), matrix<T>(b), c)),
      WGMMA "k32.s32.(u8.u8|s8.s8) " D4 ", a, b, c")
  ROW(wgmma_m64k32_i8_satfinite, (multiply_satfinite<8>(k, fragment<T>(a), matrix<T>(b), c)),
      WGMMA "k32.satfinite.s32.(u8.u8|s8.s8) " D4 ", " A4 ", b, c")
  ROW(wgmma_m64k32_i8_satfinite_desc, (multiply_satfinite<8>(k, matrix<T>(a), matrix<T>(b), c)),
      WGMMA "k32.satfinite.s32.(u8.u8|s8.s8) " D4 ", a, b, c")
  ROW(wgmma_m64k32_u8_s8, (multiply<s32, 8>(k, fragment<D>(a), matrix<T>(b), c)),
      WGMMA "k32.s32.u8.s8 " D4 ", " A4 ", b, c")
  ROW(wgmma_m64k32_u8_s8_desc, (multiply<s32, 8>(k, matrix<D>(a), matrix<T>(b), c)),
      WGMMA "k32.s32.u8.s8 " D4 ", a, b, c")
  ROW(wgmma_m64k32_u8_s8_satfinite, (multiply_satfinite<8>(k, fragment<D>(a), matrix<T>(b), c)),
      WGMMA "k32.satfinite.s32.u8.s8 " D4 ", " A4 ", b, c")
  ROW(wgmma_m64k32_u8_s8_satfinite_desc, (multiply_satfinite<8>(k, matrix<D>(a), matrix<T>(b), c)),
      WGMMA "k32.satfinite.s32.u8.s8 " D4 ", a, b, c")
  ROW(wgmma_m64k32_s8_u8, (multiply<s32, 8>(k, fragment<D>(a), matrix<T>(b), c)),
      WGMMA "k32.s32.s8.u8 " D4 ", " A4 ", b, c")
  ROW(wgmma_m64k32_s8_u8_desc, (multiply<s32, 8>(k, matrix<D>(a), matrix<T>(b), c)),
      WGMMA "k32.s32.s8.u8 " D4 ", a, b, c")
  ROW(wgmma_m64k32_s8_u8_satfinite, (multiply_satfinite<8>(k, fragment<D>(a), matrix<T>(b), c)),
      WGMMA "k32.satfinite.s32.s8.u8 " D4 ", " A4 ", b, c")
  ROW(wgmma_m64k32_s8_u8_satfinite_desc, (multiply_satfinite<8>(k, matrix<D>(a), matrix<T>(b), c)),
      WGMMA "k32.satfinite.s32.s8.u8 " D4 ", a, b, c")
}

}  // namespace

void add_wgmma_rows(RowSuite& suite) {
  add_floats(suite);
  add_integers(suite);
  ROW(wgmma_fence, k.wgmma_fence(), "wgmma.fence.sync.aligned")
  ROW(wgmma_commit_group, k.wgmma_commit_group(), "wgmma.commit_group.sync.aligned")
  ROW(wgmma_wait_group, k.wgmma_wait_group(1), "wgmma.wait_group.sync.aligned 1")
}

}  // namespace ptxgen::testing
