// What a kernel's text says about values, variables and regions; one property a test.

#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

using Lines = std::string;

// Runs one thread and gives what it stores.
template <class Body>
std::vector<u32> results(Body&& body, std::size_t outputs, u32 n = 5,
                         std::vector<u32> in = {11, 22, 33, 44}) {
  const auto out = build_and_run(body, 1, in, n, outputs);
  INFO(out.status().message());
  REQUIRE(out.ok());
  return *out;
}

}  // namespace

// ---- Order ----

TEST_CASE("values are printed operands left to right, however the host evaluates them", "[builder]") {
  const Lines expected =
      "  ld.param.u64 %rd1, [out];\n"
      "  mov.u32 %r1, %tid.x;\n"
      "  ld.param.u32 %r2, [n];\n"
      "  add.u32 %r3, %r1, %r2;\n"
      "  mov.u32 %r4, %ctaid.x;\n"
      "  mul.lo.u32 %r5, %r4, %r2;\n"
      "  sub.u32 %r6, %r3, %r5;\n"
      "  st.global.u32 [%rd1], %r6;\n"
      "  ret;\n";
  CHECK(instructions([](KernelBuilder& k) {
          st_global(k.param(&Args::out), (k.tid_x() + k.param(&Args::n)) - (k.ctaid_x() * k.param(&Args::n)));
        }) == expected);
  CHECK(instructions([](KernelBuilder& k) {  // the other way round, by hand
          auto n = k.param(&Args::n);
          auto right = k.ctaid_x() * n;
          auto left = k.tid_x() + n;
          auto difference = left - right;
          st_global(k.param(&Args::out), difference);
        }) == expected);
}

TEST_CASE("values nobody uses are not printed, effects always", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto unused = k.tid_x() * 3;
          auto p = k.param(&Args::in);
          ld_global(p);
          (void)unused;
        }) ==
        "  ld.param.u64 %rd1, [in];\n"
        "  ld.global.u32 %r1, [%rd1];\n"
        "  ret;\n");
}

TEST_CASE("an index of 64 bits is shifted where the size of an element allows it, and bytes are added",
          "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          const auto out = k.param(&Args::out);
          const Reg<u32> tid = k.tid_x();
          const Reg<u64> index = cvt<u64>(tid);
          st_global(out + index, tid);
          st_global(at<u8>(out) + index, cvt<u8>(tid));
          st_global(out + tid, tid);
        }) ==
        "  mov.u32 %r1, %tid.x;\n"
        "  cvt.u64.u32 %rd1, %r1;\n"
        "  shl.b64 %rd2, %rd1, 2;\n"
        "  ld.param.u64 %rd3, [out];\n"
        "  add.u64 %rd4, %rd2, %rd3;\n"
        "  st.global.u32 [%rd4], %r1;\n"
        "  add.u64 %rd5, %rd1, %rd3;\n"
        "  cvt.u8.u32 %rs1, %r1;\n"
        "  st.global.u8 [%rd5], %rs1;\n"
        "  mad.wide.u32 %rd6, %r1, 4, %rd3;\n"
        "  st.global.u32 [%rd6], %r1;\n"
        "  ret;\n");
  constexpr u64 kIndex = 2;
  CHECK(results(
            [](KernelBuilder& k) {
              const Reg<u64> index = cvt<u64>(k.tid_x()) + kIndex;
              const auto in = k.param(&Args::in);
              st_global(k.param(&Args::out), ld_global(in + index));
              st_global(k.param(&Args::out) + 1, cvt<u32>(ld_global(at<u8>(in) + index * 2)));
            },
            2) == std::vector<u32>{33, 22});
}

TEST_CASE("equal values are one within a gap, and two across an effect", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto p = k.param(&Args::out);
          auto n = k.param(&Args::n);
          st_global(p, (n + 1) * (n + 1));
          st_global(p, n + 1);
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  ld.param.u32 %r1, [n];\n"
        "  add.u32 %r2, %r1, 1;\n"
        "  mul.lo.u32 %r3, %r2, %r2;\n"
        "  st.global.u32 [%rd1], %r3;\n"
        "  add.u32 %r4, %r1, 1;\n"
        "  st.global.u32 [%rd1], %r4;\n"
        "  ret;\n");
}

