#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define HALF "(f16|f16x2)"
#define BRAIN "(bf16|bf16x2)"
#define BOTH "(f16|bf16|f16x2|bf16x2)"

void add_half_rows(RowSuite& suite) {
  ROW(add_rn_f16, a + b, "add.rn." HALF " d, a, b")
  ROW(add_rn_f16, add_rn(a, b), "add.rn." HALF " d, a, b")
  ROW(sub_rn_f16, a - b, "sub.rn." HALF " d, a, b")
  ROW(sub_rn_f16, sub_rn(a, b), "sub.rn." HALF " d, a, b")
  ROW(mul_rn_f16, a * b, "mul.rn." HALF " d, a, b")
  ROW(mul_rn_f16, mul_rn(a, b), "mul.rn." HALF " d, a, b")
  ROW(fma_rn_f16, fma_rn(a, b, c), "fma.rn." HALF " d, a, b, c")
  ROW(fma_rn_relu, fma_rn_relu(a, b, c), "fma.rn.relu." BOTH " d, a, b, c")
  ROW(add_rn_bf16, a + b, "add.rn." BRAIN " d, a, b")
  ROW(add_rn_bf16, add_rn(a, b), "add.rn." BRAIN " d, a, b")
  ROW(sub_rn_bf16, a - b, "sub.rn." BRAIN " d, a, b")
  ROW(sub_rn_bf16, sub_rn(a, b), "sub.rn." BRAIN " d, a, b")
  ROW(mul_rn_bf16, a * b, "mul.rn." BRAIN " d, a, b")
  ROW(mul_rn_bf16, mul_rn(a, b), "mul.rn." BRAIN " d, a, b")
  ROW(fma_rn_bf16, fma_rn(a, b, c), "fma.rn." BRAIN " d, a, b, c")
  ROW(neg_f16, -a, "neg." HALF " d, a")
  ROW(neg_f16, neg(a), "neg." HALF " d, a")
  ROW(neg_bf16, -a, "neg." BRAIN " d, a")
  ROW(neg_bf16, neg(a), "neg." BRAIN " d, a")
  ROW(abs_f16, abs(a), "abs." HALF " d, a")
  ROW(abs_bf16, abs(a), "abs." BRAIN " d, a")
  ROW(min_h, min(a, b), "min." BOTH " d, a, b")
  ROW(max_h, max(a, b), "max." BOTH " d, a, b")
  ROW(min_nan_h, min_nan(a, b), "min.NaN." BOTH " d, a, b")
  ROW(max_nan_h, max_nan(a, b), "max.NaN." BOTH " d, a, b")
  ROW(ex2_approx_f16, ex2_approx(a), "ex2.approx." HALF " d, a")
  ROW(ex2_approx_ftz_bf16, ex2_approx_ftz(a), "ex2.approx.ftz." BRAIN " d, a")
  ROW(tanh_approx_f16, tanh_approx(a), "tanh.approx." HALF " d, a")
  ROW(tanh_approx_bf16, tanh_approx(a), "tanh.approx." BRAIN " d, a")
}

}  // namespace ptxgen::testing
