// What finish() says of a mistake: where it is, what was given, what is allowed.

#include <optional>

#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

// Whether the message names this file and `line`, and ends with `text`.
bool reports(const std::string& message, int line, std::string_view text) {
  const std::string where = "mistake_test.cc:" + std::to_string(line) + ": ";
  const std::size_t at = message.find(where);
  INFO(message << "\nwanted: " << where << text);
  CHECK(message.find(text) != std::string::npos);
  CHECK(at != std::string::npos);
  return at != std::string::npos && message.find(text, at) != std::string::npos;
}

// `statement` is a mistake on the line where it stands.
#define CHECK_MISTAKE(statement, ...) \
  CHECK(reports(mistake([&]([[maybe_unused]] KernelBuilder& k) { statement; }), __LINE__, __VA_ARGS__))

}  // namespace

TEST_CASE("a correct kernel has no mistake", "[builder]") {
  CHECK(mistake([](KernelBuilder& k) { st_global(k.param(&Args::out), k.tid_x()); }) == "");
}

TEST_CASE("literals out of range are reported", "[builder]") {
  CHECK_MISTAKE((k.tid_x() + -1), "literal cannot be represented");
  CHECK_MISTAKE((k.tid_x() + u64{1} * 0x100000000), "literal cannot be represented");
  CHECK_MISTAKE((cvt_rn<f32>(k.tid_x()) * 0.1), "literal cannot be represented");
  CHECK_MISTAKE((cvt_rn<f32>(k.tid_x()) * 16777217), "literal cannot be represented");
  CHECK_MISTAKE((cvt_rn<f32>(k.tid_x()) * 2147483647), "literal cannot be represented");
  CHECK_MISTAKE((cvt_rn<f32>(k.tid_x()) + 1e300), "literal cannot be represented");
  CHECK_MISTAKE(fma_rn(cvt_rn<f32>(k.tid_x()), 0.1, 1), "literal cannot be represented");
  CHECK_MISTAKE(k.var<u16>(65536), "literal cannot be represented");
  CHECK_MISTAKE(st_global(at<u8>(k.param(&Args::out)), 256), "literal cannot be represented");
  CHECK_MISTAKE(lop3(k.tid_x(), 1u, 2u, -1), "literal cannot be represented");
}

TEST_CASE("values stay in their kernel and their region", "[builder]") {
  KernelBuilder other("other", {});
  const Reg<u32> foreign = other.tid_x();
  CHECK_MISTAKE(k.tid_x() + foreign, "belongs to another kernel");
  CHECK_MISTAKE((k.param(&Args::in) + foreign), "belongs to another kernel");
  CHECK_MISTAKE(k.if_(foreign == 1, [] {}), "belongs to another kernel");
}

TEST_CASE("what a region made ends with it", "[builder]") {
  const auto value = [](KernelBuilder& k) {
    std::optional<Reg<u32>> inner;
    k.if_(k.tid_x() == 0, [&] { inner = ld_global(k.param(&Args::in)); });
    return *inner;
  };
  const auto variable = [](KernelBuilder& k) {
    std::optional<Var<u32>> inner;
    k.for_(0u, 4u, 1, [&](Reg<u32> i) { inner.emplace(k.var(i)); });
    return std::move(*inner);
  };
  CHECK_MISTAKE(st_global(k.param(&Args::out), value(k)), "a value is used outside the region");
  CHECK_MISTAKE(k.if_(value(k) == 1, [] {}), "a value is used outside the region");
  CHECK_MISTAKE(st_global(k.param(&Args::out), variable(k)), "a Var is used outside the region");
  CHECK_MISTAKE(variable(k) = k.tid_x(), "a Var is used outside the region");
}

TEST_CASE("shared memory beyond the limits", "[builder]") {
  CHECK_MISTAKE(k.shared<f32>(12289), "would take 49156 bytes");
  CHECK_MISTAKE((k.shared<u8>(49152), k.shared<u8>(1)), "use dynamic_shared()");
  CHECK_MISTAKE(k.shared<u64>(0xffffffff), "passes the limit of 49152 bytes");
  CHECK_MISTAKE(k.shared<f32>(0), "0 elements");
  CHECK_MISTAKE(st_shared(k.shared<u32>(1) + (s64{1} << 40), 1), "leaves shared memory");
  CHECK(mistake([](KernelBuilder& k) { k.shared<u8>(49152); }) == "");
}