TEST_CASE("however many values a gap has, equal ones are one", "[builder]") {
  constexpr u32 kValues = 600;
  const std::string text = instructions([](KernelBuilder& k) {
    auto n = k.param(&Args::n);
    Reg<u32> sum = k.tid_x();
    for (u32 i = 1; i <= kValues; ++i) sum = sum ^ (n + i);
    for (u32 i = kValues; i >= 1; --i) sum = sum * (n + i);
    st_global(k.param(&Args::out), sum);
  });
  u32 additions = 0;
  for (std::size_t at = text.find("add.u32"); at != std::string::npos; at = text.find("add.u32", at + 1))
    ++additions;
  CHECK(additions == kValues);
}

TEST_CASE("a value stays in the gap where it was written, though used later", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto p = k.param(&Args::out);
          auto early = k.param(&Args::n) * 3;
          st_global(p, 1);
          st_global(p, early);
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  ld.param.u32 %r1, [n];\n"
        "  mul.lo.u32 %r2, %r1, 3;\n"
        "  st.global.u32 [%rd1], 1;\n"
        "  st.global.u32 [%rd1], %r2;\n"
        "  ret;\n");
}

// ---- Variables ----

TEST_CASE("a copy of a Var keeps the old content", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto out = k.param(&Args::out);
              auto acc = k.var(k.param(&Args::n));
              auto old = acc;  // a Var of its own
              Reg<u32> seen = acc;
              acc = acc + 1;
              old = old * 10;
              st_global(out, acc);
              st_global(out + 1, old);
              st_global(out + 2, seen);
              Var<u32> assigned = k.var<u32>(0);
              assigned = acc;  // copies the content, too
              acc = acc + 1;
              st_global(out + 3, assigned);
              st_global(out + 4, acc);
            },
            5) == std::vector<u32>{6, 50, 5, 6, 7});
}

TEST_CASE("two variables are swapped", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto out = k.param(&Args::out);
              auto a = k.var<u32>(1);
              auto b = k.var<u32>(2);
              k.for_(0u, k.param(&Args::n), 1, [&](Reg<u32>) {
                Reg<u32> first = a;
                Reg<u32> second = b;
                a = second;
                b = first;
              });
              st_global(out, a);
              st_global(out + 1, b);
            },
            2) == std::vector<u32>{2, 1});
}

TEST_CASE("Fibonacci numbers in a loop", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto a = k.var<u32>(0);
              auto b = k.var<u32>(1);
              k.for_(0u, k.param(&Args::n), 1, [&](Reg<u32>) {
                auto next = a + b;
                a = b;
                b = next;
              });
              st_global(k.param(&Args::out), a);
            },
            1, 30) == std::vector<u32>{832040});
}

TEST_CASE("a variable read before a loop keeps its content inside it", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto acc = k.var<u32>(7);
              auto sum = k.var<u32>(0);
              Reg<u32> before = acc;
              k.for_(0u, 3u, 1, [&](Reg<u32>) {
                sum = sum + before;
                acc = acc + 1;
              });
              auto out = k.param(&Args::out);
              st_global(out, sum);
              st_global(out + 1, acc);
            },
            2) == std::vector<u32>{21, 10});
}

TEST_CASE("a variable read before a branch that assigns it keeps its content after", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto v = k.var<u32>(3);
              Reg<u32> before = v;
              auto x = k.var<u32>(0);
              k.if_(
                  k.param(&Args::n) > 2,
                  [&] {
                    v = v * 5;
                    x = before + v;
                  },
                  [&] { x = before; });
              auto out = k.param(&Args::out);
              st_global(out, before);
              st_global(out + 1, x);
              st_global(out + 2, v);
            },
            3) == std::vector<u32>{3, 18, 15});
}

TEST_CASE("an assigned value goes straight into the variable's register", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto acc = k.var(k.param(&Args::n));
          acc = acc * 3;
          st_global(k.param(&Args::out), acc);
        }) ==
        "  ld.param.u32 %r1, [n];\n"
        "  mul.lo.u32 %r1, %r1, 3;\n"
        "  ld.param.u64 %rd1, [out];\n"
        "  st.global.u32 [%rd1], %r1;\n"
        "  ret;\n");
}

