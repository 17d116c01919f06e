// The scheduler: lanes within a warp, warps within a CTA; cluster.cc has the CTAs of a cluster.
#include <algorithm>
#include <bit>

#include "src/emulator/async.h"
#include "src/emulator/call.h"
#include "src/emulator/machine.h"
#include "src/emulator/observer.h"
#include "src/emulator/text.h"
#include "src/emulator/wgmma.h"

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kTurn = 4096;  // operations a warp executes before the next one gets its turn

bool runnable(const Split& s) {
  return s.state == Split::State::kReady || s.state == Split::State::kReleased;
}
bool mergeable(const Split& s) {
  return s.state == Split::State::kReady || s.state == Split::State::kConverging;
}

std::size_t warps_of(const Launch& launch) {
  return (launch.config.block.count() + kWarpSize - 1) / kWarpSize;
}

}  // namespace

std::string lane_list(LaneMask lanes) {
  std::string text = std::popcount(lanes) == 1 ? "lane " : "lanes ";
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    unsigned last = lane;
    while (last + 1 < kWarpSize && (lanes >> (last + 1) & 1)) ++last;
    str_append(&text, text.back() == ' ' ? "" : ", ", lane);
    if (last > lane) str_append(&text, "-", last);
    lane = last;
  }
  return text;
}

std::string to_string(Dim3 at) {
  return str_cat("(", at.x, ",", at.y, ",", at.z, ")");
}

Dim3 position(std::uint64_t linear, Dim3 extent) {
  return {linear % extent.x, linear / extent.x % extent.y, linear / extent.x / extent.y};
}

std::string line_of(const Launch& launch, std::uint32_t instruction) {
  const Instruction& in = *launch.code->instructions[instruction];
  return str_cat("PTX line ", in.line, " `", on_one_line(in.text), "`");
}

std::string place(const Launch& launch, std::uint32_t instruction) {
  const Executable& code = *launch.code;
  const Function& f = *code.functions[code.function_at(instruction)].function;
  return str_cat("kernel '", code.function->info.name, "'",
                 f.is_entry ? std::string() : str_cat(", function '", f.info.name, "'"), ", ",
                 line_of(launch, instruction));
}

std::uint32_t Executable::function_at(std::uint32_t instruction) const {
  std::uint32_t index = 0;
  while (index + 1 < functions.size() && functions[index + 1].first_instruction <= instruction) ++index;
  return index;
}

// ---- warp ----

void Warp::fault(const Op& op, unsigned lane, std::string_view what) {
  event = Event::kFault;
  cta->cluster.fail(op.instruction, cluster_thread(lane), what);
}

AccessRecord Warp::access(const Op& op, unsigned lane, bool strong) const {
  AccessRecord record;
  record.clock = cta->shared.epoch(slot);
  record.thread = static_cast<std::uint16_t>(cluster_thread(lane));
  record.strong = strong;
  record.instruction = op.instruction;
  return record;
}

void Warp::fault_unwritten(const Op& op, Slot slot, LaneMask lanes) {
  const std::string_view name = cta->launch->code->registers[slot.id].name;
  fault(op, static_cast<unsigned>(std::countr_zero(lanes)),
        str_cat("reads ", name.empty() ? std::string_view("the condition code") : name,
                ", which nothing has written (", lane_list(lanes), " of warp ", index, ")"));
}

void Warp::wait(LaneMask waiting, Split::State state, std::uint32_t barrier) {
  splits.push_back({current.pc, waiting, state, barrier});
  current.lanes &= ~waiting;
  ++current.pc;
  event = Event::kWait;
}

void Warp::jump(LaneMask lanes) {
  event = Event::kJump;
  if (const LaneMask rest = current.lanes & ~lanes)
    splits.push_back({current.pc + 1, rest, Split::State::kReady, 0});
  current.lanes = lanes;
}

void Warp::send(LaneMask lanes, std::uint32_t pc) {
  if (lanes == current.lanes) {
    current.pc = pc;
    return;
  }
  splits.push_back({pc, lanes, Split::State::kReady, 0});
  current.lanes &= ~lanes;
}

