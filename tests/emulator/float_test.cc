// Floating-point arithmetic and comparison: bit patterns at the edges of the formats.
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

constexpr std::uint32_t kNan = 0x7fffffff, kInf = 0x7f800000;

TEST_CASE("f32 addition, products and fused ones round once", "[emulator]") {
  CHECK(f0("add.rn.f32 %f0, 0f3f800000, 0f33800000;") == 0x3f800000);  // 1 + 2^-24: tie to even
  CHECK(f0("add.rz.f32 %f0, 0f3f800000, 0f33ffffff;") == 0x3f800000);
  CHECK(f0("add.rp.f32 %f0, 0f3f800000, 0f00000001;") == 0x3f800001);  // an ulp for the least subnormal
  CHECK(f0("add.rm.f32 %f0, 0f3f800000, 0f80000001;") == 0x3f7fffff);
  CHECK(f0("add.rm.f32 %f0, 0f3f800000, 0fbf800000;") == 0x80000000);  // exact zero is -0 when rounding down
  CHECK(f0("add.f32 %f0, 0f3f800000, 0fbf800000;") == 0);
  CHECK(f0("sub.f32 %f0, 0f00000001, 0f00000002;") == 0x80000001);  // subnormals are kept
  CHECK(f0("add.ftz.f32 %f0, 0f00000001, 0f80000002;") == 0);
  CHECK(f0("mul.ftz.f32 %f0, 0f80800000, 0f3f000000;") == 0x80000000);  // -2^-127 flushes to -0
  CHECK(f0("mul.f32 %f0, 0f80800000, 0f3f000000;") == 0x80400000);
  CHECK(f0("mul.rz.f32 %f0, 0f7f7fffff, 0f40000000;") == 0x7f7fffff);
  CHECK(f0("mul.rn.f32 %f0, 0f7f7fffff, 0f40000000;") == kInf);
  CHECK(f0("mul.f32 %f0, 0f7f800000, 0f00000000;") == kNan);
  CHECK(f0("add.f32 %f0, 0f7f800001, 0f3f800000;") == kNan);
  CHECK(f0("add.sat.f32 %f0, 0f3f800000, 0f3f800000;") == 0x3f800000);
  CHECK(f0("sub.sat.f32 %f0, 0f3f800000, 0f40000000;") == 0);
  CHECK(f0("mul.sat.f32 %f0, 0f7fc00000, 0f3f800000;") == 0);
  // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24, which separate roundings lose.
  CHECK(f0("fma.rn.f32 %f0, 0f3f800800, 0f3f800800, 0fbf801000;") == 0x33800000);
  CHECK(f0("mul.rn.f32 %f1, 0f3f800800, 0f3f800800; sub.rn.f32 %f0, %f1, 0f3f801000;") == 0);
  CHECK(f0("fma.rz.f32 %f0, 0f3f800000, 0f3f800000, 0f33ffffff;") == 0x3f800000);
  CHECK(f0("fma.rp.f32 %f0, 0f3f800000, 0f3f800000, 0f00000001;") == 0x3f800001);
  CHECK(f0("fma.rm.f32 %f0, 0f3f800000, 0f3f800000, 0f80000001;") == 0x3f7fffff);
  CHECK(f0("mad.rn.f32 %f0, 0f40000000, 0f40400000, 0f3f800000;") == 0x40e00000);
}

