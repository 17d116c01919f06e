// Functions, calls, tables of branches, initial values with addresses, and other forms that compilers write.
#include <array>
#include <cmath>

#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;
using u32 = std::uint32_t;

// A module with `functions` before the kernel of kernel_text(body).
std::string with(std::string_view functions, std::string_view body, std::string_view target = "sm_90",
                 std::string_view version = "8.3") {
  const std::string kernel = kernel_text(body);
  return module_of(std::string(functions) + kernel.substr(kernel.find(".visible")), target, version);
}

absl::StatusOr<LaunchStats> launched(const std::string& text, Memory& memory, std::uint64_t& out, u32 threads,
                                     const Options& options = {}) {
  const auto program = parsed(text);
  out = *memory.allocate(threads * 4, "out");
  const auto params = params_of(out);
  return launch(*program, "k", {.grid = {}, .block = {threads}, .dynamic_shared_bytes = 0, .params = params},
                memory, options);
}

std::vector<u32> values(const std::string& text, u32 threads = 32) {
  Memory memory;
  std::uint64_t out;
  const auto stats = launched(text, memory, out, threads);
  INFO(text);
  INFO(stats.status().ToString());
  REQUIRE(stats.ok());
  return download<u32>(memory, out, threads);
}

std::string message(const std::string& text, u32 threads = 32) {
  Memory memory;
  std::uint64_t out;
  const auto stats = launched(text, memory, out, threads);
  INFO(text);
  REQUIRE_FALSE(stats.ok());
  return std::string(stats.status().message());
}

// r = 3 * x, by .param; called as `call (p_r), triple, (p_x);`
constexpr std::string_view kTriple = R"(
.func (.param .b32 r) triple(.param .b32 x) {
  .reg .b32 %a<3>;
  ld.param.b32 %a1, [x];
  mul.lo.u32 %a2, %a1, 3;
  st.param.b32 [r], %a2;
  ret;
}
)";

// %r0 = f(%r1), for functions of the signature of `triple`.
std::string call_of(std::string_view callee, std::string_view guard = "", std::string_view table = "") {
  return "{ .param .b32 p_x; .param .b32 p_r; st.param.b32 [p_x], %r1;\n" + std::string(guard) +
         " call (p_r), " + std::string(callee) + ", (p_x)" + std::string(table) +
         ";\n ld.param.b32 %r0, [p_r]; }\n";
}

TEST_CASE("results and arguments by .param and by register, in every combination", "[emulator][function]") {
  const std::string store = " st.global.u32 [%out], %r0;";
  CHECK(values(with(kTriple, "mov.u32 %r1, %t;" + call_of("triple") + store))[7] == 21);
  CHECK(values(with(kTriple, "mov.u32 %r1, %t; call.uni (%r0), triple, (%r1);" + store))[9] == 27);
  CHECK(values(with(kTriple, "call (%r0), triple, (14);" + store))[0] == 42);
  const std::string registers = R"(
.func (.reg .u32 r, .reg .f32 g) pair(.reg .u32 x, .reg .f32 y) { add.u32 r, x, 1; add.rn.f32 g, y, y; ret; }
)";
  CHECK(values(with(registers,
                    "mov.f32 %f0, 0f3FC00000; call (%r2, %f1), pair, (%t, %f0); cvt.rzi.u32.f32 %r3, %f1;\n"
                    "mad.lo.u32 %r0, %r3, 100, %r2;" +
                        store))[5] == 306);
  const std::string nothing =
      ".global .u32 g; .func note(.param .u32 x) { .reg .u32 %a; ld.param.u32 %a, [x];\n"
      "  red.global.add.u32 [g], %a; }\n";
  CHECK(values(with(nothing, "call note, (2); bar.sync 0; ld.global.u32 %r0, [g];" + store))[3] == 64);
}

