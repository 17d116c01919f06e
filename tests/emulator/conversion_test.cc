// cvt: every pair of kinds at its edges, and the 16- and 8-bit formats exhaustively.
#include "src/emulator/numerics.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

TEST_CASE("conversion between integers extends, truncates or clamps", "[emulator]") {
  CHECK(rd0("mov.b32 %r1, -2; cvt.s64.s32 %rd0, %r1;") == static_cast<std::uint64_t>(-2));
  CHECK(rd0("mov.b32 %r1, -2; cvt.u64.u32 %rd0, %r1;") == 0xfffffffe);
  CHECK(r0("mov.b64 %rd1, 0x1234567890abcdef; cvt.u32.u64 %r0, %rd1;") == 0x90abcdef);
  CHECK(r0("mov.b32 %r1, 0x1f0; cvt.s32.s8 %r0, %r1;") == 0xfffffff0);
  CHECK(r0("mov.b32 %r1, 0x1f0; cvt.u32.u8 %r0, %r1;") == 0xf0);
  CHECK(r0("mov.b32 %r1, 0x1f0; cvt.s8.s32 %r0, %r1;") == 0xfffffff0);
  CHECK(r0("mov.b32 %r1, 300; cvt.sat.u8.s32 %r0, %r1;") == 255);
  CHECK(r0("mov.b32 %r1, -300; cvt.sat.s8.s32 %r0, %r1;") == 0xffffff80);
  CHECK(r0("mov.b32 %r1, -1; cvt.sat.u32.s32 %r0, %r1;") == 0);
  CHECK(r0("mov.b32 %r1, -1; cvt.sat.s32.u32 %r0, %r1;") == 0x7fffffff);
  CHECK(h0("mov.b32 %r1, 0x18000; cvt.u16.u32 %h0, %r1;") == 0x8000);
  CHECK(r0("mov.b16 %h1, 0x8000; cvt.s32.s16 %r0, %h1;") == 0xffff8000);
}

TEST_CASE("floats to integers round as told, clamp, and turn NaN into what PTX says", "[emulator]") {
  CHECK(r0("cvt.rni.s32.f32 %r0, 0f40200000;") == 2);  // 2.5
  CHECK(r0("cvt.rzi.s32.f32 %r0, 0fc0200000;") == static_cast<std::uint32_t>(-2));
  CHECK(r0("cvt.rmi.s32.f32 %r0, 0fc0200000;") == static_cast<std::uint32_t>(-3));
  CHECK(r0("cvt.rpi.s32.f32 %r0, 0f40200000;") == 3);
  CHECK(r0("cvt.rzi.s32.f32 %r0, 0f4f000000;") == 0x7fffffff);
  CHECK(r0("cvt.rzi.s32.f32 %r0, 0fff800000;") == 0x80000000);
  CHECK(r0("cvt.rzi.u32.f32 %r0, 0fbf800000;") == 0);
  CHECK(r0("cvt.rzi.u32.f32 %r0, 0f4f800000;") == 0xffffffff);
  CHECK(r0("cvt.rzi.s32.f32 %r0, 0f7fc00000;") == 0);
  CHECK(r0("cvt.rzi.s32.f64 %r0, 0d7ff8000000000000;") == 0x80000000);
  CHECK(rd0("cvt.rzi.s64.f32 %rd0, 0f7fc00000;") == 0x8000000000000000);
  CHECK(rd0("cvt.rzi.u64.f64 %rd0, 0d43f0000000000000;") == 0xffffffffffffffff);
  CHECK(r0("cvt.rzi.u8.f32 %r0, 0f43960000;") == 255);
  CHECK(r0("cvt.rzi.s8.f32 %r0, 0fc3960000;") == 0xffffff80);
  CHECK(r0("mov.b16 %h1, 0xc100; cvt.rni.s32.f16 %r0, %h1;") == static_cast<std::uint32_t>(-2));
  CHECK(r0("cvt.rzi.ftz.s32.f32 %r0, 0f00000001;") == 0);
}

