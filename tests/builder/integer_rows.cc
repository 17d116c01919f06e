#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define INT "(u16|s16|u32|s32|u64|s64)"
#define WORDS "(u32|s32|u64|s64)"
#define WORD_BITS "(b32|b32|b64|b64)"

void add_integer_rows(RowSuite& suite) {
  ROW(add, a + b, "add." INT " d, a, b")
  ROW(add, add(a, b), "add." INT " d, a, b")
  ROW(add_sat, add_sat(a, b), "add.sat.s32 d, a, b")
  ROW(sub, a - b, "sub." INT " d, a, b")
  ROW(sub, sub(a, b), "sub." INT " d, a, b")
  ROW(sub_sat, sub_sat(a, b), "sub.sat.s32 d, a, b")
  ROW(mul_lo, a * b, "mul.lo." INT " d, a, b")
  ROW(mul_lo, mul_lo(a, b), "mul.lo." INT " d, a, b")
  ROW(mul_hi, mul_hi(a, b), "mul.hi." INT " d, a, b")
  ROW(mul_wide, mul_wide(a, b), "mul.wide.(u16|s16|u32|s32) d, a, b")
  ROW(mad_lo, mad_lo(a, b, c), "mad.lo." INT " d, a, b, c")
  ROW(mad_hi, mad_hi(a, b, c), "mad.hi." INT " d, a, b, c")
  ROW(mad_wide, mad_wide(a, b, c), "mad.wide.(u16|s16|u32|s32) d, a, b, c")
  ROW(sad, sad(a, b, c), "sad." INT " d, a, b, c")
  ROW(div, a / b, "div." INT " d, a, b")
  ROW(div, div(a, b), "div." INT " d, a, b")
  ROW(rem, a % b, "rem." INT " d, a, b")
  ROW(rem, rem(a, b), "rem." INT " d, a, b")
  ROW(abs, abs(a), "abs.(s16|s32|s64) d, a")
  ROW(neg, -a, "neg.(s16|s32|s64) d, a")
  ROW(neg, neg(a), "neg.(s16|s32|s64) d, a")
  ROW(min, min(a, b), "min." INT " d, a, b")
  ROW(max, max(a, b), "max." INT " d, a, b")
  ROW(popc, popc(a), "popc." WORD_BITS " d, a")
  ROW(clz, clz(a), "clz." WORD_BITS " d, a")
  ROW(bfind, bfind(a), "bfind." WORDS " d, a")
  ROW(brev, brev(a), "brev." WORD_BITS " d, a")
  ROW(bfe, bfe(a, b, c), "bfe." WORDS " d, a, b, c")
  ROW(bfi, bfi(a, b, c, e), "bfi." WORD_BITS " d, a, b, c, e")
  ROW(dp4a_u32_u32, dp4a(a, b, c), "dp4a.u32.u32 d, a, b, c")
  ROW(dp4a_s32_s32, dp4a(a, b, c), "dp4a.s32.s32 d, a, b, c")
  ROW(dp4a_u32_s32, dp4a(a, b, c), "dp4a.u32.s32 d, a, b, c")
  ROW(dp4a_s32_u32, dp4a(a, b, c), "dp4a.s32.u32 d, a, b, c")
  ROW(dp2a_lo_u32_u32, dp2a_lo(a, b, c), "dp2a.lo.u32.u32 d, a, b, c")
  ROW(dp2a_lo_s32_s32, dp2a_lo(a, b, c), "dp2a.lo.s32.s32 d, a, b, c")
  ROW(dp2a_lo_u32_s32, dp2a_lo(a, b, c), "dp2a.lo.u32.s32 d, a, b, c")
  ROW(dp2a_lo_s32_u32, dp2a_lo(a, b, c), "dp2a.lo.s32.u32 d, a, b, c")
  ROW(dp2a_hi_u32_u32, dp2a_hi(a, b, c), "dp2a.hi.u32.u32 d, a, b, c")
  ROW(dp2a_hi_s32_s32, dp2a_hi(a, b, c), "dp2a.hi.s32.s32 d, a, b, c")
  ROW(dp2a_hi_u32_s32, dp2a_hi(a, b, c), "dp2a.hi.u32.s32 d, a, b, c")
  ROW(dp2a_hi_s32_u32, dp2a_hi(a, b, c), "dp2a.hi.s32.u32 d, a, b, c")
}

}  // namespace ptxgen::testing