TEST_CASE("a call that only some lanes make, and functions that lanes leave apart", "[emulator][function]") {
  const std::string body =
      "mov.u32 %r1, %t; mov.u32 %r0, 5; setp.gt.u32 %p0, %t, 20;\n"
      "{ .param .b32 p_x; .param .b32 p_r; st.param.b32 [p_x], %r1; st.param.b32 [p_r], 5;\n"
      "@%p0 call (p_r), triple, (p_x); ld.param.b32 %r0, [p_r]; }\n"
      "shfl.sync.bfly.b32 %r2, %r0, 31, 31, -1; st.global.u32 [%out], %r2;";
  const auto v = values(with(kTriple, body));
  for (u32 i = 0; i < 32; ++i) CHECK(v[i] == (31 - i > 20 ? 3 * (31 - i) : 5));
  const std::string early = R"(
.func (.param .b32 r) f(.param .b32 x) {
  .reg .b32 %a<3>; .reg .pred %q;
  ld.param.b32 %a1, [x];
  st.param.b32 [r], 1;
  setp.lt.u32 %q, %a1, 8;
  @%q ret;
  st.param.b32 [r], 2;
  setp.gt.u32 %q, %a1, 27;
  @%q exit;
}
)";
  const auto w = values(with(early, "st.global.u32 [%out], 9; mov.u32 %r1, %t;" + call_of("f") +
                                        " activemask.b32 %r3; popc.b32 %r3, %r3;\n"
                                        "mad.lo.u32 %r0, %r3, 10, %r0; st.global.u32 [%out], %r0;"));
  for (u32 i = 0; i < 32; ++i) CHECK(w[i] == (i > 27 ? 9u : 280 + (i < 8 ? 1u : 2u)));
}

constexpr std::string_view kFactorial = R"(
.func (.param .b32 r) factorial(.param .b32 x) {
  .reg .b32 %a<5>; .reg .pred %q; .local .b32 kept;
  ld.param.b32 %a1, [x];
  st.local.b32 [kept], %a1;
  mov.u32 %a4, 1;
  setp.eq.u32 %q, %a1, 0;
  @%q bra DONE;
  sub.u32 %a2, %a1, 1;
  { .param .b32 y; .param .b32 z; st.param.b32 [y], %a2; call (z), factorial, (y); ld.param.b32 %a3, [z]; }
  ld.local.b32 %a4, [kept];
  setp.ne.u32 %q, %a4, %a1;
  @%q trap;
  mul.lo.u32 %a4, %a3, %a1;
DONE:
  st.param.b32 [r], %a4;
  ret;
}
)";

TEST_CASE("recursion keeps registers and local memory of every activation", "[emulator][function]") {
  const auto v = values(
      with(kFactorial, "rem.u32 %r1, %t, 12;" + call_of("factorial") + " st.global.u32 [%out], %r0;"), 64);
  for (u32 i = 0; i < 64; ++i) {
    u32 expected = 1;
    for (u32 n = 2; n <= i % 12; ++n) expected *= n;
    CHECK(v[i] == expected);
  }
  CHECK_THAT(message(with(kFactorial, "mov.u32 %r1, 1000000;" + call_of("factorial"))),
             Contains("function 'factorial', PTX line") && Contains("overflows at") &&
                 Contains("calls of functions in each other") && Contains("of 'factorial'"));
}

TEST_CASE("a callee's frame is its own, and ends with it", "[emulator][function]") {
  const std::string leak = R"(
.func (.param .b64 r) leak() {
  .reg .b64 %a<3>; .local .align 4 .b32 v;
  st.local.u32 [v], 3;
  mov.u64 %a1, v;
  cvta.local.u64 %a2, %a1;
  st.param.b64 [r], %a2;
}
)";
  CHECK_THAT(message(with(leak, "call (%rd1), leak; ld.u32 %r0, [%rd1];")),
             Contains("reads 4 bytes at local address"));
  const std::string through = R"(
.func set(.param .b64 where) { .reg .b64 %a<2>; ld.param.b64 %a1, [where]; st.u32 [%a1], 77; }
)";
  CHECK(values(with(through,
                    ".local .b32 v; mov.u64 %rd1, v; cvta.local.u64 %rd1, %rd1; call set, (%rd1);\n"
                    "ld.local.u32 %r0, [v]; st.global.u32 [%out], %r0;"))[0] == 77);
  const std::string unwritten =
      ".func (.param .b32 r) f() { .reg .b32 %a; add.u32 %a, %a, 1; st.param.b32 [r], %a; }\n";
  CHECK_THAT(message(with(unwritten, "call (%r0), f; call (%r0), f;")),
             Contains("function 'f', PTX line") && Contains("reads %a, which nothing has written"));
  const std::string no_result = ".func (.param .b32 r) f() { ret; }\n";
  CHECK_THAT(message(with(no_result, "call (%r0), f; st.global.u32 [%out], %r0;")),
             Contains("reads %r0, which nothing has written"));
}

