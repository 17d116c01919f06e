#include "src/emulator/observer.h"

#include <algorithm>
#include <array>
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kBanks = 32, kBankBytes = 4, kSectorBytes = 32;

void add(SharedAccesses& to, const SharedAccesses& from) {
  to.requests += from.requests;
  to.wavefronts += from.wavefronts;
  to.conflicts += from.conflicts;
}
void add(GlobalAccesses& to, const GlobalAccesses& from) {
  to.requests += from.requests;
  to.sectors += from.sectors;
  to.bytes += from.bytes;
}
void add(Branches& to, const Branches& from) {
  to.executed += from.executed;
  to.divergent += from.divergent;
}
void add(SpaceTraffic& to, const SpaceTraffic& from) {
  to.read += from.read;
  to.written += from.written;
}

// The addresses of one request, of `bytes` each.
struct Addresses {
  std::array<std::uint64_t, kWarpSize> at;  // by lane
  LaneMask lanes = 0;
};

// How many different numbers address / unit has among the bytes of the request.
std::uint64_t count_units(const Addresses& request, unsigned bytes, unsigned unit) {
  std::array<std::uint64_t, 2 * kWarpSize> units;
  std::size_t count = 0;
  for (LaneMask left = request.lanes; left != 0; left &= left - 1) {
    const std::uint64_t address = request.at[static_cast<std::size_t>(std::countr_zero(left))];
    units[count++] = address / unit;
    if ((address + bytes - 1) / unit != address / unit) units[count++] = (address + bytes - 1) / unit;
  }
  std::sort(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::uint64_t>(
      std::unique(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(count)) - units.begin());
}

// Sectors that an atomic touches: the lanes that meet at an address take turns, and each turn its sectors.
std::uint64_t atomic_sectors(const Addresses& request) {
  std::array<std::uint64_t, kWarpSize> sorted;
  std::size_t count = 0;
  for (LaneMask left = request.lanes; left != 0; left &= left - 1)
    sorted[count++] = request.at[static_cast<std::size_t>(std::countr_zero(left))];
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
  std::uint64_t sectors = 0, most = 0;  // lanes at one address of the sector
  for (std::size_t i = 0, first = 0; i < count; ++i) {
    if (sorted[i] != sorted[first]) first = i;
    if (i > 0 && sorted[i] / kSectorBytes != sorted[i - 1] / kSectorBytes) {
      sectors += most;
      most = 0;
    }
    most = std::max<std::uint64_t>(most, i - first + 1);
  }
  return sectors + most;
}

// Wavefronts of lanes that access together: the most words of one bank, of atomics also equal ones.
std::uint64_t wavefronts(const Addresses& request, LaneMask lanes, unsigned bytes, AccessKind kind) {
  std::array<std::uint64_t, kWarpSize * 4> words;
  std::size_t count = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t address = request.at[static_cast<std::size_t>(std::countr_zero(lanes))];
    for (std::uint64_t word = address / kBankBytes;
         word <= (address + bytes - 1) / kBankBytes && count < words.size(); ++word) {
      words[count++] = word;
    }
  }
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(words.begin(), end);
  std::array<std::uint64_t, kBanks> of_bank = {};
  std::uint64_t most = 0;
  const auto last = kind == AccessKind::kAtomic ? end : std::unique(words.begin(), end);
  for (auto word = words.begin(); word != last; ++word) most = std::max(most, ++of_bank[*word % kBanks]);
  return most;
}

LaneMask lanes_from(unsigned first, unsigned count) {
  return (count == kWarpSize ? kAllLanes : (LaneMask{1} << count) - 1) << first;
}

// Whether each lane reads what its neighbour at this distance reads, where that takes part.
bool agree_with_neighbours(const Addresses& request, unsigned distance) {
  for (LaneMask left = request.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const unsigned neighbour = lane ^ distance;
    if ((request.lanes >> neighbour & 1) != 0 && request.at[lane] != request.at[neighbour]) return false;
  }
  return true;
}