TEST_CASE("f64 arithmetic", "[emulator]") {
  CHECK(d0("add.rn.f64 %d0, 0d3ff0000000000000, 0d3ca0000000000000;") == 0x3ff0000000000000);  // 1 + 2^-53
  CHECK(d0("add.rp.f64 %d0, 0d3ff0000000000000, 0d0000000000000001;") == 0x3ff0000000000001);
  CHECK(d0("mul.rm.f64 %d0, 0dbff0000000000001, 0d3ff0000000000001;") == 0xbff0000000000003);
  CHECK(d0("mul.rz.f64 %d0, 0dbff0000000000001, 0d3ff0000000000001;") == 0xbff0000000000002);
  CHECK(d0("fma.rn.f64 %d0, 0d4000000000000000, 0d4008000000000000, 0d3ff0000000000000;") ==
        0x401c000000000000);
  CHECK(d0("div.rz.f64 %d0, 0d3ff0000000000000, 0d4008000000000000;") == 0x3fd5555555555555);
  CHECK(d0("div.rp.f64 %d0, 0d3ff0000000000000, 0d4008000000000000;") == 0x3fd5555555555556);
  CHECK(d0("sqrt.rn.f64 %d0, 0d4000000000000000;") == 0x3ff6a09e667f3bcd);
  CHECK(d0("sqrt.rz.f64 %d0, 0d4000000000000000;") == 0x3ff6a09e667f3bcc);
  CHECK(d0("rcp.rn.f64 %d0, 0d4008000000000000;") == 0x3fd5555555555555);
  CHECK(d0("neg.f64 %d0, 0d3ff0000000000000;") == 0xbff0000000000000);
  CHECK(d0("abs.f64 %d0, 0dbff0000000000000;") == 0x3ff0000000000000);
  CHECK(d0("min.f64 %d0, 0d8000000000000000, 0d0000000000000000;") == 0x8000000000000000);
  CHECK(d0("max.f64 %d0, 0d7ff8000000000000, 0d3ff0000000000000;") == 0x3ff0000000000000);
}

TEST_CASE("f64 keeps the payload of a NaN, and instructions choose between two", "[emulator]") {
  const std::uint64_t none = 0xfff8000000000000;
  CHECK(d0("sub.f64 %d0, 0d7ff0000000000000, 0d7ff0000000000000;") == none);
  CHECK(d0("mul.rz.f64 %d0, 0d7ff0000000000000, 0d0000000000000000;") == none);
  CHECK(d0("sqrt.rn.f64 %d0, 0dbff0000000000000;") == none);
  CHECK(d0("add.f64 %d0, 0d7ff0000000000001, 0d3ff0000000000000;") == 0x7ff8000000000001);
  CHECK(d0("add.rm.f64 %d0, 0d7ff8000000000001, 0dfff8000000000002;") == 0xfff8000000000002);
  CHECK(d0("sub.f64 %d0, 0d7ff8000000000001, 0dfff8000000000002;") == 0xfff8000000000002);
  CHECK(d0("div.rn.f64 %d0, 0d7ff8000000000001, 0dfff8000000000002;") == 0x7ff8000000000001);
  CHECK(d0("fma.rn.f64 %d0, 0d7ff8000000000001, 0d7ff8000000000002, 0d7ff8000000000003;") ==
        0x7ff8000000000002);
  CHECK(d0("fma.rp.f64 %d0, 0d7ff8000000000001, 0d4000000000000000, 0d7ff8000000000003;") ==
        0x7ff8000000000003);
  CHECK(d0("min.f64 %d0, 0d7ff8000000000001, 0dfff0000000000002;") == 0xfff8000000000002);
  CHECK(d0("abs.f64 %d0, 0dfff0000000000001;") == 0xfff8000000000001);
  CHECK(d0("neg.f64 %d0, 0d7ff0000000000001;") == 0x7ff8000000000001);
  CHECK(f0("abs.f32 %f0, 0fff800001;") == kNan);
  CHECK(f0("neg.f32 %f0, 0f7fc00000;") == kNan);
}