bool Warp::converge(LaneMask arrived, LaneMask wanted) {
  if ((wanted & live & ~arrived) == 0) return true;
  wait(arrived, Split::State::kConverging);
  return false;
}

void Warp::synchronise() {
  cta->shared.advance(slot);
}

// ---- CTA ----

Cta::Cta(Cluster& cluster_, std::uint32_t rank_)
    : cluster(cluster_),
      launch(cluster_.launch),
      shared(cluster_.shared),
      async(cluster_.async.get()),
      fault(cluster_.fault),
      rank(rank_),
      warps(warps_of(*launch)),
      wgmma(launch->code->has_wgmma ? std::make_unique<Wgmma>(*this) : nullptr),
      observer(Observer::wanted(launch->options) ? std::make_unique<Observer>(*launch) : nullptr),
      local(launch->code->local_bytes * launch->config.block.count()),
      local_written(launch->code->local_bytes * launch->config.block.count()),
      counts(launch->code->ops.size()),
      frames_(launch->code->frame_bytes * warps.size() + 64) {
  const Launch& l = *launch;
  const auto threads = static_cast<std::uint32_t>(l.config.block.count());
  std::byte* frame = frames_.data() + (-reinterpret_cast<std::uintptr_t>(frames_.data()) & 63);
  for (std::uint32_t i = 0; i < warps.size(); ++i) {
    Warp& w = warps[i];
    w.index = i;
    w.slot = rank * kMaxWarps + i;
    w.frame = frame + l.code->frame_bytes * i;
    if (!l.code->calls.empty()) w.calls = std::make_unique<CallStacks>(*l.code);
    const std::uint32_t lanes = std::min(kWarpSize, threads - i * kWarpSize);
    w.existing = lanes == kWarpSize ? kAllLanes : (LaneMask{1} << lanes) - 1;
    for (const ConstantSlot& c : l.code->constants) {
      const std::uint64_t value = c.value + (c.relocated ? l.globals : 0);
      if (c.bytes == 0) w.predicate(c.slot) = value ? kAllLanes : 0;
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        std::memcpy(w.frame + c.slot.offset + lane * c.bytes, &value, c.bytes);
      }
    }
  }
}

Cta::~Cta() = default;

void Cta::start(Dim3 at) {
  ctaid = at;
  steps = 0;
  visits.clear();
  free_registers = 0;
  if (wgmma) wgmma->reset();
  forget_local();
  barriers.fill(Barrier{});
  for (Warp& w : warps) {
    w.cta = this;
    w.live = w.existing;
    w.arrived = w.passable = 0;
    w.registers = launch->registers;
    w.adjustments = 0;
    w.cluster_barriers = 0;
    w.splits.clear();
    w.current = {launch->code->functions.back().begin, w.existing, Split::State::kReady, 0};
    if (w.calls) w.calls->reset();
    w.backward_branches = 0;
    w.prefer_high = false;
    w.refusals.clear();
    w.idle = false;
    w.unwritten.clear();
    w.written.assign(launch->code->registers.size(), 0);
    for (const ConstantSlot& c : launch->code->constants) w.written[c.slot.id] = kAllLanes;
    fill_specials(w);
  }
}

// Nothing is written in the frames of the entry; calls do the same for theirs.
void Cta::forget_local() {
  const std::uint64_t stride = launch->code->local_bytes, bytes = launch->code->function->local_bytes;
  if (stride == 0) return;
  const std::uint64_t threads = launch->config.block.count();
  if (!local.get() || !local_written.get()) {
    fault = absl::ResourceExhaustedError(
        str_cat("no host memory for ", stride, " bytes of local memory for each of ", threads, " threads"));
    return;
  }
  for (std::uint64_t t = 0; t < threads; ++t) std::memset(local_written.get() + t * stride, 0, bytes);
}

void Cta::fill_specials(Warp& w) {
  for (const SpecialSlot& s : launch->code->specials) {
    w.written[s.slot.id] = kAllLanes;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      w.lanes<std::uint32_t>(s.slot)[lane] = static_cast<std::uint32_t>(special_value(w, lane, s.special));
    }
  }
}

