// The scheduler: lanes within a warp, warps within a CTA.
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

std::string place(const Launch& launch, std::uint32_t instruction) {
  const Executable& code = *launch.code;
  const Instruction& in = *code.instructions[instruction];
  const Function& f = *code.functions[code.function_at(instruction)].function;
  return str_cat("kernel '", code.function->info.name, "'",
                 f.is_entry ? std::string() : str_cat(", function '", f.info.name, "'"), ", PTX line ",
                 in.line, " `", on_one_line(in.text), "`");
}

std::uint32_t Executable::function_at(std::uint32_t instruction) const {
  std::uint32_t index = 0;
  while (index + 1 < functions.size() && functions[index + 1].first_instruction <= instruction) ++index;
  return index;
}

// ---- warp ----

void Warp::fault(const Op& op, unsigned lane, std::string_view what) {
  event = Event::kFault;
  cta->fail(op.instruction, thread(lane), what);
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
  cta->shared.advance(index);
}

// ---- CTA ----

Cta::Cta(const Launch& l)
    : launch(&l),
      threads(static_cast<std::uint32_t>(l.config.block.count())),
      warps((threads + kWarpSize - 1) / kWarpSize),
      shared(l.shared_bytes, l.code->shared_granule, warps.size(), l.options.check_races, l.code->has_async),
      async(l.code->has_async ? std::make_unique<Async>(*this) : nullptr),
      wgmma(l.code->has_wgmma ? std::make_unique<Wgmma>(*this) : nullptr),
      observer(Observer::wanted(l.options) ? std::make_unique<Observer>(l) : nullptr),
      local(l.code->local_bytes * threads),
      local_written(l.code->local_bytes * threads),
      counts(l.code->ops.size()),
      frames_(l.code->frame_bytes * warps.size() + 64) {
  std::byte* frame = frames_.data() + (-reinterpret_cast<std::uintptr_t>(frames_.data()) & 63);
  for (std::uint32_t i = 0; i < warps.size(); ++i) {
    Warp& w = warps[i];
    w.cta = this;
    w.index = i;
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

void Cta::fail(std::uint32_t instruction, std::uint32_t thread, std::string_view what) {
  fault = absl::AbortedError(str_cat(place(*launch, instruction), ", CTA ", to_string(ctaid), ", thread ",
                                     to_string(position(thread, launch->config.block)), ": ", what));
}

std::uint64_t Cta::changes() const {
  return traffic.global_written + traffic.shared_written + arrivals + (async ? async->changes() : 0);
}

void Cta::start(std::uint64_t linear) {
  ctaid = position(linear, launch->config.grid);
  fault = absl::OkStatus();
  steps = 0;
  shared.reset();
  if (async) async->reset(linear);
  if (wgmma) wgmma->reset();
  forget_local();
  barriers.fill(Barrier{});
  for (Warp& w : warps) {
    w.live = w.existing;
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
  if (!local.get() || !local_written.get()) {
    fault = absl::ResourceExhaustedError(
        str_cat("no host memory for ", stride, " bytes of local memory for each of ", threads, " threads"));
    return;
  }
  for (std::uint32_t t = 0; t < threads; ++t) std::memset(local_written.get() + t * stride, 0, bytes);
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
    case Special::kSmid:
    case Special::kZero: return 0;
    case Special::kNsmid:
    case Special::kOne: return 1;
    case Special::kDynamicSmemSize: return launch->config.dynamic_shared_bytes;
    case Special::kTotalSmemSize: return launch->shared_bytes;
  }
  return 0;
}

// Every warp's turn; true when one of them got anywhere.
bool Cta::turns() {
  bool progress = false;
  const std::size_t first = async ? async->first_warp() : 0;
  for (std::size_t i = 0; i < warps.size() && fault.ok(); ++i) {
    Warp& w = warps[(first + i) % warps.size()];
    if (w.live != 0) progress |= run_warp(w, async ? async->turn(kTurn) : kTurn);
  }
  return progress;
}

Cta::State Cta::round() {
  const bool progress = turns();
  if (!fault.ok()) return State::kFault;
  if (std::all_of(warps.begin(), warps.end(), [](const Warp& w) { return w.live == 0; })) {
    if (async) async->finish();
    if (wgmma && fault.ok()) wgmma->finish();
    return fault.ok() ? State::kDone : State::kFault;
  }
  if (async ? !async->after_turns(progress) : !progress) fault = deadlock();
  return fault.ok() ? State::kRunning : State::kFault;
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
      if (released) shared.acquire(w.index, b.clock);
    }
    const std::uint32_t truths = b.true_count, count = b.thread_count;
    b = Barrier{};
    b.result_true = truths;
    b.result_count = count;
  }
}

absl::Status Cta::deadlock() const {
  std::string waits;
  unsigned listed = 0;
  const auto list = [&](const Warp& w, LaneMask lanes, std::uint32_t pc, auto&&... what) {
    if (++listed > 8) return;
    const Instruction& in = *launch->code->instructions[launch->code->ops[pc].instruction];
    str_append(&waits, "; warp ", w.index, " ", lane_list(lanes), " at PTX line ", in.line, " `",
               on_one_line(in.text), "` ", what...);
  };
  for (const Warp& w : warps) {
    if (w.live == 0) continue;
    for (const Split& s : w.splits) {
      switch (s.state) {
        case Split::State::kBarrier:
          list(w, s.lanes, s.pc, "for the threads that have not arrived at the barrier");
          break;
        case Split::State::kConverging: list(w, s.lanes, s.pc, "for the other lanes of the warp"); break;
        case Split::State::kSuspended: list(w, s.lanes, s.pc, "for ", async->describe(s.barrier)); break;
        default: break;  // it polls, see below
      }
    }
    if (w.idle) {
      const Refusal& last = w.refusals.back();
      list(w, last.lanes, last.pc, "again and again for ", async->describe(last.mbarrier));
    }
    const LaneMask exited = w.existing & ~w.live;
    if (exited != 0 && listed <= 8) str_append(&waits, "; warp ", w.index, " ", lane_list(exited), " exited");
  }
  if (listed > 8) str_append(&waits, "; and ", listed - 8, " more");
  return absl::AbortedError(str_cat("kernel '", launch->code->function->info.name, "', CTA ",
                                    to_string(ctaid), ": deadlock, every live thread waits", waits));
}

}  // namespace ptxgen::emulator