TEST_CASE("directives out of range", "[builder]") {
  CHECK_MISTAKE(k.maxntid(1025), "maxntid(1025, 1, 1): a CTA has 1 to 1024 threads");
  CHECK_MISTAKE(k.maxntid(32, 33), "maxntid(32, 33, 1)");
  CHECK_MISTAKE(k.maxntid(0), "maxntid(0, 1, 1)");
  CHECK_MISTAKE(k.maxntid(1, 1, 65), "at most 64 of them in z");
  CHECK_MISTAKE(k.maxntid(65536, 65536), "1 to 1024 threads");
  CHECK_MISTAKE((k.maxntid(64), k.minnctapersm(0)), "an SM holds 1 to 32 CTAs");
  CHECK_MISTAKE((k.maxntid(64), k.minnctapersm(33)), "an SM holds 1 to 32 CTAs");
  CHECK_MISTAKE(k.minnctapersm(2), "minnctapersm needs maxntid");
  CHECK_MISTAKE(k.maxnreg(256), "24 to 255 registers");
  CHECK_MISTAKE(k.maxnreg(23), "24 to 255 registers");
}

TEST_CASE("instructions that the target or the driver lacks", "[builder]") {
  const auto on = [](const BuildOptions& options) {
    return mistake([](KernelBuilder& k) { redux_sync_add(k.tid_x(), 0xffffffff); }, options);
  };
  const int line = __LINE__ - 2;
  CHECK(on({{80, false}, {7, 0}}) == "");
  CHECK(
      reports(on({{75, false}, {9, 0}}), line, "redux_sync_add needs sm_80; the kernel is built for sm_75"));
  CHECK(reports(on({{80, false}, {6, 5}}), line, "needs PTX ISA 7.0; the driver accepts at most 6.5"));
  // 7.8 is what .target sm_90 itself needs.
  const auto wait = [](KernelBuilder& k) { k.griddepcontrol_wait(); };
  CHECK(reports(mistake(wait, {{90, false}, {7, 7}}), __LINE__ - 1, "needs PTX ISA 7.8"));
  CHECK_MISTAKE(ld_global(k.param(&Args::in), {.l2 = L2::kPrefetch256B}), ".L2::256B needs sm_80");
  const auto old = KernelBuilder("old", {{70, false}, {9, 0}}).finish();
  CHECK(old.status().message().find("needs sm_75") != std::string::npos);
}

TEST_CASE("hints that exclude each other", "[builder]") {
  CHECK_MISTAKE(ld_global(k.param(&Args::in), {.op = CacheOp::kCg, .l1 = L1::kEvictLast}),
                "exclude each other");
  CHECK_MISTAKE(st_global(k.param(&Args::out), 1, {.op = CacheOp::kCa}), "a store takes");
  CHECK_MISTAKE(st_global(k.param(&Args::out), 1, {.l2 = L2::kPrefetch64B}), "a store takes");
}

