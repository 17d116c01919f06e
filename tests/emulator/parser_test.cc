// What the parser refuses, and in which words; truncated and mutated text.
#include <random>

#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

std::string body_failure(std::string_view body) {
  return parse_failure(kernel_text(body));
}

TEST_CASE("parse errors name the line, the text and what is expected", "[emulator]") {
  const std::string message =
      parse_failure(".version 8.3\n.target sm_90\n\n.visible .entry k() {\n  frobnicate.u32 %r0;\n}\n");
  CHECK_THAT(message, Contains("PTX line 5: "));
  const std::string unknown = body_failure("\n  frobnicate.u32 %r0, %r1;\n");
  CHECK_THAT(unknown, Contains("PTX line 11: unknown instruction 'frobnicate': 'frobnicate.u32 %r0, %r1;'"));
  CHECK_THAT(body_failure("add.u32.v2 %r0, %r1, %r2;"), Contains("'.v2' does not belong to add"));
  CHECK_THAT(body_failure("add.b32 %r0, %r1, %r2;"),
             Contains("takes a type from") && Contains(".u32") && Contains(".bf16x2"));
  CHECK_THAT(body_failure("add.u32 %r0, %r1;"), Contains("add.u32 takes 3 operands, not 2"));
  CHECK_THAT(body_failure("add.u32 %r0, %r1, %rd1;"),
             Contains("register '%rd1' is .b64, but add.u32 reads .u32"));
  CHECK_THAT(body_failure("add.u32 %h0, %r1, %r2;"),
             Contains("register '%h0' is .b16, but add.u32 writes .u32"));
  CHECK_THAT(body_failure("add.f32 %f0, %f1, 1;"), Contains("'1' where add.f32 reads a .f32"));
  CHECK_THAT(body_failure("add.f16x2 %r0, %r1, 0x3c003c00;"),
             Contains("'0x3c003c00' where add.f16x2 reads a .f16x2"));
  CHECK_THAT(body_failure("add.u32 5, %r1, %r2;"), Contains("'5' where a register to write is expected"));
  CHECK_THAT(body_failure("add.u32 %r0, %r1, missing;"), Contains("'missing' is not declared"));
  CHECK_THAT(body_failure("add.u32 %r0, %r99, 1;"),
             Contains("'%r99' is neither a declared register nor a special register"));
  CHECK_THAT(body_failure("bra NOWHERE;"), Contains("no label 'NOWHERE'"));
  CHECK_THAT(body_failure("L: L:"), Contains("a second label 'L'"));
  CHECK_THAT(body_failure("@%r0 mov.u32 %r0, 1;"), Contains("a guard must be a .pred register"));
  CHECK_THAT(body_failure("mov.u32 %r0, 1"), Contains("'ret' where ',' or ';' is expected"));
  CHECK_THAT(body_failure("fma.f32 %f0, %f1, %f2, %f3;"), Contains("needs a rounding"));
  CHECK_THAT(body_failure("cvt.f16.f32 %h0, %f1;"), Contains("not exact and needs .rn"));
  CHECK_THAT(body_failure("cvt.rn.f32.f16 %f0, %h1;"), Contains("'.rn' does not belong to cvt"));
  CHECK_THAT(body_failure("cvt.rn.e4m3x2.f32 %h0, %f1, %f2;"), Contains("needs .satfinite"));
  CHECK_THAT(body_failure("st.const.u32 [%rd1], 1;"), Contains("read-only"));
  CHECK_THAT(body_failure("ld.global.v4.u32 {%r0, %r1}, [%out];"), Contains("another number of elements"));
  CHECK_THAT(body_failure("ld.global.v4.u64 {%rd0, %rd1, %rd2, %rd3}, out_param;"),
             Contains("an address in [ ]"));
  CHECK_THAT(body_failure("ld.shared.u32 %r0, [out_param];"),
             Contains("'out_param' is in .param, not in .shared"));
  CHECK_THAT(body_failure("lop3.b32 %r0, %r1, %r2, %r3, 256;"), Contains("from 0 to 255"));
  CHECK_THAT(body_failure("shfl.idx.b32 %r0, %r1, %r2, %r3;"), Contains("shfl without .sync"));
  CHECK_THAT(body_failure("setp.lt.b32 %p0, %r1, %r2;"), Contains("eq and ne only"));
  CHECK_THAT(body_failure("mov.u32 %r0, 0x;"), Contains("number without digits"));
  CHECK_THAT(body_failure("mov.u32 %r0, 08;"), Contains("'08' is not a 64-bit integer"));
  CHECK_THAT(body_failure("mov.f32 %f0, 0f3f8;"), Contains("0f must be followed by 8 hexadecimal digits"));
  CHECK_THAT(body_failure("/* no end"), Contains("comment without its '*/'"));
  CHECK_THAT(body_failure("mov.u32 %r0, \xc3\xa9;"), Contains("character '\\xc3' is not part of PTX"));
  CHECK_THAT(parse_failure(""), Contains("the text ends where .version is expected"));
  CHECK_THAT(parse_failure(".version 8"), Contains("a version such as 7.8"));
  CHECK_THAT(parse_failure(".version 8.3\n.target sm_20\n"), Contains("a target such as sm_75"));
  CHECK_THAT(parse_failure(".version 7.0\n.target sm_90\n"),
             Contains(".target sm_90 needs .version 7.8 or higher, not 7.0"));
  CHECK_THAT(parse_failure(".version 8.3\n.target sm_90\n.address_size 32\n"),
             Contains("64, the only address size"));
  CHECK_THAT(parse_failure(module_of(".visible .entry k() { ret; } .visible .entry k() { ret; }")),
             Contains("a second entry 'k'"));
  CHECK_THAT(parse_failure(module_of(".shared .b32 x[];")), Contains("must be .extern .shared"));
  CHECK_THAT(parse_failure(module_of(".global .b8 x[99999999999];")), Contains("4 GiB"));
  CHECK_THAT(parse_failure(module_of(".shared .b32 x = 5;")), Contains("only .global and .const"));
}

