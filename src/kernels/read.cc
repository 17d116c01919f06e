// Reads memory and keeps nothing: the least time that a kernel can take which needs all those bytes.
//
// A chunk is threads x loads vectors. CTA c takes chunks c, c + ctas, ...; of a chunk, a thread issues all
// its loads before it uses the first, and neighbouring threads have neighbouring vectors. What remains beyond
// the last whole chunk goes to the CTA whose turn is next, which keeps all its loads in flight too: a thread
// without a vector loads the last one once more and drops it.
//
// Every thread folds what it has read by exclusive or, and compares the result with an argument: so no
// compiler can leave out a load, and with the argument 0 the folds prove that each vector was read once.

#include <algorithm>

#include "ptxgen/kernels.h"
#include "src/kernels/parts/bytes.h"
#include "src/kernels/parts/dependence.h"

namespace ptxgen {
namespace {

using Vector = parts::Bytes<16>;
using Words = std::array<Reg<u32>, 4>;

// Two CTAs of 512 threads with 4 loads each keep 64 KB in flight on an SM, twice what covers the latency of
// an H200's memory; 264 of them fill its 132 SMs.
constexpr u32 kCtas = 264, kThreads = 512, kLoads = 4;

struct Plan {
  u32 ctas, threads, loads;
  u32 chunk() const { return threads * loads; }
};

Plan plan_of(const Read& read) {
  const auto chosen = [](u32 given, u32 otherwise) { return given == 0 ? otherwise : given; };
  Plan plan{0, chosen(read.threads, kThreads), chosen(read.loads, kLoads)};
  const u64 chunks = (u64{read.vectors} + plan.chunk() - 1) / plan.chunk();
  plan.ctas = chosen(read.ctas, static_cast<u32>(std::min<u64>(chunks, kCtas)));
  return plan;
}

// Read once: nothing is worth a place in the L1. A prefetch of 256 bytes into the L2, though all of them are
// wanted, makes an H200 6 % slower: 7.66 us for 33 MB in place of 7.18.
MemoryHints hints_for(const KernelBuilder& k) {
  MemoryHints hints;
  if (k.max_isa() >= PtxIsa{7, 4}) hints.l1 = L1::kNoAllocate;
  return hints;
}

Reg<u32> fold(const Words& words) {
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

}  // namespace

LaunchShape Read::launch_shape(const Args&) const {
  const Plan plan = plan_of(*this);
  LaunchShape shape;
  shape.grid = {plan.ctas};
  shape.block = {plan.threads};
  return shape;
}

void Read::build(KernelBuilder& k) const {
  const Plan plan = plan_of(*this);
  const u32 whole = vectors / plan.chunk(), rest = vectors % plan.chunk();
  const MemoryHints hints = hints_for(k);
  k.maxntid(plan.threads);
  parts::launch_dependents(k);
  const Reg<u32> cta = k.ctaid_x(), tid = k.tid_x();
  const auto src = at<Vector>(k.param(&Args::src));
  Var<u32> folded = k.var<u32>(0u);

  k.for_(cta, whole, plan.ctas, [&](const Reg<u32>& chunk) {
    const auto first = src + (chunk * plan.chunk() + tid);
    std::vector<Words> read;
    for (u32 i = 0; i < plan.loads; ++i)
      read.push_back(ld_global_nc_v4(at<u32>(first + i * plan.threads), hints));
    for (const Words& words : read) folded = folded ^ fold(words);
  });
  if (rest != 0) {
    k.if_(cta == whole % plan.ctas, [&] {
      const auto first = src + whole * plan.chunk();
      std::vector<Words> read;
      std::vector<Pred> inside;
      for (u32 i = 0; i * plan.threads < rest; ++i) {
        const Reg<u32> index = tid + i * plan.threads;
        inside.push_back(index < rest);
        read.push_back(ld_global_nc_v4(at<u32>(first + min(index, rest - 1)), hints));
      }
      for (std::size_t i = 0; i < read.size(); ++i) folded = folded ^ selp(fold(read[i]), 0u, inside[i]);
    });
  }
  parts::wait_for_predecessor(k);
  const Reg<u32> all = folded;
  k.if_(all >= k.param(&Args::least), [&] { red_global_xor(k.param(&Args::sum), all); });
}

}  // namespace ptxgen