std::uint64_t Cta::special_value(const Warp& w, unsigned lane, Special special) const {
  const Dim3 tid = position(w.thread(lane), launch->config.block);
  const LaneMask self = LaneMask{1} << lane;
  const Dim3 extent = launch->cluster, grid = launch->config.grid;
  switch (special) {
    case Special::kTidX: return tid.x;
    case Special::kTidY: return tid.y;
    case Special::kTidZ: return tid.z;
    case Special::kNtidX: return launch->config.block.x;
    case Special::kNtidY: return launch->config.block.y;
    case Special::kNtidZ: return launch->config.block.z;
    case Special::kCtaidX: return ctaid.x;
    case Special::kCtaidY: return ctaid.y;
    case Special::kCtaidZ: return ctaid.z;
    case Special::kNctaidX: return launch->config.grid.x;
    case Special::kNctaidY: return launch->config.grid.y;
    case Special::kNctaidZ: return launch->config.grid.z;
    case Special::kLaneid: return lane;
    case Special::kWarpid: return w.index + 1;  // a slot of the SM: nobody may take it for tid / 32
    case Special::kNwarpid: return 64;
    case Special::kLanemaskEq: return self;
    case Special::kLanemaskLt: return self - 1;
    case Special::kLanemaskLe: return self | (self - 1);
    case Special::kLanemaskGt: return ~(self | (self - 1));
    case Special::kLanemaskGe: return ~(self - 1);
    case Special::kSmid: return 0;
    case Special::kNsmid: return 1;
    case Special::kClusteridX: return ctaid.x / extent.x;
    case Special::kClusteridY: return ctaid.y / extent.y;
    case Special::kClusteridZ: return ctaid.z / extent.z;
    case Special::kNclusteridX: return grid.x / extent.x;
    case Special::kNclusteridY: return grid.y / extent.y;
    case Special::kNclusteridZ: return grid.z / extent.z;
    case Special::kClusterCtaidX: return ctaid.x % extent.x;
    case Special::kClusterCtaidY: return ctaid.y % extent.y;
    case Special::kClusterCtaidZ: return ctaid.z % extent.z;
    case Special::kClusterNctaidX: return extent.x;
    case Special::kClusterNctaidY: return extent.y;
    case Special::kClusterNctaidZ: return extent.z;
    case Special::kClusterCtarank: return rank;
    case Special::kClusterNctarank: return extent.count();
    case Special::kDynamicSmemSize: return launch->config.dynamic_shared_bytes;
    case Special::kTotalSmemSize: return launch->shared_bytes;
  }
  return 0;
}

bool Cta::turns() {
  bool progress = false;
  const std::size_t first = async ? async->first_of(warps.size()) : 0;
  for (std::size_t i = 0; i < warps.size() && fault.ok(); ++i) {
    Warp& w = warps[(first + i) % warps.size()];
    if (w.live != 0) progress |= run_warp(w, async ? async->turn(kTurn) : kTurn);
  }
  return progress;
}

bool Cta::done() const {
  return std::all_of(warps.begin(), warps.end(), [](const Warp& w) { return w.live == 0; });
}

