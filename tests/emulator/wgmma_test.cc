// wgmma against matrices multiplied in plain C++: every shape, type, swizzle and major-ness. Where an element
// stands, in shared memory and in registers, is written here line by line, as the figures of the PTX ISA show
// it
// ("Asynchronous Warpgroup Level Matrix Shared Memory Layout"), not as the emulator computes it.
#include <cmath>
#include <functional>
#include <random>

#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"
#include "tests/emulator/matrix_elements.h"

namespace ptxgen::emulator {
namespace {

constexpr int kThreads = 128, kThreadWords = 4 + 128;  // a, accumulators
constexpr int kMatrixA = 0, kMatrixB = 9 * 1024, kImage = kMatrixB + 34 * 1024;

struct Lying {
  int swizzle = 0;  // bytes
  bool mn_major = false;
  int window = 0;  // K-major with a swizzle: the matrix begins so many times 32 bytes into its lines
  int shift = 0;   // the pattern of the swizzle begins so many times 128 bytes behind where it does by itself

  int line() const { return swizzle ? swizzle : 16; }
  // Byte offsets between groups, all different from each other so that none stands for another.
  int along_k() const { return mn_major ? swizzle ? 8 * swizzle : 33 * 128 : 33 * 128; }
  int along_mn() const { return mn_major && swizzle ? 16 * swizzle : 8 * line(); }
  std::uint64_t descriptor(int base) const {
    const auto field = [](int bytes) { return static_cast<std::uint64_t>(bytes) / 16; };
    const bool stride_along_k = mn_major && swizzle;
    const std::uint64_t code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    const int leading = stride_along_k ? along_mn() : mn_major || !swizzle ? along_k() : 0x3ff0;
    return field(base + 128 * shift + 32 * window) | static_cast<std::uint64_t>(shift) << 49 |
           field(leading) << 16 | field(stride_along_k ? along_k() : along_mn()) << 32 | code << 62;
  }
  // The byte at which the element stands: its line, and in the line its piece, which a swizzle exchanges with
  // another by the line's number: every line of 128 bytes by one more, of 64 every second, of 32 every
  // fourth.
  int place(int mn, int k, int bytes) const {
    const int in_line = mn_major ? k % 8 : mn % 8;
    int across = mn_major ? mn * bytes : k * bytes + 32 * window;  // bytes along the contiguous index
    int group = 0;
    if (mn_major || !swizzle) {
      group = across / line();
      across %= line();
    }
    const int piece = (across / 16) ^ (swizzle ? in_line * swizzle / 128 : 0);
    const int groups_along = mn_major ? along_mn() : along_k(),
              groups_down = mn_major ? along_k() : along_mn();
    return 128 * shift + group * groups_along + (mn_major ? k / 8 : mn / 8) * groups_down + in_line * line() +
           piece * 16 + across % 16;
  }
};

struct Case {
  std::string d, a, b;
  int k = 16, n = 8;
  bool a_in_shared = false, accumulate = true, satfinite = false;
  Lying lying_a, lying_b;
  int scale_a = 1, scale_b = 1;