TEST_CASE("syntax that compilers and people write", "[emulator]") {
  const std::vector<std::uint32_t> v = results<std::uint32_t>(R"(
    /* a block
       comment */
    .pragma "nounroll";
    .loc 1 7 0
    {
      .reg .b32 t;          // a scope of its own
      mov.u32 t, 0b101;
      add.u32 %r0, t, 010;  // octal
    }
    { .reg .pred t; setp.eq.u32 t, %r0, 13; @!t bra $bad; }
    add.u32 %r0, %r0, 0xFFU;
    bra.uni good;
  $bad:
    mov.u32 %r0, 0;
  good:
    st.global.u32 [%out + 0], %r0;
    { good: { bra inner; } inner: }
  )");
  CHECK(v[0] == 268);
}

const char kSample[] = R"(.version 8.3
.target sm_90, debug
.address_size 64
.global .align 4 .b32 table[3] = {1, -2, 0x3};
.visible .entry k(.param .u64 out, .param .align 8 .b8 blob[16])
.maxntid 64, 1, 1 .minnctapersm 2
{
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .f32 %f<3>;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ge.and.u32 %p1|%p2, %r1, 64, !%p1;
  @%p1 bra END;
  ld.global.nc.L1::no_allocate.v2.f32 {%f1, %f2}, [%rd1+-8];
  fma.rn.ftz.f32 %f1, %f1, 0f3F800000, 1.5e-3;
  shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, 0xffffffff;
  atom.shared.add.u32 %r3, [tile+4], 1;
END:
  ret;
}
)";

// Whatever the text, parse() answers; what it accepts can be launched.
void digest(const std::string& text) {
  auto program = Program::parse(text);
  if (!program.ok()) {
    CHECK_THAT(std::string(program.status().message()), Contains("PTX line "));
    return;
  }
  Memory memory;
  const auto out = memory.allocate(256, "out");
  Options options;
  options.workers = 1;
  options.max_warp_instructions = 200;
  std::vector<std::byte> params(4096);
  std::memcpy(params.data(), &*out, 8);
  for (const EntryInfo& entry : (*program)->entries()) {
    if (entry.param_bytes > params.size()) continue;
    (void)launch(**program, entry.name,
                 {.grid = {}, .block = {32}, .dynamic_shared_bytes = 0, .params = params}, memory, options);
  }
}

TEST_CASE("every prefix of a module is answered", "[emulator]") {
  const std::string sample = kSample;
  REQUIRE(Program::parse(sample).ok());
  for (std::size_t n = 0; n < sample.size(); ++n) digest(sample.substr(0, n));
}

TEST_CASE("mutated modules are answered", "[emulator]") {
  std::mt19937 random(20240607);
  const std::string alphabet = ".,;:%{}[]()<>@!|+-=\"/* \n0123456789abfxrspduULR_\xff";
  for (int i = 0; i < 4000; ++i) {
    std::string text = kSample;
    for (std::uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = alphabet[random() % alphabet.size()]; break;
        case 1: text.erase(at, 1 + random() % 12); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
        default: text.insert(at, std::string(1 + random() % 40, alphabet[random() % alphabet.size()]));
      }
    }
    digest(text);
  }
}

}  // namespace
}  // namespace ptxgen::emulator
