// wgmma in the builder: how a kernel that uses it reads and prints, what it computes on the emulator, and the
// mistakes that are seen while it is built.
#include <array>

#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr BuildOptions kSm90a{.target = {90, true}, .max_isa = kNewestIsa};
using A = Fragment<Matrix::kA, f16, 64, 16>;
using Sum = Accumulator<f32, 64, 8>;

// Every element of the 64 rows and of the accumulators is held once.
template <class F>
bool covers(u32 rows, u32 columns) {
  std::vector<bool> seen(rows * columns);
  for (u32 lane = 0; lane < F::kThreads; ++lane) {
    for (u32 e = 0; e < F::kElements; ++e) {
      const auto at = F::place(lane, e);
      if (at.row >= rows || at.column >= columns || seen[at.row * columns + at.column]) return false;
      seen[at.row * columns + at.column] = true;
    }
  }
  return F::kElements * F::kThreads == rows * columns;
}

TEST_CASE("the threads of a warpgroup hold every element once", "[builder][wgmma]") {
  CHECK(covers<A>(64, 16));
  CHECK(covers<Fragment<Matrix::kA, e4m3, 64, 32>>(64, 32));
  CHECK(covers<Fragment<Matrix::kA, tf32, 64, 8>>(64, 8));
  CHECK(covers<Fragment<Matrix::kC, f32, 64, 8>>(64, 8));
  CHECK(covers<Fragment<Matrix::kC, f16, 64, 136>>(64, 136));
  CHECK(covers<Fragment<Matrix::kC, s32, 64, 256>>(64, 256));
  // PTX ISA, "Register Fragments for wgmma.mma_async", of thread 77: warp 2, group 3, thread 1.
  CHECK(A::place(77, 2) == A::Place{43, 2});
  CHECK(A::place(77, 7) == A::Place{43, 11});
  using C = Fragment<Matrix::kC, f32, 64, 16>;
  CHECK(C::place(77, 1) == C::Place{35, 3});
  CHECK(C::place(77, 2) == C::Place{43, 2});
  CHECK(C::place(77, 7) == C::Place{43, 11});
}

// 64 x 16 halves by registers, 16 x 8 by shared memory, K-major with 128-byte swizzle.
struct Operands {
  A a;
  MatrixDescriptor<f16> b;
};
constexpr MatrixLayout kSwizzled{.swizzle = Swizzle::k128B, .stride_bytes = 1024};

Operands some_operands(KernelBuilder& k) {
  const Reg<f16x2> one = k.constant<f16x2>(f16x2{{0x3c00}, {0x3c00}});
  const auto tile = k.shared<f16, 1024>(8 * 64);
  return {A({one, one, one, one}), MatrixDescriptor<f16>(tile, kSwizzled)};
}

