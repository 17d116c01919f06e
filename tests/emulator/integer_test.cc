// Integer arithmetic, logic, shifts and bit fields: literal results at the edges.
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

TEST_CASE("integer addition and subtraction wrap or saturate", "[emulator]") {
  CHECK(r0("add.u32 %r0, 0xffffffff, 2;") == 1);
  CHECK(r0("add.s32 %r0, 2147483647, 1;") == 0x80000000u);
  CHECK(r0("add.sat.s32 %r0, 2147483647, 1;") == 0x7fffffffu);
  CHECK(r0("sub.sat.s32 %r0, -2147483648, 1;") == 0x80000000u);
  CHECK(r0("sub.u32 %r0, 1, 2;") == 0xffffffffu);
  CHECK(rd0("add.u64 %rd0, 0xffffffffffffffff, 3;") == 2);
  CHECK(h0("add.u16 %h0, 65535, 3;") == 2);
  CHECK(r0("mov.b32 %r10, 0xffff0001; mov.b32 %r11, 0x00020003; add.u16x2 %r0, %r10, %r11;") == 0x00010004u);
  CHECK(r0("add.cc.u32 %r1, 0xffffffff, 1; addc.u32 %r0, 5, 6;") == 12);
  CHECK(r0("add.cc.u32 %r1, 0xfffffffe, 1; addc.u32 %r0, 5, 6;") == 11);
  CHECK(r0("add.cc.u32 %r1, -1, 1; addc.cc.u32 %r2, -1, 0; addc.u32 %r0, 0, 0;") == 1);
  CHECK(r0("sub.cc.u32 %r1, 0, 1; subc.u32 %r0, 9, 2;") == 6);
}

TEST_CASE("integer products", "[emulator]") {
  CHECK(r0("mul.lo.s32 %r0, -3, 7;") == static_cast<std::uint32_t>(-21));
  CHECK(r0("mul.hi.u32 %r0, 0xffffffff, 0xffffffff;") == 0xfffffffeu);
  CHECK(r0("mul.hi.s32 %r0, -1, 1;") == 0xffffffffu);
  CHECK(rd0("mul.hi.u64 %rd0, 0xffffffffffffffff, 0xffffffffffffffff;") == 0xfffffffffffffffeu);
  CHECK(rd0("mul.hi.s64 %rd0, -1, 5;") == ~std::uint64_t{0});
  CHECK(rd0("mul.wide.u32 %rd0, 0xffffffff, 0xffffffff;") == 0xfffffffe00000001u);
  CHECK(rd0("mul.wide.s32 %rd0, -2, 3;") == static_cast<std::uint64_t>(-6));
  CHECK(r0("mov.b16 %h1, 0xffff; mul.wide.s16 %r0, %h1, %h1;") == 1);
  CHECK(r0("mov.b16 %h1, 0xffff; mul.wide.u16 %r0, %h1, %h1;") == 0xfffe0001u);
  CHECK(h0("mov.b16 %h1, 0xffff; mul.lo.u16 %h0, %h1, %h1;") == 1);
  CHECK(r0("mad.lo.u32 %r0, 3, 4, 5;") == 17);
  CHECK(r0("mad.hi.u32 %r0, 0x80000000, 4, 5;") == 7);
  CHECK(rd0("mad.wide.s32 %rd0, -2, 3, 10;") == 4);
  CHECK(r0("mul24.lo.u32 %r0, 0xff000003, 5;") == 15);
  CHECK(r0("mul24.lo.s32 %r0, 0x00ffffff, 5;") == static_cast<std::uint32_t>(-5));
  CHECK(r0("mad24.lo.u32 %r0, 0xff000003, 5, 1;") == 16);
  CHECK(r0("mul24.hi.u32 %r0, 0x00ffffff, 0x00ffffff;") == 0xfffffe00u);
}