  bool integers() const { return d == "s32"; }
  bool transposable() const { return k == 16; }
  std::string instruction() const {
    std::string text = str_cat("wgmma.mma_async.sync.aligned.m64n", n, "k", k,
                               satfinite ? ".satfinite." : ".", d, ".", a, ".", b, " {");
    for (int i = 0; i < accumulators(); ++i) str_append(&text, i ? ", " : "", "%d", i);
    str_append(&text, "}, ", a_in_shared ? "%da" : "{%a0, %a1, %a2, %a3}", ", %db, %p0");
    if (!integers()) str_append(&text, ", ", scale_a, ", ", scale_b);
    if (transposable() && a_in_shared) str_append(&text, ", ", int{lying_a.mn_major});
    if (transposable()) str_append(&text, ", ", int{lying_b.mn_major});
    return text + ";";
  }
  int accumulators() const { return n * element_width(d) / 64; }
};

std::string text_of(const Case& c) {
  std::string text =
      str_cat(R"(
.visible .entry k(.param .u64 image_param, .param .u64 in_param, .param .u64 out_param) {
  .reg .pred %p<2>; .reg .b32 %t, %i, %s, %v, %a<4>, %d<128>; .reg .b64 %image, %in, %out, %x, %da, %db;
  .shared .align 1024 .b8 tile[)",
              kImage, R"(];
  ld.param.u64 %image, [image_param]; ld.param.u64 %in, [in_param]; ld.param.u64 %out, [out_param];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %in, %t, )",
              kThreadWords * 4, ", %in; mad.wide.u32 %out, %t, ", kThreadWords * 4, R"(, %out;
  mul.lo.u32 %i, %t, 4;
COPY: mad.wide.u32 %x, %i, 1, %image; ld.global.u32 %v, [%x]; mov.u32 %s, tile; add.u32 %s, %s, %i;
  st.shared.u32 [%s], %v; add.u32 %i, %i, 512; setp.lt.u32 %p1, %i, )",
              kImage, "; @%p1 bra COPY;\n  fence.proxy.async; bar.sync 0;\n  setp.eq.u32 %p0, ",
              int{c.accumulate}, ", 1;\n  mov.b64 %da, ", c.lying_a.descriptor(kMatrixA), "; mov.b64 %db, ",
              c.lying_b.descriptor(kMatrixB), ";\n");
  for (int i = 0; i < 4; ++i) str_append(&text, "ld.global.b32 %a", i, ", [%in+", 4 * i, "];\n");
  for (int i = 0; i < c.accumulators(); ++i)
    str_append(&text, "ld.global.b32 %d", i, ", [%in+", 16 + 4 * i, "];\n");
  str_append(&text, "wgmma.fence.sync.aligned;\n", c.instruction(),
             "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
  for (int i = 0; i < c.accumulators(); ++i)
    str_append(&text, "st.global.b32 [%out+", 4 * i, "], %d", i, ";\n");
  return module_of(str_cat(text, "}\n"), "sm_90a", "8.4");
}

using Numbers = std::vector<std::vector<double>>;

Numbers numbers(int rows, int columns, const std::function<double()>& next) {
  Numbers all(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  for (auto& line : all) {
    for (double& x : line) x = next();
  }
  return all;
}

void put(std::vector<std::uint8_t>& image, int at, std::uint32_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i)
    image[static_cast<std::size_t>(at + i)] = static_cast<std::uint8_t>(bits >> 8 * i);
}

// a is 64 x k, b n x k, c 64 x n.
Numbers multiplied(const Case& c, const Numbers& a, const Numbers& b, const Numbers& before,
                   std::uint64_t seed = 0) {
  std::vector<std::uint8_t> image(kImage, 0x55);  // what no element covers
  std::vector<std::uint32_t> registers(kThreads * kThreadWords);
  const int bytes_a = element_width(c.a) / 8, bytes_b = element_width(c.b) / 8, width = element_width(c.d);
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < c.k; ++k) {
      const std::uint32_t bits =
          element_bits(a[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)], c.a);
      if (c.a_in_shared) {
        put(image, kMatrixA + c.lying_a.place(i, k, bytes_a), bits, bytes_a);
        continue;
      }
      // Figures "WGMMA .m64nNk16 register fragment layout for matrix A" and its like.
      const int per = 4 / bytes_a, thread = i / 16 * 32 + i % 8 * 4 + k % (4 * per) / per;
      const int r = i % 16 / 8 + 2 * (k / (4 * per));
      registers[static_cast<std::size_t>(thread * kThreadWords + r)] |= bits << 8 * bytes_a * (k % per);
    }
  }
  for (int i = 0; i < c.n; ++i) {
    for (int k = 0; k < c.k; ++k) {
      put(image, kMatrixB + c.lying_b.place(i, k, bytes_b),
          element_bits(b[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)], c.b), bytes_b);
    }
  }
  // Figure "register fragment layout for accumulator matrix D": pairs of columns, then row + 8, then 8
  // columns on.
  const auto each = [&](const std::function<void(std::size_t word, int shift, int row, int column)>& f) {
    for (int row = 0; row < 64; ++row) {
      for (int column = 0; column < c.n; ++column) {
        const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
        const int i = column / 8 * 4 + row % 16 / 8 * 2 + column % 2, per = 32 / width;
        f(static_cast<std::size_t>(thread * kThreadWords + i / per), i % per * width, row, column);
      }
    }
  };
  each([&](std::size_t word, int shift, int row, int column) {
    registers[word + 4] |=
        element_bits(before[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)], c.d) << shift;
  });
  Memory memory;
  const std::uint64_t image_at = upload(memory, image, "image"), in = upload(memory, registers, "in");
  const std::uint64_t out = upload(memory, std::vector<std::uint32_t>(registers.size()), "out");
  const auto params = params_of(image_at, in, out);
  Options options;
  options.seed = seed;
  run(*parsed(text_of(c)), "k",
      {.grid = {}, .block = {kThreads}, .dynamic_shared_bytes = 0, .params = params}, memory, options);
  const auto words = download<std::uint32_t>(memory, out, registers.size());
  Numbers result(64, std::vector<double>(static_cast<std::size_t>(c.n)));
  each([&](std::size_t word, int shift, int row, int column) {
    const std::uint32_t bits = width == 32 ? words[word] : words[word] >> shift & 0xffff;
    result[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = element_value(bits, c.d);
  });
  return result;
}