// Wide accesses are made part by part; two parts of an `ld` together where neighbours agree.
void count_shared(const Addresses& request, const Op& op, bool is_ld, SharedAccesses& counts) {
  const unsigned bytes = op.access_bytes, part = bytes <= 4 ? 32 : bytes == 8 ? 16 : bytes == 16 ? 8 : 4;
  const auto count = [&](LaneMask lanes) {
    if (lanes == 0) return;
    const std::uint64_t taken = wavefronts(request, lanes, bytes, op.access);
    counts.wavefronts += taken;
    counts.conflicts += taken - 1;
  };
  ++counts.requests;
  if (part == kWarpSize) return count(request.lanes);
  const bool in_pairs = is_ld && (agree_with_neighbours(request, 1) || agree_with_neighbours(request, 2));
  for (unsigned first = 0; first < kWarpSize; first += 2 * part) {
    const LaneMask both = request.lanes & lanes_from(first, 2 * part);
    if (in_pairs) {
      count(both);
    } else {
      count(both & lanes_from(first, part));
      count(both & lanes_from(first + part, part));
    }
  }
}

std::uint64_t bits_of(const Warp& warp, Slot slot, unsigned width, unsigned lane, unsigned word) {
  if (width == 1) return warp.predicate(slot) >> lane & 1;
  std::uint64_t value = 0;
  const unsigned bytes = std::max(width, 16u) / 8;
  std::memcpy(&value, warp.frame + slot.offset + lane * bytes + 8 * word, std::min(bytes, 8u));
  return value;
}

}  // namespace

void Observations::add(const Observations& other) {
  ops.resize(std::max(ops.size(), other.ops.size()));
  for (std::size_t i = 0; i < other.ops.size(); ++i) {
    emulator::add(ops[i].shared, other.ops[i].shared);
    emulator::add(ops[i].global, other.ops[i].global);
    emulator::add(ops[i].branches, other.ops[i].branches);
    ops[i].active_lanes += other.ops[i].active_lanes;
  }
  emulator::add(local, other.local);
  emulator::add(constant, other.constant);
  emulator::add(param, other.param);
}

Observer::Observer(const Launch& launch) : launch_(launch) {
  if (launch.options.profile) observations_.ops.resize(launch.code->ops.size());
  const Dim3 block = launch.config.block, thread = launch.options.trace.thread;
  const std::uint64_t number = (thread.z * block.y + thread.y) * block.x + thread.x;
  warp_ = static_cast<std::uint32_t>(number / kWarpSize);
  lane_ = static_cast<unsigned>(number % kWarpSize);
}

// ---- profile ----

void Observer::count_other(Space space, AccessKind kind, std::uint64_t bytes) {
  SpaceTraffic* traffic = space == Space::kLocal   ? &observations_.local
                          : space == Space::kConst ? &observations_.constant
                          : space == Space::kParam ? &observations_.param
                                                   : nullptr;
  if (traffic) (kind == AccessKind::kRead ? traffic->read : traffic->written) += bytes;
}

void Observer::count_access(const Warp& warp, const Op& op, LaneMask lanes, Observed& observed) {
  Addresses shared, global;
  for (LaneMask left = lanes & op.access_lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = lane_address(warp, op, lane);
    const Space space = space_of(op, address);
    count_other(space, op.access, op.access_bytes);
    if (space != Space::kShared && space != Space::kGlobal) continue;
    Addresses& request = space == Space::kShared ? shared : global;
    request.at[lane] = address;
    request.lanes |= LaneMask{1} << lane;
  }
  const bool is_ld = launch_.code->instructions[op.instruction]->opcode == "ld";
  if (shared.lanes != 0) count_shared(shared, op, is_ld, observed.shared);
  if (global.lanes != 0) {
    ++observed.global.requests;
    observed.global.sectors += op.access == AccessKind::kAtomic
                                   ? atomic_sectors(global)
                                   : count_units(global, op.access_bytes, kSectorBytes);
    observed.global.bytes += op.access_bytes * static_cast<unsigned>(std::popcount(global.lanes));
  }
}

void Observer::before(const Warp& warp, std::uint32_t pc, LaneMask lanes) {
  const Op& op = launch_.code->ops[pc];
  splits_ = warp.splits.size();
  active_ = static_cast<std::uint64_t>(std::popcount(warp.current.lanes));
  if (launch_.options.profile && op.access_bytes != 0) count_access(warp, op, lanes, observations_.ops[pc]);
  traced_ = traces(warp);
  if (traced_) trace_before(warp, pc);
}