TEST_CASE("division, reciprocals and roots", "[emulator]") {
  CHECK(f0("div.rn.f32 %f0, 0f3f800000, 0f40400000;") == 0x3eaaaaab);
  CHECK(f0("div.rz.f32 %f0, 0f3f800000, 0f40400000;") == 0x3eaaaaaa);
  CHECK(f0("div.rm.f32 %f0, 0fbf800000, 0f40400000;") == 0xbeaaaaab);
  CHECK(f0("div.rn.f32 %f0, 0f3f800000, 0f00000000;") == kInf);
  CHECK(f0("div.rn.f32 %f0, 0f00000000, 0f00000000;") == kNan);
  CHECK(f0("div.full.f32 %f0, 0f41200000, 0f40a00000;") == 0x40000000);
  CHECK(f0("div.approx.f32 %f0, 0f41200000, 0f40a00000;") == 0x40000000);
  CHECK(f0("div.approx.ftz.f32 %f0, 0f3f800000, 0f7f000001;") == 0);  // 2^126 < |b| < 2^128
  CHECK(f0("rcp.rn.f32 %f0, 0f40400000;") == 0x3eaaaaab);
  CHECK(f0("rcp.rp.f32 %f0, 0f40a00000;") == 0x3e4ccccd);
  CHECK(f0("rcp.rz.f32 %f0, 0f40a00000;") == 0x3e4ccccc);
  CHECK(f0("rcp.approx.ftz.f32 %f0, 0f40800000;") == 0x3e800000);
  CHECK(f0("sqrt.rn.f32 %f0, 0f40000000;") == 0x3fb504f3);
  CHECK(f0("sqrt.rp.f32 %f0, 0f40000000;") == 0x3fb504f4);
  CHECK(f0("sqrt.rn.f32 %f0, 0fbf800000;") == kNan);
  CHECK(f0("sqrt.rn.f32 %f0, 0f80000000;") == 0x80000000);
  CHECK(f0("sqrt.approx.f32 %f0, 0f40800000;") == 0x40000000);
  CHECK(f0("rsqrt.approx.f32 %f0, 0f40800000;") == 0x3f000000);
}

TEST_CASE("approximations are the rounded true values", "[emulator]") {
  CHECK(f0("ex2.approx.f32 %f0, 0f40400000;") == 0x41000000);
  CHECK(f0("ex2.approx.ftz.f32 %f0, 0fc3160000;") == 0);       // 2^-150
  CHECK(f0("ex2.approx.f32 %f0, 0fc3140000;") == 0x00000002);  // 2^-148
  CHECK(f0("lg2.approx.f32 %f0, 0f41000000;") == 0x40400000);
  CHECK(f0("lg2.approx.f32 %f0, 0f00000000;") == 0xff800000);
  CHECK(f0("sin.approx.f32 %f0, 0f3fc90fdb;") == 0x3f800000);
  CHECK(f0("cos.approx.f32 %f0, 0f00000000;") == 0x3f800000);
  CHECK(f0("tanh.approx.f32 %f0, 0f42c80000;") == 0x3f800000);
  CHECK(h0("mov.b16 %h1, 0x4200; ex2.approx.f16 %h0, %h1;") == 0x4800);
  CHECK(r0("mov.b32 %r1, 0x42003c00; ex2.approx.f16x2 %r0, %r1;") == 0x48004000);
  CHECK(h0("mov.b16 %h1, 0x4040; ex2.approx.ftz.bf16 %h0, %h1;") == 0x4100);
  CHECK(h0("mov.b16 %h1, 0x0000; tanh.approx.f16 %h0, %h1;") == 0);
}

TEST_CASE("f32 extremes and signs", "[emulator]") {
  CHECK(f0("min.f32 %f0, 0f7fc00000, 0f3f800000;") == 0x3f800000);
  CHECK(f0("min.NaN.f32 %f0, 0f7fc00000, 0f3f800000;") == kNan);
  CHECK(f0("max.f32 %f0, 0f7fc00000, 0fffc00000;") == kNan);
  CHECK(f0("max.f32 %f0, 0f80000000, 0f00000000;") == 0);
  CHECK(f0("min.f32 %f0, 0f00000000, 0f80000000;") == 0x80000000);
  CHECK(f0("max.ftz.f32 %f0, 0f00000001, 0fbf800000;") == 0);
  CHECK(f0("min.xorsign.abs.f32 %f0, 0fc0000000, 0f40400000;") == 0xc0000000);
  CHECK(f0("abs.f32 %f0, 0fbf800000;") == 0x3f800000);
  CHECK(f0("neg.ftz.f32 %f0, 0f00000001;") == 0x80000000);
  CHECK(f0("copysign.f32 %f0, 0f80000000, 0f3f800000;") == 0xbf800000);
}

