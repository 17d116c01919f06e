// Division and remainder by literals, which the builder writes with shifts and multiplications: on the
// emulator against C++.

#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr u32 kTop = 0x80000000;

template <class T>
T random_value(std::mt19937_64& random) {
  return static_cast<T>(random() >> (random() % 64));  // of every magnitude
}

// Thread t divides dividends[t] and stores quotient and remainder, in elements of T.
template <class T>
absl::StatusOr<Kernel> dividing_by(T divisor) {
  return build([&](KernelBuilder& k) {
    const auto in = at<const T>(k.param(&Args::in));
    const auto out = at<T>(k.param(&Args::out));
    const Reg<T> x = ld_global(in + k.tid_x());
    st_global(out + k.tid_x() * 2, x / divisor);
    st_global(out + (k.tid_x() * 2 + 1), x % divisor);
  });
}

// Whether the kernel's instructions divide.
bool divides(const Kernel& kernel) {
  const std::string text = print_ptx(kernel);
  return absl::StrContains(text, "div.") || absl::StrContains(text, "rem.");
}

template <class T>
std::vector<u32> as_words(std::vector<T> values) {
  while (values.size() * sizeof(T) % sizeof(u32) != 0) values.push_back(0);
  std::vector<u32> words(values.size() * sizeof(T) / sizeof(u32));
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), words.size() * sizeof(u32),
              reinterpret_cast<std::byte*>(words.data()));
  return words;
}

template <class T>
void check_division(T divisor, const std::vector<T>& dividends, bool may_divide) {
  CAPTURE(divisor);
  std::vector<T> expected;
  for (const T x : dividends) {
    expected.push_back(static_cast<T>(x / divisor));
    expected.push_back(static_cast<T>(x % divisor));
  }
  const std::vector<u32> wanted = as_words(expected);
  const absl::StatusOr<Kernel> kernel = dividing_by(divisor);
  REQUIRE(kernel.ok());
  CHECK(divides(*kernel) == may_divide);
  const auto threads = static_cast<u32>(dividends.size());
  const auto found = run(*kernel, threads, as_words(dividends), 0, wanted.size());
  INFO(found.status().message());
  REQUIRE(found.ok());
  CHECK(*found == wanted);
}

// Where quotients and remainders step: around the smallest and the largest multiples of the divisor, around
// half and the whole of the type, and anywhere.
template <class T>
std::vector<T> dividends_of(T divisor, std::mt19937_64& random) {
  constexpr T kMax = static_cast<T>(~T{0}), kHalf = static_cast<T>(kMax / 2 + 1);
  const T largest = static_cast<T>(kMax - kMax % divisor);  // multiple
  std::vector<T> all;
  for (const T x : {T{0}, T{1}, divisor, kHalf, kMax, largest}) {
    for (const int step : {-1, 0, 1}) all.push_back(static_cast<T>(x + static_cast<T>(step)));
  }
  while (all.size() < 32) all.push_back(random_value<T>(random));
  return all;
}

TEST_CASE("u32 divided by every literal up to 1000, by each side of every power of two and by others",
          "[builder]") {
  std::mt19937_64 random(1);
  std::set<u32> divisors = {3u << 30, kTop + (kTop >> 1) + 1, 0xfffffffe, 0xffffffff, 641, 6700417};
  for (u32 d = 1; d <= 1000; ++d) divisors.insert(d);
  for (u32 bit = 10; bit < 32; ++bit) divisors.insert({(1u << bit) - 1, 1u << bit, (1u << bit) + 1});
  for (u32 i = 0; i < 200; ++i) divisors.insert(std::max(1u, random_value<u32>(random)));
  for (const u32 d : divisors) check_division<u32>(d, dividends_of<u32>(d, random), false);
}

TEST_CASE("u64 and u16 divided by literals: by powers of two without a division", "[builder]") {
  std::mt19937_64 random(2);
  for (u32 bit = 0; bit < 64; ++bit) {
    const u64 d = u64{1} << bit;
    check_division<u64>(d, dividends_of<u64>(d, random), false);
  }
  for (u32 bit = 0; bit < 16; ++bit) {
    const auto d = static_cast<u16>(1u << bit);
    check_division<u16>(d, dividends_of<u16>(d, random), false);
  }
  for (const u64 d : {u64{3}, u64{7}, (u64{1} << 32) + 1, ~u64{0}})
    check_division<u64>(d, dividends_of<u64>(d, random), true);
  for (const u16 d : {u16{3}, u16{10}, u16{255}, u16{0xffff}})
    check_division<u16>(d, dividends_of<u16>(d, random), true);
}

TEST_CASE("signed dividends, divisors in registers and 0 are left to the machine", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          const auto out = k.param(&Args::out);
          const Reg<u32> n = k.param(&Args::n);
          const Reg<s32> s = bitcast<s32>(n);
          st_global(at<s32>(out), s / 4);
          st_global(at<s32, 4>(out), s % 4);
          st_global(at<u32, 8>(out), 100u / n);
          st_global(at<u32, 12>(out), 64u % n);
          st_global(at<u32, 16>(out), n / 0u);
          st_global(at<u32, 20>(out), n % 0u);
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  ld.param.u32 %r1, [n];\n"
        "  div.s32 %r2, %r1, 4;\n"
        "  st.global.s32 [%rd1], %r2;\n"
        "  rem.s32 %r3, %r1, 4;\n"
        "  st.global.s32 [%rd1+4], %r3;\n"
        "  div.u32 %r4, 100, %r1;\n"
        "  st.global.u32 [%rd1+8], %r4;\n"
        "  rem.u32 %r5, 64, %r1;\n"
        "  st.global.u32 [%rd1+12], %r5;\n"
        "  div.u32 %r6, %r1, 0;\n"
        "  st.global.u32 [%rd1+16], %r6;\n"
        "  rem.u32 %r7, %r1, 0;\n"
        "  st.global.u32 [%rd1+20], %r7;\n"
        "  ret;\n");
}

TEST_CASE("a quotient and a remainder by one literal share their work", "[builder]") {
  CHECK(instructions([](KernelBuilder& k) {
          const auto out = k.param(&Args::out);
          const Reg<u32> n = k.param(&Args::n);
          st_global(out, n / 10u + n % 10u);
        }) ==
        "  ld.param.u64 %rd1, [out];\n"
        "  ld.param.u32 %r1, [n];\n"
        "  mul.hi.u32 %r2, %r1, 0x9999999a;\n"
        "  sub.u32 %r3, %r1, %r2;\n"
        "  shr.u32 %r4, %r3, 1;\n"
        "  add.u32 %r5, %r4, %r2;\n"
        "  shr.u32 %r6, %r5, 3;\n"
        "  mul.lo.u32 %r7, %r6, 10;\n"
        "  sub.u32 %r8, %r1, %r7;\n"
        "  add.u32 %r9, %r6, %r8;\n"
        "  st.global.u32 [%rd1], %r9;\n"
        "  ret;\n");
}

}  // namespace
}  // namespace ptxgen::testing