TEST_CASE("... but not when another use or the old content still needs a register", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto out = k.param(&Args::out);
              auto acc = k.var(k.param(&Args::n));
              auto tripled = acc * 3;  // used twice
              acc = tripled;
              acc = acc + tripled;
              st_global(out, acc);
              Reg<u32> old = acc;  // read, then assigned in the same gap, then used
              auto next = acc + 100;
              acc = next;
              st_global(out + 1, old);
              st_global(out + 2, acc);
            },
            3) == std::vector<u32>{30, 30, 130});
}

TEST_CASE("nested loops carry variables and counters", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto sum = k.var<u32>(0);
              auto n = k.param(&Args::n);
              k.for_(0u, n, 1, [&](Reg<u32> i) {
                k.for_(i, n, 2, [&](Reg<u32> j) { sum = sum + i * 10 + j; });
                sum = sum + i;
              });
              st_global(k.param(&Args::out), sum);
            },
            1) == std::vector<u32>{[] {
          u32 sum = 0;
          for (u32 i = 0; i < 5; ++i) {
            for (u32 j = i; j < 5; j += 2) sum += i * 10 + j;
            sum += i;
          }
          return sum;
        }()});
}

TEST_CASE("while_ runs until its condition fails, and not at all when it fails at once", "[builder]") {
  const auto collatz = [](KernelBuilder& k) {
    auto x = k.var(k.param(&Args::n));
    auto steps = k.var<u32>(0);
    k.while_([&] { return x > 1; },
             [&] {
               k.if_((x & 1) == 0, [&] { x = x >> 1; }, [&] { x = x * 3 + 1; });
               steps = steps + 1;
             });
    st_global(k.param(&Args::out), steps);
  };
  CHECK(results(collatz, 1, 27) == std::vector<u32>{111});
  CHECK(results(collatz, 1, 1) == std::vector<u32>{0});
}

// ---- Shapes ----

TEST_CASE("a loop of constant trip count enters without a test, and its back edge is conditional",
          "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto p = k.param(&Args::out);
          k.for_(0, 3, 1, [&](Reg<u32> i) { st_global(p, i); });
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  mov.b32 %r1, 0;\n"
        "$loop_1:\n"
        "  st.global.u32 [%rd1], %r1;\n"
        "  add.u32 %r1, %r1, 1;\n"
        "  setp.lt.u32 %p1, %r1, 3;\n"
        "  @%p1 bra $loop_1;\n"
        "  ret;\n");
  CHECK(instructions([](KernelBuilder& k) { k.for_(3, 3, 1, [&](Reg<u32>) { k.trap(); }); }) == "  ret;\n");
}

TEST_CASE("signed loops count below zero", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto sum = k.var<s32>(0);
              k.for_(bitcast<s32>(k.param(&Args::n)) - 8, s32{2}, 2, [&](Reg<s32> i) { sum = sum + i; });
              st_global(k.param(&Args::out), bitcast<u32>(Reg<s32>(sum)));
            },
            1) == std::vector<u32>{static_cast<u32>(-3 - 1 + 1)});
}

TEST_CASE("if and else, nested", "[builder]") {
  const auto classify = [](KernelBuilder& k) {
    auto n = k.param(&Args::n);
    auto kind = k.var<u32>(0);
    k.if_(
        n < 10,
        [&] {
          k.if_(
              n < 5, [&] { kind = 1; }, [&] { kind = 2; });
        },
        [&] { k.if_(n == 12, [&] { kind = 3; }); });
    st_global(k.param(&Args::out), kind);
  };
  CHECK(results(classify, 1, 4) == std::vector<u32>{1});
  CHECK(results(classify, 1, 5) == std::vector<u32>{2});
  CHECK(results(classify, 1, 12) == std::vector<u32>{3});
  CHECK(results(classify, 1, 13) == std::vector<u32>{0});
}

// ---- Pointers ----

TEST_CASE("pointers move by elements, with any index, forwards and back", "[builder]") {
  CHECK(results(
            [](KernelBuilder& k) {
              auto in = k.param(&Args::in);
              auto out = k.param(&Args::out);
              auto n = k.param(&Args::n);  // 1
              st_global(out, ld_global(in + 2));
              st_global(out + 1, ld_global(in + n));
              st_global(out + 2, ld_global(in + 3 + (bitcast<s32>(n) - 3)));
              st_global(out + 3, ld_global((in + cvt<u64>(n)) + 1));
              st_global(out + 4, ld_global((in + n) + -1));
            },
            5, 1) == std::vector<u32>{33, 22, 22, 33, 11});
}