TEST_CASE("literals of asynchronous copies and mbarriers out of range", "[builder]") {
  const auto on = [&](auto&& body) {
    return mistake(
        [&](KernelBuilder& k) {
          const auto tile = k.shared<u32, 16>(64);
          body(k, k.param(&Args::in), tile, k.shared<MBarrier>(1));
        },
        {{90, false}, {9, 0}});
  };
#define CHECK_ASYNC_MISTAKE(statement, ...)                                                       \
  CHECK(reports(on([]([[maybe_unused]] KernelBuilder& k, [[maybe_unused]] auto in,                \
                      [[maybe_unused]] auto tile, [[maybe_unused]] auto barrier) { statement; }), \
                __LINE__, __VA_ARGS__))
  CHECK_ASYNC_MISTAKE(cp_async_bulk_shared_global(tile, in, 24, barrier),
                      "the size of a bulk copy is 24; it lies in 16 to 4294967295 and is a multiple of 16");
  CHECK_ASYNC_MISTAKE(cp_async_bulk_shared_global(tile, in, 0, barrier), "the size of a bulk copy is 0");
  CHECK_ASYNC_MISTAKE(cp_async_bulk_global_shared(k.param(&Args::out), tile, 8), "a multiple of 16");
  CHECK_ASYNC_MISTAKE(cp_async_bulk_prefetch_L2(in, 100), "a multiple of 16");
  CHECK_ASYNC_MISTAKE(cp_async_cg_16(tile, in, 17), "is 17; it lies in 0 to 16");
  CHECK_ASYNC_MISTAKE(cp_async_ca_4(tile, in, 5), "is 5; it lies in 0 to 4");
  CHECK_ASYNC_MISTAKE(mbarrier_init(barrier, 0),
                      "the arrival count of an mbarrier is 0; it lies in 1 to 1048575");
  CHECK_ASYNC_MISTAKE(mbarrier_init(barrier, 1 << 20), "the arrival count of an mbarrier is 1048576");
  CHECK_ASYNC_MISTAKE(mbarrier_arrive(barrier, 0), "the arrival count of an mbarrier is 0");
  CHECK_ASYNC_MISTAKE(mbarrier_arrive_expect_tx(barrier, 1 << 20),
                      "the transaction count of an mbarrier is 1048576; it lies in 0 to 1048575");
  CHECK_ASYNC_MISTAKE(mbarrier_expect_tx(barrier, 1 << 20), "the transaction count of an mbarrier");
  CHECK_ASYNC_MISTAKE(mbarrier_try_wait_parity(barrier, 2), "the parity of a phase is 2; it lies in 0 to 1");
  CHECK_ASYNC_MISTAKE(k.mbarrier_wait_parity(barrier, 2), "the parity of a phase is 2");
  CHECK(on([](KernelBuilder& k, auto in, auto tile, auto barrier) {
          mbarrier_init(barrier, (1 << 20) - 1);
          mbarrier_arrive_expect_tx(barrier, (1 << 20) - 1);
          cp_async_bulk_shared_global(tile, in, 16, barrier);
          cp_async_cg_16(tile, in, 0);
          cp_async_cg_16(tile, in, 16);
          k.mbarrier_wait_parity(barrier, 1);
        }) == "");
#undef CHECK_ASYNC_MISTAKE
}

TEST_CASE("loops need a step", "[builder]") {
  CHECK_MISTAKE(k.for_(0u, 4u, 0, [](Reg<u32>) {}), "the step is 0");
  CHECK_MISTAKE(k.for_(0, k.constant<s32>(4), 0x80000000, [](Reg<s32>) {}), "the step is 2147483648");
}

TEST_CASE("names", "[builder]") {
  for (const char* name : {"", "1st", "a-b", "é", "_x", "a b"}) {
    const auto kernel = KernelBuilder(name, {}).finish();
    const int line = __LINE__ - 1;
    INFO(name);
    CHECK(reports(std::string(kernel.status().message()), line, "is not an identifier"));
  }
}

TEST_CASE("the first mistake is the one reported", "[builder]") {
  CHECK_MISTAKE((k.maxnreg(1), k.shared<f32>(0)), "registers");
}

// ---- Barriers ----

namespace {
template <class Body>
bool divergent(Body&& body, const BuildOptions& options = {}) {
  const std::string message = mistake(body, options);
  INFO(message);
  CHECK((message.empty() ||
         message.find("a barrier stands in control flow that may differ") != std::string::npos));
  return !message.empty();
}
}  // namespace

TEST_CASE("a barrier in control flow that differs between threads is a mistake, with its place",
          "[builder]") {
  CHECK_MISTAKE(k.if_(k.tid_x() < 16, [&] { k.bar_sync(0); }), "so some may never arrive");
}

