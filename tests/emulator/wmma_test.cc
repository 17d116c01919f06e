// wmma against matrices multiplied in plain C++: only what is in memory counts, the lanes' shares are PTX's
// secret.
#include <array>

#include "src/emulator/numerics.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

constexpr std::size_t kDepth = 16;

struct Shape {
  const char* name;
  std::size_t m, n;
};
constexpr Shape kShapes[] = {{"m16n16k16", 16, 16}, {"m32n8k16", 32, 8}, {"m8n32k16", 8, 32}};

// A matrix in memory, its lines `stride` elements apart.
struct Stored {
  std::size_t rows, columns;
  bool column_major;
  std::size_t padding;
  std::size_t stride() const { return (column_major ? rows : columns) + padding; }
  std::size_t index(std::size_t row, std::size_t column) const {
    return column_major ? column * stride() + row : row * stride() + column;
  }
  std::size_t elements() const { return index(rows - 1, columns - 1) + 1; }
  const char* layout() const { return column_major ? "col" : "row"; }
};

int value_at(std::size_t row, std::size_t column, int seed) {
  const auto mixed = static_cast<int>((row * 37 + column * 11 + static_cast<std::size_t>(seed) * 5) % 16);
  return mixed < 8 ? mixed + 1 : 7 - mixed;  // 1 to 8, -1 to -8
}

std::uint32_t bits_of(int value, bool wide) {
  return encode(value, wide ? kF32 : kF16, Rounding::kNearestEven);
}

template <class T>
std::vector<T> stored(const Stored& s, int seed) {
  std::vector<T> all(s.elements(), static_cast<T>(0x7fff7fff));  // NaN between the lines
  for (std::size_t r = 0; r < s.rows; ++r) {
    for (std::size_t c = 0; c < s.columns; ++c)
      all[s.index(r, c)] = static_cast<T>(bits_of(value_at(r, c, seed), sizeof(T) == 4));
  }
  return all;
}

std::string registers(int first, int count) {
  std::string text = "{%r" + std::to_string(first);
  for (int i = 1; i < count; ++i) text += ", %r" + std::to_string(first + i);
  return text + "}";
}

