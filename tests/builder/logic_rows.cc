#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define PRED_INT_BITS "(pred|b16|b16|b32|b32|b64|b64)"

void add_logic_rows(RowSuite& suite) {
  ROW(and_, and_(a, b), "and." PRED_INT_BITS " d, a, b")
  ROW(or_, or_(a, b), "or." PRED_INT_BITS " d, a, b")
  ROW(xor_, xor_(a, b), "xor." PRED_INT_BITS " d, a, b")
  ROW(not_, not_(a), "not." PRED_INT_BITS " d, a")
  ROW(cnot, cnot(a), "cnot.(b16|b16|b32|b32|b64|b64) d, a")
  ROW(lop3, lop3(a, b, c, 0xe8u), "lop3.b32 d, a, b, c, (232|232)")
  ROW(shl, a << b, "shl.(b16|b16|b32|b32|b64|b64) d, a, b")
  ROW(shl, shl(a, b), "shl.(b16|b16|b32|b32|b64|b64) d, a, b")
  ROW(shr, a >> b, "shr.(u16|s16|u32|s32|u64|s64) d, a, b")
  ROW(shr, shr(a, b), "shr.(u16|s16|u32|s32|u64|s64) d, a, b")
  ROW(shf_l_wrap, shf_l_wrap(a, b, c), "shf.l.wrap.(b32|b32) d, a, b, c")
  ROW(shf_r_wrap, shf_r_wrap(a, b, c), "shf.r.wrap.(b32|b32) d, a, b, c")
  ROW(shf_l_clamp, shf_l_clamp(a, b, c), "shf.l.clamp.(b32|b32) d, a, b, c")
  ROW(shf_r_clamp, shf_r_clamp(a, b, c), "shf.r.clamp.(b32|b32) d, a, b, c")
  ROW(prmt, prmt(a, b, c), "prmt.(b32|b32) d, a, b, c")
  ROW(prmt_f4e, prmt_f4e(a, b, c), "prmt.b32.(f4e|f4e) d, a, b, c")
  ROW(prmt_b4e, prmt_b4e(a, b, c), "prmt.b32.(b4e|b4e) d, a, b, c")
  ROW(prmt_rc8, prmt_rc8(a, b, c), "prmt.b32.(rc8|rc8) d, a, b, c")
  ROW(prmt_rc16, prmt_rc16(a, b, c), "prmt.b32.(rc16|rc16) d, a, b, c")
  ROW(prmt_ecl, prmt_ecl(a, b, c), "prmt.b32.(ecl|ecl) d, a, b, c")
  ROW(prmt_ecr, prmt_ecr(a, b, c), "prmt.b32.(ecr|ecr) d, a, b, c")
}

}  // namespace ptxgen::testing