TEST_CASE("barriers that not all threads are sure to reach", "[builder]") {
  const auto barrier_if = [](auto condition) {
    return divergent([&](KernelBuilder& k) { k.if_(condition(k), [&] { k.bar_sync(0); }); });
  };
  CHECK(barrier_if([](KernelBuilder& k) { return k.tid_y() == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return k.laneid() == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return ld_global(k.param(&Args::in) + k.tid_x()) == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return ld_volatile_global(k.param(&Args::in)) == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return ld_acquire_global(k.param(&Args::in), Scope::kGpu) == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return atom_global_add(k.param(&Args::out), 1) == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return shfl_sync_idx(k.tid_y(), 0, 31, 0xffffffff) == 0; }));
  CHECK_FALSE(
      barrier_if([](KernelBuilder& k) { return shfl_sync_idx(k.param(&Args::n), 0, 31, 0xffffffff) == 0; }));
  CHECK(barrier_if([](KernelBuilder& k) { return k.clock() == 0; }));
  // In the else branch; nested in a uniform branch; in a loop whose length differs.
  CHECK(divergent([](KernelBuilder& k) {
    k.if_(
        k.tid_x() == 0, [] {}, [&] { k.bar_sync(0); });
  }));
  CHECK(divergent([](KernelBuilder& k) {
    k.if_(k.param(&Args::n) == 1,
          [&] { k.if_(k.tid_x() == 0, [&] { k.if_(k.param(&Args::n) > 0, [&] { k.bar_sync(0); }); }); });
  }));
  CHECK(divergent([](KernelBuilder& k) { k.for_(0u, k.tid_x(), 1, [&](Reg<u32>) { k.bar_sync(0); }); }));
  CHECK(divergent([](KernelBuilder& k) { k.for_(k.tid_x(), 64u, 1, [&](Reg<u32>) { k.bar_sync(0); }); }));
  CHECK(divergent([](KernelBuilder& k) {
    auto left = k.var(k.tid_x());
    k.while_([&] { return left != 0; },
             [&] {
               k.bar_red_popc(0, left > 2);
               left = left - 1;
             });
  }));
  // A variable assigned in a differing branch differs, though the value does not.
  CHECK(divergent([](KernelBuilder& k) {
    auto v = k.var<u32>(0);
    k.if_(k.tid_x() == 0, [&] { v = 1; });
    k.if_(v == 1, [&] { k.bar_sync(0); });
  }));
  // Only from the second iteration on.
  CHECK(divergent([](KernelBuilder& k) {
    auto v = k.var<u32>(0);
    k.for_(0u, 8u, 1, [&](Reg<u32>) {
      k.if_(v == 0, [&] { k.bar_sync(0); });
      v = v + k.tid_x();
    });
  }));
  // Through two variables, each one iteration later.
  CHECK(divergent([](KernelBuilder& k) {
    auto a = k.var<u32>(0), b = k.var<u32>(0);
    k.for_(0u, 8u, 1, [&](Reg<u32>) {
      k.if_(b == 0, [&] { k.bar_sync(0); });
      b = a;
      a = k.tid_x();
    });
  }));
}

TEST_CASE("what a thread finds in an mbarrier may differ, waiting for it does not", "[builder]") {
  constexpr BuildOptions kHopper = {{90, false}, {9, 0}};
  CHECK(divergent(
      [](KernelBuilder& k) {
        const Pred complete = mbarrier_test_wait_parity(k.shared<MBarrier>(1), 0);
        k.if_(complete, [&] { k.bar_sync(0); });
      },
      kHopper));
  CHECK(!divergent(
      [](KernelBuilder& k) {
        const auto barrier = k.shared<MBarrier>(1);
        k.if_(k.tid_x() == 0, [&] { k.mbarrier_wait_parity(barrier, 0); });
        k.mbarrier_wait_parity(barrier, 0);
        k.bar_sync(0);
      },
      kHopper));
}

TEST_CASE("barriers that all threads reach", "[builder]") {
  CHECK(!divergent([](KernelBuilder& k) { k.bar_sync(0); }));
  CHECK(!divergent(
      [](KernelBuilder& k) { k.for_(0u, k.param(&Args::n), 1, [&](Reg<u32>) { k.bar_sync(0); }); }));
  CHECK(!divergent(
      [](KernelBuilder& k) { k.for_(k.ctaid_x(), k.nctaid_x(), 1, [&](Reg<u32>) { k.bar_sync(0); }); }));
  CHECK(!divergent([](KernelBuilder& k) {
    k.if_(ld_global(k.param(&Args::in) + k.ctaid_x()) > 3, [&] { k.bar_sync(0); });
  }));
  CHECK(!divergent([](KernelBuilder& k) {  // the threads' work differs, the barrier's place does not
    k.for_(0u, k.param(&Args::n), 1, [&](Reg<u32>) {
      k.if_(k.tid_x() == 0, [&] { st_global(k.param(&Args::out), 1); });
      k.bar_sync(0);
    });
  }));
  CHECK(!divergent([](KernelBuilder& k) {  // what bar.red returns is the same for all
    k.if_(k.bar_red_or(0, k.tid_x() == 5), [&] { k.bar_sync(0); });
  }));
  CHECK(!divergent([](KernelBuilder& k) {
    auto left = k.var(k.param(&Args::n));
    k.while_([&] { return left != 0; },
             [&] {
               k.bar_sync(0);
               left = left >> 1;
             });
  }));
  CHECK(!divergent([](KernelBuilder& k) {  // for some warps only, and it says how many threads
    k.if_(
        k.tid_x() < 64, [&] { k.bar_sync(1, 64); }, [&] { k.bar_arrive(1, 128); });
  }));
}

}  // namespace ptxgen::testing
