// Kernels that multiply matrices with fragments, run on the emulator; and where a tensor-core instruction may
// stand.
#include <array>

#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr BuildOptions kSm80{.target = {80, false}, .max_isa = kNewestIsa};

// As build_and_run, for sm_80 and one warp.
template <class Body>
absl::StatusOr<std::vector<u32>> multiplied(Body&& body, const std::vector<u32>& in, std::size_t outputs) {
  const absl::StatusOr<Kernel> kernel = build(body, kSm80);
  if (!kernel.ok()) return kernel.status();
  return run(*kernel, 32, in, 0, outputs);
}

// ---- Fragments lie as they say ----

// A fragment with element (row, column) from `in`, row-major bytes of `columns`.
template <class F>
F loaded(KernelBuilder& k, u32 columns, u32 first_word) {
  const Reg<u32> lane = k.laneid();
  std::array<Reg<u32>, F::kRegisters> registers = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, F::kRegisters>{((void)I, k.constant<u32>(0))...};
  }
  (std::make_index_sequence<F::kRegisters>{});
  for (u32 r = 0; r < F::kRegisters; ++r) {
    // A register's bytes lie side by side along k: in a row of a, in a column of b, which `in` holds as a
    // row.
    const auto at = F::place(0, 4 * r);
    const u32 row = F::kMatrix == Matrix::kA ? at.row : at.column,
              along = F::kMatrix == Matrix::kA ? at.column : at.row;
    auto word = ((lane >> 2) + row) * (columns / 4) + (lane & 3) + (along / 4 + first_word);
    registers[r] = ld_global(k.param(&Args::in) + word);
  }
  return F(registers);
}

u32 byte_at(const std::vector<u32>& words, u32 index) {
  return words[index / 4] >> (8 * (index % 4)) & 0xff;
}

TEST_CASE("a kernel multiplies 16x32 by 32x8 bytes with one mma", "[builder][mma]") {
  using A = Fragment<Matrix::kA, u8, 16, 32>;
  using B = Fragment<Matrix::kB, s8, 32, 8>;
  std::vector<u32> in(128 + 64);
  u32 state = 7;
  for (u32& word : in) word = (state = state * 1664525 + 1013904223);
  const auto result = multiplied(
      [](KernelBuilder& k) {
        Accumulator<s32, 16, 8> acc(k);
        const A a = loaded<A>(k, 32, 0);
        const B b = loaded<B>(k, 32, 128);
        k.for_(0u, 2u, 1, [&](Reg<u32>) { acc = mma(a, b, acc); });
        const Reg<u32> lane = k.laneid();
        for (u32 i = 0; i < 4; ++i) {
          const auto at = Fragment<Matrix::kC, s32, 16, 8>::place(0, i);
          const auto index = ((lane >> 2) + at.row) * 8 + (lane & 3) * 2 + at.column;
          st_global(k.param(&Args::out) + index, bitcast<u32>(acc[i]));
        }
      },
      in, 128);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  for (u32 row = 0; row < 16; ++row) {
    for (u32 column = 0; column < 8; ++column) {
      s32 sum = 0;
      for (u32 i = 0; i < 32; ++i) {
        sum +=
            static_cast<s32>(byte_at(in, row * 32 + i)) * static_cast<s8>(byte_at(in, 512 + column * 32 + i));
      }
      REQUIRE(static_cast<s32>((*result)[row * 8 + column]) == 2 * sum);
    }
  }
}

// Every element of the matrix is held once.
template <class F>
bool covers(u32 rows, u32 columns) {
  std::vector<bool> seen(rows * columns);
  for (u32 lane = 0; lane < 32; ++lane) {
    for (u32 e = 0; e < F::kElements; ++e) {
      const auto at = F::place(lane, e);
      if (at.row >= rows || at.column >= columns || seen[at.row * columns + at.column]) return false;
      seen[at.row * columns + at.column] = true;
    }
  }
  return F::kElements * 32 == rows * columns;
}