TEST_CASE("a matrix descriptor is made from an address and a layout", "[builder][wgmma]") {
  const auto printed = [](const MatrixLayout& layout, const auto& advanced) {
    return instructions(
        [&](KernelBuilder& k) {
          const auto tile = k.shared<f16, 1024>(512);
          const MatrixDescriptor<f16> b(tile, layout);
          st_global(k.param(&Args::out), cvt<u32>(advanced(k, b).bits()));
        },
        kSm90a);
  };
  const auto decimal = [](u64 bits) { return std::to_string(static_cast<s64>(bits)); };
  const auto same = [](KernelBuilder&, const auto& b) { return b; };
  CHECK(printed(kSwizzled, same)
            .find("  bfe.u32 %r2, %r1, 4, 14;\n  cvt.u64.u32 %rd2, %r2;\n  or.b64 %rd3, %rd2, "
                  "0x4000004000000000;\n") != std::string::npos);
  CHECK(printed({.swizzle = Swizzle::k32B, .leading_bytes = 128, .stride_bytes = 256, .base_offset = 5}, same)
            .find(decimal(0xc00a0010'00080000)) != std::string::npos);
  CHECK(printed({.swizzle = Swizzle::k64B, .stride_bytes = 512}, same).find(decimal(0x80000020'00000000)) !=
        std::string::npos);
  CHECK(printed(kSwizzled, [](KernelBuilder&, const auto& b) {
          return b.advance(32);
        }).find("  add.u64 %rd4, %rd3, 2;\n") != std::string::npos);
  CHECK(printed(kSwizzled, [](KernelBuilder& k, const auto& b) {
          return b.advance(k.param(&Args::n));
        }).find("  add.u64 %rd") != std::string::npos);
  CHECK(printed({.stride_bytes = 8}, same)
            .find("the stride dimension byte offset of a matrix descriptor is 8; it is "
                  "a multiple of 16 below 262144") != std::string::npos);
  CHECK(printed({.leading_bytes = 262144}, same)
            .find("the leading dimension byte offset of a matrix descriptor is "
                  "262144") != std::string::npos);
  CHECK(printed({.base_offset = 8}, same)
            .find("the base offset of a matrix descriptor is 8; it is bits 7 to 9") != std::string::npos);
  CHECK(printed(kSwizzled, [](KernelBuilder&, const auto& b) {
          return b.advance(24);
        }).find("advances by 24 bytes; it advances by a multiple of 16") != std::string::npos);
}

TEST_CASE("accumulators are read and written in place", "[builder][wgmma]") {
  const std::string text = instructions(
      [](KernelBuilder& k) {
        const Operands x = some_operands(k);
        Sum acc(k);
        k.wgmma_fence();
        for (u32 step = 0; step < 2; ++step) wgmma_mma_async(acc, x.a, x.b.advance(32 * step), step != 0);
        k.wgmma_commit_group();
        k.wgmma_wait_group(0);
        st_global(k.param(&Args::out), bitcast<u32>(acc[3]));
      },
      kSm90a);
  INFO(text);
  // The same four registers each time, and no copy between the last wait and their use.
  const std::string mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r4, %r5, %r6, %r7}, ";
  const std::size_t first = text.find(mma), second = text.find(mma, first + 1);
  CHECK(first != std::string::npos);
  CHECK(second != std::string::npos);
  const std::string wait = "  wgmma.wait_group.sync.aligned 0;\n";
  const std::string rest = text.substr(text.find(wait) + wait.size());
  CHECK(rest.find("mov") == std::string::npos);
  CHECK(rest.find("], %r7;") != std::string::npos);
}

TEST_CASE("a value read before wgmma keeps what it was", "[builder][wgmma]") {
  const std::string text = instructions(
      [](KernelBuilder& k) {
        const Operands x = some_operands(k);
        Sum acc(k);
        const Reg<f32> before = acc[0];
        k.wgmma_fence();
        wgmma_mma_async(acc, x.a, x.b, true);
        k.wgmma_commit_group();
        k.wgmma_wait_group(0);
        st_global(k.param(&Args::out), bitcast<u32>(before));
      },
      kSm90a);
  INFO(text);
  const std::size_t stored = text.find("], %r");
  const std::string name = text.substr(stored + 3, text.find(';', stored) - stored - 3);
  const std::size_t copied = text.find("  mov.b32 " + name + ", %r4;\n");
  CHECK(copied < text.find("wgmma.fence"));
}

// ---- Mistakes ----

template <class Body>
std::string said(Body&& body) {
  return mistake(
      [&](KernelBuilder& k) {
        const Operands x = some_operands(k);
        Sum acc(k);
        k.wgmma_fence();
        body(k, x, acc);
      },
      kSm90a);
}
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("an accumulator in flight is neither read nor written", "[builder][wgmma]") {
  const auto start = [](KernelBuilder& k, const Operands& x, Sum& acc) {
    wgmma_mma_async(acc, x.a, x.b, true);
    k.wgmma_commit_group();
  };
  const auto use = [](KernelBuilder& k, Sum& acc) { st_global(k.param(&Args::out), bitcast<u32>(acc[0])); };
  const auto kRead = "a Var is read while a wgmma may still accumulate in it";
  CHECK(said([&](auto& k, auto& x, auto& acc) {
          start(k, x, acc);
          k.wgmma_wait_group(0);
          use(k, acc);
        }) == "");
  CHECK(contains(said([&](auto& k, auto& x, auto& acc) {
                   start(k, x, acc);
                   use(k, acc);
                 }),
                 kRead));
  CHECK(contains(said([&](auto& k, auto& x, auto& acc) {
                   start(k, x, acc);
                   k.wgmma_wait_group(1);
                   use(k, acc);
                 }),
                 kRead));
  CHECK(contains(said([&](auto& k, auto& x, auto& acc) {  // never committed
                   wgmma_mma_async(acc, x.a, x.b, true);
                   k.wgmma_wait_group(0);
                   use(k, acc);
                 }),
                 kRead));
  CHECK(said([&](auto& k, auto& x, auto& acc) {  // the older of two groups
          Sum other(k);
          k.wgmma_fence();
          start(k, x, acc);
          start(k, x, other);
          k.wgmma_wait_group(1);
          use(k, acc);
          k.wgmma_wait_group(0);
        }) == "");
  CHECK(contains(said([&](auto& k, auto& x, auto& acc) {
                   Sum other(k);
                   k.wgmma_fence();
                   start(k, x, acc);
                   start(k, x, other);
                   k.wgmma_wait_group(1);
                   use(k, other);
                 }),
                 kRead));
  CHECK(contains(said([&](auto& k, auto& x, auto& acc) {  // in a branch that follows
                   start(k, x, acc);
                   k.if_(k.tid_x() == 0, [&] { use(k, acc); });
                 }),
                 kRead));
  CHECK(contains(said([&](auto& k, auto& x, auto& acc) {
                   start(k, x, acc);
                   const auto zero = k.template constant<f32>(0);
                   acc = Fragment<Matrix::kC, f32, 64, 8>({zero, zero, zero, zero});
                 }),
                 "a Var is written while a wgmma may still accumulate in it"));
  CHECK(said([&](auto& k, auto& x, auto& acc) {  // waited for at the end of each iteration
          k.for_(0u, 4u, 1, [&](Reg<u32>) {
            start(k, x, acc);
            k.wgmma_wait_group(0);
          });
          use(k, acc);
        }) == "");
}

TEST_CASE("the registers of a in flight are not written", "[builder][wgmma]") {
  const auto turn = [](bool waits) {
    return said([&](auto& k, auto& x, auto& acc) {
      FragmentVar<A> a(x.a);
      k.wgmma_fence();
      wgmma_mma_async(acc, A(a), x.b, true);
      k.wgmma_commit_group();
      if (waits) k.wgmma_wait_group(0);
      a = x.a;
      k.wgmma_wait_group(0);
    });
  };
  CHECK(contains(turn(false), "a Var is written while a wgmma may still read it; wait for its group"));
  CHECK(turn(true) == "");
}

TEST_CASE("wgmma stands where four warps are together", "[builder][wgmma]") {
  const auto under = [](const auto& condition) {
    return said([&](auto& k, auto& x, auto& acc) {
      k.if_(condition(k), [&] { wgmma_mma_async(acc, x.a, x.b, true); });
    });
  };
  const auto kDivergent =
      "wgmma_mma_async stands in control flow that may differ between the four warps of a warpgroup";
  CHECK(contains(under([](auto& k) { return k.tid_x() < 64; }), kDivergent));
  CHECK(contains(under([](auto& k) { return k.tid_x() >> 5 == 0; }), kDivergent));
  CHECK(contains(under([](auto& k) { return k.laneid() == 0; }), kDivergent));
  CHECK(contains(under([](auto& k) { return k.tid_x() >> 5 < 6; }), kDivergent));
  CHECK(contains(under([](auto& k) { return shfl_sync_idx(k.tid_x() >> 4, 0, 31, 0xffffffff) < 8; }),
                 kDivergent));
  CHECK(contains(under([](auto& k) { return vote_sync_any(k.tid_x() == 5, 0xffffffff); }), kDivergent));
  CHECK(under([](auto& k) { return k.tid_x() < 128; }) == "");
  CHECK(under([](auto& k) { return k.tid_x() / 128 == 1; }) == "");
  CHECK(under([](auto& k) { return k.tid_x() >> 5 < 8; }) == "");
  CHECK(under([](auto& k) { return k.tid_x() >> 5 >> 2 == 1; }) == "");
  CHECK(under([](auto& k) { return shfl_sync_idx(k.tid_x() >> 5, 0, 31, 0xffffffff) / 4 == 1; }) == "");
  CHECK(under([](auto& k) { return shfl_sync_idx(k.tid_x() >> 7, 0, 31, 0xffffffff) == 1; }) == "");
  CHECK(under([](auto& k) { return k.param(&Args::n) == 1; }) == "");
}

TEST_CASE("wgmma is for sm_90a alone", "[builder][wgmma]") {
  for (const Target target : {Target{90, false}, Target{100, true}, Target{121, false}}) {
    const std::string message = mistake([](KernelBuilder& k) { k.wgmma_fence(); }, {.target = target});
    INFO(message);
    CHECK(contains(message, "wgmma_fence needs sm_90a; the kernel is built for"));
  }
}

// ---- On the emulator ----

// The usual way: slabs of 64 values of k in lines of 128 bytes, exchanged by the swizzle; a dequantised
// (here: from words) into two sets of registers by turns, so that a slab is prepared while the one before is
// multiplied.
TEST_CASE("a warpgroup prepares one slab while it multiplies another", "[builder][wgmma]") {
  constexpr u32 kTokens = 8, kSlabs = 4, kSteps = 4;
  // in: of each slab first b, kTokens x 64 halves, then a: of each step and register the words of 128
  // threads.
  constexpr u32 kWordsB = kTokens * 32, kWordsA = kSteps * 4 * 128, kWords = kWordsB + kWordsA;
  const auto half_of = [](s32 x) {
    return static_cast<u32>(std::array{0xc000, 0xbc00, 0, 0x3c00, 0x4000}[x + 2]);
  };
  std::vector<u32> in(kSlabs * kWords);
  std::array<std::array<s32, kSlabs * 64>, 64> rows{};
  std::array<std::array<s32, kSlabs * 64>, kTokens> tokens{};
  u32 state = 11;
  const auto next = [&] { return static_cast<s32>((state = state * 1664525 + 1013904223) >> 16) % 5 - 2; };
  for (u32 slab = 0; slab < kSlabs; ++slab) {
    for (u32 token = 0; token < kTokens; ++token) {
      for (u32 i = 0; i < 64; ++i) {
        const s32 x = tokens[token][slab * 64 + i] = next();
        in[slab * kWords + token * 32 + i / 2] |= half_of(x) << (16 * (i % 2));
      }
    }
    for (u32 step = 0; step < kSteps; ++step) {
      for (u32 thread = 0; thread < 128; ++thread) {
        for (u32 e = 0; e < 8; ++e) {
          const auto at = A::place(thread, e);
          const s32 x = rows[at.row][slab * 64 + step * 16 + at.column] = next();
          in[slab * kWords + kWordsB + (step * 4 + e / 2) * 128 + thread] |= half_of(x) << (16 * (e % 2));
        }
      }
    }
  }
  const auto kernel = build(
      [&](KernelBuilder& k) {
        const auto tile = k.shared<u32, 1024>(kSlabs * kWordsB);
        const Reg<u32> tid = k.tid_x();
        const auto words = k.param(&Args::in) + tid;
        for (u32 slab = 0; slab < kSlabs; ++slab) {
          for (u32 i = 0; i < kWordsB; i += 128) {
            // Word `index` of a line of 32: its piece of four is exchanged by the line's number.
            const Reg<u32> index = tid + i;
            const Reg<u32> exchanged = index ^ ((index >> 5 & 7) << 2);
            const Reg<u32> word = ld_global(words + (slab * kWords + i));
            st_shared(tile + (exchanged + slab * kWordsB), word);
          }
        }
        k.fence_proxy_async();
        k.bar_sync(0);
        const MatrixDescriptor<f16> b(assume_aligned<16>(at<f16>(tile)), kSwizzled);
        Sum acc(k);
        for (u32 slab = 0; slab < kSlabs; ++slab) {
          std::vector<A> a;
          for (u32 step = 0; step < kSteps; ++step) {
            std::vector<Reg<f16x2>> r;
            for (u32 i = 0; i < 4; ++i) {
              const Reg<u32> word = ld_global(words + (slab * kWords + kWordsB + (step * 4 + i) * 128));
              r.push_back(bitcast<f16x2>(word));
            }
            a.push_back(A({r[0], r[1], r[2], r[3]}));
          }
          k.wgmma_fence();
          for (u32 step = 0; step < kSteps; ++step)
            wgmma_mma_async(acc, a[step], b.advance(slab * kWordsB * 4 + step * 32), slab + step > 0);
          k.wgmma_commit_group();
          k.wgmma_wait_group(1);
        }
        k.wgmma_wait_group(0);
        for (u32 i = 0; i < 4; ++i) {
          const auto at = Fragment<Matrix::kC, f32, 64, 8>::place(0, i);
          const auto row = (tid >> 5) * 16 + (tid >> 2 & 7) + at.row;
          st_global(k.param(&Args::out) + (row * kTokens + (tid & 3) * 2 + at.column), bitcast<u32>(acc[i]));
        }
      },
      kSm90a);
  INFO(kernel.status().ToString());
  REQUIRE(kernel.ok());
  const auto result = run(*kernel, 128, in, 0, 64 * kTokens);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  for (u32 row = 0; row < 64; ++row) {
    for (u32 token = 0; token < kTokens; ++token) {
      s32 sum = 0;
      for (u32 i = 0; i < kSlabs * 64; ++i) sum += rows[row][i] * tokens[token][i];
      REQUIRE(__builtin_bit_cast(float, (*result)[row * kTokens + token]) == static_cast<float>(sum));
    }
  }
}

}  // namespace
}  // namespace ptxgen::testing
