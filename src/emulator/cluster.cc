// The CTAs of a cluster: their turns, barrier.cluster, the ends of CTAs, and what it means that nobody can go
// on.
#include <algorithm>
#include <bit>

#include "src/emulator/async.h"
#include "src/emulator/machine.h"
#include "src/emulator/text.h"
#include "src/emulator/wgmma.h"

namespace ptxgen::emulator {

Cluster::Cluster(const Launch& l)
    : launch(&l),
      shared(l.shared_bytes, l.cluster_ctas(), l.code->shared_granule,
             (l.config.block.count() + kWarpSize - 1) / kWarpSize, l.options.check_races, l.code->has_async),
      async(l.code->has_async ? std::make_unique<Async>(*this) : nullptr) {
  for (std::uint32_t rank = 0; rank < l.cluster_ctas(); ++rank) ctas.emplace_back(*this, rank);
}

Cluster::~Cluster() = default;

std::string Cluster::name_thread(std::uint32_t thread) const {
  const Cta& cta = cta_of(thread);
  const std::string name =
      str_cat("thread ", to_string(position(thread % (kMaxWarps * kWarpSize), launch->config.block)));
  return ctas.size() == 1 ? name : str_cat(name, " of CTA ", to_string(cta.ctaid));
}

void Cluster::fail(std::uint32_t instruction, std::uint32_t thread, std::string_view what) {
  fault = absl::AbortedError(
      str_cat(place(*launch, instruction), ", CTA ", to_string(cta_of(thread).ctaid), ", thread ",
              to_string(position(thread % (kMaxWarps * kWarpSize), launch->config.block)), ": ", what));
}

std::uint64_t Cluster::changes() const {
  std::uint64_t sum = barriers + (async ? async->changes() : 0);
  for (const Cta& c : ctas) sum += c.traffic.global_written + c.traffic.shared_written + c.arrivals;
  return sum;
}

void Cluster::start(std::uint64_t linear) {
  const Dim3 extent = launch->cluster, grid = launch->config.grid;
  const Dim3 at = position(linear, {grid.x / extent.x, grid.y / extent.y, grid.z / extent.z});
  fault = absl::OkStatus();
  barriers = 0;
  arriving = completed = {};
  shared.reset();
  if (async) async->reset(linear);
  for (Cta& cta : ctas) {
    const Dim3 in = position(cta.rank, extent);
    cta.start({at.x * extent.x + in.x, at.y * extent.y + in.y, at.z * extent.z + in.z});
  }
}

Cluster::State Cluster::round() {
  bool progress = false;
  const std::size_t first = async ? async->first_of(ctas.size()) : 0;
  for (std::size_t i = 0; i < ctas.size() && fault.ok(); ++i) {
    progress |= ctas[(first + i) % ctas.size()].turns();
  }
  if (!fault.ok()) return State::kFault;
  if (std::all_of(ctas.begin(), ctas.end(), [](const Cta& c) { return c.done(); })) return State::kDone;
  if (async ? !async->after_turns(progress) : !progress) fault = deadlock();
  return fault.ok() ? State::kRunning : State::kFault;
}

// PTX ISA, barrier.cluster: threads that have exited do not hold it up.
void Cluster::release_barrier() {
  bool anybody = false, all = true;
  for_each_warp([&](const Warp& w) {
    const LaneMask here = w.live & w.arrived & ~w.passable;
    anybody |= here != 0;
    all &= here == w.live;
  });
  if (!anybody || !all) return;
  ++barriers;
  join(completed, arriving);
  arriving = {};
  for_each_warp([&](Warp& w) {
    w.passable |= w.arrived;
    for (Split& s : w.splits) {
      if (s.state == Split::State::kCluster) s.state = Split::State::kReady;
    }
  });
}

void Cluster::end(Cta& cta) {
  if (async) async->end(cta);
  if (fault.ok() && cta.wgmma) cta.wgmma->finish();
  if (fault.ok()) check_warpgroups(cta);
  if (!fault.ok() || !launch->options.check_races) return;
  // The CTA lives until its last thread exits, so it is enough that one of its warps knows of the access.
  for (const auto& visit : cta.visits) {
    const AccessRecord& record = visit.second;
    const auto knows = [&](const Warp& w) { return shared.happened(record, w.slot * kWarpSize); };
    if (std::any_of(cta.warps.begin(), cta.warps.end(), knows)) continue;
    return fail(
        record.instruction, record.thread,
        str_cat("accesses the shared memory of CTA ", to_string(cta.ctaid),
                ", which may have exited: nothing orders this access before its end; let all CTAs of the "
                "cluster meet at barrier.cluster before they exit"));
  }
}

namespace {

// The list of who waits for what, of the first few.
class Waiting {
 public:
  explicit Waiting(const Cluster& cluster) : cluster_(cluster) {}

  void add(const Cta& cta) {
    for (const Warp& w : cta.warps) {
      for (const Split& s : w.splits) add(w, s);
      if (w.idle && w.live != 0) {
        const Refusal& last = w.refusals.back();
        list(w, last.lanes, last.pc,
             str_cat("again and again for ", cluster_.async->describe(last.mbarrier)));
      }
      const LaneMask exited = w.existing & ~w.live;
      if (exited != 0 && w.live != 0 && listed_ <= kMost) {
        str_append(&text_, "; ", name(w), " ", lane_list(exited), " exited");
      }
    }
  }

  std::string text() const {
    return listed_ > kMost ? str_cat(text_, "; and ", listed_ - kMost, " more") : text_;
  }

 private:
  static constexpr unsigned kMost = 8;

  std::string name(const Warp& w) const {
    const std::string warp = str_cat("warp ", w.index);
    return cluster_.ctas.size() == 1 ? warp : str_cat("CTA ", to_string(w.cta->ctaid), " ", warp);
  }

  void add(const Warp& w, const Split& s) {
    switch (s.state) {
      case Split::State::kBarrier:
        return list(w, s.lanes, s.pc, "for the threads that have not arrived at the barrier");
      case Split::State::kCluster:
        return list(w, s.lanes, s.pc,
                    "for the threads of the cluster that have not arrived at barrier.cluster");
      case Split::State::kRegisters:
        return list(w, s.lanes, s.pc,
                    str_cat("for registers: it has ", w.registers, " a thread, and the CTA's pool holds ",
                            w.cta->free_registers / kWarpSize, " more for each thread of a warp"));
      case Split::State::kConverging: return list(w, s.lanes, s.pc, "for the other lanes of the warp");
      case Split::State::kSuspended:
        return list(w, s.lanes, s.pc, str_cat("for ", cluster_.async->describe(s.barrier)));
      default: return;  // it polls
    }
  }

  void list(const Warp& w, LaneMask lanes, std::uint32_t pc, std::string_view what) {
    if (++listed_ > kMost) return;
    const Launch& launch = *cluster_.launch;
    str_append(&text_, "; ", name(w), " ", lane_list(lanes), " at ",
               line_of(launch, launch.code->ops[pc].instruction), " ", what);
  }

  const Cluster& cluster_;
  std::string text_;
  unsigned listed_ = 0;
};

}  // namespace

absl::Status Cluster::deadlock() const {
  Waiting waiting(*this);
  for (const Cta& cta : ctas) waiting.add(cta);
  return absl::AbortedError(str_cat(
      "kernel '", launch->code->function->info.name, "', ", ctas.size() == 1 ? "CTA " : "the cluster of CTA ",
      to_string(ctas[0].ctaid), ": deadlock, every live thread waits", waiting.text()));
}

}  // namespace ptxgen::emulator