TEST_CASE("offsets beyond 32 bits are added, those below printed", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto p = k.param(&Args::out);
          st_global(p + 0x1fffffff, 1);
          st_global(p + -0x20000000, 2);
          st_global(p + 0x20000000, 3);
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  st.global.u32 [%rd1+2147483644], 1;\n"
        "  st.global.u32 [%rd1+-2147483648], 2;\n"
        "  add.u64 %rd2, %rd1, 0x80000000;\n"
        "  st.global.u32 [%rd2], 3;\n"
        "  ret;\n");
}

TEST_CASE("shared memory: static arrays, dynamic memory, one symbol for all of it", "[builder]") {
  const auto kernel = build([](KernelBuilder& k) {
    auto a = k.shared<u32, 16>(8);
    auto b = k.shared<f32>(3);
    auto c = k.dynamic_shared<u32>();
    auto d = k.dynamic_shared<f32, 128>();
    st_shared(a + 1, 1);
    st_shared(b + 2, 0.5f);
    st_shared(c, 2);
    st_shared(d + k.tid_x(), 0.5f);
  });
  REQUIRE(kernel.ok());
  CHECK(kernel->static_shared_bytes() == 128);
  const std::string ptx = print_ptx(*kernel);
  CHECK(ptx.find("\n.extern .shared .align 128 .b8 _test_dynamic_shared[];\n") != std::string::npos);
  CHECK(ptx.find("  .shared .align 16 .b8 _shared_0[32];\n  .shared .align 4 .b8 _shared_1[96];\n") !=
        std::string::npos);
}

// The declarations of the static arrays that `body` asks for.
template <class Body>
Lines static_arrays(Body&& body) {
  const auto kernel = build(body);
  INFO(kernel.status().message());
  REQUIRE(kernel.ok());
  Lines lines;
  const std::string ptx = print_ptx(*kernel);
  for (std::size_t at = ptx.find("\n  .shared "); at != Lines::npos; at = ptx.find("\n  .shared ", at + 1))
    lines += ptx.substr(at + 3, ptx.find('\n', at + 1) - at - 2);
  return lines;
}

TEST_CASE("static arrays before dynamic memory fill a multiple of its alignment", "[builder]") {
  CHECK(static_arrays([](KernelBuilder& k) {
          k.shared<u32>(3);
          k.dynamic_shared<u32, 128>();
        }) == ".shared .align 4 .b8 _shared_0[128];\n");
  CHECK(static_arrays([](KernelBuilder& k) {  // declared before or after
          k.dynamic_shared<u32, 128>();
          k.shared<u32>(33);
        }) == ".shared .align 4 .b8 _shared_1[256];\n");
  CHECK(static_arrays([](KernelBuilder& k) {
          k.shared<u8>(5);
          k.shared<u64>(3);
          k.dynamic_shared<u32, 128>();
        }) == ".shared .align 1 .b8 _shared_0[8];\n.shared .align 8 .b8 _shared_1[120];\n");
  CHECK(static_arrays([](KernelBuilder& k) {
          k.shared<u32, 16>(9);
          k.shared<u8>(1);
          k.shared<u32>(24);
          k.dynamic_shared<u32, 128>();
        }) ==
        ".shared .align 16 .b8 _shared_0[48];\n.shared .align 1 .b8 _shared_1[16];\n"
        ".shared .align 4 .b8 _shared_2[192];\n");
  CHECK(static_arrays([](KernelBuilder& k) {  // whole already
          k.shared<u32, 128>(32);
          k.shared<u32>(32);
          k.dynamic_shared<u32, 128>();
        }) == ".shared .align 128 .b8 _shared_0[128];\n.shared .align 4 .b8 _shared_1[128];\n");
  CHECK(static_arrays([](KernelBuilder& k) {  // better aligned than the dynamic memory
          k.shared<u32, 64>(1);
          k.shared<u32>(1);
          k.dynamic_shared<u32, 16>();
        }) == ".shared .align 64 .b8 _shared_0[64];\n.shared .align 4 .b8 _shared_1[64];\n");
}