TEST_CASE("the lanes of a fragment hold every element once", "[builder][mma]") {
  CHECK(covers<Fragment<Matrix::kA, u8, 8, 16>>(8, 16));
  CHECK(covers<Fragment<Matrix::kA, s8, 16, 16>>(16, 16));
  CHECK(covers<Fragment<Matrix::kA, e4m3, 16, 32>>(16, 32));
  CHECK(covers<Fragment<Matrix::kA, f16, 16, 8>>(16, 8));
  CHECK(covers<Fragment<Matrix::kA, bf16, 16, 16>>(16, 16));
  CHECK(covers<Fragment<Matrix::kA, tf32, 16, 4>>(16, 4));
  CHECK(covers<Fragment<Matrix::kA, tf32, 16, 8>>(16, 8));
  CHECK(covers<Fragment<Matrix::kB, u8, 16, 8>>(16, 8));
  CHECK(covers<Fragment<Matrix::kB, s8, 32, 8>>(32, 8));
  CHECK(covers<Fragment<Matrix::kB, f16, 16, 8>>(16, 8));
  CHECK(covers<Fragment<Matrix::kB, tf32, 4, 8>>(4, 8));
  CHECK(covers<Fragment<Matrix::kC, s32, 8, 8>>(8, 8));
  CHECK(covers<Fragment<Matrix::kC, f32, 16, 8>>(16, 8));
  CHECK(covers<Fragment<Matrix::kC, f16, 16, 8>>(16, 8));
  // PTX ISA, "Matrix Fragments for mma.m16n8k32", of lane 13: group 3, thread 1.
  using A = Fragment<Matrix::kA, u8, 16, 32>;
  CHECK(A::place(13, 2) == A::Place{3, 6});
  CHECK(A::place(13, 5) == A::Place{11, 5});
  CHECK(A::place(13, 8) == A::Place{3, 20});
  CHECK(A::place(13, 15) == A::Place{11, 23});
}

TEST_CASE("ldmatrix fills the fragments of an mma", "[builder][mma]") {
  using A = Fragment<Matrix::kA, f16, 16, 16>;
  using B = Fragment<Matrix::kB, f16, 16, 8>;
  std::vector<u32> in(16 * 16 / 2 + 8 * 16 / 2);
  // Small whole numbers as f16: a is row-major, b column-major.
  const auto half = [](u32 i) { return u32{0x3c00} + (i % 5) * 0x200 + (i % 3 == 0 ? 0x8000 : 0); };
  const auto value = [](u32 bits) {
    return (bits & 0x8000 ? -1.0f : 1.0f) *
           static_cast<float>(std::array{1.0, 1.5, 2.0, 3.0, 4.0}[((bits & 0x7fff) - 0x3c00) / 0x200]);
  };
  for (u32 i = 0; i < in.size(); ++i) in[i] = half(7 * i + 3) | half(11 * i + 1) << 16;
  const auto result = multiplied(
      [](KernelBuilder& k) {
        const auto tile = k.shared<f16, 16>(16 * 16 + 8 * 16);
        const auto words = at<u32>(tile);
        const Reg<u32> lane = k.laneid();
        for (u32 i = 0; i < 6; ++i) {
          auto word = ld_global(k.param(&Args::in) + (lane + 32 * i));
          st_shared(words + (lane + 32 * i), word);
        }
        k.bar_sync(0);
        // Lanes 0-15 point to the rows, 16-31 to their second halves.
        const auto a_row = assume_aligned<16>(tile + ((lane & 15) * 16 + (lane >> 4) * 8));
        const A a(ldmatrix_x4(a_row));
        const auto b_row = assume_aligned<16>(tile + ((lane & 7) * 16 + (lane >> 3 & 1) * 8 + 256));
        const B b(ldmatrix_x2(b_row));
        const auto zero = k.constant<f32>(0);
        const auto d = mma(a, b, Fragment<Matrix::kC, f32, 16, 8>({zero, zero, zero, zero}));
        for (u32 i = 0; i < 4; ++i) {
          const auto index = ((lane >> 2) + i / 2 * 8) * 8 + (lane & 3) * 2 + i % 2;
          st_global(k.param(&Args::out) + index, bitcast<u32>(d[i]));
        }
      },
      in, 128);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  const auto element = [&](u32 index) { return value(in[index / 2] >> (16 * (index % 2)) & 0xffff); };
  for (u32 row = 0; row < 16; ++row) {
    for (u32 column = 0; column < 8; ++column) {
      float sum = 0;
      for (u32 i = 0; i < 16; ++i) sum += element(row * 16 + i) * element(256 + column * 16 + i);
      REQUIRE(__builtin_bit_cast(float, (*result)[row * 8 + column]) == sum);
    }
  }
}

