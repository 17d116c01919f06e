// mma, ldmatrix and stmatrix against matrices multiplied in plain C++. Which lane holds which element is
// written here from the tables of the PTX ISA, shape by shape, not as the emulator computes it.
#include <cmath>
#include <functional>

#include "tests/emulator/harness.h"
#include "tests/emulator/matrix_elements.h"

namespace ptxgen::emulator {
namespace {

struct Place {
  int row, column;
};
// Where element i of a lane stands; g is the lane's group, t its number in the group.
using Layout = std::function<Place(int g, int t, int i)>;

// PTX ISA, "Matrix Fragments for mma.m8n8k16", ".m16n8k4", ".m16n8k8", ".m16n8k16", ".m16n8k32".
const Layout kA_8x16_bytes = [](int g, int t, int i) { return Place{g, t * 4 + i}; };
const Layout kA_16x16_bytes = [](int g, int t, int i) { return Place{i < 4 ? g : g + 8, t * 4 + (i & 3)}; };
const Layout kA_16x32_bytes = [](int g, int t, int i) {
  return Place{(i < 4 || (8 <= i && i < 12)) ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
};
const Layout kA_16x8_halves = [](int g, int t, int i) { return Place{i < 2 ? g : g + 8, t * 2 + (i & 1)}; };
const Layout kA_16x16_halves = [](int g, int t, int i) {
  return Place{(i < 2 || (4 <= i && i < 6)) ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
};
const Layout kA_16x4_words = [](int g, int t, int i) { return Place{i == 0 ? g : g + 8, t}; };
const Layout kA_16x8_words = [](int g, int t, int i) {
  return Place{(i == 0 || i == 2) ? g : g + 8, i < 2 ? t : t + 4};
};
const Layout kB_16_bytes = [](int g, int t, int i) { return Place{t * 4 + i, g}; };
const Layout kB_32_bytes = [](int g, int t, int i) {
  return Place{i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g};
};
const Layout kB_8_halves = [](int g, int t, int i) { return Place{t * 2 + i, g}; };
const Layout kB_16_halves = [](int g, int t, int i) {
  return Place{i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g};
};
const Layout kB_4_words = [](int g, int t, int) { return Place{t, g}; };
const Layout kB_8_words = [](int g, int t, int i) { return Place{i == 0 ? t : t + 4, g}; };
const Layout kC_8 = [](int g, int t, int i) { return Place{g, t * 2 + i}; };
const Layout kC_16 = [](int g, int t, int i) { return Place{i < 2 ? g : g + 8, t * 2 + (i & 1)}; };

using Registers = std::vector<std::uint32_t>;  // register r of lane l at l * registers + r
using Numbers = std::vector<std::vector<double>>;

Registers spread(const Numbers& matrix, std::string_view type, const Layout& layout) {
  const int width = element_width(type), per = 32 / width;
  const int elements = static_cast<int>(matrix.size() * matrix[0].size()) / 32, registers = elements / per;
  Registers all(static_cast<std::size_t>(32 * registers));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < elements; ++i) {
      const Place at = layout(lane / 4, lane % 4, i);
      all[static_cast<std::size_t>(lane * registers + i / per)] |=
          element_bits(matrix[static_cast<std::size_t>(at.row)][static_cast<std::size_t>(at.column)], type)
          << (i % per * width);
    }
  }
  return all;
}

Numbers collect(const Registers& all, std::size_t rows, std::size_t columns, std::string_view type,
                const Layout& layout) {
  Numbers matrix(rows, std::vector<double>(columns));
  const int width = element_width(type), per = 32 / width;
  const int elements = static_cast<int>(rows * columns) / 32, registers = elements / per;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < elements; ++i) {
      const Place at = layout(lane / 4, lane % 4, i);
      const std::uint32_t word = all[static_cast<std::size_t>(lane * registers + i / per)];
      matrix[static_cast<std::size_t>(at.row)][static_cast<std::size_t>(at.column)] =
          element_value(width == 32 ? word : word >> (i % per * width) & 0xffff, type);
    }
  }
  return matrix;
}