TEST_CASE("half precision rounds once and keeps its NaN", "[emulator]") {
  CHECK(h0("mov.b16 %h1, 0x3c00; mov.b16 %h2, 0x1000; add.f16 %h0, %h1, %h2;") == 0x3c00);  // 1 + 2^-11: tie
  CHECK(h0("mov.b16 %h1, 0x3c01; mov.b16 %h2, 0x1000; add.f16 %h0, %h1, %h2;") == 0x3c02);
  CHECK(h0("mov.b16 %h1, 0x7bff; mov.b16 %h2, 0x7bff; add.f16 %h0, %h1, %h2;") == 0x7c00);
  CHECK(h0("mov.b16 %h1, 0x7c00; mov.b16 %h2, 0x7c00; sub.f16 %h0, %h1, %h2;") == 0x7fff);
  CHECK(h0("mov.b16 %h1, 0x0001; mov.b16 %h2, 0x3800; mul.f16 %h0, %h1, %h2;") ==
        0x0000);  // 2^-25: tie to even
  CHECK(h0("mov.b16 %h1, 0x0003; mov.b16 %h2, 0x3800; mul.f16 %h0, %h1, %h2;") == 0x0002);
  CHECK(h0("mov.b16 %h1, 0x0003; mov.b16 %h2, 0x3c00; mul.ftz.f16 %h0, %h1, %h2;") == 0);
  CHECK(h0("mov.b16 %h1, 0x4000; mov.b16 %h2, 0x3c00; sub.sat.f16 %h0, %h1, %h2;") == 0x3c00);
  // q * 2^-24 as a subnormal, times 2^16, minus 2^-8: what a decoder of nibbles does.
  CHECK(h0("mov.b16 %h1, 0x000f; mov.b16 %h2, 0x7bff; mov.b16 %h3, 0x9c00; fma.rn.f16 %h0, %h1, %h2, %h3;") ==
        0x2aff);
  CHECK(h0("mov.b16 %h1, 0xbc00; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0; fma.rn.relu.f16 %h0, %h1, %h2, %h3;") ==
        0);
  CHECK(r0("mov.b32 %r10, 0x3c004000; mov.b32 %r11, 0x3c003c00; add.f16x2 %r0, %r10, %r11;") == 0x40004200);
  CHECK(r0("mov.b32 %r1, 0x64056403; mov.b32 %r2, 0xe400e400; add.rn.f16x2 %r0, %r1, %r2;") == 0x45004200);
  CHECK(r0("mov.b32 %r10, 0x3c004000; mov.b32 %r11, 0x40004200; mov.b32 %r12, 0x3c003c00; fma.rn.f16x2 %r0, "
           "%r10, %r11, %r12;") == 0x42004700);
  CHECK(h0("mov.b16 %h1, 0x3f80; mov.b16 %h2, 0x3b80; add.bf16 %h0, %h1, %h2;") == 0x3f80);  // 1 + 2^-8: tie
  CHECK(h0("mov.b16 %h1, 0x3f81; mov.b16 %h2, 0x3b80; add.bf16 %h0, %h1, %h2;") == 0x3f82);
  CHECK(r0("mov.b32 %r10, 0x3f804000; mov.b32 %r11, 0x40004040; mov.b32 %r12, 0x3f803f80; fma.rn.bf16x2 %r0, "
           "%r10, %r11, %r12;") == 0x404040e0);
  CHECK(h0("mov.b16 %h1, 0x7e00; mov.b16 %h2, 0x3c00; min.f16 %h0, %h1, %h2;") == 0x3c00);
  CHECK(h0("mov.b16 %h1, 0x7e00; mov.b16 %h2, 0x3c00; min.NaN.f16 %h0, %h1, %h2;") == 0x7fff);
  CHECK(r0("mov.b32 %r10, 0x3c008000; mov.b32 %r11, 0x40000000; max.f16x2 %r0, %r10, %r11;") == 0x40000000);
  CHECK(r0("mov.b32 %r10, 0x3c008000; neg.f16x2 %r0, %r10;") == 0xbc000000);
  CHECK(r0("mov.b32 %r10, 0xbf808000; abs.bf16x2 %r0, %r10;") == 0x3f800000);
}