// Whole numbers, of which every type holds the sums exactly.
void check_exact(const Case& c, std::uint64_t seed = 0) {
  std::mt19937 random(static_cast<unsigned>(c.n * 64 + c.k));
  const bool is_unsigned_a = c.a == "u8", is_unsigned_b = c.b == "u8";
  const int reach = c.integers() ? 127 : 3;
  const auto within = [&](bool is_unsigned) {
    return [&random, is_unsigned, reach] {
      const int x = static_cast<int>(random() % static_cast<unsigned>(2 * reach + 1));
      return static_cast<double>(is_unsigned ? x : x - reach);
    };
  };
  const Numbers a = numbers(64, c.k, within(is_unsigned_a)), b = numbers(c.n, c.k, within(is_unsigned_b));
  const Numbers before = numbers(64, c.n, within(false));
  const Numbers result = multiplied(c, a, b, before, seed);
  INFO(c.instruction());
  INFO("swizzles " << c.lying_a.swizzle << ", " << c.lying_b.swizzle);
  for (std::size_t row = 0; row < 64; ++row) {
    for (std::size_t column = 0; column < static_cast<std::size_t>(c.n); ++column) {
      double sum = c.accumulate ? before[row][column] : 0;
      for (std::size_t k = 0; k < static_cast<std::size_t>(c.k); ++k)
        sum += c.scale_a * c.scale_b * a[row][k] * b[column][k];
      if (result[row][column] == sum) continue;
      INFO("row " << row << ", column " << column);
      REQUIRE(result[row][column] == sum);
    }
  }
  CHECK(result.size() == 64);
}

struct Types {
  std::string d, a, b;
  int k;
};
const Types kAllTypes[] = {
    {"f32", "f16", "f16", 16},   {"f16", "f16", "f16", 16},   {"f32", "bf16", "bf16", 16},
    {"f32", "tf32", "tf32", 8},  {"f32", "e4m3", "e4m3", 32}, {"f32", "e4m3", "e5m2", 32},
    {"f16", "e5m2", "e4m3", 32}, {"f16", "e5m2", "e5m2", 32}, {"s32", "s8", "s8", 32},
    {"s32", "u8", "u8", 32},     {"s32", "s8", "u8", 32},     {"s32", "u8", "s8", 32}};

Case of(const Types& t, int n) {
  Case c;
  c.d = t.d;
  c.a = t.a;
  c.b = t.b;
  c.k = t.k;
  c.n = n;
  return c;
}

TEST_CASE("wgmma multiplies in every shape and type", "[emulator][wgmma]") {
  for (const Types& t : kAllTypes) {
    for (int n = 8; n <= 256; n += 8) {
      if (t.d == "s32" && n > 32 && n % 16 != 0) continue;
      Case c = of(t, n);
      c.lying_b.swizzle = 128;
      c.a_in_shared = n % 16 == 0;
      c.accumulate = n % 24 != 0;
      c.satfinite = t.d == "s32" && n % 32 == 0;
      check_exact(c);
    }
  }
}

TEST_CASE("wgmma reads matrices as their descriptors say", "[emulator][wgmma]") {
  for (const Types& t : kAllTypes) {
    for (const int swizzle : {0, 32, 64, 128}) {
      for (int window = 0; window < std::max(swizzle / 32, 1); ++window) {
        for (const bool a_in_shared : {false, true}) {
          Case c = of(t, 80);
          c.a_in_shared = a_in_shared;
          c.lying_a = {swizzle, false, window};
          c.lying_b = {swizzle, false, std::max(swizzle / 32, 1) - 1 - window};
          check_exact(c);
        }
      }
    }
  }
}

