// A warp-specialised pipeline as a matrix multiplication on Hopper has it, run in many orders of its copies
// and warps; and what is said of it when one of its waits, fences or releases is missing or wrong.
//
// out[64][8] = w[64][k] * x[8][k]^T in rounds of two slabs of 64 values of k. Warp 4 copies each slab into
// one of two slots: w in the order of the registers, x in lines of 128 bytes, exchanged by the swizzle. Warps
// 0-3 prepare w in registers (here: double it) while they multiply the slab before.
#include <algorithm>
#include <array>

#include "tests/builder/building.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

constexpr BuildOptions kSm90a{.target = {90, true}, .max_isa = kNewestIsa};
constexpr u32 kTokens = 8, kSlots = 2, kSteps = 4, kRounds = 3, kDepth = kRounds * kSlots * 64;
constexpr u32 kWordsW = kSteps * 4 * 128, kWordsX = kTokens * 32, kWords = kWordsW + kWordsX;
constexpr u32 kConsumers = 128, kThreads = kConsumers + 32;

using W = Fragment<Matrix::kA, f16, 64, 16>;
using Sum = Fragment<Matrix::kC, f32, 64, kTokens>;

enum class Fault {
  kNone,
  kNoInitFence,        // before the async proxy uses the mbarriers
  kNoWaitForFull,      // the consumers do not wait for the copies,
  kWrongPhase,         // or wait for the phase before,
  kNoWaitForEmpty,     // the producer does not wait for the consumers
  kReleaseAfterLoads,  // a slot is handed back when one lane has loaded its part of w,
  kReleaseAtCommit,    // or while x is still multiplied
  kNoWgmmaFence,
  kNoLastWait,
  kOneSetOfRegisters,  // for w, which is prepared while it is multiplied
};

class Pipeline {
 public:
  Pipeline(KernelBuilder& k, Fault fault)
      : k_(k),
        fault_(fault),
        tid_(k.tid_x()),
        w_(k.shared<u32, 128>(kSlots * kWordsW)),
        x_(k.shared<f16, 1024>(kSlots * kWordsX * 2)),
        full_(k.shared<MBarrier>(kSlots)),
        empty_(k.shared<MBarrier>(kSlots)) {}

  void build() {
    k_.if_(tid_ == 0, [&] {
      for (u32 slot = 0; slot < kSlots; ++slot) {
        mbarrier_init(full_ + slot, 1);
        mbarrier_init(empty_ + slot, kConsumers / 32);
      }
      if (fault_ != Fault::kNoInitFence) k_.fence_mbarrier_init_release_cluster();
    });
    k_.bar_sync(0);
    k_.if_(
        tid_ < kConsumers, [&] { consume(); }, [&] { k_.if_(tid_ == kConsumers, [&] { produce(); }); });
  }

 private:
  void produce() {
    k_.for_(0u, k_.param(&Args::n), 1, [&](const Reg<u32>& round) {
      for (u32 slot = 0; slot < kSlots; ++slot) {
        if (fault_ != Fault::kNoWaitForEmpty) k_.mbarrier_wait_parity(empty_ + slot, (round & 1) ^ 1);
        const auto from = k_.param(&Args::in) + (round * (kSlots * kWords) + slot * kWords);
        mbarrier_arrive_expect_tx(full_ + slot, kWords * 4);
        cp_async_bulk_shared_global(assume_aligned<16>(w_ + slot * kWordsW), assume_aligned<16>(from),
                                    kWordsW * 4, full_ + slot);
        cp_async_bulk_shared_global(assume_aligned<16>(x_ + slot * kWordsX * 2),
                                    assume_aligned<16>(from + kWordsW), kWordsX * 4, full_ + slot);
      }
    });
  }