TEST_CASE("division and remainder", "[emulator]") {
  CHECK(r0("div.s32 %r0, -7, 2;") == static_cast<std::uint32_t>(-3));
  CHECK(r0("rem.s32 %r0, -7, 2;") == static_cast<std::uint32_t>(-1));
  CHECK(r0("div.s32 %r0, -2147483648, -1;") == 0x80000000u);
  CHECK(r0("rem.s32 %r0, -2147483648, -1;") == 0);
  CHECK(r0("div.u32 %r0, 7, 0;") == 0xffffffffu);
  CHECK(r0("rem.u32 %r0, 7, 0;") == 0xffffffffu);
  CHECK(rd0("div.u64 %rd0, 0xffffffffffffffff, 10;") == 1844674407370955161u);
}

TEST_CASE("absolute value, sign, extremes, differences", "[emulator]") {
  CHECK(r0("abs.s32 %r0, -5;") == 5);
  CHECK(r0("abs.s32 %r0, -2147483648;") == 0x80000000u);
  CHECK(r0("neg.s32 %r0, 5;") == static_cast<std::uint32_t>(-5));
  CHECK(r0("min.s32 %r0, -1, 1;") == 0xffffffffu);
  CHECK(r0("min.u32 %r0, -1, 1;") == 1);
  CHECK(r0("max.s32 %r0, -1, 1;") == 1);
  CHECK(r0("max.u32 %r0, -1, 1;") == 0xffffffffu);
  CHECK(r0("max.relu.s32 %r0, -4, -2;") == 0);
  CHECK(r0("mov.b32 %r10, 0xffff0005; mov.b32 %r11, 0x00010003; max.s16x2 %r0, %r10, %r11;") == 0x00010005u);
  CHECK(r0("mov.b32 %r10, 0xffff0005; mov.b32 %r11, 0x00010003; min.u16x2 %r0, %r10, %r11;") == 0x00010003u);
  CHECK(r0("sad.u32 %r0, 3, 10, 100;") == 107);
  CHECK(r0("sad.s32 %r0, -3, 10, 100;") == 113);
}

TEST_CASE("dot products of bytes, all signs", "[emulator]") {
  // Bytes of a from the lowest: 01 02 ff 80; of b: 01 01 02 ff.
  CHECK(r0("dp4a.u32.u32 %r0, 0x80ff0201, 0xff020101, 10;") == 10 + 1 + 2 + 510 + 128 * 255);
  CHECK(r0("dp4a.s32.s32 %r0, 0x80ff0201, 0xff020101, 10;") == 10 + 1 + 2 - 2 + 128);
  CHECK(r0("dp4a.u32.s32 %r0, 0x80ff0201, 0xff020101, 10;") == 10 + 1 + 2 + 510 - 128);
  CHECK(r0("dp4a.s32.u32 %r0, 0x80ff0201, 0xff020101, 10;") ==
        static_cast<std::uint32_t>(10 + 1 + 2 - 2 - 128 * 255));
  // Halves of a: 0003, fffe; low bytes of b: 05 ff, high bytes: 02 80.
  CHECK(r0("dp2a.lo.u32.u32 %r0, 0xfffe0003, 0x8002ff05, 1;") == 1 + 15 + 65534 * 255);
  CHECK(r0("dp2a.lo.s32.s32 %r0, 0xfffe0003, 0x8002ff05, 1;") == 1 + 15 + 2);
  CHECK(r0("dp2a.hi.s32.u32 %r0, 0xfffe0003, 0x8002ff05, 1;") == static_cast<std::uint32_t>(1 + 6 - 2 * 128));
  CHECK(r0("dp2a.hi.u32.s32 %r0, 0xfffe0003, 0x8002ff05, 1;") ==
        static_cast<std::uint32_t>(1 + 6 - 65534 * 128));
}

