#include "tests/builder/rows.h"

namespace ptxgen::testing {

// The instructions that have no function of their own: how the builder comes to write them.
void add_internal_rows(RowSuite& suite) {
  using namespace type_sets;
  TYPES_ROW(mov, kInt, k.template constant<T>(7), "mov.(b16|b16|b32|b32|b64|b64) d, 7")
  TYPES_ROW(mov, kU8 | kS8, k.template constant<T>(7), "mov.(b16|b16) d, 7")
  TYPES_ROW(mov, kF32, k.template constant<T>(1.5f), "mov.b32 d, 0f3FC00000")
  TYPES_ROW(mov, kF64, k.template constant<T>(1.5), "mov.b64 d, 0d3FF8000000000000")
  TYPES_ROW(mov, kPred, k.template constant<T>(true), "mov.pred d, 1")
  TYPES_ROW(mov, kF16, k.template constant<T>(f16{0x3e00}), "mov.b16 d, 15872")
  TYPES_ROW(mov, kBf16x2, k.template constant<T>(bf16x2{{0x3f80}, {0xbf80}}), "mov.b32 d, 0xbf803f80")
  TYPES_ROW(mov_symbol, kU32, ld_shared(s), "mov.u32 d, _shared_0")
  TYPES_ROW(ld_param, kMemory, a,
            "ld.param.(u8|s8|u16|s16|u32|s32|u64|s64|b16|b16|b32|b32|f32|f64|b16|b16) d, [a]")
  ROW(mov_param, prefetch_tensormap(m), "mov.b64 d, m")
  ROW(cvta_param, prefetch_tensormap(m), "cvta.param.u64 d, m")
  TYPES_ROW(bra, kU32,
            (k.if_(
                a != 0, [&] { st_global(p, b); }, [&] { st_global(p, c); })),
            "bra $end_1")
  TYPES_ROW(bra_if, kU32, k.for_(0, 8, 1, [&](const Reg<u32>& i) { st_global(p, i); }), "@d bra $loop_1")
  TYPES_ROW(bra_if_not, kU32, k.if_(a < b, [&] { st_global(p, c); }), "@!d bra $end_1")
  TYPES_ROW(ret, kU32, st_global(p, a), "ret")
}

}  // namespace ptxgen::testing