TEST_CASE("calls through registers: prototypes, targets, tables in memory", "[emulator][function]") {
  const std::string two = std::string(kTriple) + R"(
.func (.param .b32 r) plus(.param .b32 x) {
  .reg .b32 %a<3>; ld.param.b32 %a1, [x]; add.u32 %a2, %a1, 1000; st.param.b32 [r], %a2; ret;
}
.func (.param .b64 r) wide(.param .b64 x) { st.param.b64 [r], 0; ret; }
.func (.param .b32 r) other(.param .b32 x);
.global .u64 table[3] = {triple, plus, wide};
)";
  const std::string pick =
      "and.b32 %r2, %t, 1; mul.wide.u32 %rd1, %r2, 8; mov.u64 %rd2, table; add.u64 %rd1, %rd1, %rd2;\n"
      "ld.global.u64 %rd3, [%rd1]; mov.u32 %r1, %t;\n";
  const std::string prototype = "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n";
  const auto v =
      values(with(two, prototype + pick + call_of("%rd3", "", ", proto") + " st.global.u32 [%out], %r0;"));
  for (u32 i = 0; i < 32; ++i) CHECK(v[i] == (i % 2 ? i + 1000 : i * 3));
  const std::string targets = "list: .calltargets triple, other;\n";
  CHECK_THAT(message(with(two, targets + pick + call_of("%rd3", "", ", list"))),
             Contains("calls 'plus', which is none of its .calltargets"));
  CHECK_THAT(
      message(with(two, prototype + "mov.u32 %r1, 1; mov.u64 %rd3, wide;" + call_of("%rd3", "", ", proto"))),
      Contains("calls 'wide', whose results or parameters are others"));
  CHECK_THAT(
      message(with(two, prototype + "mov.u32 %r1, 1; mov.u64 %rd3, other;" + call_of("%rd3", "", ", proto"))),
      Contains("calls 'other', which this module only declares"));
  CHECK_THAT(
      message(with(two, prototype + "mov.u32 %r1, 1; mov.u64 %rd3, 12345;" + call_of("%rd3", "", ", proto"))),
      Contains("calls 0x3039, which is the address of no function"));
}

TEST_CASE("declarations, definitions, aliases", "[emulator][function]") {
  const std::string declared =
      ".func (.param .b32 r) triple(.param .b32 x);\n.visible .func (.param .b32 r) thrice(.param .b32 "
      "x);\n" +
      std::string(kTriple) + ".alias thrice, triple;\n";
  CHECK(values(with(declared, "mov.u32 %r1, %t;" + call_of("thrice") + " st.global.u32 [%out], %r0;"))[4] ==
        12);
  const std::string external = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n";
  const std::string print = "setp.eq.u32 %p0, %t, 3; @%p0 call (%r0), vprintf, (%out, %out);";
  CHECK_THAT(message(with(external, print)),
             Contains("thread (3,0,0)") && Contains("calls 'vprintf', which this module only declares"));
  CHECK(values(with(external, print + " st.global.u32 [%out], %t;"), 3)[2] == 2);
}