TEST_CASE("logic", "[emulator]") {
  CHECK(r0("and.b32 %r0, 12, 10;") == 8);
  CHECK(r0("or.b32 %r0, 12, 10;") == 14);
  CHECK(r0("xor.b32 %r0, 12, 10;") == 6);
  CHECK(r0("not.b32 %r0, 0xff;") == 0xffffff00u);
  CHECK(r0("cnot.b32 %r0, 0;") == 1);
  CHECK(r0("cnot.b32 %r0, 6;") == 0);
  CHECK(rd0("not.b64 %rd0, 0;") == ~std::uint64_t{0});
  CHECK(h0("xor.b16 %h0, 0x00ff, 0x0ff0;") == 0x0f0f);
  CHECK(r0("lop3.b32 %r0, 0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0xe8;") == 0xe8e8e8e8u);
  CHECK(r0("lop3.b32 %r0, 0x0f0f0f0f, 0x64006400, 0x55555555, 0xea;") ==
        ((0x0f0f0f0fu & 0x64006400u) | 0x55555555u));
  CHECK(r0("setp.eq.u32 %p1, 1, 1; setp.eq.u32 %p2, 1, 2; xor.pred %p3, %p1, %p2; and.pred %p4, %p3, !%p2;"
           "not.pred %p5, %p4; selp.u32 %r0, 11, 22, %p5;") == 22);
}

TEST_CASE("shifts clamp their amounts", "[emulator]") {
  CHECK(r0("shl.b32 %r0, 3, 31;") == 0x80000000u);
  CHECK(r0("shl.b32 %r0, 3, 32;") == 0);
  CHECK(r0("shr.u32 %r0, 0x80000000, 31;") == 1);
  CHECK(r0("shr.u32 %r0, 0x80000000, 32;") == 0);
  CHECK(r0("shr.s32 %r0, 0x80000000, 40;") == 0xffffffffu);
  CHECK(h0("shl.b16 %h0, 1, 16;") == 0);
  CHECK(h0("shr.s16 %h0, 0x8000, 4;") == 0xf800);
  CHECK(rd0("shl.b64 %rd0, 1, 63;") == std::uint64_t{1} << 63);
  CHECK(rd0("shr.s64 %rd0, 0x8000000000000000, 200;") == ~std::uint64_t{0});
  CHECK(r0("shf.l.wrap.b32 %r0, 0x11111111, 0x22222222, 36;") == 0x22222221u);
  CHECK(r0("shf.l.clamp.b32 %r0, 0x11111111, 0x22222222, 36;") == 0x11111111u);
  CHECK(r0("shf.r.wrap.b32 %r0, 0x11111111, 0x22222222, 36;") == 0x21111111u);
  CHECK(r0("shf.r.clamp.b32 %r0, 0x11111111, 0x22222222, 36;") == 0x22222222u);
  CHECK(r0("shf.r.wrap.b32 %r0, 0x11111111, 0x22222222, 32;") == 0x11111111u);
}

TEST_CASE("byte permutation in every mode", "[emulator]") {
  const auto prmt = [](const char* rest) { return r0(std::string("prmt.b32") + rest); };
  CHECK(prmt(" %r0, 0x33221100, 0x77665544, 0x7420;") == 0x77442200u);
  CHECK(prmt(" %r0, 0x33228100, 0x77665544, 0x8989;") == 0x00ff00ffu);  // signs of bytes 0 and 1
  CHECK(prmt(".f4e %r0, 0x33221100, 0x77665544, 1;") == 0x44332211u);
  CHECK(prmt(".b4e %r0, 0x33221100, 0x77665544, 1;") == 0x66770011u);
  CHECK(prmt(".rc8 %r0, 0x33221100, 0x77665544, 2;") == 0x22222222u);
  CHECK(prmt(".ecl %r0, 0x33221100, 0x77665544, 1;") == 0x33221111u);
  CHECK(prmt(".ecr %r0, 0x33221100, 0x77665544, 1;") == 0x11111100u);
  CHECK(prmt(".rc16 %r0, 0x33221100, 0x77665544, 3;") == 0x33223322u);
}