TEST_CASE("static arrays without dynamic memory, or before bytes of it, keep their sizes", "[builder]") {
  const Lines expected = ".shared .align 16 .b8 _shared_0[36];\n.shared .align 1 .b8 _shared_1[3];\n";
  CHECK(static_arrays([](KernelBuilder& k) {
          k.shared<u32, 16>(9);
          k.shared<u8>(3);
        }) == expected);
  CHECK(static_arrays([](KernelBuilder& k) {
          k.shared<u32, 16>(9);
          k.shared<u8>(3);
          k.dynamic_shared<u8, 1>();
        }) == expected);
}

// ---- Literals ----

TEST_CASE("waiting for an mbarrier sleeps where the target can", "[builder]") {
  const auto wait = [](Target target) {
    return instructions(
        [](KernelBuilder& k) { k.mbarrier_wait_parity(k.shared<MBarrier>(1), k.param(&Args::n)); },
        {target, {9, 0}});
  };
  CHECK(wait({90, false}) ==
        "  mov.u32 %r1, _shared_0;\n  ld.param.u32 %r2, [n];\n$loop_1:\n"
        "  mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;\n  not.pred %p2, %p1;\n  @%p2 bra $loop_1;\n"
        "  ret;\n");
  CHECK(wait({80, false}) ==
        "  mov.u32 %r1, _shared_0;\n  ld.param.u32 %r2, [n];\n$loop_1:\n"
        "  mbarrier.test_wait.parity.shared.b64 %p1, [%r1], %r2;\n  not.pred %p2, %p1;\n  @%p2 bra $loop_1;\n"
        "  ret;\n");
}

TEST_CASE("literals of every kind", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          auto out = k.param(&Args::out);
          auto half = cvt_rn<f16>(1.5f * cvt_rn<f32>(k.param(&Args::n)));
          st_global(at<f16>(out), half + f16{0x3c00});
          st_global(at<f32, 4>(out), 0.1f);
          st_global(at<f64, 8>(out), -0.0);
          st_global(at<u64, 16>(out), ~u64{0});
          st_global(at<s32, 24>(out), -5);
          st_global(at<f32, 28>(out), std::numeric_limits<f32>::infinity());
          auto flag = k.var<pred>(false);
          flag = flag || k.param(&Args::n) == 0xffffffff;
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  ld.param.u32 %r1, [n];\n"
        "  cvt.rn.f32.u32 %r2, %r1;\n"
        "  mul.rn.f32 %r3, 0f3FC00000, %r2;\n"
        "  cvt.rn.f16.f32 %rs1, %r3;\n"
        "  mov.b16 %rs2, 15360;\n"
        "  add.rn.f16 %rs3, %rs1, %rs2;\n"
        "  st.global.b16 [%rd1], %rs3;\n"
        "  st.global.f32 [%rd1+4], 0f3DCCCCCD;\n"
        "  st.global.f64 [%rd1+8], 0d8000000000000000;\n"
        "  st.global.u64 [%rd1+16], -1;\n"
        "  st.global.s32 [%rd1+24], -5;\n"
        "  st.global.f32 [%rd1+28], 0f7F800000;\n"
        "  mov.pred %p1, 0;\n"
        "  ld.param.u32 %r4, [n];\n"
        "  setp.eq.u32 %p2, %r4, 0xffffffff;\n"
        "  or.pred %p1, %p1, %p2;\n"
        "  ret;\n");
}

// ---- Modules ----

TEST_CASE("directives, several entries, and the version that all of them need", "[builder]") {
  const BuildOptions sm_90 = {{90, false}, {9, 0}};
  KernelBuilder first("first", sm_90);
  first.maxntid(256);
  first.minnctapersm(2);
  first.maxnreg(96);
  KernelBuilder second("second", sm_90);
  second.griddepcontrol_wait();
  const auto a = first.finish(), b = second.finish();
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(print_ptx(*a) ==
        ".version 6.3\n.target sm_75\n.address_size 64\n"
        "\n.visible .entry first()\n.maxntid 256, 1, 1\n.minnctapersm 2\n.maxnreg 96\n{\n  ret;\n}\n");
  CHECK(print_ptx(std::vector<Kernel>{*a, *b}) ==
        ".version 7.8\n.target sm_90\n.address_size 64\n"
        "\n.visible .entry first()\n.maxntid 256, 1, 1\n.minnctapersm 2\n.maxnreg 96\n{\n  ret;\n}\n"
        "\n.visible .entry second()\n{\n  griddepcontrol.wait;\n  ret;\n}\n");
}

}  // namespace ptxgen::testing