std::string list(const char* prefix, std::size_t first, std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    text += (i ? ", " : "") + std::string(prefix) + std::to_string(first + i);
  }
  return text + "}";
}

// Each lane loads its registers of a, b and c, executes `instruction`, and stores those of d.
Registers multiply(const std::string& instruction, const Registers& a, const Registers& b,
                   const Registers& c) {
  Memory memory;
  const std::uint64_t at_a = upload(memory, a, "a"), at_b = upload(memory, b, "b"),
                      at_c = upload(memory, c, "c");
  const std::uint64_t at_d = upload(memory, Registers(c.size(), 0xdeadbeef), "d");
  std::string text =
      ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {\n"
      "  .reg .b32 %r<40>; .reg .b64 %rd<5>; .reg .b32 %lane; mov.u32 %lane, %laneid;\n";
  std::size_t next = 0;
  const auto load = [&](const char* name, std::size_t count) {
    text += std::string("  ld.param.u64 %rd1, [p") + name + "]; mad.wide.u32 %rd1, %lane, " +
            std::to_string(4 * count) + ", %rd1;\n";
    for (std::size_t i = 0; i < count; ++i) {
      text += "  ld.global.b32 %r" + std::to_string(next + i) + ", [%rd1+" + std::to_string(4 * i) + "];\n";
    }
    next += count;
    return list("%r", next - count, count);
  };
  const std::size_t results = c.size() / 32;
  const std::string in_a = load("a", a.size() / 32), in_b = load("b", b.size() / 32),
                    in_c = load("c", results);
  text +=
      "  " + instruction + " " + list("%r", 30, results) + ", " + in_a + ", " + in_b + ", " + in_c + ";\n";
  text += "  ld.param.u64 %rd1, [pd]; mad.wide.u32 %rd1, %lane, " + std::to_string(4 * results) + ", %rd1;\n";
  for (std::size_t i = 0; i < results; ++i) {
    text += "  st.global.b32 [%rd1+" + std::to_string(4 * i) + "], %r" + std::to_string(30 + i) + ";\n";
  }
  const auto params = params_of(at_a, at_b, at_c, at_d);
  run(*parsed(module_of(text + "  ret;\n}\n", "sm_90", "8.7")), "k",
      {.grid = {}, .block = {32}, .dynamic_shared_bytes = 0, .params = params}, memory);
  return download<std::uint32_t>(memory, at_d, c.size());
}

struct Variant {
  int m, k;
  const char *a_type, *b_type, *c_type;
  const Layout &a, &b, &c;
  std::string instruction(const char* modifier = "") const {
    return "mma.sync.aligned.m" + std::to_string(m) + "n8k" + std::to_string(k) + ".row.col" + modifier +
           "." + c_type + "." + a_type + "." + b_type + "." + c_type;
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all = {
      {16, 8, "f16", "f16", "f32", kA_16x8_halves, kB_8_halves, kC_16},
      {16, 8, "f16", "f16", "f16", kA_16x8_halves, kB_8_halves, kC_16},
      {16, 16, "f16", "f16", "f32", kA_16x16_halves, kB_16_halves, kC_16},
      {16, 16, "f16", "f16", "f16", kA_16x16_halves, kB_16_halves, kC_16},
      {16, 8, "bf16", "bf16", "f32", kA_16x8_halves, kB_8_halves, kC_16},
      {16, 16, "bf16", "bf16", "f32", kA_16x16_halves, kB_16_halves, kC_16},
      {16, 4, "tf32", "tf32", "f32", kA_16x4_words, kB_4_words, kC_16},
      {16, 8, "tf32", "tf32", "f32", kA_16x8_words, kB_8_words, kC_16},
  };
  for (const char* a : {"u8", "s8"}) {
    for (const char* b : {"u8", "s8"}) {
      all.push_back({8, 16, a, b, "s32", kA_8x16_bytes, kB_16_bytes, kC_8});
      all.push_back({16, 16, a, b, "s32", kA_16x16_bytes, kB_16_bytes, kC_16});
      all.push_back({16, 32, a, b, "s32", kA_16x32_bytes, kB_32_bytes, kC_16});
    }
  }
  for (const char* a : {"e4m3", "e5m2"}) {
    for (const char* b : {"e4m3", "e5m2"}) {
      for (const char* c : {"f16", "f32"})
        all.push_back({16, 32, a, b, c, kA_16x32_bytes, kB_32_bytes, kC_16});
    }
  }
  return all;
}

// Whole numbers, none of them 0, that differ from place to place.
Numbers matrix_of(int rows, int columns, std::string_view type, int seed) {
  Numbers matrix(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  std::uint32_t state = static_cast<std::uint32_t>(seed);
  for (auto& row : matrix) {
    for (double& x : row) {
      state = state * 1664525 + 1013904223;
      const int random = static_cast<int>(state >> 16);
      if (type == "u8")
        x = 1 + random % 255;
      else if (type == "s8")
        x = random % 2 ? 1 + random % 127 : -1 - random % 128;
      else if (type == "s32")
        x = random - 0x8000;
      else
        x = random % 2 ? 1 + random % 7 : -1 - random % 7;  // e5m2 holds every integer up to 8
    }
  }
  return matrix;
}

TEST_CASE("mma multiplies matrices that lie as the PTX ISA says", "[emulator][mma]") {
  for (const Variant& v : variants()) {
    const Numbers a = matrix_of(v.m, v.k, v.a_type, 1), b = matrix_of(v.k, 8, v.b_type, 2),
                  c = matrix_of(v.m, 8, v.c_type, 3);
    const Numbers d = collect(multiply(v.instruction(), spread(a, v.a_type, v.a), spread(b, v.b_type, v.b),
                                       spread(c, v.c_type, v.c)),
                              static_cast<std::size_t>(v.m), 8, v.c_type, v.c);
    INFO(v.instruction());
    for (std::size_t row = 0; row < a.size(); ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        double sum = c[row][column];
        for (std::size_t k = 0; k < b.size(); ++k) sum += a[row][k] * b[k][column];
        REQUIRE(d[row][column] == sum);
      }
    }
  }
}

TEST_CASE("mma on integers wraps around, or saturates", "[emulator][mma]") {
  for (const Variant& v : variants()) {
    if (v.c_type != std::string_view("s32")) continue;
    const double least = v.a_type == std::string_view("s8") ? -128 : 255;
    const Numbers a(static_cast<std::size_t>(v.m), std::vector<double>(static_cast<std::size_t>(v.k), least));
    const Numbers b(static_cast<std::size_t>(v.k), std::vector<double>(8, 100));
    const double product = least * 100 * v.k;
    const double c_value = product > 0 ? 2147483647.0 - 5 : -2147483648.0 + 7;
    const Numbers c(static_cast<std::size_t>(v.m), std::vector<double>(8, c_value));
    INFO(v.instruction());
    const auto result = [&](const char* modifier) {
      return static_cast<std::int32_t>(multiply(v.instruction(modifier), spread(a, v.a_type, v.a),
                                                spread(b, v.b_type, v.b), spread(c, v.c_type, v.c))[37]);
    };
    CHECK(result("") == static_cast<std::int32_t>(static_cast<std::int64_t>(c_value + product)));
    CHECK(result(".satfinite") == (product > 0 ? 0x7fffffff : -0x7fffffff - 1));
  }
}

// A row of a and a column of b with these bits in element 0 and 1, c in every element; d[0][0].
std::uint32_t two_products(const Variant& v, std::array<std::uint32_t, 2> a, std::array<std::uint32_t, 2> b,
                           std::uint32_t c) {
  const int width = element_width(v.a_type);
  Registers in_a = spread(Numbers(16, std::vector<double>(static_cast<std::size_t>(v.k))), v.a_type, v.a);
  Registers in_b = spread(Numbers(static_cast<std::size_t>(v.k), std::vector<double>(8)), v.b_type, v.b);
  const Registers in_c(
      static_cast<std::size_t>(32 * 16 * 8 / 32 / (v.c_type == std::string_view("f16") ? 2 : 1)),
      v.c_type == std::string_view("f16") ? c | c << 16 : c);
  if (width == 32) {  // element 1 is lane 1's first register
    in_a[0] = a[0], in_a[in_a.size() / 32] = a[1], in_b[0] = b[0], in_b[in_b.size() / 32] = b[1];
  } else {
    in_a[0] = a[0] | a[1] << width, in_b[0] = b[0] | b[1] << width;
  }
  const std::uint32_t d = multiply(v.instruction(), in_a, in_b, in_c)[0];
  return v.c_type == std::string_view("f16") ? d & 0xffff : d;
}

TEST_CASE("mma keeps subnormals, infinities and NaN", "[emulator][mma]") {
  const Variant f16{16, 16, "f16", "f16", "f32", kA_16x16_halves, kB_16_halves, kC_16};
  const Variant tf32{16, 8, "tf32", "tf32", "f32", kA_16x8_words, kB_8_words, kC_16};
  const Variant e4m3{16, 32, "e4m3", "e5m2", "f32", kA_16x32_bytes, kB_32_bytes, kC_16};
  const Variant narrow{16, 16, "f16", "f16", "f16", kA_16x16_halves, kB_16_halves, kC_16};
  const Variant bf16{16, 16, "bf16", "bf16", "f32", kA_16x16_halves, kB_16_halves, kC_16};
  CHECK(two_products(f16, {0x0001, 0}, {0x3c00, 0}, 0) == 0x33800000);            // 2^-24
  CHECK(two_products(f16, {0x7bff, 0}, {0x7bff, 0}, 0) == 0x4f7fc004);            // 65504^2 = 0xffc00400
  CHECK(two_products(f16, {0x7c00, 0}, {0x3c00, 0}, 0) == 0x7f800000);            // infinity
  CHECK(two_products(f16, {0x7c00, 0xfc00}, {0x3c00, 0x3c00}, 0) == 0x7fffffff);  // infinity - infinity
  CHECK(two_products(f16, {0x7c00, 0}, {0, 0}, 0) == 0x7fffffff);                 // infinity * 0
  CHECK(two_products(f16, {0, 0}, {0, 0}, 0xffc00001) == 0x7fffffff);             // NaN in c
  CHECK(two_products(f16, {0x3c00, 0}, {0x3c00, 0}, 0xff800000) == 0xff800000);
  CHECK(two_products(tf32, {0x3f801fff, 0}, {0x3f800000, 0}, 0) ==
        0x3f800000);                                                     // the low 13 bits do not count
  CHECK(two_products(e4m3, {0x7f, 0}, {0x3c, 0}, 0) == 0x7fffffff);      // e4m3's only NaN
  CHECK(two_products(e4m3, {0x7e, 0}, {0x3c, 0}, 0) == 0x43e00000);      // 448
  CHECK(two_products(e4m3, {0x38, 0}, {0x7c, 0}, 0) == 0x7f800000);      // infinity in e5m2
  CHECK(two_products(narrow, {0x7bff, 0}, {0x4000, 0}, 0) == 0x7c00);    // overflow of an f16 accumulator
  CHECK(two_products(narrow, {0x3c01, 0}, {0x3c01, 0}, 0) == 0x3c02);    // 1 + 2^-9 + 2^-20 to nearest
  CHECK(two_products(narrow, {0x8001, 0}, {0x0001, 0}, 0) == 0);         // no negative zero
  CHECK(two_products(bf16, {0xff00, 0}, {0x4000, 0}, 0) == 0xff800000);  // overflow of an f32 accumulator
  CHECK(two_products(f16, {0x3c00, 0}, {0x3c00, 0}, 0x33800001) == 0x3f800000);  // cut off
  CHECK(two_products(e4m3, {0x38, 0}, {0x3c, 0}, 0x33800001) == 0x3f800001);     // c comes last, to nearest
}

// ---- ldmatrix, stmatrix ----

// 256 distinct bytes-pairs in shared memory as 32 rows of 8, then `body`, with %r1 the address of the lane's
// own row.
std::string with_tiles(const std::string& body) {
  return R"(
    .shared .align 16 .b8 tiles[512]; .reg .b32 %r<20>;
    shl.b32 %r1, %t, 4; mov.u32 %r2, tiles; add.u32 %r1, %r1, %r2;
    mad.lo.u32 %r3, %t, 0x80008, 0x10000;
    st.shared.b32 [%r1], %r3;
    add.u32 %r3, %r3, 0x20002; st.shared.b32 [%r1+4], %r3;
    add.u32 %r3, %r3, 0x20002; st.shared.b32 [%r1+8], %r3;
    add.u32 %r3, %r3, 0x20002; st.shared.b32 [%r1+12], %r3;
    bar.warp.sync -1;
  )" + body;
}
std::string without_registers(std::string text) {  // kernel_text declares them
  const std::string declared = " .reg .b32 %r<20>;";
  return text.erase(text.find(declared), declared.size());
}

// Row r of tile i, element j.
std::uint32_t tile_element(std::uint32_t tile, std::uint32_t row, std::uint32_t column) {
  return (8 * tile + row) * 8 + column;
}

TEST_CASE("ldmatrix gives each lane two elements of a row, or of a column", "[emulator][mma]") {
  for (const std::uint32_t tiles : {1u, 2u, 4u}) {
    for (const bool transposed : {false, true}) {
      for (std::uint32_t tile = 0; tile < tiles; ++tile) {
        std::string registers = "{%r10";
        for (std::uint32_t i = 1; i < tiles; ++i) registers += ", %r" + std::to_string(10 + i);
        const auto values = results<std::uint32_t>(
            without_registers(with_tiles("ldmatrix.sync.aligned.m8n8.x" + std::to_string(tiles) +
                                         (transposed ? ".trans" : "") + ".shared.b16 " + registers +
                                         "}, [%r1];" + "st.global.b32 [%out], %r" +
                                         std::to_string(10 + tile) + ";")),
            32);
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          const std::uint32_t g = lane / 4, t = lane % 4;
          const std::uint32_t low = transposed ? tile_element(tile, 2 * t, g) : tile_element(tile, g, 2 * t);
          const std::uint32_t high =
              transposed ? tile_element(tile, 2 * t + 1, g) : tile_element(tile, g, 2 * t + 1);
          REQUIRE(values[lane] == (low | high << 16));
        }
      }
    }
  }
}