void Observer::after(const Warp& warp, std::uint32_t pc, LaneMask lanes) {
  const Op& op = launch_.code->ops[pc];
  if (warp.event == Event::kWait) return;  // it will be executed again
  if (traced_) trace_after(warp, pc, lanes);
  if (!launch_.options.profile) return;
  Observed& observed = observations_.ops[pc];
  observed.active_lanes += active_;
  if (op.branches && lanes != 0) {
    ++observed.branches.executed;
    observed.branches.divergent += warp.splits.size() > splits_;
  }
}

Profile profile_of(const Executable& code, const std::vector<OpCount>& counts, const Traffic& traffic,
                   const Observations& observations) {
  Profile profile;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Op& op = code.ops[i];
    if (op.counted && counts[i].warps != 0) {
      profile.by_kind[std::string(code.kinds[op.instruction])] += counts[i].threads;
      profile.active_lanes += observations.ops[i].active_lanes;
    }
    const Observed& o = observations.ops[i];
    if (o.shared.requests + o.global.requests + o.branches.executed == 0) continue;
    add(profile.shared, o.shared);
    add(op.access == AccessKind::kRead ? profile.loads : profile.stores, o.global);
    add(profile.branches, o.branches);
    const Instruction& in = *code.instructions[op.instruction];
    profile.instructions.push_back({code.functions[code.function_at(op.instruction)].function->info.name,
                                    in.line, on_one_line(in.text), o.shared, o.global, o.branches});
  }
  std::stable_sort(profile.instructions.begin(), profile.instructions.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  const std::pair<std::string_view, SpaceTraffic> spaces[] = {
      {"global", {traffic.global_read, traffic.global_written}},
      {"shared", {traffic.shared_read, traffic.shared_written}},
      {"local", observations.local},
      {"const", observations.constant},
      {"param", observations.param},
  };
  for (const auto& [name, bytes] : spaces) {
    if (bytes.read + bytes.written != 0) profile.bytes_by_space[std::string(name)] = bytes;
  }
  return profile;
}

// ---- trace ----

bool Observer::traces(const Warp& warp) const {
  const Trace& trace = launch_.options.trace;
  return trace.sink && warp.index == warp_ && (warp.current.lanes >> lane_ & 1) &&
         warp.cta->ctaid == trace.cta;
}

bool Observer::begins(std::uint32_t pc) const {
  const std::vector<Op>& ops = launch_.code->ops;
  return pc == 0 || ops[pc - 1].instruction != ops[pc].instruction;
}

bool Observer::ends(std::uint32_t pc) const {
  const std::vector<Op>& ops = launch_.code->ops;
  return pc + 1 == ops.size() || ops[pc + 1].instruction != ops[pc].instruction;
}

// The registers among `slots` that have a name and are not in `values` yet.
void Observer::read_values(const Warp& warp, const Slot* slots, unsigned count,
                           std::vector<TraceValue>& values) const {
  for (const Slot* slot = slots; slot != slots + count; ++slot) {
    const RegisterName& r = launch_.code->registers[slot->id];
    const auto known = [&](const TraceValue& v) { return v.name == r.name; };
    if (r.name.empty() || std::any_of(values.begin(), values.end(), known)) continue;
    values.push_back({r.name, name(r.type), bits_of(warp, *slot, bits(r.type), lane_, 0),
                      bits(r.type) == 128 ? bits_of(warp, *slot, 128, lane_, 1) : 0});
  }
}

void Observer::trace_before(const Warp& warp, std::uint32_t pc) {
  const Op& op = launch_.code->ops[pc];
  if (begins(pc)) {
    const Instruction& in = *launch_.code->instructions[op.instruction];
    text_ = on_one_line(in.text);
    step_ = {launch_.code->functions[launch_.code->function_at(op.instruction)].function->info.name,
             in.line,
             text_,
             true,
             {},
             {}};
    written_ = false;
    if (op.guarded) read_values(warp, &op.guard, 1, step_.reads);
  }
  written_ |= op.counted;
  read_values(warp, op.src, op.src_count, step_.reads);
}

void Observer::trace_after(const Warp& warp, std::uint32_t pc, LaneMask lanes) {
  const Op& op = launch_.code->ops[pc];
  const bool fault = warp.event == Event::kFault;
  step_.executed = lanes >> lane_ & 1;
  if (step_.executed && !fault) read_values(warp, op.dst, op.dst_count, step_.writes);
  if (written_ && (fault || ends(pc))) launch_.options.trace.sink(step_);
}

}  // namespace ptxgen::emulator