TEST_CASE("what is wrong with functions and calls", "[emulator][function]") {
  const auto refused = [](std::string_view functions, std::string_view body) {
    return parse_failure(with(functions, body));
  };
  CHECK_THAT(refused(kTriple, "call (%r0), triple;"),
             Contains("the call passes 0 arguments; 'triple' has 1"));
  CHECK_THAT(refused(kTriple, "call triple, (%r1);"), Contains("the call passes 0 results; 'triple' has 1"));
  CHECK_THAT(refused(kTriple, "call (%r0), triple, (%rd1);"), Contains("'%rd1' does not have the 4 bytes"));
  CHECK_THAT(refused(kTriple, ".param .b64 p; call (%r0), triple, (p);"),
             Contains("'p' has 8 bytes, where 4 are passed"));
  CHECK_THAT(refused(kTriple, "call (%r0), %rd1, (%r1);"),
             Contains("names a .callprototype or .calltargets"));
  CHECK_THAT(refused(kTriple, "call (%r0), missing, (%r1);"), Contains("'missing' is not declared"));
  CHECK_THAT(refused(kTriple, "call (%r0), k, (%r1);"), Contains("'k' is an .entry"));
  CHECK_THAT(refused(std::string(kTriple) + std::string(kTriple), ""),
             Contains("a second function 'triple'"));
  CHECK_THAT(refused(".extern .func f() { ret; }", ""), Contains("is .extern and has a body"));
  CHECK_THAT(refused(".func f(); .func g(); .alias f, g;", ""), Contains("'g' defined"));
  CHECK_THAT(refused(".func f(.param .b32 x[]) { ret; }", ""), Contains("a parameter has a size"));
  CHECK_THAT(refused(".func f() { frobnicate; } ", "call f;"), Contains("unknown instruction 'frobnicate'"));
  CHECK_THAT(refused(".extern .global .u32 g;", "ld.global.u32 %r0, [g];"), Contains("'g' is .extern"));
}

TEST_CASE("indexed branches", "[emulator][function]") {
  const std::string body = R"(
    ts: .branchtargets A, B, C;
    rem.u32 %r1, %t, 3;
    mov.u32 %r0, 0;
    brx.idx %r1, ts;
A:  mov.u32 %r0, 10; bra.uni DONE;
B:  mov.u32 %r0, 20;
C:  add.u32 %r0, %r0, 1;
DONE: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r0, %r3, 100, %r0;
    st.global.u32 [%out], %r0;)";
  const auto v = values(with("", body));
  for (u32 i = 0; i < 32; ++i) CHECK(v[i] == 3200 + (i % 3 == 0 ? 10u : i % 3 == 1 ? 21u : 1u));
  CHECK_THAT(message(with("", "ts: .branchtargets A; brx.idx %t, ts; A:")),
             Contains("branches to target 1 of 1"));
  CHECK_THAT(parse_failure(with("", "ts: .branchtargets A, NONE; A: brx.idx %t, ts;")),
             Contains("no label 'NONE'"));
  CHECK_THAT(parse_failure(with("", "A: brx.idx %t, A;")), Contains("'A' is not declared"));
}

TEST_CASE("initial values that are addresses", "[emulator][function]") {
  const std::string variables = R"(
.global .u32 numbers[3] = {5, 6, 7};
.const .f32 fraction = 0f3E800000;
.global .u64 raw = numbers+8;
.global .align 16 .u64 both[2] = {generic(numbers)+4, generic(fraction)};
.const .align 8 .b8 packed[8] = {0xFF(numbers), 0xFF00(numbers), 0xFF0000(numbers), 0xFF000000(numbers),
  0xFF00000000(numbers), 0xFF0000000000(numbers), 0xFF000000000000(numbers), 0xFF00000000000000(numbers)};
)";
  CHECK(values(with(
            variables,
            "ld.global.u64 %rd1, [raw]; ld.global.u32 %r0, [%rd1]; ld.global.v2.u64 {%rd2, %rd3}, [both];\n"
            "ld.u32 %r1, [%rd2]; ld.f32 %f0, [%rd3]; mul.rn.f32 %f0, %f0, 0f41000000;\n"
            "cvt.rzi.u32.f32 %r2, %f0; ld.const.u64 %rd4, [packed]; ld.global.u32 %r3, [%rd4];\n"
            "mad.lo.u32 %r0, %r0, 10, %r1; mad.lo.u32 %r0, %r0, 10, %r2; mad.lo.u32 %r0, %r0, 10, %r3;\n"
            "st.global.u32 [%out], %r0;"))[0] == 7625);
  const auto refused = [](std::string_view variables_) { return parse_failure(module_of(variables_)); };
  CHECK_THAT(refused(".global .u64 p = missing;"), Contains("'missing' is not declared"));
  CHECK_THAT(refused(".shared .u32 s; .global .u64 p = s;"),
             Contains("'s' is in .shared; its address is no constant"));
  CHECK_THAT(refused(".global .u32 g; .global .u16 p = g;"), Contains("an address needs 8 bytes"));
  CHECK_THAT(refused(".global .u32 g; .global .u8 p = 0x1F(g);"), Contains("one byte of it"));
}