TEST_CASE("integers to floats round once", "[emulator]") {
  CHECK(f0("mov.b32 %r1, 16777217; cvt.rn.f32.u32 %f0, %r1;") == 0x4b800000);
  CHECK(f0("mov.b32 %r1, 16777217; cvt.rp.f32.u32 %f0, %r1;") == 0x4b800001);
  CHECK(f0("mov.b32 %r1, -16777217; cvt.rm.f32.s32 %f0, %r1;") == 0xcb800001);
  CHECK(f0("mov.b32 %r1, -1; cvt.rn.f32.u32 %f0, %r1;") == 0x4f800000);
  CHECK(f0("mov.b64 %rd1, 0x8000008000000001; cvt.rn.f32.u64 %f0, %rd1;") == 0x5f000001);  // just above a tie
  CHECK(f0("mov.b64 %rd1, 0x8000008000000000; cvt.rn.f32.u64 %f0, %rd1;") == 0x5f000000);  // the tie
  CHECK(d0("mov.b64 %rd1, 0x20000000000001; cvt.rn.f64.u64 %d0, %rd1;") == 0x4340000000000000);
  CHECK(d0("mov.b64 %rd1, 0x20000000000001; cvt.rp.f64.u64 %d0, %rd1;") == 0x4340000000000001);
  CHECK(d0("mov.b64 %rd1, -9007199254740993; cvt.rm.f64.s64 %d0, %rd1;") == 0xc340000000000001);
  CHECK(h0("mov.b32 %r1, 2049; cvt.rn.f16.s32 %h0, %r1;") == 0x6800);
  CHECK(h0("mov.b32 %r1, 70000; cvt.rn.f16.s32 %h0, %r1;") == 0x7c00);
  CHECK(h0("mov.b32 %r1, 70000; cvt.rz.f16.s32 %h0, %r1;") == 0x7bff);
  CHECK(f0("mov.b32 %r1, 0x1fe; cvt.rn.f32.s8 %f0, %r1;") == 0xc0000000);
  CHECK(f0("mov.b32 %r1, 0x1fe; cvt.rn.f32.u8 %f0, %r1;") == 0x437e0000);
}

TEST_CASE("floats to floats", "[emulator]") {
  CHECK(h0("cvt.rn.f16.f32 %h0, 0f477fefff;") == 0x7bff);  // just below the tie of 65504 and 65536
  CHECK(h0("cvt.rn.f16.f32 %h0, 0f477ff000;") == 0x7c00);
  CHECK(h0("cvt.rz.f16.f32 %h0, 0f477ff000;") == 0x7bff);
  CHECK(h0("cvt.rn.f16.f32 %h0, 0f33000000;") == 0);  // 2^-25 ties to zero
  CHECK(h0("cvt.rn.f16.f32 %h0, 0f33000001;") == 1);
  CHECK(h0("cvt.rn.f16.f32 %h0, 0f7f800001;") == 0x7fff);
  CHECK(h0("cvt.rn.bf16.f32 %h0, 0f3f808000;") == 0x3f80);
  CHECK(h0("cvt.rn.bf16.f32 %h0, 0f3f818000;") == 0x3f82);
  CHECK(h0("cvt.rn.relu.f16.f32 %h0, 0fbf800000;") == 0);
  CHECK(h0("cvt.rn.satfinite.f16.f32 %h0, 0f7f800000;") == 0x7bff);
  CHECK(f0("mov.b16 %h1, 0x0001; cvt.f32.f16 %f0, %h1;") == 0x33800000);
  CHECK(f0("mov.b16 %h1, 0xfc00; cvt.f32.f16 %f0, %h1;") == 0xff800000);
  CHECK(f0("mov.b16 %h1, 0x7e01; cvt.f32.f16 %f0, %h1;") == 0x7fffffff);
  CHECK(f0("mov.b16 %h1, 0xbf80; cvt.f32.bf16 %f0, %h1;") == 0xbf800000);
  CHECK(f0("mov.b16 %h1, 0xff81; cvt.f32.bf16 %f0, %h1;") == 0xff810000);
  CHECK(f0("cvt.rn.f32.f64 %f0, 0dfff0000020000001;") == 0xffc00001);
  CHECK(h0("cvt.rn.f16.f64 %h0, 0dfff0040000000000;") == 0xfe01);
  CHECK(d0("mov.b16 %h1, 0xfc01; cvt.f64.f16 %d0, %h1;") == 0xfff8040000000000);
  CHECK(r0("cvt.rna.tf32.f32 %r0, 0fff803fff;") == 0xff802000);
  CHECK(f0("cvt.rn.f32.f64 %f0, 0d3ff0000010000000;") == 0x3f800000);
  CHECK(f0("cvt.rp.f32.f64 %f0, 0d3ff0000000000001;") == 0x3f800001);
  CHECK(f0("cvt.rn.f32.f64 %f0, 0d36a0000000000000;") == 1);  // 2^-149
  CHECK(f0("cvt.rn.ftz.f32.f64 %f0, 0d36a0000000000000;") == 0);
  CHECK(d0("cvt.f64.f32 %d0, 0f00000001;") == 0x36a0000000000000);
  CHECK(f0("cvt.rni.f32.f32 %f0, 0f40200000;") == 0x40000000);
  CHECK(f0("cvt.rzi.f32.f32 %f0, 0fbf000000;") == 0x80000000);
  CHECK(f0("cvt.rpi.f32.f32 %f0, 0f3dcccccd;") == 0x3f800000);
  CHECK(f0("cvt.sat.f32.f32 %f0, 0f40000000;") == 0x3f800000);
  CHECK(f0("cvt.ftz.f32.f32 %f0, 0f80000001;") == 0x80000000);
  CHECK(r0("cvt.rna.tf32.f32 %r0, 0f3f801000;") == 0x3f802000);
  CHECK(r0("cvt.rn.tf32.f32 %r0, 0f3f801000;") == 0x3f800000);
}

