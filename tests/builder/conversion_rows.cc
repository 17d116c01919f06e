#include "tests/builder/rows.h"

namespace ptxgen::testing {

// The sources of a pack, one text for each of their types.
#define PAIRS "{a, b}|{a, b}|{a, b}|{a, b}|{a, b}|{a, b}"
#define WORDS "{a, b}|{a, b}|{a, b}|{a, b}|{a, b}"
#define INT "(u16|s16|u32|s32|u64|s64)"
#define ANY_INT "(u8|s8|u16|s16|u32|s32|u64|s64)"
#define BYTE "(u8|s8)"
#define FLOAT "(f32|f64)"
#define FP8 "(e4m3x2|e5m2x2)"

void add_conversion_rows(RowSuite& suite) {
  ROW(pack_b32, pack<D>(a, b), "mov.b32 d, (" PAIRS "|" PAIRS "|" PAIRS "|" PAIRS "|" PAIRS ")")
  ROW(pack_b64, pack<D>(a, b), "mov.b64 d, (" WORDS "|" WORDS "|" WORDS ")")
  ROW(unpack_u32, unpack(a), "mov.b32 {d0, d1}, (a|a)")
  ROW(unpack_f16x2, unpack(a), "mov.b32 {d0, d1}, a")
  ROW(unpack_bf16x2, unpack(a), "mov.b32 {d0, d1}, a")
  ROW(unpack_u64, unpack(a), "mov.b64 {d0, d1}, (a|a|a)")

  ROW(cvt_int, cvt<D>(a), "cvt." INT "." ANY_INT " d, a")
  ROW(cvt_byte, cvt<D>(a), "cvt." BYTE "." INT " d, a")
  ROW(cvt_sat_byte, cvt_sat<D>(a), "cvt.sat." BYTE "." INT " d, a")
  ROW(cvt_sat_16, cvt_sat<D>(a), "cvt.sat.(u16|s16).(u32|s32|u64|s64) d, a")
  ROW(cvt_sat_32, cvt_sat<D>(a), "cvt.sat.(u32|s32).(u64|s64) d, a")
  ROW(cvt_rn_int_float, cvt_rn<D>(a), "cvt.rn." FLOAT "." ANY_INT " d, a")
  ROW(cvt_rz_int_float, cvt_rz<D>(a), "cvt.rz." FLOAT "." ANY_INT " d, a")
  ROW(cvt_rm_int_float, cvt_rm<D>(a), "cvt.rm." FLOAT "." ANY_INT " d, a")
  ROW(cvt_rp_int_float, cvt_rp<D>(a), "cvt.rp." FLOAT "." ANY_INT " d, a")
  ROW(cvt_rn_int_f16, cvt_rn<D>(a), "cvt.rn.f16." ANY_INT " d, a")
  ROW(cvt_rn_int_bf16, cvt_rn<D>(a), "cvt.rn.bf16." INT " d, a")
  ROW(cvt_rni_int, cvt_rni<D>(a), "cvt.rni." ANY_INT "." FLOAT " d, a")
  ROW(cvt_rzi_int, cvt_rzi<D>(a), "cvt.rzi." ANY_INT "." FLOAT " d, a")
  ROW(cvt_rmi_int, cvt_rmi<D>(a), "cvt.rmi." ANY_INT "." FLOAT " d, a")
  ROW(cvt_rpi_int, cvt_rpi<D>(a), "cvt.rpi." ANY_INT "." FLOAT " d, a")
  ROW(cvt_rni_sat_int, cvt_rni_sat<D>(a), "cvt.rni.sat." ANY_INT "." FLOAT " d, a")
  ROW(cvt_rzi_sat_int, cvt_rzi_sat<D>(a), "cvt.rzi.sat." ANY_INT "." FLOAT " d, a")
  ROW(cvt_rni_f16, cvt_rni<D>(a), "cvt.rni." ANY_INT ".f16 d, a")
  ROW(cvt_rzi_f16, cvt_rzi<D>(a), "cvt.rzi." ANY_INT ".f16 d, a")
  ROW(cvt_rmi_f16, cvt_rmi<D>(a), "cvt.rmi." ANY_INT ".f16 d, a")
  ROW(cvt_rpi_f16, cvt_rpi<D>(a), "cvt.rpi." ANY_INT ".f16 d, a")
  ROW(cvt_rni_bf16, cvt_rni<D>(a), "cvt.rni." INT ".bf16 d, a")
  ROW(cvt_rzi_bf16, cvt_rzi<D>(a), "cvt.rzi." INT ".bf16 d, a")
  ROW(cvt_rni_float, round_rni(a), "cvt.rni.(f32.f32|f64.f64) d, a")
  ROW(cvt_rzi_float, round_rzi(a), "cvt.rzi.(f32.f32|f64.f64) d, a")
  ROW(cvt_rmi_float, round_rmi(a), "cvt.rmi.(f32.f32|f64.f64) d, a")
  ROW(cvt_rpi_float, round_rpi(a), "cvt.rpi.(f32.f32|f64.f64) d, a")
  ROW(cvt_sat_float, cvt_sat_f32(a), "cvt.sat.f32.f32 d, a")
  ROW(cvt_f64_f32, cvt<D>(a), "cvt.f64.f32 d, a")
  ROW(cvt_rn_f32_f64, cvt_rn<D>(a), "cvt.rn.f32.f64 d, a")
  ROW(cvt_rz_f32_f64, cvt_rz<D>(a), "cvt.rz.f32.f64 d, a")
  ROW(cvt_rm_f32_f64, cvt_rm<D>(a), "cvt.rm.f32.f64 d, a")
  ROW(cvt_rp_f32_f64, cvt_rp<D>(a), "cvt.rp.f32.f64 d, a")
  ROW(cvt_f32_f16, cvt<D>(a), "cvt." FLOAT ".f16 d, a")
  ROW(cvt_rn_f16, cvt_rn<D>(a), "cvt.rn.f16." FLOAT " d, a")
  ROW(cvt_rz_f16, cvt_rz<D>(a), "cvt.rz.f16." FLOAT " d, a")
  ROW(cvt_rm_f16, cvt_rm<D>(a), "cvt.rm.f16." FLOAT " d, a")
  ROW(cvt_rp_f16, cvt_rp<D>(a), "cvt.rp.f16." FLOAT " d, a")
  ROW(cvt_rn_sat_f16, cvt_rn_sat<D>(a), "cvt.rn.sat.f16.f32 d, a")
  ROW(cvt_f32_bf16, cvt<D>(a), "cvt.f32.bf16 d, a")
  ROW(cvt_f64_bf16, cvt<D>(a), "cvt.f64.bf16 d, a")
  ROW(cvt_rn_bf16, cvt_rn<D>(a), "cvt.rn.bf16.f32 d, a")
  ROW(cvt_rz_bf16, cvt_rz<D>(a), "cvt.rz.bf16.f32 d, a")
  ROW(cvt_rn_bf16_f64, cvt_rn<D>(a), "cvt.rn.bf16.f64 d, a")
  ROW(cvt_rn_bf16_f16, cvt_rn<D>(a), "cvt.rn.bf16.f16 d, a")
  ROW(cvt_rn_f16_bf16, cvt_rn<D>(a), "cvt.rn.f16.bf16 d, a")
  ROW(cvt_rn_relu_half, cvt_rn_relu<D>(a), "cvt.rn.relu.(f16|bf16).f32 d, a")
  ROW(cvt_rn_x2, cvt_rn<D>(a, b), "cvt.rn.(f16x2|bf16x2).f32 d, a, b")
  ROW(cvt_rz_x2, cvt_rz<D>(a, b), "cvt.rz.(f16x2|bf16x2).f32 d, a, b")
  ROW(cvt_rn_relu_x2, cvt_rn_relu<D>(a, b), "cvt.rn.relu.(f16x2|bf16x2).f32 d, a, b")
  ROW(cvt_rn_satfinite_fp8, cvt_rn_satfinite<D>(a, b), "cvt.rn.satfinite." FP8 ".f32 d, a, b")
  ROW(cvt_rn_satfinite_relu_fp8, cvt_rn_satfinite_relu<D>(a, b), "cvt.rn.satfinite.relu." FP8 ".f32 d, a, b")
  ROW(cvt_rn_satfinite_fp8_f16x2, cvt_rn_satfinite<D>(a), "cvt.rn.satfinite." FP8 ".f16x2 d, a")
  ROW(cvt_rn_satfinite_relu_fp8_f16x2, cvt_rn_satfinite_relu<D>(a),
      "cvt.rn.satfinite.relu." FP8 ".f16x2 d, a")
  ROW(cvt_rn_f16x2_fp8, cvt_rn<D>(a), "cvt.rn.f16x2." FP8 " d, a")
  ROW(cvt_rn_relu_f16x2_fp8, cvt_rn_relu<D>(a), "cvt.rn.relu.f16x2." FP8 " d, a")
  ROW(cvt_rna_tf32, cvt_rna_tf32(a), "cvt.rna.tf32.f32 d, a")
}

}  // namespace ptxgen::testing