TEST_CASE("wmma multiplies tiles of global and shared memory", "[builder][mma]") {
  std::vector<u32> in(256);  // a in rows, b in columns: 32 tiles of 16x16 f16 would do, here one of each
  const auto half = [](u32 i) { return u32{0x3c00} + (i % 7) * 0x80 + (i % 3 == 0 ? 0x8000 : 0); };
  const auto value = [](u32 bits) {
    return (bits & 0x8000 ? -1.0f : 1.0f) * (1.0f + static_cast<float>((bits & 0x7fff) - 0x3c00) / 1024);
  };
  for (u32 i = 0; i < in.size(); ++i) in[i] = half(7 * i + 3) | half(11 * i + 1) << 16;
  const auto result = multiplied(
      [](KernelBuilder& k) {
        const auto tile = k.shared<f16, 32>(256);
        const Reg<u32> lane = k.laneid();
        for (u32 i = 0; i < 4; ++i) {
          auto word = ld_global(k.param(&Args::in) + (lane + (128 + 32 * i)));
          st_shared(at<u32>(tile) + (lane + 32 * i), word);
        }
        k.bar_sync(0);
        WmmaAccumulator<f32, 16, 16, 16> acc(k);
        k.for_(0u, 3u, 1, [&](Reg<u32>) {
          const auto a =
              wmma_load_a_m16n16k16<Layout::kRow>(assume_aligned<32>(at<f16>(k.param(&Args::in))), 16);
          const auto b = wmma_load_b_m16n16k16<Layout::kCol>(tile, 16);
          acc = wmma_mma(a, b, acc);
        });
        wmma_store_d<Layout::kRow>(assume_aligned<32>(at<f32>(k.param(&Args::out))),
                                   WmmaFragment<Matrix::kC, f32, 16, 16, 16>(acc), 16);
      },
      in, 256);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  const auto element = [&](u32 index) { return value(in[index / 2] >> (16 * (index % 2)) & 0xffff); };
  for (u32 row = 0; row < 16; ++row) {
    for (u32 column = 0; column < 16; ++column) {
      float sum = 0;
      for (u32 i = 0; i < 16; ++i) sum += element(row * 16 + i) * element(256 + column * 16 + i);
      REQUIRE(__builtin_bit_cast(float, (*result)[row * 16 + column]) == 3 * sum);
    }
  }
}

// ---- All lanes together ----

using TestA = Fragment<Matrix::kA, f16, 16, 8>;
using TestB = Fragment<Matrix::kB, f16, 8, 8>;
using TestC = Fragment<Matrix::kC, f16, 16, 8>;

void some_mma(KernelBuilder& k) {
  const Reg<f16x2> r = k.constant<f16x2>(f16x2{{0x3c00}, {0x3c00}});
  mma(TestA({r, r}), TestB({r}), TestC({r, r}));
}
template <class Body>
bool divergent(Body&& body) {
  const std::string message = mistake(body, kSm80);
  INFO(message);
  CHECK((message.empty() ||
         message.find("stands in control flow that may differ between the lanes of a warp") !=
             std::string::npos));
  return !message.empty();
}
template <class Condition>
bool divergent_if(Condition&& condition) {
  return divergent([&](KernelBuilder& k) { k.if_(condition(k), [&] { some_mma(k); }); });
}