TEST_CASE("pairs: the first source is the high half", "[emulator]") {
  CHECK(r0("cvt.rn.f16x2.f32 %r0, 0f3f800000, 0f40000000;") == 0x3c004000);
  CHECK(r0("cvt.rz.f16x2.f32 %r0, 0f477ff000, 0fc77ff000;") == 0x7bfffbff);
  CHECK(r0("cvt.rn.relu.f16x2.f32 %r0, 0fbf800000, 0f40000000;") == 0x00004000);
  CHECK(r0("cvt.rn.bf16x2.f32 %r0, 0f3f800000, 0f40000000;") == 0x3f804000);
  CHECK(h0("cvt.rn.satfinite.e4m3x2.f32 %h0, 0f3f800000, 0fc0000000;") == 0x38c0);
  CHECK(h0("cvt.rn.satfinite.e5m2x2.f32 %h0, 0f3f800000, 0fc0000000;") == 0x3cc0);
  CHECK(h0("cvt.rn.satfinite.e4m3x2.f32 %h0, 0f43e80000, 0f43e88000;") == 0x7e7e);  // 464 and 465
  CHECK(h0("cvt.rn.satfinite.e4m3x2.f32 %h0, 0f7f800000, 0fff800000;") == 0x7efe);
  CHECK(h0("cvt.rn.satfinite.e4m3x2.f32 %h0, 0f7fc00000, 0f80000000;") == 0x7f80);
  CHECK(h0("cvt.rn.satfinite.relu.e4m3x2.f32 %h0, 0fbf800000, 0f3f800000;") == 0x0038);
  CHECK(h0("cvt.rn.satfinite.e4m3x2.f32 %h0, 0f3f880000, 0f3f980000;") ==
        0x383a);  // 1.0625, 1.1875: ties to even
  CHECK(h0("cvt.rn.satfinite.e4m3x2.f32 %h0, 0f3a800000, 0f3a800001;") ==
        0x0001);  // 2^-10: half the least subnormal
  CHECK(h0("cvt.rn.satfinite.e5m2x2.f32 %h0, 0f7f7fffff, 0f47600000;") == 0x7b7b);
  CHECK(h0("mov.b32 %r1, 0x3c00fbff; cvt.rn.satfinite.e4m3x2.f16x2 %h0, %r1;") == 0x38fe);
  CHECK(r0("mov.b16 %h1, 0x38fe; cvt.rn.f16x2.e4m3x2 %r0, %h1;") == 0x3c00df00);
  CHECK(r0("mov.b16 %h1, 0x7f01; cvt.rn.f16x2.e4m3x2 %r0, %h1;") == 0x7fff1800);
  CHECK(r0("mov.b16 %h1, 0x7c01; cvt.rn.f16x2.e5m2x2 %r0, %h1;") == 0x7c000100);
}

TEST_CASE("every f16, bf16 and 8-bit float survives the way to double and back", "[emulator]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const f16 h{static_cast<std::uint16_t>(bits)};
    const bf16 b{static_cast<std::uint16_t>(bits)};
    REQUIRE(from_double<f16>(to_double(h), Rounding::kNearestEven).bits == (is_nan(h) ? 0x7fff : bits));
    REQUIRE(from_double<bf16>(to_double(b), Rounding::kZero).bits == (is_nan(b) ? 0x7fff : bits));
    if (!is_nan(h)) REQUIRE(to_double(h) == decode(bits, kF16));
  }
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<std::uint8_t>(bits);
    const double e4m3 = decode_fp8(byte, kE4m3), e5m2 = decode_fp8(byte, kE5m2);
    REQUIRE(encode_fp8(e4m3, kE4m3) == (e4m3 != e4m3 ? 0x7f : bits));
    if (std::isfinite(e5m2)) REQUIRE(encode_fp8(e5m2, kE5m2) == bits);
  }
}

TEST_CASE("rounding into f16 picks a neighbour, the nearer one when told to", "[emulator]") {
  // Between adjacent finite values h and next: a quarter, half and three quarters of the way.
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const double h = to_double(f16{bits}), next = to_double(f16{static_cast<std::uint16_t>(bits + 1)});
    const auto round = [&](double part, Rounding r) {
      return from_double<f16>(h + (next - h) * part, r).bits;
    };
    REQUIRE(round(0.25, Rounding::kNearestEven) == bits);
    REQUIRE(round(0.75, Rounding::kNearestEven) == bits + 1);
    REQUIRE(round(0.5, Rounding::kNearestEven) == (bits & 1 ? bits + 1 : bits));
    REQUIRE(round(0.5, Rounding::kNearestAway) == bits + 1);
    REQUIRE(round(0.75, Rounding::kZero) == bits);
    REQUIRE(round(0.75, Rounding::kDown) == bits);
    REQUIRE(round(0.25, Rounding::kUp) == bits + 1);
  }
}

}  // namespace
}  // namespace ptxgen::emulator
