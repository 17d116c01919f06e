#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define INT_FLOAT "(u16|s16|u32|s32|u64|s64|f32|f64)"
#define FLOAT "(f32|f64)"

void add_comparison_rows(RowSuite& suite) {
  ROW(setp_eq, a == b, "setp.eq." INT_FLOAT " d, a, b")
  ROW(setp_eq, setp_eq(a, b), "setp.eq." INT_FLOAT " d, a, b")
  ROW(setp_ne, setp_ne(a, b), "setp.ne." INT_FLOAT " d, a, b")
  ROW(setp_lt, a < b, "setp.lt." INT_FLOAT " d, a, b")
  ROW(setp_lt, setp_lt(a, b), "setp.lt." INT_FLOAT " d, a, b")
  ROW(setp_le, a <= b, "setp.le." INT_FLOAT " d, a, b")
  ROW(setp_le, setp_le(a, b), "setp.le." INT_FLOAT " d, a, b")
  ROW(setp_gt, a > b, "setp.gt." INT_FLOAT " d, a, b")
  ROW(setp_gt, setp_gt(a, b), "setp.gt." INT_FLOAT " d, a, b")
  ROW(setp_ge, a >= b, "setp.ge." INT_FLOAT " d, a, b")
  ROW(setp_ge, setp_ge(a, b), "setp.ge." INT_FLOAT " d, a, b")
  ROW(setp_equ, setp_equ(a, b), "setp.equ." FLOAT " d, a, b")
  ROW(setp_neu, a != b, "setp.neu." FLOAT " d, a, b")
  ROW(setp_neu, setp_neu(a, b), "setp.neu." FLOAT " d, a, b")
  ROW(setp_ltu, setp_ltu(a, b), "setp.ltu." FLOAT " d, a, b")
  ROW(setp_leu, setp_leu(a, b), "setp.leu." FLOAT " d, a, b")
  ROW(setp_gtu, setp_gtu(a, b), "setp.gtu." FLOAT " d, a, b")
  ROW(setp_geu, setp_geu(a, b), "setp.geu." FLOAT " d, a, b")
  ROW(setp_num, setp_num(a, b), "setp.num." FLOAT " d, a, b")
  ROW(setp_nan, setp_nan(a, b), "setp.nan." FLOAT " d, a, b")
  ROW(setp_eq_f16, setp_eq(a, b), "setp.eq.f16 d, a, b")
  ROW(setp_neu_f16, setp_neu(a, b), "setp.neu.f16 d, a, b")
  ROW(setp_lt_f16, setp_lt(a, b), "setp.lt.f16 d, a, b")
  ROW(setp_le_f16, setp_le(a, b), "setp.le.f16 d, a, b")
  ROW(setp_gt_f16, setp_gt(a, b), "setp.gt.f16 d, a, b")
  ROW(setp_ge_f16, setp_ge(a, b), "setp.ge.f16 d, a, b")
  ROW(setp_nan_f16, setp_nan(a, b), "setp.nan.f16 d, a, b")
  ROW(setp_eq_bf16, setp_eq(a, b), "setp.eq.bf16 d, a, b")
  ROW(setp_neu_bf16, setp_neu(a, b), "setp.neu.bf16 d, a, b")
  ROW(setp_lt_bf16, setp_lt(a, b), "setp.lt.bf16 d, a, b")
  ROW(setp_le_bf16, setp_le(a, b), "setp.le.bf16 d, a, b")
  ROW(setp_gt_bf16, setp_gt(a, b), "setp.gt.bf16 d, a, b")
  ROW(setp_ge_bf16, setp_ge(a, b), "setp.ge.bf16 d, a, b")
  ROW(setp_nan_bf16, setp_nan(a, b), "setp.nan.bf16 d, a, b")
  ROW(setp_eq_f16x2, setp_eq(a, b), "setp.eq.f16x2 d0|d1, a, b")
  ROW(setp_lt_f16x2, setp_lt(a, b), "setp.lt.f16x2 d0|d1, a, b")
  ROW(setp_gt_f16x2, setp_gt(a, b), "setp.gt.f16x2 d0|d1, a, b")
  ROW(setp_eq_bf16x2, setp_eq(a, b), "setp.eq.bf16x2 d0|d1, a, b")
  ROW(setp_lt_bf16x2, setp_lt(a, b), "setp.lt.bf16x2 d0|d1, a, b")
  ROW(setp_gt_bf16x2, setp_gt(a, b), "setp.gt.bf16x2 d0|d1, a, b")
  ROW(selp, selp(a, b, c), "selp.(b16|b16|b32|b32|b64|b64|b16|b16|b32|b32|b32|b64|b16|b16) d, a, b, c")
}

}  // namespace ptxgen::testing