  void consume() {
    Accumulator<f32, 64, kTokens> sum(k_);
    const MatrixDescriptor<f16> x(x_, {.swizzle = Swizzle::k128B, .stride_bytes = 1024});
    const Reg<f16x2> zero = k_.constant<f16x2>(f16x2{{0}, {0}});
    std::vector<FragmentVar<W>> shared_set;
    if (fault_ == Fault::kOneSetOfRegisters)
      shared_set.assign(kSteps, FragmentVar<W>(W({zero, zero, zero, zero})));
    k_.for_(0u, k_.param(&Args::n), 1, [&](const Reg<u32>& round) {
      for (u32 slot = 0; slot < kSlots; ++slot) {
        const Reg<u32> phase = fault_ == Fault::kWrongPhase ? (round & 1) ^ 1 : round & 1;
        if (fault_ != Fault::kNoWaitForFull) k_.mbarrier_wait_parity(full_ + slot, phase);
        std::vector<W> w = prepare(slot);
        if (fault_ == Fault::kReleaseAfterLoads) release(slot, tid_ >= 0);
        for (u32 step = 0; step < shared_set.size(); ++step) {
          shared_set[step] = w[step];
          w[step] = shared_set[step];
        }
        if (fault_ != Fault::kNoWgmmaFence) k_.wgmma_fence();
        for (u32 step = 0; step < kSteps; ++step)
          wgmma_mma_async(sum, w[step], x.advance(slot * kWordsX * 4 + step * 32), true);
        k_.wgmma_commit_group();
        if (fault_ == Fault::kReleaseAtCommit) release(slot, tid_ >= 0);
        k_.wgmma_wait_group(1);
        // The slab before is done: its slot, of the round before if this is the first.
        const bool in_order = fault_ != Fault::kReleaseAfterLoads && fault_ != Fault::kReleaseAtCommit;
        if (in_order) release((slot + kSlots - 1) % kSlots, slot == 0 ? round > 0 : tid_ >= 0);
      }
    });
    if (fault_ != Fault::kNoLastWait) k_.wgmma_wait_group(0);
    store(sum);
  }

  std::vector<W> prepare(u32 slot) {
    std::vector<W> w;
    for (u32 step = 0; step < kSteps; ++step) {
      std::vector<Reg<f16x2>> r;
      for (u32 i = 0; i < 4; ++i) {
        const Reg<u32> word = ld_shared(w_ + (tid_ + (slot * kWordsW + (step * 4 + i) * 128)));
        r.push_back(bitcast<f16x2>(word) + bitcast<f16x2>(word));
      }
      w.push_back(W({r[0], r[1], r[2], r[3]}));
    }
    return w;
  }

  void release(u32 slot, const Pred& condition) {
    k_.if_((tid_ & 31) == 0 && condition, [&] { mbarrier_arrive(empty_ + slot); });
  }

  void store(const Accumulator<f32, 64, kTokens>& sum) {
    for (u32 i = 0; i < Sum::kElements; ++i) {
      const auto at = Sum::place(0, i);
      const auto row = (tid_ >> 5) * 16 + (tid_ >> 2 & 7) + at.row;
      st_global(k_.param(&Args::out) + (row * kTokens + (tid_ & 3) * 2 + at.column), bitcast<u32>(sum[i]));
    }
  }

  KernelBuilder& k_;
  const Fault fault_;
  const Reg<u32> tid_;
  const SharedPtr<u32, 128> w_;
  const SharedPtr<f16, 1024> x_;
  const SharedPtr<MBarrier> full_, empty_;
};

struct Data {
  std::vector<u32> in = std::vector<u32>(kRounds * kSlots * kWords);
  std::array<std::array<s32, kDepth>, 64> w{};
  std::array<std::array<s32, kDepth>, kTokens> x{};

  Data() {
    u32 state = 11;
    const auto next = [&] { return static_cast<s32>((state = state * 1664525 + 1013904223) >> 16) % 5 - 2; };
    const auto half = [](s32 v) {
      return std::array<u32, 5>{0xc000, 0xbc00, 0, 0x3c00, 0x4000}[static_cast<u32>(v + 2)];
    };
    for (u32 slab = 0; slab < kRounds * kSlots; ++slab) {
      u32* const words = &in[slab * kWords];
      for (u32 thread = 0; thread < kConsumers; ++thread) {
        for (u32 i = 0; i < kSteps * 8; ++i) {
          const auto at = W::place(thread, i % 8);
          const s32 v = w[at.row][slab * 64 + i / 8 * 16 + at.column] = next();
          words[i / 2 * 128 + thread] |= half(v) << (16 * (i % 2));
        }
      }
      for (u32 token = 0; token < kTokens; ++token) {
        for (u32 i = 0; i < 64; ++i) {
          const s32 v = x[token][slab * 64 + i] = next();
          const u32 piece = i / 8 ^ token;  // of 16 bytes, in the line of the token
          words[kWordsW + token * 32 + piece * 4 + i % 8 / 2] |= half(v) << (16 * (i % 2));
        }
      }
    }
  }
  s32 product(u32 row, u32 token) const {
    s32 sum = 0;
    for (u32 i = 0; i < kDepth; ++i) sum += 2 * w[row][i] * x[token][i];
    return sum;
  }
};