TEST_CASE("an mma in control flow that differs within a warp is a mistake", "[builder][mma]") {
  CHECK(divergent_if([](KernelBuilder& k) { return k.tid_x() == 0; }));
  CHECK(divergent_if([](KernelBuilder& k) { return k.laneid() < 16; }));
  CHECK(divergent_if([](KernelBuilder& k) { return k.tid_x() < 48; }));
  CHECK(divergent_if([](KernelBuilder& k) { return k.tid_x() < k.param(&Args::n); }));
  CHECK(divergent_if([](KernelBuilder& k) { return (k.tid_x() >> 4) == 0; }));
  CHECK(divergent_if([](KernelBuilder& k) { return (k.tid_x() & 0x60) + (k.tid_x() & 1) == 0; }));
  CHECK(divergent_if([](KernelBuilder& k) { return ld_global(k.param(&Args::in) + k.tid_x()) == 0; }));
  CHECK(divergent_if(
      [](KernelBuilder& k) { return shfl_sync_idx(k.tid_x(), k.tid_x(), 31, 0xffffffff) == 0; }));
  CHECK(divergent_if([](KernelBuilder& k) { return shfl_sync_idx(k.tid_x(), 0, 0x181f, 0xffffffff) == 0; }));
  CHECK(divergent_if([](KernelBuilder& k) {
    k.maxntid(16, 16);
    return k.tid_y() == 0;
  }));
  CHECK(divergent([](KernelBuilder& k) { k.for_(k.tid_x(), 64u, 32, [&](Reg<u32>) { some_mma(k); }); }) ==
        false);
  CHECK(divergent([](KernelBuilder& k) { k.for_(k.tid_x(), 60u, 32, [&](Reg<u32>) { some_mma(k); }); }));
  CHECK(divergent([](KernelBuilder& k) { k.for_(k.tid_x(), 64u, 16, [&](Reg<u32>) { some_mma(k); }); }));
  CHECK(divergent([](KernelBuilder& k) {
    k.if_(k.tid_x() == 0, [&] {
      const auto tile = k.shared<f16, 16>(64);
      ldmatrix_x1(tile);
    });
  }));
  CHECK(divergent([](KernelBuilder& k) {  // a variable assigned in divergent flow
    auto v = k.var<u32>(0);
    k.if_(k.tid_x() == 3, [&] { v = 1; });
    k.if_(v == 0, [&] { some_mma(k); });
  }));
}

TEST_CASE("an mma in control flow of whole warps is none", "[builder][mma]") {
  CHECK(!divergent([](KernelBuilder& k) { some_mma(k); }));
  CHECK(!divergent_if([](KernelBuilder& k) { return (k.tid_x() >> 5) == 1; }));
  CHECK(!divergent_if([](KernelBuilder& k) { return k.tid_x() / 64 < k.param(&Args::n); }));
  CHECK(!divergent_if([](KernelBuilder& k) { return (k.tid_x() & 0xffffffe0) == 32; }));
  CHECK(!divergent_if([](KernelBuilder& k) { return k.tid_x() < 64; }));
  CHECK(!divergent_if([](KernelBuilder& k) { return k.tid_x() + 32 >= 96; }));
  CHECK(!divergent_if([](KernelBuilder& k) { return k.tid_y() == 0; }));
  CHECK(!divergent_if([](KernelBuilder& k) { return vote_sync_any(k.tid_x() == 5, 0xffffffff); }));
  CHECK(!divergent_if([](KernelBuilder& k) { return redux_sync_add(k.laneid(), 0xffffffff) == 5; }));
  CHECK(!divergent_if([](KernelBuilder& k) { return shfl_sync_idx(k.tid_x(), 0, 31, 0xffffffff) == 0; }));
  CHECK(
      !divergent_if([](KernelBuilder& k) { return ld_global(k.param(&Args::in) + (k.tid_x() >> 5)) == 0; }));
  CHECK(!divergent([](KernelBuilder& k) {
    k.for_(k.tid_x() >> 5, k.param(&Args::n), 8, [&](Reg<u32>) {
      k.if_(k.laneid() == 0, [&] { st_global(k.param(&Args::out), 1); });
      some_mma(k);
    });
  }));
}

}  // namespace
}  // namespace ptxgen::testing
