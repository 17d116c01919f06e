#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define FLOAT "(f32|f64)"

void add_float_rows(RowSuite& suite) {
  ROW(add_rn, a + b, "add.rn." FLOAT " d, a, b")
  ROW(add_rn, add_rn(a, b), "add.rn." FLOAT " d, a, b")
  ROW(add_rz, add_rz(a, b), "add.rz." FLOAT " d, a, b")
  ROW(add_rm, add_rm(a, b), "add.rm." FLOAT " d, a, b")
  ROW(add_rp, add_rp(a, b), "add.rp." FLOAT " d, a, b")
  ROW(add_rn_sat, add_rn_sat(a, b), "add.rn.sat.f32 d, a, b")
  ROW(sub_rn, a - b, "sub.rn." FLOAT " d, a, b")
  ROW(sub_rn, sub_rn(a, b), "sub.rn." FLOAT " d, a, b")
  ROW(sub_rz, sub_rz(a, b), "sub.rz." FLOAT " d, a, b")
  ROW(mul_rn, a * b, "mul.rn." FLOAT " d, a, b")
  ROW(mul_rn, mul_rn(a, b), "mul.rn." FLOAT " d, a, b")
  ROW(mul_rz, mul_rz(a, b), "mul.rz." FLOAT " d, a, b")
  ROW(mul_rn_sat, mul_rn_sat(a, b), "mul.rn.sat.f32 d, a, b")
  ROW(fma_rn, fma_rn(a, b, c), "fma.rn." FLOAT " d, a, b, c")
  ROW(fma_rz, fma_rz(a, b, c), "fma.rz." FLOAT " d, a, b, c")
  ROW(fma_rm, fma_rm(a, b, c), "fma.rm." FLOAT " d, a, b, c")
  ROW(fma_rp, fma_rp(a, b, c), "fma.rp." FLOAT " d, a, b, c")
  ROW(fma_rn_sat, fma_rn_sat(a, b, c), "fma.rn.sat.f32 d, a, b, c")
  ROW(div_rn, div_rn(a, b), "div.rn." FLOAT " d, a, b")
  ROW(div_full, div_full(a, b), "div.full.f32 d, a, b")
  ROW(div_approx, div_approx(a, b), "div.approx.f32 d, a, b")
  ROW(div_approx_ftz, div_approx_ftz(a, b), "div.approx.ftz.f32 d, a, b")
  ROW(abs_f, abs(a), "abs." FLOAT " d, a")
  ROW(neg_f, -a, "neg." FLOAT " d, a")
  ROW(neg_f, neg(a), "neg." FLOAT " d, a")
  ROW(min_f, min(a, b), "min." FLOAT " d, a, b")
  ROW(max_f, max(a, b), "max." FLOAT " d, a, b")
  ROW(min_nan_f, min_nan(a, b), "min.NaN.f32 d, a, b")
  ROW(max_nan_f, max_nan(a, b), "max.NaN.f32 d, a, b")
  ROW(copysign, copysign(a, b), "copysign." FLOAT " d, a, b")
  ROW(rcp_rn, rcp_rn(a), "rcp.rn." FLOAT " d, a")
  ROW(rcp_approx, rcp_approx(a), "rcp.approx.f32 d, a")
  ROW(rcp_approx_ftz, rcp_approx_ftz(a), "rcp.approx.ftz.f32 d, a")
  ROW(sqrt_rn, sqrt_rn(a), "sqrt.rn." FLOAT " d, a")
  ROW(sqrt_approx, sqrt_approx(a), "sqrt.approx.f32 d, a")
  ROW(rsqrt_approx, rsqrt_approx(a), "rsqrt.approx." FLOAT " d, a")
  ROW(rsqrt_approx_ftz, rsqrt_approx_ftz(a), "rsqrt.approx.ftz.f32 d, a")
  ROW(sin_approx, sin_approx(a), "sin.approx.f32 d, a")
  ROW(cos_approx, cos_approx(a), "cos.approx.f32 d, a")
  ROW(lg2_approx, lg2_approx(a), "lg2.approx.f32 d, a")
  ROW(lg2_approx_ftz, lg2_approx_ftz(a), "lg2.approx.ftz.f32 d, a")
  ROW(ex2_approx, ex2_approx(a), "ex2.approx.f32 d, a")
  ROW(ex2_approx_ftz, ex2_approx_ftz(a), "ex2.approx.ftz.f32 d, a")
  ROW(tanh_approx, tanh_approx(a), "tanh.approx.f32 d, a")
}

}  // namespace ptxgen::testing