absl::StatusOr<Kernel> pipeline(Fault fault) {
  return build([&](KernelBuilder& k) { Pipeline(k, fault).build(); }, kSm90a);
}

TEST_CASE("a pipeline of copies and wgmma computes the product in every order", "[builder][wgmma]") {
  const absl::StatusOr<Kernel> kernel = pipeline(Fault::kNone);
  INFO(kernel.status().ToString());
  REQUIRE(kernel.ok());
  const Data data;
  for (u64 seed = 0; seed < 16; ++seed) {
    const auto out = run(*kernel, kThreads, data.in, kRounds, 64 * kTokens, seed);
    INFO("seed " << seed << ": " << out.status().ToString());
    REQUIRE(out.ok());
    for (u32 i = 0; i < out->size(); ++i) {
      REQUIRE(__builtin_bit_cast(float, (*out)[i]) ==
              static_cast<float>(data.product(i / kTokens, i % kTokens)));
    }
  }
}

TEST_CASE("ptxas lets the multiplications of a pipeline overlap", "[builder][wgmma][ptxas]") {
  const absl::StatusOr<Kernel> kernel = pipeline(Fault::kNone);
  REQUIRE(kernel.ok());
  const PtxasReport report = assemble(print_ptx(*kernel), {90, true});
  INFO(report.log);
  REQUIRE(report.ok);
  // It says so where it waits for each one, or moves registers out of the way (C7510 to C7519).
  CHECK(report.log.find("wgmma") == std::string::npos);
  CHECK(report.log.find("(C75") == std::string::npos);
}

TEST_CASE("a pipeline that lacks a wait, a fence or a release in time is found", "[builder][wgmma]") {
  struct Planted {
    Fault fault;
    std::vector<std::string> messages;  // one of them, by who comes first
  };
  const std::vector<std::string> kTooEarly = {"is still to write; wait for it first",
                                              "which nothing has written", "race in shared memory"};
  const std::vector<std::string> kTooLate = {"may still read", "race in shared memory"};
  const Planted all[] = {
      {Fault::kNoInitFence, {"with neither fence.mbarrier_init nor fence.proxy.async between"}},
      {Fault::kNoWaitForFull, kTooEarly},
      {Fault::kWrongPhase, kTooEarly},
      {Fault::kNoWaitForEmpty,
       {"may still read", "race in shared memory", "is still to write", "arrives 1 times at phase"}},
      {Fault::kReleaseAfterLoads, kTooLate},
      {Fault::kReleaseAtCommit, kTooLate},
      {Fault::kNoWgmmaFence, {"there is no wgmma.fence before the first wgmma.mma_async of the warp"}},
      {Fault::kNoLastWait, {"may still write; wait for its group with wgmma.wait_group first"}},
  };
  const Data data;
  for (const Planted& planted : all) {
    const absl::StatusOr<Kernel> kernel = pipeline(planted.fault);
    INFO(kernel.status().ToString());
    REQUIRE(kernel.ok());
    for (u64 seed = 0; seed < 8; ++seed) {
      const auto out = run(*kernel, kThreads, data.in, kRounds, 64 * kTokens, seed);
      const std::string said(out.status().message());
      INFO("fault " << static_cast<int>(planted.fault) << ", seed " << seed << ": " << said.substr(0, 600));
      CHECK(std::any_of(planted.messages.begin(), planted.messages.end(),
                        [&](const std::string& message) { return said.find(message) != std::string::npos; }));
    }
  }
}

TEST_CASE("one set of registers for what is prepared and multiplied is found while it is built",
          "[builder][wgmma]") {
  const std::string said(pipeline(Fault::kOneSetOfRegisters).status().message());
  INFO(said);
  CHECK(
      said.find(
          "a Var is written while a wgmma may still read it; wait for its group (wgmma_wait_group) first, or "
          "keep a in two sets of registers by turns") != std::string::npos);
}

}  // namespace
}  // namespace ptxgen::testing