bool Cta::pick(Warp& w) {
  std::vector<Split>& splits = w.splits;
  if (w.current.lanes != 0) splits.push_back(w.current);
  w.current = {};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    for (std::size_t j = splits.size() - 1; j > i; --j) {
      if (splits[j].pc != splits[i].pc || !mergeable(splits[i]) || !mergeable(splits[j])) continue;
      splits[i].lanes |= splits[j].lanes;
      splits[i].state = Split::State::kReady;
      splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  auto best = splits.end();
  for (auto s = splits.begin(); s != splits.end(); ++s) {
    if (runnable(*s) && (best == splits.end() || (w.prefer_high ? s->pc > best->pc : s->pc < best->pc)))
      best = s;
  }
  if (best == splits.end()) return false;
  w.current = *best;
  splits.erase(best);
  w.boundary = ~0u;
  for (const Split& s : splits) {
    if (mergeable(s) && s.pc > w.current.pc) w.boundary = std::min(w.boundary, s.pc);
  }
  return true;
}

bool Cta::run_warp(Warp& w, std::uint64_t budget) {
  const std::uint64_t begin = steps;
  bool progress = false;  // arriving at a barrier is progress too, though the operation is not done
  while (steps - begin < budget && pick(w)) {
    progress = true;
    observer ? steps_of<true>(w, begin + budget) : steps_of<false>(w, begin + budget);
    if (!fault.ok()) break;
    if (w.event == Event::kYield) {
      w.prefer_high = !w.prefer_high;
      if (w.idle) return false;
      break;
    }
  }
  return progress;
}

template <bool observed>
void Cta::steps_of(Warp& w, std::uint64_t end) {
  while (step<observed>(w) && steps < end) {
  }
}

// Executes one operation; false when the scheduler must choose again.
template <bool observed>
bool Cta::step(Warp& w) {
  const std::uint32_t pc = w.current.pc;
  const Op& op = launch->code->ops[pc];
  LaneMask mask = w.current.lanes, missing = 0;
  Slot missing_slot;
  if (op.guarded) {
    if ((missing = mask & ~w.written[op.guard.id])) missing_slot = op.guard;
    const LaneMask p = w.predicate(op.guard);
    mask &= op.guard_negated ? ~p : p;
  }
  w.event = Event::kNone;
  if (mask != 0 && missing == 0) {
    for (unsigned i = 0; i < (op.takes_unwritten ? 1 : op.src_count); ++i) {
      if (LaneMask m = mask & ~w.written[op.src[i].id]) {
        missing = m;
        missing_slot = op.src[i];
      }
    }
    if constexpr (observed) observer->before(w, pc, mask);
    if (missing == 0 && (!wgmma || op.in_flight || wgmma->use_registers(w, op))) op.run(w, op, mask);
  } else if constexpr (observed) {
    observer->before(w, pc, 0);
  }
  if (missing != 0) w.fault_unwritten(op, missing_slot, missing);
  if constexpr (observed) observer->after(w, pc, mask);
  if (w.event == Event::kFault || w.event == Event::kWait) return false;
  ++steps;
  counts[pc].warps += 1;
  counts[pc].threads += static_cast<std::uint64_t>(std::popcount(mask));
  if (steps > launch->options.max_warp_instructions) {
    w.fault(op, static_cast<unsigned>(std::countr_zero(w.existing)),
            str_cat("the CTA has executed ", launch->options.max_warp_instructions,
                    " warp instructions, the bound for endless kernels"));
    return false;
  }
  if (w.event == Event::kJump) return w.splits.empty() && w.current.lanes != 0;
  if (mask != 0) {
    for (unsigned i = 0; i < op.dst_count; ++i) w.written[op.dst[i].id] |= mask;
    for (; !w.unwritten.empty(); w.unwritten.pop_back()) {
      w.written[w.unwritten.back().first] &= ~w.unwritten.back().second;
    }
  }
  return ++w.current.pc < w.boundary && w.event != Event::kYield;
}

void Cta::release_barriers() {
  std::uint32_t live = 0;
  for (const Warp& w : warps) live += static_cast<std::uint32_t>(std::popcount(w.live));
  for (std::uint32_t number = 0; number < barriers.size(); ++number) {
    Barrier& b = barriers[number];
    if (!b.in_use) continue;
    // PTX ISA, exit: threads that have exited do not hold up a barrier for all threads of the CTA.
    if (b.expected == 0 ? b.thread_count < live : b.arrived < b.expected) continue;
    for (Warp& w : warps) {
      bool released = false;
      for (Split& s : w.splits) {
        if (s.state != Split::State::kBarrier || s.barrier != number) continue;
        s.state = Split::State::kReleased;
        released = true;
      }
      if (released) shared.acquire(w.slot, b.clock);
    }
    const std::uint32_t truths = b.true_count, count = b.thread_count;
    b = Barrier{};
    b.result_true = truths;
    b.result_count = count;
  }
}

}  // namespace ptxgen::emulator