TEST_CASE("stmatrix writes what ldmatrix reads", "[emulator][mma]") {
  // Tile 0 transposed by a load and a store, through a generic address; read back in rows.
  const auto values = results<std::uint32_t>(without_registers(with_tiles(R"(
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%r1];
    bar.warp.sync -1;
    cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;
    stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%r10};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%r11}, [%r1];
    st.global.b32 [%out], %r11;)")),
                                             32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t g = lane / 4, t = lane % 4;
    REQUIRE(values[lane] == (tile_element(0, 2 * t, g) | tile_element(0, 2 * t + 1, g) << 16));
  }
}

// ---- faults ----

std::string tile_fault(const std::string& body) {
  return fault(without_registers(with_tiles(body)));
}
bool says(const std::string& message, std::string_view words) {
  INFO(message);
  CHECK(message.find(words) != std::string::npos);
  return message.find(words) != std::string::npos;
}

const std::string kMma =
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r8, %r9, "
    "%r10, %r11};";
const std::string kFilled = [] {
  std::string text;
  for (int i = 1; i < 12; ++i) text += "mov.b32 %r" + std::to_string(i) + ", 0;";
  return text;
}();

TEST_CASE("an .aligned instruction needs all 32 lanes", "[emulator][mma][fault]") {
  const std::string ld = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];";
  says(fault(kFilled + kMma, 40),
       "all 32 lanes of a warp execute this together, but lanes 8-31 of warp 1 do not exist: "
       "the number of threads is no multiple of 32");
  says(fault(kFilled + "setp.lt.u32 %p1, %t, 3; @%p1 exit; " + kMma), "but lanes 0-2 of warp 0 have exited");
  says(fault(kFilled + "setp.ne.u32 %p1, %t, 5; @%p1 " + kMma), "the predicate is false in lane 5 of warp 0");
  says(tile_fault("setp.ne.u32 %p1, %t, 5; @%p1 " + ld), "the predicate is false in lane 5 of warp 0");
  // Lanes on two paths with an mma each.
  says(fault(kFilled + "setp.lt.u32 %p1, %t, 16; @%p1 bra A; " + kMma + " bra.uni END; A: " + kMma + " END:"),
       "deadlock, every live thread waits; warp 0 lanes 16-31 at PTX line");
  // Lanes that come by another way execute it together.
  CHECK(results<std::uint32_t>(
            kFilled +
                "setp.lt.u32 %p1, %t, 16; @%p1 bra A; mov.b32 %r8, 0f3f800000; bra.uni MEET; "
                "A: mov.b32 %r8, 0f40000000; MEET: " +
                kMma + " st.global.b32 [%out], %r1;",
            32)[20] == 0x3f800000);
}

