#include "tests/builder/rows.h"

namespace ptxgen::testing {
namespace {

// A fragment whose registers are all `r`.
template <class F>
F filled(const typename F::Register& r) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return F({((void)I, r)...});
  }
  (std::make_index_sequence<F::kRegisters>{});
}

// In a call of ROW: fragments of a, b and c.
#define A_OF(type, m, k) filled<Fragment<Matrix::kA, type, m, k>>(a)
#define B_OF(type, k, n) filled<Fragment<Matrix::kB, type, k, n>>(b)
#define C_OF(type, m, n) filled<Fragment<Matrix::kC, type, m, n>>(c)

#define D4 "{d0, d1, d2, d3}"
#define A4 "{a, a, a, a}"
#define C4 "{c, c, c, c}"
#define BYTES "(u8|s8).(u8|s8)"
#define FP8 "(e4m3|e5m2).(e4m3|e5m2)"

void add_integer_mma(RowSuite& suite) {
  ROW(mma_m8n8k16_i8, (mma(A_OF(D, 8, 16), B_OF(T, 16, 8), C_OF(s32, 8, 8))),
      "mma.sync.aligned.m8n8k16.row.col.s32." BYTES ".s32 {d0, d1}, {a}, {b}, {c, c}")
  ROW(mma_m8n8k16_i8_satfinite, (mma_satfinite(A_OF(D, 8, 16), B_OF(T, 16, 8), C_OF(s32, 8, 8))),
      "mma.sync.aligned.m8n8k16.row.col.satfinite.s32." BYTES ".s32 {d0, d1}, {a}, {b}, {c, c}")
  ROW(mma_m16n8k16_i8, (mma(A_OF(D, 16, 16), B_OF(T, 16, 8), C_OF(s32, 16, 8))),
      "mma.sync.aligned.m16n8k16.row.col.s32." BYTES ".s32 " D4 ", {a, a}, {b}, " C4)
  ROW(mma_m16n8k16_i8_satfinite, (mma_satfinite(A_OF(D, 16, 16), B_OF(T, 16, 8), C_OF(s32, 16, 8))),
      "mma.sync.aligned.m16n8k16.row.col.satfinite.s32." BYTES ".s32 " D4 ", {a, a}, {b}, " C4)
  ROW(mma_m16n8k32_i8, (mma(A_OF(D, 16, 32), B_OF(T, 32, 8), C_OF(s32, 16, 8))),
      "mma.sync.aligned.m16n8k32.row.col.s32." BYTES ".s32 " D4 ", " A4 ", {b, b}, " C4)
  ROW(mma_m16n8k32_i8_satfinite, (mma_satfinite(A_OF(D, 16, 32), B_OF(T, 32, 8), C_OF(s32, 16, 8))),
      "mma.sync.aligned.m16n8k32.row.col.satfinite.s32." BYTES ".s32 " D4 ", " A4 ", {b, b}, " C4)
}