// d = a * b + c with everything in global memory.
template <class T>
std::vector<T> multiply(const Shape& shape, const Stored& a, const Stored& b, const Stored& c,
                        const Stored& d) {
  Memory memory;
  const std::string type = sizeof(T) == 4 ? "f32" : "f16", name = shape.name;
  const auto at_a = upload(memory, stored<std::uint16_t>(a, 1), "a"),
             at_b = upload(memory, stored<std::uint16_t>(b, 2), "b");
  const auto at_c = upload(memory, stored<T>(c, 3), "c"),
             at_d = upload(memory, std::vector<T>(d.elements(), T{77}), "d");
  const std::string in_a = registers(0, 8), in_b = registers(8, 8),
                    in_c = registers(16, sizeof(T) == 4 ? 8 : 4);
  const auto load = [&](const char* matrix, const Stored& s, const std::string& of, const std::string& to,
                        int pointer) {
    return std::string("wmma.load.") + matrix + ".sync.aligned." + s.layout() + "." + name + ".global." + of +
           " " + to + ", [%rd" + std::to_string(pointer) + "], " + std::to_string(s.stride()) + ";\n";
  };
  const std::string text =
      ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {\n"
      ".reg .b32 %r<24>; .reg .b64 %rd<4>; ld.param.u64 %rd0, [pa]; ld.param.u64 %rd1, [pb]; ld.param.u64 "
      "%rd2, [pc]; "
      "ld.param.u64 %rd3, [pd];\n" +
      load("a", a, "f16", in_a, 0) + load("b", b, "f16", in_b, 1) + load("c", c, type, in_c, 2) +
      "wmma.mma.sync.aligned." + a.layout() + "." + b.layout() + "." + name + "." + type + "." + type + " " +
      in_c + ", " + in_a + ", " + in_b + ", " + in_c + ";\nwmma.store.d.sync.aligned." + d.layout() + "." +
      name + ".global." + type + " [%rd3], " + in_c + ", " + std::to_string(d.stride()) + ";\nret;\n}\n";
  INFO(text);
  const auto params = params_of(at_a, at_b, at_c, at_d);
  run(*parsed(module_of(text)), "k", {.grid = {}, .block = {32}, .dynamic_shared_bytes = 0, .params = params},
      memory);
  return download<T>(memory, at_d, d.elements());
}

template <class T>
void check_shape(const Shape& shape, bool a_column, bool b_column, bool c_column, bool d_column) {
  // Lines stay multiples of 16 bytes apart.
  const Stored a{shape.m, kDepth, a_column, 16}, b{kDepth, shape.n, b_column, b_column ? 0u : 8u};
  const Stored c{shape.m, shape.n, c_column, 8}, d{shape.m, shape.n, d_column, 16};
  const std::vector<T> results = multiply<T>(shape, a, b, c, d);
  for (std::size_t row = 0; row < shape.m; ++row) {
    for (std::size_t column = 0; column < shape.n; ++column) {
      int sum = value_at(row, column, 3);
      for (std::size_t k = 0; k < kDepth; ++k) sum += value_at(row, k, 1) * value_at(k, column, 2);
      REQUIRE(results[d.index(row, column)] == bits_of(sum, sizeof(T) == 4));
    }
  }
  if (d.padding > 0) REQUIRE(results[d.column_major ? d.rows : d.columns] == T{77});  // between the lines
}

TEST_CASE("wmma multiplies matrices of every shape, layout and accumulator", "[emulator][mma]") {
  for (const Shape& shape : kShapes) {
    for (unsigned layouts = 0; layouts < 16; ++layouts) {
      INFO(shape.name << " layouts " << layouts);
      const auto column = [&](unsigned bit) { return (layouts >> bit & 1) != 0; };
      check_shape<std::uint32_t>(shape, column(0), column(1), column(2), column(3));
      check_shape<std::uint16_t>(shape, column(0), column(1), column(2), column(3));
    }
  }
}

// ---- faults ----

bool says(const std::string& message, std::string_view words) {
  INFO(message);
  CHECK(message.find(words) != std::string::npos);
  return message.find(words) != std::string::npos;
}

std::string wmma_fault(const std::string& body) {
  return fault(".shared .align 32 .b8 tile[512]; .reg .b32 %x<8>; ld.param.u64 %rd1, [out_param];" + body);
}
std::string load(const char* rest) {
  return std::string("wmma.load.a.sync.aligned.row.m16n16k16") + rest;
}

TEST_CASE("the tiles of wmma are checked", "[emulator][mma][fault]") {
  const std::string to = " {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}";
  says(wmma_fault(load(".global.f16") + to + ", [%rd1], 16;"), "which nothing has written");
  says(wmma_fault(load(".global.f16") + to + ", [%rd1], 144;"), "which nothing has written");
  says(wmma_fault(load(".shared.f16") + to + ", [tile], 20;"),
       "has lines 40 bytes apart; it must begin at a multiple of 32 bytes and lines be multiples of 16 bytes "
       "apart");
  says(wmma_fault(load(".shared.f16") + to + ", [tile+16], 16;"), "it must begin at a multiple of 32 bytes");
  says(wmma_fault(load(".shared.f16") + to + ", [%t], 16;"),
       "the lanes of a warp give different addresses or strides");
  says(wmma_fault("setp.lt.u32 %p1, %t, 3; @%p1 " + load(".shared.f16") + to + ", [tile], 16;"),
       "the predicate is false in lanes 3-31");
  const std::string zeros = "mov.b32 %x0, 0; mov.b32 %x1, 0; mov.b32 %x2, 0; mov.b32 %x3, 0;";
  const std::string store =
      "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile], {%x0, %x1, %x2, %x3}, ";
  says(wmma_fault(zeros + store + "24;"), "past the end of variable 'tile'");
  // Other lanes' stores, then the tile's, without a barrier.
  says(wmma_fault(zeros + "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 4, %r1; st.shared.b32 [%r1], %t;" + store +
                  "16;"),
       "race in shared memory: writes 16 bytes");
  // A store, then a read by another lane without a barrier.
  says(wmma_fault(zeros + store +
                  "16; mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 4, %r1; ld.shared.b32 %r2, [%r1];"),
       "race in shared memory: reads 4 bytes");
}

TEST_CASE("malformed wmma instructions are parse errors", "[emulator][mma]") {
  const auto error = [](const std::string& body) { return parse_failure(kernel_text(body)); };
  says(error("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, %r3}, [%out];"),
       "is a vector of 8 registers");
  says(error("wmma.load.a.sync.aligned.row.m16n16k16.global.f32 {%r0, %r1, %r2, %r3}, [%out];"),
       "takes a type from .f16");
  says(error("wmma.load.a.sync.aligned.row.m8n8k4.global.f16 {%r0, %r1, %r2, %r3}, [%out];"),
       "needs a shape");
  says(error("wmma.store.a.sync.aligned.row.m16n16k16.global.f16 [%out], {%r0, %r1, %r2, %r3};"),
       "wmma.store stores .d");
}

}  // namespace
}  // namespace ptxgen::emulator