TEST_CASE("comparisons, ordered and unordered", "[emulator]") {
  const auto set = [](const char* compare) { return r0(std::string(compare) + "selp.u32 %r0, 1, 0, %p0;"); };
  CHECK(set("setp.lt.f32 %p0, 0f3f800000, 0f40000000;") == 1);
  CHECK(set("setp.lt.f32 %p0, 0f7fc00000, 0f40000000;") == 0);
  CHECK(set("setp.ltu.f32 %p0, 0f7fc00000, 0f40000000;") == 1);
  CHECK(set("setp.ne.f32 %p0, 0f7fc00000, 0f7fc00000;") == 0);
  CHECK(set("setp.neu.f32 %p0, 0f7fc00000, 0f7fc00000;") == 1);
  CHECK(set("setp.eq.f32 %p0, 0f80000000, 0f00000000;") == 1);
  CHECK(set("setp.num.f64 %p0, 0d7ff8000000000000, 0d0000000000000000;") == 0);
  CHECK(set("setp.nan.f64 %p0, 0d7ff8000000000000, 0d0000000000000000;") == 1);
  CHECK(set("setp.eq.ftz.f32 %p0, 0f00000001, 0f00000000;") == 1);
  CHECK(set("setp.lt.s32 %p0, -1, 0;") == 1);
  CHECK(set("setp.lt.u32 %p0, -1, 0;") == 0);
  CHECK(set("setp.hi.u32 %p0, -1, 0;") == 1);
  CHECK(set("setp.ge.s64 %p0, -1, 0;") == 0);
  CHECK(set("setp.eq.u32 %p1, 1, 1; setp.lt.and.u32 %p0, 1, 2, %p1;") == 1);
  CHECK(set("setp.eq.u32 %p1, 1, 1; setp.lt.and.u32 %p0, 1, 2, !%p1;") == 0);
  CHECK(set("setp.eq.u32 %p1, 1, 1; setp.gt.or.u32 %p0, 1, 2, %p1;") == 1);
  CHECK(set("setp.eq.u32 %p1, 1, 1; setp.lt.xor.u32 %p0, 1, 2, %p1;") == 0);
  CHECK(set("setp.lt.u32 %p1|%p0, 2, 1;") == 1);
  CHECK(set("mov.b32 %r10, 0x3c004000; mov.b32 %r11, 0x40003c00; setp.lt.f16x2 %p1|%p0, %r10, %r11;") == 1);
  CHECK(set("mov.b32 %r10, 0x3c004000; mov.b32 %r11, 0x40003c00; setp.lt.f16x2 %p0|%p1, %r10, %r11;") == 0);
  CHECK(r0("set.lt.u32.f32 %r0, 0f3f800000, 0f40000000;") == 0xffffffff);
  CHECK(f0("set.lt.f32.s32 %f0, -1, 0;") == 0x3f800000);
  CHECK(r0("slct.u32.s32 %r0, 5, 6, -1;") == 6);
  CHECK(r0("mov.f32 %f1, 0f80000000; slct.u32.f32 %r0, 5, 6, %f1;") == 5);
  CHECK(set("testp.subnormal.f32 %p0, 0f00000001;") == 1);
  CHECK(set("testp.normal.f32 %p0, 0f00000001;") == 0);
  CHECK(set("testp.infinite.f64 %p0, 0dfff0000000000000;") == 1);
  CHECK(set("testp.notanumber.f32 %p0, 0f7fc00000;") == 1);
}

}  // namespace
}  // namespace ptxgen::emulator