TEST_CASE("tensor-core instructions read written registers only", "[emulator][mma][fault]") {
  says(fault("mov.b32 %r0, 0;" + kMma), "which nothing has written");
  says(
      fault(
          kFilled +
          "setp.ge.u32 %p1, %t, 4; .reg .b32 %x; @%p1 mov.b32 %x, 0; mma.sync.aligned.m16n8k8.row.col.f32.f16"
          ".f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%x}, {%r8, %r9, %r10, %r11};"),
      "reads %x, which nothing has written (lanes 0-3 of warp 0)");
}

TEST_CASE("rows of ldmatrix and stmatrix are checked", "[emulator][mma][fault]") {
  const auto ld = [](const char* offset) {
    return std::string("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1") + offset +
           "];";
  };
  says(tile_fault(ld("+8")),
       "thread (0,0,0): reads 16 bytes at shared address 0x8, which is not a multiple of 16");
  says(tile_fault(ld("+16")),
       "thread (31,0,0): reads 16 bytes at shared address 0x200: 0 bytes past the end of "
       "variable 'tiles'");
  says(tile_fault("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r1+260], {%r3, %r3};"), "not a multiple of 16");
  says(tile_fault("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r1+400], {%r3, %r3};"),
       "past the end of variable 'tiles'");
  says(tile_fault("ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%out];"), "is not in shared memory");
  says(fault(".shared .align 16 .b8 empty[128]; and.b32 %r1, %t, 7; shl.b32 %r1, %r1, 4; mov.u32 %r2, empty; "
             "add.u32 "
             "%r1, %r1, %r2; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];"),
       "which nothing has written");
}