void add_float_mma(RowSuite& suite) {
  ROW(mma_m16n8k8_f16_f32, (mma(A_OF(T, 16, 8), B_OF(T, 8, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " D4 ", {a, a}, {b}, " C4)
  ROW(mma_m16n8k16_f16_f32, (mma(A_OF(T, 16, 16), B_OF(T, 16, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D4 ", " A4 ", {b, b}, " C4)
  ROW(mma_m16n8k8_f16_f16, (mma(A_OF(T, 16, 8), B_OF(T, 8, 8), C_OF(f16, 16, 8))),
      "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {d0, d1}, {a, a}, {b}, {c, c}")
  ROW(mma_m16n8k16_f16_f16, (mma(A_OF(T, 16, 16), B_OF(T, 16, 8), C_OF(f16, 16, 8))),
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {d0, d1}, " A4 ", {b, b}, {c, c}")
  ROW(mma_m16n8k8_bf16, (mma(A_OF(T, 16, 8), B_OF(T, 8, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " D4 ", {a, a}, {b}, " C4)
  ROW(mma_m16n8k16_bf16, (mma(A_OF(T, 16, 16), B_OF(T, 16, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " D4 ", " A4 ", {b, b}, " C4)
  ROW(mma_m16n8k4_tf32, (mma(A_OF(T, 16, 4), B_OF(T, 4, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 " D4 ", {a, a}, {b}, " C4)
  ROW(mma_m16n8k8_tf32, (mma(A_OF(T, 16, 8), B_OF(T, 8, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " D4 ", " A4 ", {b, b}, " C4)
  ROW(mma_m16n8k32_f8_f32, (mma(A_OF(D, 16, 32), B_OF(T, 32, 8), C_OF(f32, 16, 8))),
      "mma.sync.aligned.m16n8k32.row.col.f32." FP8 ".f32 " D4 ", " A4 ", {b, b}, " C4)
  ROW(mma_m16n8k32_f8_f16, (mma(A_OF(D, 16, 32), B_OF(T, 32, 8), C_OF(f16, 16, 8))),
      "mma.sync.aligned.m16n8k32.row.col.f16." FP8 ".f16 {d0, d1}, " A4 ", {b, b}, {c, c}")
}

#define M8N8 "matrix.sync.aligned.m8n8."

void add_tile_moves(RowSuite& suite) {
  ROW(ldmatrix_x1, ldmatrix_x1(s), "ld" M8N8 "x1.shared.b16 {d}, [s]")
  ROW(ldmatrix_x2, ldmatrix_x2(s), "ld" M8N8 "x2.shared.b16 {d0, d1}, [s]")
  ROW(ldmatrix_x4, ldmatrix_x4(s), "ld" M8N8 "x4.shared.b16 " D4 ", [s]")
  ROW(ldmatrix_x1_trans, ldmatrix_x1_trans(s), "ld" M8N8 "x1.trans.shared.b16 {d}, [s]")
  ROW(ldmatrix_x2_trans, ldmatrix_x2_trans(s), "ld" M8N8 "x2.trans.shared.b16 {d0, d1}, [s]")
  ROW(ldmatrix_x4_trans, ldmatrix_x4_trans(s), "ld" M8N8 "x4.trans.shared.b16 " D4 ", [s]")
  ROW(stmatrix_x1, stmatrix_x1(s, a), "st" M8N8 "x1.shared.b16 [s], {a}")
  ROW(stmatrix_x2, (stmatrix_x2(s, std::array{a, a})), "st" M8N8 "x2.shared.b16 [s], {a, a}")
  ROW(stmatrix_x4, (stmatrix_x4(s, std::array{a, a, a, a})), "st" M8N8 "x4.shared.b16 [s], " A4)
  ROW(stmatrix_x1_trans, stmatrix_x1_trans(s, a), "st" M8N8 "x1.trans.shared.b16 [s], {a}")
  ROW(stmatrix_x2_trans, (stmatrix_x2_trans(s, std::array{a, a})),
      "st" M8N8 "x2.trans.shared.b16 [s], {a, a}")
  ROW(stmatrix_x4_trans, (stmatrix_x4_trans(s, std::array{a, a, a, a})),
      "st" M8N8 "x4.trans.shared.b16 [s], " A4)
}

#define D8 "{d0, d1, d2, d3, d4, d5, d6, d7}"
#define A8 "{a, a, a, a, a, a, a, a}"
#define B8 "{b, b, b, b, b, b, b, b}"
#define P32 assume_aligned<32>(p)
#define S32 assume_aligned<32>(s)

// The rows of the shape m x n x k.
#define WMMA_ROWS(shape, m, n, k)                                                                          \
  ROW(wmma_load_a_##shape, wmma_load_a_##shape<Layout::kRow>(P32, a),                                      \
      "wmma.load.a.sync.aligned.row." #shape ".global.f16 " D8 ", [p], a")                                 \
  ROW(wmma_load_a_##shape, wmma_load_a_##shape<Layout::kCol>(S32, 24),                                     \
      "wmma.load.a.sync.aligned.col." #shape ".shared.f16 " D8 ", [s], 24")                                \
  ROW(wmma_load_b_##shape, wmma_load_b_##shape<Layout::kCol>(P32, a),                                      \
      "wmma.load.b.sync.aligned.col." #shape ".global.f16 " D8 ", [p], a")                                 \
  ROW(wmma_load_c_##shape##_f16, wmma_load_c_##shape<Layout::kRow>(p, a),                                  \
      "wmma.load.c.sync.aligned.row." #shape ".global.f16 " D4 ", [p], a")                                 \
  ROW(wmma_load_c_##shape##_f32, wmma_load_c_##shape<Layout::kRow>(P32, a),                                \
      "wmma.load.c.sync.aligned.row." #shape ".global.f32 " D8 ", [p], a")                                 \
  ROW(wmma_mma_##shape##_f16,                                                                              \
      (wmma_mma(filled<WmmaFragment<Matrix::kA, T, m, n, k, Layout::kRow>>(a),                             \
                filled<WmmaFragment<Matrix::kB, T, m, n, k, Layout::kCol>>(b),                             \
                filled<WmmaFragment<Matrix::kC, f16, m, n, k>>(c))),                                       \
      "wmma.mma.sync.aligned.row.col." #shape ".f16.f16 " D4 ", " A8 ", " B8 ", " C4)                      \
  ROW(wmma_mma_##shape##_f32,                                                                              \
      (wmma_mma(filled<WmmaFragment<Matrix::kA, T, m, n, k, Layout::kCol>>(a),                             \
                filled<WmmaFragment<Matrix::kB, T, m, n, k, Layout::kRow>>(b),                             \
                filled<WmmaFragment<Matrix::kC, f32, m, n, k>>(c))),                                       \
      "wmma.mma.sync.aligned.col.row." #shape ".f32.f32 " D8 ", " A8 ", " B8 ", {c, c, c, c, c, c, c, c}") \
  ROW(wmma_store_d_##shape##_f16,                                                                          \
      (wmma_store_d<Layout::kCol>(s, filled<WmmaFragment<Matrix::kC, T, m, n, k>>(a), b)),                 \
      "wmma.store.d.sync.aligned.col." #shape ".shared.f16 [s], " A4 ", b")                                \
  ROW(wmma_store_d_##shape##_f32,                                                                          \
      (wmma_store_d<Layout::kRow>(P32, filled<WmmaFragment<Matrix::kC, T, m, n, k>>(a), b)),               \
      "wmma.store.d.sync.aligned.row." #shape ".global.f32 [p], " A8 ", b")

void add_wmma(RowSuite& suite) {
  WMMA_ROWS(m16n16k16, 16, 16, 16)
  WMMA_ROWS(m32n8k16, 32, 8, 16)
  WMMA_ROWS(m8n32k16, 8, 32, 16)
}

}  // namespace

void add_matrix_rows(RowSuite& suite) {
  add_integer_mma(suite);
  add_float_mma(suite);
  add_tile_moves(suite);
  add_wmma(suite);
}

}  // namespace ptxgen::testing
