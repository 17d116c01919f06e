// PTX as compilers write it (tests/data/ptx): every file runs, and gives what its source says.
#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <functional>
#include <map>

#include "tests/emulator/harness.h"
#include "tests/support/data.h"
#include "tests/support/files.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kThreads = 128, kCtas = 3, kValues = kThreads * kCtas - 50;  // the last CTA is not full

// What thread i writes.
using Expected = std::function<u32(const std::vector<u32>& in, u32 i)>;

u32 recursion(const std::vector<u32>& in, u32 i) {
  u32 a = 0, b = 1;
  for (u32 n = in[i] % 12; n > 0; --n) b = std::exchange(a, b) + b;
  return a * 2 + (in[i] % 7 % 2 == 0);
}

u32 structs(const std::vector<u32>& in, u32 i) {
  const u32 x = in[i];
  const auto tail = static_cast<std::uint8_t>(static_cast<std::uint8_t>(x) + 1);
  const u64 high = (x & 0xffff) + 3;
  return x * 2 + (x * (i % 9 + 1) + tail) + (x >> 4 & 0xffff) * 7 + static_cast<u32>(high);
}

u32 pointers(const std::vector<u32>& in, u32 i) {
  const auto apply = [](u32 which, u32 a, u32 b) {
    return which == 0 ? a + b : which == 1 ? a * b : (a ^ b) * 2654435761u;
  };
  return apply(in[i] % 3, in[i], i) + apply(i % 2, i, 5);
}

u32 virtuals(const std::vector<u32>& in, u32 i) {
  const u32 side = in[i] & 0xff, area = in[i] % 2 ? side * side : (in[i] & 0xf) * i;
  return (in[i] % 2 ? area * 3 : area + 3) + area;
}

u32 tables(const std::vector<u32>& in, u32 i) {
  constexpr u32 kPrimes[] = {2, 3, 5, 7, 11, 13}, kCounters[] = {10, 20, 30, 0, 0};
  constexpr int kHalves[] = {2, 6, -10}, kBytes[] = {-1, 2, -3, 4};
  u32 sum = kPrimes[in[i] % 6] + kCounters[in[i] % 5] + 30;
  sum += static_cast<u32>(kHalves[in[i] % 3] + kBytes[in[i] % 4]) + (i % 2 ? 10 : 1000);
  for (const char c : std::string_view(i % 2 ? "ptx" : "emulator")) sum += static_cast<u32>(c);
  return sum + 321;
}

u32 switches(const std::vector<u32>& in, u32 i) {
  u32 state = in[i], steps = 0, sum = 0;
  for (; steps < 20; ++steps) {
    const u32 which = state % 9;
    if (which == 0) sum += 3, state = state * 5 + 1;
    if (which == 1) sum ^= state, state += 7;
    if (which == 2) sum -= state >> 3, state = ~state;
    if (which == 3) sum = std::rotl(sum, 1), state ^= 0x1234567;
    if (which == 4) sum *= 9, state = state / 3 + 1;
    if (which == 5) sum += state % 11, state += sum;
    if (which == 6) sum |= 16, state -= 2;
    if (which == 7) sum = ~sum, state *= 3;
    if (which == 8) sum += 100, state >>= 1, ++steps;
  }
  return sum;
}

u32 local(const std::vector<u32>& in, u32 i) {
  std::array<std::uint8_t, 8> values;
  for (u32 j = 0; j < 8; ++j) values[j] = static_cast<std::uint8_t>(in[i] * (j + 1) >> (j % 5));
  std::sort(values.begin(), values.end());
  u32 hash = 0;
  for (const std::uint8_t v : values) hash = hash * 31 + v;
  return hash;
}

u32 wide(const std::vector<u32>& in, u32 i) {
  __extension__ using u128 = unsigned __int128;
  const u64 a = in[i] * 0x9e3779b97f4a7c15ull, b = (in[(i + 1) % kValues] | 1ull) * 0xc2b2ae3d27d4eb4full;
  const u128 product = u128{a} * b + a, square = product * product - b;
  const u64 folded = static_cast<u64>(square >> 64) ^ static_cast<u64>(square);
  const auto quotient = static_cast<std::int64_t>(a) / static_cast<std::int64_t>(b >> 20);
  return static_cast<u32>(folded ^ folded >> 32) + static_cast<u32>(quotient) +
         static_cast<u32>(a % (b >> 40)) + static_cast<u32>(std::popcount(a)) +
         static_cast<u32>(std::countl_zero(b)) + static_cast<u32>(u128{a} * b >> 64);
}