TEST_CASE("ldmatrix and stmatrix take part in the search for races", "[emulator][mma][fault]") {
  std::string unsynchronised =
      without_registers(with_tiles("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%r2];"));
  // A row that another lane wrote, without anything between.
  unsynchronised.erase(unsynchronised.find("bar.warp.sync -1;"), 17);
  says(fault(unsynchronised),
       "race in shared memory: reads 16 bytes at shared address 0x0, which thread (0,0,0) wrote");
  says(tile_fault("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1]; xor.b32 %r4, %r1, 16; "
                  "st.shared.b32 [%r4], 1;"),
       "race in shared memory: writes 4 bytes");
  says(tile_fault("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r3};"),
       "race in shared memory: writes 16 bytes");
  says(tile_fault("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r3}; xor.b32 %r4, %r1, 16; "
                  "ld.shared.b32 %r5, [%r4];"),
       "race in shared memory: reads 4 bytes");
}

TEST_CASE("malformed tensor-core instructions are parse errors", "[emulator][mma]") {
  const auto error = [](const std::string& body) { return parse_failure(kernel_text(body)); };
  says(error("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5}, {%r7}, {%r8, "
             "%r9, %r10, "
             "%r11};"),
       "operand 2 of mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 is a vector of 2 registers");
  says(error("mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, "
             "{%r8, %r9, %r10, "
             "%r11};"),
       "is not an instruction of the emulator");
  says(error("mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, "
             "{%r8, %r9, %r10, "
             "%r11};"),
       "needs .row.col");
  says(error("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];"), "is a vector of 2 registers");
  says(error("ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd2];"), "tiles lie in shared memory");
}

}  // namespace
}  // namespace ptxgen::emulator