TEST_CASE("other forms that compilers write", "[emulator][function]") {
  const auto one = [](std::string_view body) { return r0(body); };
  // A product of 64 bits by 64 bits from 32-bit parts: the upper half of (2^32 + 3) * (2^33 - 1).
  CHECK(one("mov.u32 %r1, 3; mov.u32 %r2, 1; mov.u32 %r3, 0xffffffff; mov.u32 %r4, 1;\n"
            "mul.lo.u32 %r5, %r1, %r3; mul.hi.u32 %r6, %r1, %r3; mov.u32 %r8, 0;\n"
            "mad.lo.cc.u32 %r6, %r2, %r3, %r6; madc.hi.u32 %r7, %r2, %r3, 0;\n"
            "mad.lo.cc.u32 %r6, %r1, %r4, %r6; madc.hi.cc.u32 %r7, %r1, %r4, %r7; addc.u32 %r8, 0, 0;\n"
            "mad.lo.u32 %r0, %r2, %r4, %r7;") == 2);
  CHECK(one("mov.u32 %r1, 5; bmsk.clamp.b32 %r0, %r1, 4;") == 0x1e0);
  CHECK(one("mov.u32 %r1, 30; bmsk.wrap.b32 %r0, %r1, 34;") == 0xc0000000);
  CHECK(one("mov.u32 %r1, 40; bmsk.clamp.b32 %r0, %r1, 4;") == 0);
  CHECK(one("mov.u32 %r1, 8; bmsk.clamp.b32 %r0, %r1, 0;") == 0);
  CHECK(one("mov.u32 %r1, 0x1f8; szext.clamp.s32 %r0, %r1, 8;") == 0xfffffff8);
  CHECK(one("mov.u32 %r1, 0x1f8; szext.wrap.u32 %r0, %r1, 40;") == 0xf8);
  CHECK(one("mov.u32 %r1, 0x1f8; szext.clamp.u32 %r0, %r1, 32;") == 0x1f8);
  CHECK(one("setp.eq.u32 %p1, %t, 1; mov.u32 %r1, 12; lop3.or.b32 %r0|%p2, %r1, 10, 0, 0xc0, %p1; @%p2 "
            "add.u32 %r0, %r0, 100;") == 108);
  CHECK(one("setp.eq.u32 %p1, %t, 1; mov.u32 %r1, 12; mov.u32 %r0, 0;\n"
            "lop3.and.b32 _|%p2, %r1, 10, 0, 0xc0, %p1; @!%p2 add.u32 %r0, %r0, 100;") == 100);
  CHECK(one("mov.u32 %r1, 70000; mov.u32 %r2, -5; cvt.pack.sat.s16.s32 %r0, %r1, %r2;") == 0x7ffffffb);
  CHECK(one("mov.u32 %r1, 300; mov.u32 %r2, -5; cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, 0x1234;") ==
        0x1234ff00);
  CHECK(one(".reg .b128 %q<3>; mov.u64 %rd1, 0x1111111122222222; mov.u64 %rd2, 0x3333333344444444;\n"
            "mov.b128 %q0, {%rd1, %rd2}; .local .align 16 .b8 l[32]; st.local.b128 [l+16], %q0; "
            "ld.local.b128 %q1, [l+16];\n"
            "mov.b128 %q2, %q1; mov.b128 {%rd3, %rd4}, %q2; xor.b64 %rd3, %rd3, %rd4; cvt.u32.u64 %r0, "
            "%rd3;") == 0x66666666);
  CHECK(one("mov.u32 %r0, \\\n 5; /* two\n lines */ add.u32 %r0, %r0, 0b11U;") == 8);
}

TEST_CASE("targets before sm_70 exchange without .sync", "[emulator][function]") {
  const auto v =
      values(with("",
                  "shfl.bfly.b32 %r0, %t, 1, 31; setp.lt.u32 %p0, %t, 4; vote.ballot.b32 %r1, %p0;\n"
                  "mad.lo.u32 %r0, %r1, 100, %r0; st.global.u32 [%out], %r0;",
                  "sm_61", "5.0"));
  for (u32 i = 0; i < 32; ++i) CHECK(v[i] == 1500 + (i ^ 1));
}