u32 reduce(const std::vector<u32>& in, u32 i) {
  const u32 first = i / kThreads * kThreads;
  const auto value = [&](u32 at) { return at < kValues ? in[at] : 0; };
  u32 sum = 0, odd = 0;
  for (u32 t = 0; t < kThreads; ++t) sum += value(first + t);
  const u32 warp = i % kThreads / 32 * 32;
  for (u32 t = warp; t < warp + 32; ++t) odd += value(first + kThreads - 1 - t) & 1;
  return sum + odd;
}

u32 messages(const std::vector<u32>& in, u32 i) {
  return in[i] + 1;
}

u32 scalar(const std::vector<u32>& in, u32 i) {
  u32 a = in[i] % 1000, b = i + 1;
  while (b != 0) a = std::exchange(b, a % b);
  u32 x = a + (in[i] & 1 ? (in[i] >> 8 & 0xff) + (in[i] >> 16) : (in[i] & 0xff) * 3);
  u32 history[4] = {1, 2, 3, 4};
  for (u32 j = 0; j < in[i] % 9; ++j) {
    const u32 steps[] = {x + 1, x * 3, x ^ 0x55, x >> 1, ~x, x << 2};
    x = steps[(x + j) % 6];
    history[x % 4] += x;
  }
  return x + history[i % 4];
}

const std::map<std::string, Expected>& sources() {
  static const std::map<std::string, Expected> all = {
      {"recursion", recursion}, {"structs", structs},   {"pointers", pointers}, {"virtuals", virtuals},
      {"tables", tables},       {"switches", switches}, {"local", local},       {"wide", wide},
      {"reduce", reduce},       {"messages", messages}, {"scalar", scalar},
  };
  return all;
}

std::vector<u32> inputs() {
  std::vector<u32> in(kValues);
  for (u32 i = 0; i < kValues; ++i) in[i] = (i + 1) * 2654435761u >> (i % 3 * 9);
  return in;
}

struct Run {
  Memory memory;
  u64 out = 0;
  absl::StatusOr<LaunchStats> stats;
};

void run_file(const std::string& text, const std::vector<u32>& in, Run& run, const Options& options = {}) {
  const auto program = parsed(text);
  Arguments arguments(*program->find_entry("k"));
  run.out = *run.memory.allocate(kValues * 4, "out");
  REQUIRE(arguments.set(0, upload(run.memory, in, "in")).ok());
  REQUIRE(arguments.set(1, run.out).ok());
  REQUIRE(arguments.set(2, kValues).ok());
  run.stats = launch(*program, "k",
                     {.grid = {kCtas},
                      .block = {kThreads},
                      .dynamic_shared_bytes = kThreads * 4,
                      .params = *arguments.bytes()},
                     run.memory, options);
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(testing::data_path("ptx"))) {
    if (entry.path().extension() == ".ptx") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string text_of(const std::string& name) {
  return testing::read_file(testing::data_path("ptx/" + name)).value();
}

TEST_CASE("PTX of nvcc, NVRTC and LLVM gives what its source says", "[emulator][compilers]") {
  const std::vector<u32> in = inputs();
  REQUIRE(files().size() > 30);
  std::map<std::string, int> seen;
  for (const auto& path : files()) {
    INFO(path.filename().string());
    const std::string source = path.filename().string().substr(0, path.filename().string().find('.'));
    REQUIRE(sources().contains(source));
    ++seen[source];
    Run run;
    run_file(testing::read_file(path).value(), in, run);
    INFO(run.stats.status().ToString());
    REQUIRE(run.stats.ok());
    const std::vector<u32> out = download<u32>(run.memory, run.out, kValues);
    u32 wrong = 0;
    for (u32 i = 0; i < kValues; ++i) wrong += out[i] != sources().at(source)(in, i);
    CHECK(wrong == 0);
  }
  CHECK(seen.size() == sources().size());
}

TEST_CASE("what compiled code calls and nobody defines is named when it is called", "[emulator][compilers]") {
  for (const auto& [value, what] :
       std::map<u32, std::string>{{1000001, "calls 'vprintf', which this module only declares"},
                                  {1000002, "calls '__assertfail', which this module only declares"},
                                  {1000003, "the kernel traps"}}) {
    std::vector<u32> in = inputs();
    in[77] = value;
    Run run;
    run_file(text_of("messages.sm_75_O3.ptx"), in, run);
    REQUIRE_FALSE(run.stats.ok());
    CHECK_THAT(std::string(run.stats.status().message()), Contains(what) && Contains("thread (77,0,0)"));
  }
}

}  // namespace
}  // namespace ptxgen::emulator