TEST_CASE("bit fields, with nothing in them and past the end", "[emulator]") {
  CHECK(r0("bfe.u32 %r0, 0xabcd1234, 8, 8;") == 0x12);
  CHECK(r0("bfe.u32 %r0, 0xabcd1234, 8, 0;") == 0);
  CHECK(r0("bfe.s32 %r0, 0xabcd1234, 16, 8;") == 0xffffffcdu);
  CHECK(r0("bfe.s32 %r0, 0xabcd1234, 24, 32;") == 0xffffffabu);
  CHECK(r0("bfe.u32 %r0, 0xabcd1234, 24, 32;") == 0xab);
  CHECK(r0("bfe.s32 %r0, 0x80000000, 40, 4;") == 0xffffffffu);
  CHECK(r0("bfe.u32 %r0, 0x80000000, 40, 4;") == 0);
  CHECK(r0("bfe.u32 %r0, 0xabcd1234, 0, 32;") == 0xabcd1234u);
  CHECK(rd0("bfe.s64 %rd0, 0x00f0000000000000, 52, 4;") == ~std::uint64_t{0});
  CHECK(r0("bfe.u32 %r0, 0xabcd1234, 264, 8;") == 0x12);  // 264 = 8 modulo 256
  CHECK(rd0("bfe.u64 %rd0, 0x20, 0, 256;") == 0x20);
  CHECK(rd0("bfe.s64 %rd0, 0x8000000000000000, 256, 8;") == ~std::uint64_t{0});
  CHECK(rd0("bfi.b64 %rd0, 0x5, 0x7, 256, 8;") == 0x7);
  CHECK(rd0("bfi.b64 %rd0, 0x5, 0x7, 4, 0x80000000;") == 0x57);
  CHECK(r0("bfi.b32 %r0, 0xff, 0, 4, 8;") == 0xff0);
  CHECK(r0("bfi.b32 %r0, 0xff, 0x11111111, 28, 8;") == 0xf1111111u);
  CHECK(r0("bfi.b32 %r0, 0xff, 0x11111111, 32, 8;") == 0x11111111u);
  CHECK(r0("bfi.b32 %r0, 0xff, 0x11111111, 4, 0;") == 0x11111111u);
  CHECK(rd0("bfi.b64 %rd0, 0x5, 0, 60, 4;") == std::uint64_t{5} << 60);
  CHECK(r0("bfind.u32 %r0, 0x00800000;") == 23);
  CHECK(r0("bfind.u32 %r0, 0;") == 0xffffffffu);
  CHECK(r0("bfind.s32 %r0, -1;") == 0xffffffffu);
  CHECK(r0("bfind.s32 %r0, -5;") == 2);
  CHECK(r0("bfind.shiftamt.u32 %r0, 0x00800000;") == 8);
}

TEST_CASE("bit counts", "[emulator]") {
  CHECK(r0("popc.b32 %r0, 0xf0f0;") == 8);
  CHECK(r0("popc.b64 %r0, 0xf0f000000000000f;") == 12);
  CHECK(r0("clz.b32 %r0, 0;") == 32);
  CHECK(r0("clz.b64 %r0, 1;") == 63);
  CHECK(r0("brev.b32 %r0, 0x1;") == 0x80000000u);
  CHECK(rd0("brev.b64 %rd0, 0x2;") == std::uint64_t{1} << 62);
  CHECK(r0("fns.b32 %r0, 0xaaaaaaaa, 3, 2;") == 5);
  CHECK(r0("fns.b32 %r0, 0xaaaaaaaa, 3, -2;") == 1);
  CHECK(r0("fns.b32 %r0, 0xaaaaaaaa, 4, 0;") == 0xffffffffu);
}

}  // namespace
}  // namespace ptxgen::emulator