TEST_CASE("padding may be copied, and nothing else that nobody wrote", "[emulator][function]") {
  const std::string copy =
      ".local .align 4 .b8 a[8]; .local .align 4 .b8 b[8]; st.local.u32 [a], 5;\n"
      "ld.local.u8 %h1, [a+4]; st.local.u8 [b+4], %h1; ld.local.u32 %r0, [a];";
  CHECK(r0(copy) == 5);
  CHECK_THAT(fault(copy + " ld.local.u8 %h2, [b+4]; add.u16 %h3, %h2, 1;"),
             Contains("reads %h2, which nothing has written"));
  CHECK_THAT(fault(copy + " st.global.u8 [%out], %h1;"), Contains("reads %h1, which nothing has written"));
}

TEST_CASE("parameters by position", "[emulator][function]") {
  const auto program = parsed(
      module_of(".visible .entry k(.param .u64 p, .param .f32 f, .param .align 4 .b8 s[12]) { ret; }"));
  Arguments arguments(*program->find_entry("k"));
  const auto refused = [](const absl::Status& s) { return std::string(s.message()); };
  CHECK(arguments.set(1, 2.5f).ok());
  CHECK_THAT(refused(arguments.set(1, 2.5f)), Contains("parameter 1 'f' of kernel 'k' is given twice"));
  CHECK_THAT(refused(arguments.set(0, 1.0f)),
             Contains("parameter 0 'p' of kernel 'k' has 8 bytes, and is given 4"));
  CHECK_THAT(refused(arguments.set(3, 1.0f)),
             Contains("kernel 'k' has no parameter 3; they are numbered 0 to 2"));
  CHECK_THAT(refused(arguments.bytes().status()),
             Contains("parameter 0 'p' of kernel 'k', of 8 bytes, has no value"));
  CHECK(arguments.set(0, std::uint64_t{1} << 40).ok());
  CHECK(arguments.set(2, std::array<u32, 3>{1, 2, 3}).ok());
  const auto bytes = arguments.bytes();
  REQUIRE(bytes.ok());
  REQUIRE(bytes->size() == 24);
  u32 last;
  std::memcpy(&last, bytes->data() + 20, 4);
  CHECK(last == 3);
}

constexpr std::string_view kSilu = R"(
.visible .entry silu(.param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<5>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p exit;
  mad.wide.u32 %rd3, %r2, 4, %rd1;
  mad.wide.u32 %rd4, %r2, 4, %rd2;
  ld.global.f32 %f1, [%rd3];
  mul.rn.f32 %f2, %f1, 0fBFB8AA3B;
  ex2.approx.f32 %f2, %f2;
  add.rn.f32 %f2, %f2, 0f3F800000;
  div.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd4], %f3;
}
)";

// The example of docs/emulator.md.
TEST_CASE("silu of a vector", "[emulator][function]") {
  const auto program = Program::parse(module_of(kSilu));
  INFO(program.status().message());
  REQUIRE(program.ok());
  const std::vector<float> x = {-2, -1, 0, 1, 2};
  std::vector<float> y(x.size());
  Memory memory;
  const auto in = memory.allocate(4 * x.size(), "x"), out = memory.allocate(4 * y.size(), "y");
  REQUIRE(memory.write(*in, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(x.data()), 4 * x.size()))
              .ok());
  Arguments arguments(*(*program)->find_entry("silu"));
  REQUIRE(arguments.set(0, *in).ok());
  REQUIRE(arguments.set(1, *out).ok());
  REQUIRE(arguments.set(2, u32(x.size())).ok());
  Options options;
  options.profile = true;
  const auto stats = launch(
      **program, "silu",
      {.grid = {1}, .block = {32}, .dynamic_shared_bytes = 0, .params = *arguments.bytes()}, memory, options);
  INFO(stats.status().message());
  REQUIRE(stats.ok());
  CHECK(stats->profile->loads.sectors_per_request() == 1);
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(y.data()), 4 * y.size());
  REQUIRE(memory.read(*out, bytes, true).ok());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == Approx(x[i] / (1 + std::exp(-x[i]))));
}

}  // namespace
}  // namespace ptxgen::emulator