TEST_CASE("wgmma reads 16-bit elements in both majors", "[emulator][wgmma]") {
  for (const std::string type : {"f16", "bf16"}) {
    for (const int swizzle_a : {0, 32, 64, 128}) {
      for (const int swizzle_b : {0, 32, 64, 128}) {
        for (const int majors : {1, 2, 3}) {
          Case c = of({"f32", type, type, 16}, 136);
          c.a_in_shared = true;
          c.lying_a = {swizzle_a, (majors & 1) != 0, 0};
          c.lying_b = {swizzle_b, (majors & 2) != 0, 0};
          check_exact(c);
          c.a_in_shared = false;
          if (majors == 2) check_exact(c);
        }
      }
    }
  }
}

TEST_CASE("wgmma reads a swizzle that begins where its base offset says", "[emulator][wgmma]") {
  for (const bool mn_major : {false, true}) {
    for (const int swizzle : {32, 64, 128}) {
      for (int shift = 1; shift < swizzle / 16; ++shift) {
        Case c = of({"f32", "f16", "f16", 16}, 24);
        c.a_in_shared = true;
        c.lying_a = {swizzle, mn_major, 0, swizzle / 16 - shift};
        c.lying_b = {swizzle, mn_major, 0, shift};
        check_exact(c);
      }
    }
  }
}

TEST_CASE("wgmma scales a and b by one or minus one", "[emulator][wgmma]") {
  for (const Types& t : kAllTypes) {
    if (t.d == "s32") continue;
    for (const int scales : {0, 1, 2, 3}) {
      Case c = of(t, 16);
      c.scale_a = scales & 1 ? -1 : 1;
      c.scale_b = scales & 2 ? -1 : 1;
      check_exact(c, static_cast<std::uint64_t>(scales));
    }
  }
}

TEST_CASE("wgmma on whole numbers wraps around, or is clamped", "[emulator][wgmma]") {
  for (const bool satfinite : {false, true}) {
    Case c = of({"s32", "s8", "s8", 32}, 8);
    c.satfinite = satfinite;
    const Numbers a = numbers(64, 32, [] { return 100; }), b = numbers(8, 32, [] { return 100; });
    const double before = 2147483647.0 - 1000, sum = before + 32 * 100 * 100;
    const Numbers result = multiplied(c, a, b, numbers(64, 8, [&] { return before; }));
    CHECK(result[63][7] == (satfinite ? 2147483647.0 : sum - 4294967296.0));
  }
}

TEST_CASE("wgmma on floating-point numbers is within its bound", "[emulator][wgmma]") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-2, 2);
  for (const Types& t : kAllTypes) {
    if (t.d != "f32") continue;
    const Case c = of(t, 32);
    // Numbers that the types hold.
    const auto held = [&](const std::string& type) {
      const double x = uniform(random);
      if (type == "tf32") return std::ldexp(std::nearbyint(std::ldexp(x, 10)), -10);
      const double steps = type == "f16" ? 9 : type == "bf16" ? 6 : type == "e4m3" ? 2 : 1;
      const int exponent = std::ilogb(x);
      return std::ldexp(std::nearbyint(std::ldexp(x, static_cast<int>(steps) - exponent)),
                        exponent - static_cast<int>(steps));
    };
    const Numbers a = numbers(64, c.k, [&] { return std::max(std::fabs(held(c.a)), 0.25); });
    const Numbers b = numbers(
        c.n, c.k, [&] { return std::copysign(std::max(std::fabs(held(c.b)), 0.25), uniform(random)); });
    const Numbers before =
        numbers(64, c.n, [&] { return static_cast<double>(static_cast<float>(uniform(random))); });
    const Numbers result = multiplied(c, a, b, before);
    INFO(c.instruction());
    for (std::size_t row = 0; row < 64; ++row) {
      for (std::size_t column = 0; column < 32; ++column) {
        double sum = before[row][column], largest = std::fabs(sum);
        for (std::size_t k = 0; k < static_cast<std::size_t>(c.k); ++k) {
          sum += a[row][k] * b[column][k];
          largest = std::max(largest, std::fabs(a[row][k] * b[column][k]));
        }
        // docs/emulator.md: (k + 1) 2^(e - 25), e being the largest exponent, and the last rounding; of 8-bit
        // floats 13 bits in the place of 25 and of 23.
        const int bits = c.k == 32 ? 13 : 25;
        const double bound =
            (c.k + 1) * std::ldexp(1, std::ilogb(largest) + 1 - bits) + std::ldexp(8, c.k == 32 ? -13 : -23);
        if (std::fabs(result[row][column] - sum) <= bound) continue;
        REQUIRE(result[row][column] == sum);
      }
    }
    CHECK(result[0][0] != before[0][0]);
  }
}

}  // namespace
}  // namespace ptxgen::emulator
