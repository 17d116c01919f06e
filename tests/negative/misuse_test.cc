// What must not compile, each beside what must.
//
// `requires` of a concrete expression is an error and not false, so each is a lambda's that takes its
// operands as parameters of type auto: COMPILES((auto a, auto b), a + b, u32, u32).

#include <concepts>
#include <utility>

#include "ptxgen/kernel_builder.h"
#include "tests/support/catch.h"

namespace ptxgen {
namespace {

// Whether F can be called with values of types Ts.
template <class F, class... Ts>
constexpr bool compiles(F, std::type_identity<Ts>...) {
  return std::is_invocable_v<F, Ts...>;
}
template <class T>
constexpr std::type_identity<T> a_value{};

// An expression in a, b and c as a function that exists only where the expression compiles.
#define EXPRESSION(...)                                                                  \
  [](auto&& a, [[maybe_unused]] auto&& b, [[maybe_unused]] auto&& c) requires requires { \
    __VA_ARGS__;                                                                         \
  }                                                                                      \
  {}
#define IS_LEGAL(A, B, C, ...) \
  static_assert(compiles(EXPRESSION(__VA_ARGS__), a_value<A>, a_value<B>, a_value<C>))
#define IS_ILLEGAL(A, B, C, ...) \
  static_assert(!compiles(EXPRESSION(__VA_ARGS__), a_value<A>, a_value<B>, a_value<C>))

using None = int;
template <class T>
using Pair = std::array<Reg<T>, 2>;
template <class T>
using Quad = std::array<Reg<T>, 4>;
template <class T>
using Global = GlobalPtr<T>;
template <class T>
using Shared = SharedPtr<T>;
// Of another alignment than T's.
template <class T>
using Global2 = GlobalPtr<T, 2>;
template <class T>
using Global8 = GlobalPtr<T, 8>;
template <class T>
using Global16 = GlobalPtr<T, 16>;
template <class T>
using Global32 = GlobalPtr<T, 32>;

// ---- Types do not mix ----
IS_LEGAL(Reg<u32>, Reg<u32>, None, a + b);
IS_ILLEGAL(Reg<u32>, Reg<s32>, None, a + b);
IS_ILLEGAL(Reg<u32>, Reg<u64>, None, a + b);
IS_ILLEGAL(Reg<f32>, Reg<f64>, None, a* b);
IS_ILLEGAL(Reg<f32>, Reg<u32>, None, a + b);
IS_ILLEGAL(Var<f32>&, Reg<u32>, None, a + b);
IS_LEGAL(Reg<f32>, Reg<f32>, Reg<f32>, fma_rn(a, b, c));
IS_LEGAL(Reg<f32>, Reg<f32>, None, fma_rn(a, b, 1.0f));
IS_LEGAL(Reg<f32>, Reg<f32>, None, fma_rn(1, a, b));
IS_ILLEGAL(Reg<f32>, Reg<f32>, Reg<f64>, fma_rn(a, b, c));
IS_ILLEGAL(Reg<u32>, Reg<u32>, Reg<u32>, fma_rn(a, b, c));
IS_LEGAL(Reg<u32>, Reg<u32>, Reg<u64>, mad_wide(a, b, c));
IS_ILLEGAL(Reg<u32>, Reg<u32>, Reg<u32>, mad_wide(a, b, c));
IS_LEGAL(Reg<u32>, Reg<u32>, None, a < b);
IS_ILLEGAL(Reg<u32>, Reg<s32>, None, a < b);
IS_LEGAL(Reg<u32>, Reg<u32>, Pred, selp(a, b, c));
IS_ILLEGAL(Reg<u32>, Reg<u32>, Reg<u32>, selp(a, b, c));
IS_ILLEGAL(Reg<u32>, Reg<f32>, Pred, selp(a, b, c));

// ---- Literals ----
IS_LEGAL(Reg<u32>, None, None, a + 1);
IS_ILLEGAL(Reg<u32>, None, None, a + 1.5f);
IS_ILLEGAL(Reg<u32>, None, None, a + 1.0);
IS_ILLEGAL(Reg<u32>, None, None, a + true);
IS_LEGAL(Reg<f32>, None, None, a + 1);
IS_LEGAL(Pred, None, None, a && true);
IS_ILLEGAL(Pred, None, None, a && 1);
IS_LEGAL(Reg<f16>, None, None, a + f16{0x3c00});
IS_ILLEGAL(Reg<f16>, None, None, a + 1.0f);
IS_ILLEGAL(Reg<f16>, None, None, a + bf16{0x3f80});
IS_LEGAL(Reg<u32>, Reg<u32>, None, lop3(a, b, 7u, 0xe8));
IS_ILLEGAL(Reg<u32>, Reg<u32>, Reg<u32>, lop3(a, b, 7u, c));

// ---- A predicate is no bool, a value no condition ----
[[maybe_unused]] void empty_body() {}
IS_LEGAL(bool, None, None, a ? 1 : 0);
IS_ILLEGAL(Pred, None, None, a ? 1 : 0);
IS_ILLEGAL(Reg<u32>, None, None, a ? 1 : 0);
IS_ILLEGAL(Var<pred>&, None, None, a ? 1 : 0);
static_assert(!std::convertible_to<Pred, bool> && !std::constructible_from<bool, Pred>);
IS_LEGAL(KernelBuilder&, Pred, None, a.if_(b, empty_body));
IS_ILLEGAL(KernelBuilder&, Reg<u32>, None, a.if_(b, empty_body));
IS_ILLEGAL(KernelBuilder&, bool, None, a.if_(b, empty_body));

// ---- Operators that a type does not have ----
IS_LEGAL(Reg<u32>, Reg<u32>, None, a << b);
IS_LEGAL(Reg<u64>, None, None, a >> 3);
IS_ILLEGAL(Reg<f32>, Reg<u32>, None, a << b);
IS_ILLEGAL(Reg<f32>, None, None, a >> 1);
IS_ILLEGAL(Reg<u32>, Reg<u64>, None, a << b);
IS_ILLEGAL(Reg<f32>, Reg<f32>, None, a& b);
IS_ILLEGAL(Reg<f32>, Reg<f32>, None, a / b);  // div_rn, div_full, div_approx
IS_ILLEGAL(Reg<f32>, Reg<f32>, None, a % b);
IS_ILLEGAL(Reg<u32>, None, None, -a);
IS_LEGAL(Reg<s32>, None, None, -a);
IS_ILLEGAL(Reg<u32>, Reg<u32>, None, a&& b);
IS_ILLEGAL(Reg<u8>, Reg<u8>, None, a + b);  // bytes are loaded, stored and converted
IS_LEGAL(Reg<u8>, None, None, cvt<u32>(a));
IS_LEGAL(Reg<u32>, None, None, bitcast<f32>(a));
IS_ILLEGAL(Reg<u32>, None, None, bitcast<u64>(a));
IS_ILLEGAL(Reg<u32>, None, None, bitcast<pred>(a));

// ---- Only a Var is assigned ----
IS_LEGAL(Var<u32>&, Reg<u32>, None, a = b);
IS_LEGAL(Var<u32>&, None, None, a = 1);
IS_ILLEGAL(Var<u32>&, Reg<s32>, None, a = b);
IS_ILLEGAL(Var<u32>&, None, None, a = 1.5);
IS_ILLEGAL(const Var<u32>&, Reg<u32>, None, a = b);
IS_ILLEGAL(Reg<u32>&, None, None, a = 1);
IS_ILLEGAL(Reg<u32>&, Reg<u32>, None, a += b);

// ---- Pointers: constness, alignment, space ----
IS_LEGAL(Global<u32>, Reg<u32>, None, st_global(a, b));
IS_ILLEGAL(Global<const u32>, Reg<u32>, None, st_global(a, b));
IS_ILLEGAL(Global<u32>, Reg<f32>, None, st_global(a, b));
IS_ILLEGAL(Global<u32>, None, None, st_global(a, 1.5f));
IS_ILLEGAL(Global<const u32>, Reg<u32>, None, atom_global_add(a, b));
IS_ILLEGAL(Global<const u32>, Reg<u32>, None, red_global_add(a, b));
IS_ILLEGAL(Shared<const u32>, Reg<u32>, None, st_shared(a, b));
IS_LEGAL(Global<const u32>, None, None, ld_global(a));
IS_LEGAL(Global<u32>, Global<const u32>&, None, b = a);
IS_ILLEGAL(Global<const u32>, Global<u32>&, None, b = a);
IS_LEGAL(Global16<u32>, Global<u32>&, None, b = a);
IS_ILLEGAL(Global<u32>, Global16<u32>&, None, b = a);
IS_ILLEGAL(Global16<const u32>, Reg<u32>, None, st_global(at<u32>(a), b));
IS_LEGAL(Global16<u32>, None, None, ld_global_v4(a));
IS_ILLEGAL(Global8<u32>, None, None, ld_global_v4(a));
IS_ILLEGAL(Global<u32>, None, None, ld_global_v2(a));
IS_ILLEGAL(Global32<u64>, None, None, ld_global_v4(a));
IS_ILLEGAL(Global2<u32>, None, None, ld_global(a));
IS_ILLEGAL(Global16<u32>, Reg<u32>, None, ld_global_v4(a + b));
IS_ILLEGAL(Global16<u32>, None, None, ld_global_v4(at<u32, 8>(a)));
IS_LEGAL(Global16<u32>, Quad<u32>, None, st_global_v4(a, b));
IS_ILLEGAL(Global16<u32>, Pair<u32>, None, st_global_v4(a, b));
IS_ILLEGAL(Global16<u32>, Quad<f32>, None, st_global_v4(a, b));
IS_LEGAL(Shared<u32>, None, None, ld_shared(a));
IS_ILLEGAL(Global<u32>, None, None, ld_shared(a));
IS_ILLEGAL(Shared<u32>, None, None, ld_global(a));
IS_ILLEGAL(Shared<u32>, Reg<u32>, None, st_global(a, b));
IS_ILLEGAL(Global<u32>, Reg<u32>, None, atom_shared_add(a, b));
IS_ILLEGAL(Shared<u32>, None, None, prefetch_global_L2(a));
IS_LEGAL(Global<u32>, Reg<u64>, None, a + b);
IS_ILLEGAL(Shared<u32>, Reg<u64>, None, a + b);
IS_ILLEGAL(Global<u32>, Reg<f32>, None, a + b);
IS_ILLEGAL(Global<u32>, None, None, a + 1.5f);
IS_ILLEGAL(Global<u32>, Reg<u32>, None, a + b + a);

// ---- Asynchronous copies and mbarriers ----
IS_LEGAL(Shared<MBarrier>, None, None, mbarrier_init(a, 1));
IS_LEGAL(Shared<MBarrier>, Reg<u32>, None, mbarrier_init(a + 1, b));
IS_ILLEGAL(Shared<u64>, None, None, mbarrier_init(a, 1));
IS_LEGAL(Shared<u64>, None, None, mbarrier_init(at<MBarrier>(a), 1));
IS_ILLEGAL(Shared<u32>, None, None, mbarrier_init(at<MBarrier>(a), 1));
IS_ILLEGAL(Global<MBarrier>, None, None, mbarrier_init(a, 1));
IS_ILLEGAL(Shared<const MBarrier>, None, None, mbarrier_arrive(a));
IS_ILLEGAL(Shared<MBarrier>, Reg<s32>, None, mbarrier_arrive(a, b));
IS_ILLEGAL(Shared<MBarrier>, None, None, ld_shared(a));
IS_ILLEGAL(Shared<MBarrier>, Reg<u64>, None, st_shared(a, b));
IS_LEGAL(KernelBuilder&, Shared<MBarrier>, None, a.mbarrier_wait_parity(b, 0));
IS_ILLEGAL(KernelBuilder&, Shared<u64>, None, a.mbarrier_wait_parity(b, 0));
IS_ILLEGAL(Shared<MBarrier>, Reg<u32>, None, mbarrier_test_wait(a, b));  // a state has 64 bits
template <class T>
using Shared16 = SharedPtr<T, 16>;
template <class T>
using Shared8 = SharedPtr<T, 8>;
IS_LEGAL(Shared16<u32>, Global16<const u8>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_LEGAL(Shared16<u32>, Global32<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c, 5));
IS_ILLEGAL(Shared8<u32>, Global16<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_ILLEGAL(Shared16<u32>, Global8<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_ILLEGAL(Shared16<u32>, Global16<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b + 1, 64, c));
IS_ILLEGAL(Shared16<const u32>, Global16<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_ILLEGAL(Shared16<u32>, Global16<u32>, Shared<u64>, cp_async_bulk_shared_global(a, b, 64, c));
IS_ILLEGAL(Shared16<u32>, Shared16<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_ILLEGAL(Global16<u32>, Shared16<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_ILLEGAL(Shared16<MBarrier>, Global16<u32>, Shared<MBarrier>, cp_async_bulk_shared_global(a, b, 64, c));
IS_LEGAL(Global16<u32>, Shared16<const u32>, Reg<u32>, cp_async_bulk_global_shared(a, b, c));
IS_ILLEGAL(Global16<const u32>, Shared16<u32>, Reg<u32>, cp_async_bulk_global_shared(a, b, c));
IS_ILLEGAL(Global16<u32>, Shared16<u32>, Reg<s32>, cp_async_bulk_global_shared(a, b, c));
IS_ILLEGAL(Global16<u32>, Shared8<u32>, Reg<u32>, cp_async_bulk_global_shared(a, b, c));
IS_LEGAL(Shared<u32>, Global<const u32>, None, cp_async_ca_4(a, b));
IS_LEGAL(Shared<u64>, Global<const u64>, Reg<u32>, cp_async_ca_8(a, b, c));
IS_ILLEGAL(Shared<u32>, Global<const u32>, None, cp_async_ca_8(a, b));
IS_ILLEGAL(Shared<u64>, Global<u32>, None, cp_async_ca_8(a, b));
IS_LEGAL(Shared16<u32>, Global16<const u32>, None, cp_async_cg_16(a, b));
IS_ILLEGAL(Shared8<u32>, Global16<const u32>, None, cp_async_cg_16(a, b));
IS_ILLEGAL(Shared16<const u32>, Global16<const u32>, None, cp_async_cg_16(a, b));
IS_ILLEGAL(Global16<u32>, Shared16<u32>, None, cp_async_cg_16(a, b));
IS_LEGAL(KernelBuilder&, None, None, a.cp_async_wait_group(1));
IS_ILLEGAL(KernelBuilder&, Reg<u32>, None, a.cp_async_wait_group(b));

// ---- Instructions on types that they do not have ----
IS_LEGAL(Reg<f32>, None, None, shfl_sync_bfly(a, 1, 31, 0xffffffff));
IS_ILLEGAL(Reg<u64>, None, None, shfl_sync_bfly(a, 1, 31, 0xffffffff));
IS_ILLEGAL(Reg<f64>, None, None, shfl_sync_idx(a, 1, 31, 0xffffffff));
IS_ILLEGAL(Reg<f16>, None, None, shfl_sync_idx(a, 1, 31, 0xffffffff));
IS_LEGAL(Global<f32>, Reg<f32>, None, atom_global_add(a, b));
IS_ILLEGAL(Global<f32>, Reg<f32>, None, atom_global_max(a, b));
IS_ILLEGAL(Global<s64>, Reg<s64>, None, atom_global_add(a, b));
IS_ILLEGAL(Global<u8>, Reg<u8>, None, atom_global_add(a, b));
IS_ILLEGAL(Global<f32>, Reg<f32>, Reg<f32>, atom_global_cas(a, b, c));
IS_ILLEGAL(Reg<u64>, None, None, redux_sync_add(a, 0xffffffff));
IS_ILLEGAL(Reg<u32>, None, None, vote_sync_all(a, 0xffffffff));
IS_ILLEGAL(Reg<f64>, None, None, ex2_approx(a));
IS_ILLEGAL(Reg<u64>, Reg<u64>, Reg<u64>, dp4a(a, b, c));
IS_ILLEGAL(Reg<u32>, Reg<u32>, Reg<s32>, dp4a(a, b, c));

// ---- Conversions say how they round ----
IS_LEGAL(Reg<u32>, None, None, cvt_rn<f32>(a));
IS_ILLEGAL(Reg<u32>, None, None, cvt<f32>(a));
IS_LEGAL(Reg<f32>, None, None, cvt_rzi<s32>(a));
IS_ILLEGAL(Reg<f32>, None, None, cvt<s32>(a));
IS_ILLEGAL(Reg<f32>, None, None, cvt_rn<s32>(a));
IS_LEGAL(Reg<f16>, None, None, cvt<f32>(a));
IS_ILLEGAL(Reg<f32>, None, None, cvt<f16>(a));
IS_ILLEGAL(Reg<f32>, None, None, cvt<bf16>(a));
IS_ILLEGAL(Reg<f64>, None, None, cvt<f32>(a));
IS_LEGAL(Reg<f32>, None, None, cvt<f64>(a));
IS_ILLEGAL(Reg<f32>, Reg<f32>, None, cvt_rn<e4m3x2>(a, b));  // cvt_rn_satfinite: it saturates
IS_LEGAL(Reg<f32>, Reg<f32>, None, cvt_rn_satfinite<e4m3x2>(a, b));
IS_ILLEGAL(Reg<f32>, None, None, cvt_rn_satfinite<e4m3x2>(a));
IS_ILLEGAL(Reg<u32>, None, None, cvt_sat<u64>(a));  // nothing to clamp

// ---- Packs ----
IS_LEGAL(Reg<f16>, Reg<f16>, None, pack<f16x2>(a, b));
IS_ILLEGAL(Reg<f16>, Reg<bf16>, None, pack<f16x2>(a, b));
IS_ILLEGAL(Reg<f32>, Reg<f32>, None, pack<f16x2>(a, b));
IS_ILLEGAL(Reg<f16>, Reg<f16>, None, pack<u64>(a, b));
IS_LEGAL(Reg<u32>, Reg<u32>, None, pack<u64>(a, b));

// ---- Arguments ----
struct WithBool {
  bool flag;
};
struct WithScalar {
  u32 n;
};
static_assert(requires { scalar("n", &WithScalar::n); });
IS_LEGAL(u32 WithScalar::*, None, None, scalar("n", a));
IS_ILLEGAL(bool WithBool::*, None, None, scalar("flag", a));
IS_LEGAL(DevicePtr<const u32> WithBool::*, None, None, input("x", a, nullptr));
IS_ILLEGAL(DevicePtr<u32> WithBool::*, None, None, input("x", a, nullptr));
IS_ILLEGAL(DevicePtr<const u32> WithBool::*, None, None, output("x", a, nullptr));

}  // namespace

// ---- Fragments: shapes and types of matrices ----
template <class T, u32 Rows, u32 Columns>
using FragA = Fragment<Matrix::kA, T, Rows, Columns>;
template <class T, u32 Rows, u32 Columns>
using FragB = Fragment<Matrix::kB, T, Rows, Columns>;
template <class T, u32 Rows, u32 Columns>
using FragC = Fragment<Matrix::kC, T, Rows, Columns>;
template <class T>
using Tile16 = SharedPtr<T, 16>;
using Accumulator16x8 = Accumulator<f32, 16, 8>;
using U8A = FragA<u8, 16, 32>;
using S8B = FragB<s8, 32, 8>;
using S32C = FragC<s32, 16, 8>;
using HalfA = FragA<f16, 16, 16>;
using HalfB = FragB<f16, 16, 8>;
using FloatC = FragC<f32, 16, 8>;
using HalfC = FragC<f16, 16, 8>;
using BrainB = FragB<bf16, 16, 8>;
using LongA = FragA<f16, 16, 8>;
using F8A = FragA<e4m3, 16, 32>;
using F8B = FragB<e5m2, 32, 8>;
using FloatC8 = FragC<s32, 8, 8>;
IS_LEGAL(U8A, S8B, S32C, mma(a, b, c));
IS_LEGAL(U8A, S8B, S32C, mma_satfinite(a, b, c));
IS_ILLEGAL(S8B, U8A, S32C, mma(a, b, c));    // a and b exchanged
IS_ILLEGAL(U8A, S8B, FloatC, mma(a, b, c));  // integers into floats
IS_ILLEGAL(U8A, S8B, FloatC8, mma(a, b, c));
IS_LEGAL(HalfA, HalfB, FloatC, mma(a, b, c));
IS_LEGAL(HalfA, HalfB, HalfC, mma(a, b, c));
IS_LEGAL(HalfA, HalfB, Accumulator16x8&, c = mma(a, b, c));
IS_ILLEGAL(HalfA, HalfB, FloatC, mma_satfinite(a, b, c));
IS_ILLEGAL(HalfA, BrainB, FloatC, mma(a, b, c));  // f16 times bf16
IS_ILLEGAL(LongA, HalfB, FloatC, mma(a, b, c));   // k of 8 and of 16
IS_LEGAL(F8A, F8B, HalfC, mma(a, b, c));
IS_ILLEGAL(U8A, F8B, FloatC, mma(a, b, c));
IS_LEGAL(Quad<u32>, None, None, U8A(a));
IS_ILLEGAL(Pair<u32>, None, None, U8A(a));         // two registers of four
IS_ILLEGAL(Quad<f16x2>, None, None, U8A(a));       // of another type
IS_ILLEGAL(Quad<u32>, S8B, S32C, mma(a, b, c));    // registers are no fragment by themselves
IS_ILLEGAL(Accumulator16x8&, HalfC, None, a = b);  // another type of accumulator
IS_LEGAL(Tile16<const f16>, None, None, HalfA(ldmatrix_x4(a)));
IS_ILLEGAL(Tile16<f16>, None, None, HalfA(ldmatrix_x2(a)));
IS_ILLEGAL(Tile16<bf16>, None, None, HalfA(ldmatrix_x4(a)));
IS_ILLEGAL(Shared<f16>, None, None, ldmatrix_x4(a));  // rows are 16-byte aligned
IS_ILLEGAL(Global16<f16>, None, None, ldmatrix_x4(a));
IS_LEGAL(Tile16<u8>, None, None, U8A(ldmatrix_x4(a)));
IS_ILLEGAL(Tile16<u8>, None, None, ldmatrix_x4_trans(a));  // it moves 16-bit elements
IS_LEGAL(Tile16<f16>, Pair<f16x2>, None, stmatrix_x2(a, b));
IS_ILLEGAL(Tile16<const f16>, Pair<f16x2>, None, stmatrix_x2(a, b));
IS_ILLEGAL(Tile16<f16>, Pair<bf16x2>, None, stmatrix_x2(a, b));
IS_ILLEGAL(Tile16<f16>, Quad<f16x2>, None, stmatrix_x2(a, b));

using WmmaA = WmmaFragment<Matrix::kA, f16, 16, 16, 16, Layout::kRow>;
using WmmaB = WmmaFragment<Matrix::kB, f16, 16, 16, 16, Layout::kCol>;
using WmmaC = WmmaFragment<Matrix::kC, f32, 16, 16, 16>;
using WideWmmaB = WmmaFragment<Matrix::kB, f16, 32, 8, 16, Layout::kCol>;
using WmmaSum = WmmaAccumulator<f32, 16, 16, 16>;
IS_LEGAL(WmmaA, WmmaB, WmmaC, wmma_mma(a, b, c));
IS_LEGAL(WmmaA, WmmaB, WmmaSum&, c = wmma_mma(a, b, c));
IS_ILLEGAL(WmmaA, WideWmmaB, WmmaC, wmma_mma(a, b, c));  // of two shapes
IS_ILLEGAL(WmmaB, WmmaA, WmmaC, wmma_mma(a, b, c));
IS_ILLEGAL(HalfA, HalfB, WmmaC, wmma_mma(a, b, c));  // fragments of mma
IS_LEGAL(Global32<const f16>, Reg<u32>, None, WmmaA(wmma_load_a_m16n16k16<Layout::kRow>(a, b)));
IS_LEGAL(Global32<f16>, Reg<u32>, WmmaA&, c = wmma_load_a_m16n16k16<Layout::kRow>(a, b));
IS_ILLEGAL(Global32<f16>, Reg<u32>, WmmaA&,
           c = wmma_load_a_m16n16k16<Layout::kCol>(a, b));  // of another layout
IS_ILLEGAL(Global16<f16>, Reg<u32>, None,
           wmma_load_a_m16n16k16<Layout::kRow>(a, b));  // lines start at 32 bytes
IS_ILLEGAL(Global32<f32>, Reg<u32>, None, wmma_load_a_m16n16k16<Layout::kRow>(a, b));
IS_LEGAL(Global32<f32>, WmmaC, None, wmma_store_d<Layout::kRow>(a, b, 16));
IS_ILLEGAL(Global32<const f32>, WmmaC, None, wmma_store_d<Layout::kRow>(a, b, 16));
IS_ILLEGAL(Global32<f16>, WmmaC, None, wmma_store_d<Layout::kRow>(a, b, 16));

// ---- wgmma: accumulators in place, matrices in shared memory ----
using HalfA64 = FragA<f16, 64, 16>;
using BrainA64 = FragA<bf16, 64, 16>;
using ByteA64 = FragA<u8, 64, 32>;
using LongA64 = FragA<f16, 64, 32>;
using HalfM = MatrixDescriptor<f16>;
using HalfMn = MatrixDescriptor<f16, Major::kMn>;
using BrainM = MatrixDescriptor<bf16>;
using SignedM = MatrixDescriptor<s8>;
using F8M = MatrixDescriptor<e4m3>;
using Tf32M = MatrixDescriptor<tf32>;
using Sum64 = Accumulator<f32, 64, 40>;
using HalfSum64 = Accumulator<f16, 64, 40>;
using IntSum64 = Accumulator<s32, 64, 48>;
using BadIntSum64 = Accumulator<s32, 64, 40>;
using BadSum64 = Accumulator<f32, 64, 12>;
using WideSum64 = Accumulator<f32, 64, 264>;
using FragC64 = FragC<f32, 64, 40>;
IS_LEGAL(HalfA64, HalfM, Sum64&, wgmma_mma_async(c, a, b, true));
IS_LEGAL(HalfM, HalfMn, Sum64&, wgmma_mma_async(c, a, b, false, ImmScale::kMinusOne));
IS_LEGAL(HalfA64, HalfM, HalfSum64&, wgmma_mma_async(c, a, b, true));
IS_LEGAL(BrainA64, BrainM, Sum64&, wgmma_mma_async(c, a, b, true));
IS_LEGAL(Tf32M, Tf32M, Sum64&, wgmma_mma_async(c, a, b, true));
IS_LEGAL(ByteA64, SignedM, IntSum64&, wgmma_mma_async(c, a, b, true));
IS_LEGAL(ByteA64, SignedM, IntSum64&, wgmma_mma_async_satfinite(c, a, b, true));
IS_LEGAL(HalfM, Pred, HalfM&, c = a);
IS_ILLEGAL(HalfA64, HalfM, FragC64&, wgmma_mma_async(c, a, b, true));  // values cannot be changed
IS_ILLEGAL(HalfA64, HalfM, const Sum64&, wgmma_mma_async(c, a, b, true));
IS_ILLEGAL(HalfA64, HalfM, Accumulator16x8&, wgmma_mma_async(c, a, b, true));  // 16 rows
IS_ILLEGAL(HalfA, HalfM, Sum64&, wgmma_mma_async(c, a, b, true));              // a of 16 rows
IS_ILLEGAL(LongA64, HalfM, Sum64&, wgmma_mma_async(c, a, b, true));            // k of 32
IS_ILLEGAL(HalfA64, BrainM, Sum64&, wgmma_mma_async(c, a, b, true));           // f16 times bf16
IS_ILLEGAL(BrainA64, BrainM, HalfSum64&, wgmma_mma_async(c, a, b, true));      // bf16 into f16
IS_ILLEGAL(HalfA64, HalfM, IntSum64&, wgmma_mma_async(c, a, b, true));
IS_ILLEGAL(HalfA64, HalfM, BadSum64&, wgmma_mma_async(c, a, b, true));       // n = 12
IS_ILLEGAL(HalfA64, HalfM, WideSum64&, wgmma_mma_async(c, a, b, true));      // n = 264
IS_ILLEGAL(ByteA64, SignedM, BadIntSum64&, wgmma_mma_async(c, a, b, true));  // integers: n = 32, 48, 64 ...
IS_ILLEGAL(ByteA64, SignedM, IntSum64&, wgmma_mma_async(c, a, b, true, ImmScale::kOne));
IS_ILLEGAL(HalfA64, HalfM, Sum64&, wgmma_mma_async_satfinite(c, a, b, true));
IS_ILLEGAL(HalfA64, HalfA64, Sum64&, wgmma_mma_async(c, a, b, true));  // b is always in shared memory
IS_ILLEGAL(HalfA64, Reg<u64>, Sum64&, wgmma_mma_async(c, a, b, true));
IS_ILLEGAL(HalfA64, HalfM, Sum64&, wgmma_mma_async(c, a, b, 1));  // scale-d is a predicate
IS_ILLEGAL(F8M, SignedM, Sum64&, wgmma_mma_async(c, a, b, true));
IS_LEGAL(Tile16<f16>, MatrixLayout, None, HalfM(a, b));
IS_ILLEGAL(Shared<f16>, MatrixLayout, None, HalfM(a, b));  // matrices begin at multiples of 16 bytes
IS_ILLEGAL(Tile16<bf16>, MatrixLayout, None, HalfM(a, b));
IS_ILLEGAL(Global16<f16>, MatrixLayout, None, HalfM(a, b));
IS_ILLEGAL(HalfM, None, HalfMn&, c = a);  // major-ness is part of the type
template <class T>
concept HasMnMajor = requires {
  typename MatrixDescriptor<T, Major::kMn>;
};
static_assert(HasMnMajor<f16> && HasMnMajor<bf16> && !HasMnMajor<e4m3> && !HasMnMajor<tf32>);

TEST_CASE("misuse does not compile", "[negative]") {
  SUCCEED("this file compiled");
}

}  // namespace ptxgen
