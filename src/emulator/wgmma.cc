#include "src/emulator/wgmma.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/emulator/access.h"
#include "src/emulator/async.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kPiece = 16;

absl::Span<const Slot> accumulators(const Op& op) {
  return {op.dst, op.dst_count};
}
// a's registers: what is not a descriptor or scale-d.
absl::Span<const Slot> factors(const Op& op) {
  return {op.src, op.src_count > 3 ? op.src_count - 2u : 0u};
}
bool names(absl::Span<const Slot> slots, Slot slot) {
  return std::any_of(slots.begin(), slots.end(), [&](Slot s) { return s.id == slot.id; });
}

// Of two multiplications of one shape, whose accumulators need no fence between them.
std::uint32_t shape_of(const Op& op) {
  const WgmmaForm form = WgmmaForm::of(op);
  return form.n << 16 | form.depth() << 8 | static_cast<std::uint32_t>(form.d);
}

}  // namespace

Wgmma::Wgmma(Cta& cta)
    : cta_(cta), warps_(cta.warps.size()), groups_((cta.warps.size() + kWarpgroup - 1) / kWarpgroup) {}

void Wgmma::reset() {
  for (WarpState& w : warps_) {
    w = WarpState{};
    w.registers.resize(cta_.launch->code->registers.size());
  }
  for (GroupState& g : groups_) g = GroupState{};
}

// ---- registers ----

std::string_view Wgmma::name_of(Slot slot) const {
  const std::string_view name = cta_.launch->code->registers[slot.id].name;
  return name.empty() ? std::string_view("a register") : name;
}

std::string Wgmma::place_of(const WgmmaInFlight& m, std::uint32_t warp) const {
  const Instruction& in = *cta_.launch->code->instructions[m.op->instruction];
  const std::string_view name = in.text.substr(0, in.text.find_first_of(" \t{"));
  return str_cat("the `", name, "` at PTX line ", in.line, " of warp ", warp);
}

std::string Wgmma::how_to_wait(const WgmmaInFlight& m, std::uint32_t warp) const {
  return m.group == warps_[warp].groups
             ? "; no wgmma.commit_group has followed it, for which wgmma.wait_group could wait"
             : "; wait for its group with wgmma.wait_group first";
}

void Wgmma::fault_register(Warp& warp, const Op& op, Slot slot, std::string_view verb, bool factor) {
  const std::deque<WgmmaInFlight>& all = warps_[warp.index].in_flight;
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const WgmmaInFlight& m) {
    return names(factor ? factors(*m.op) : accumulators(*m.op), slot);
  });
  warp.fault(op, 0,
             str_cat(verb, " ", name_of(slot), ", which ", place_of(*last, warp.index), " may still ",
                     factor ? "read" : "write", how_to_wait(*last, warp.index)));
}

bool Wgmma::use_registers(Warp& warp, const Op& op) {
  WarpState& w = warps_[warp.index];
  for (unsigned i = 0; i < op.src_count; ++i) {
    Register& r = w.registers[op.src[i].id];
    r.read = w.fences + 1;
    if (r.accumulating == 0) continue;
    fault_register(warp, op, op.src[i], "reads", false);
    return false;
  }
  for (unsigned i = 0; i < op.dst_count; ++i) {
    Register& r = w.registers[op.dst[i].id];
    r.written = w.fences + 1;
    if (r.accumulating == 0 && r.factor_of == 0) continue;
    fault_register(warp, op, op.dst[i], "writes", r.accumulating == 0);
    return false;
  }
  return true;
}

bool Wgmma::check_accumulator(Warp& warp, const WgmmaInFlight& m, Slot slot) {
  WarpState& w = warps_[warp.index];
  Register& r = w.registers[slot.id];
  const std::uint32_t now = w.fences + 1, shape = shape_of(*m.op);
  if (r.factor_of != 0) {
    fault_register(warp, *m.op, slot, "accumulates in", true);
    return false;
  }
  const bool other_shape = r.multiplied != 0 && r.shape != shape;
  if (r.accumulating != 0 && other_shape) {
    fault_register(warp, *m.op, slot, "accumulates, in another shape, in", false);
    return false;
  }
  if (r.read == now || r.written == now || (r.multiplied == now && other_shape)) {
    warp.fault(*m.op, 0,
               str_cat("accumulates in ", name_of(slot), ", which was ",
                       r.written == now ? "written"
                       : r.read == now  ? "read"
                                        : "accumulated in by a wgmma of another shape",
                       " since the last wgmma.fence; put one between the two"));
    return false;
  }
  const LaneMask unwritten = ~warp.written[slot.id];
  if (m.accumulate && unwritten != 0) {
    warp.fault(*m.op, static_cast<unsigned>(std::countr_zero(unwritten)),
               str_cat("reads ", name_of(slot), ", which nothing has written (", lane_list(unwritten),
                       " of warp ", warp.index, ")"));
    return false;
  }
  r.multiplied = now;
  r.shape = shape;
  return true;
}

bool Wgmma::check_factor(Warp& warp, const WgmmaInFlight& m, Slot slot) {
  WarpState& w = warps_[warp.index];
  Register& r = w.registers[slot.id];
  const std::uint32_t now = w.fences + 1;
  if (r.accumulating != 0) {
    fault_register(warp, *m.op, slot, "reads", false);
    return false;
  }
  if (r.written == now || r.multiplied == now) {
    warp.fault(*m.op, 0,
               str_cat("reads ", name_of(slot),
                       ", which was written since the last wgmma.fence; put one "
                       "between the two"));
    return false;
  }
  r.read = now;
  return true;
}

bool Wgmma::check_registers(Warp& warp, const WgmmaInFlight& m) {
  WarpState& w = warps_[warp.index];
  if (w.fences == 0) {
    warp.fault(*m.op, 0, "there is no wgmma.fence before the first wgmma.mma_async of the warp");
    return false;
  }
  for (const Slot slot : factors(*m.op)) {
    if (!check_factor(warp, m, slot)) return false;
  }
  for (const Slot slot : accumulators(*m.op)) {
    if (!check_accumulator(warp, m, slot)) return false;
  }
  for (const Slot slot : factors(*m.op)) ++w.registers[slot.id].factor_of;
  for (const Slot slot : accumulators(*m.op)) ++w.registers[slot.id].accumulating;
  return true;
}

// ---- shared memory ----

// From now on the pieces are to be read.
bool Wgmma::read_shared(Warp& warp, const WgmmaInFlight& m) {
  SharedMemory& shared = cta_.shared;
  const AccessRecord record = warp.access(*m.op, 0, false);
  const auto fault = [&](std::uint32_t piece, std::string_view what) {
    fault_access(warp, *m.op, 0, "reads", Space::kShared, piece, kPiece, what);
    return false;
  };
  for (const std::uint32_t piece : m.pieces) {
    if (piece >= shared.bytes() || shared.bytes() - piece < kPiece) return fault(piece, "");
    const std::uint64_t at = cta_.shared_at() + piece;
    const std::uint8_t marks = shared.marks(at, kPiece);
    if (marks & (kDestination | kMBarrierObject)) {
      return fault(piece, cta_.async->describe_marks(at, kPiece));
    }
    if (!shared.written(at, kPiece)) return fault(piece, ", which nothing has written");
    if (const auto conflict = shared.read(at, kPiece, record)) {
      fault_race(warp, *m.op, 0, at, kPiece, false, *conflict);
      return false;
    }
    if (const auto by = shared.unfenced_write(at, kPiece, record.thread)) {
      return fault(piece,
                   str_cat(" through the async proxy, part of which ", cta_.cluster.name_thread(by->thread),
                           " wrote at ", line_of(*cta_.launch, by->instruction),
                           " with no fence.proxy.async between"));
    }
    shared.mark(at, kPiece, kSource);
  }
  return true;
}

void Wgmma::mark_sources() {
  for (const WarpState& w : warps_) {
    for (const WgmmaInFlight& m : w.in_flight) {
      for (const std::uint32_t piece : m.pieces) cta_.shared.mark(cta_.shared_at() + piece, kPiece, kSource);
    }
  }
}

std::string Wgmma::describe_source(std::uint64_t offset, unsigned bytes) const {
  for (std::uint32_t warp = 0; warp < warps_.size(); ++warp) {
    for (const WgmmaInFlight& m : warps_[warp].in_flight) {
      const bool reads = std::any_of(m.pieces.begin(), m.pieces.end(), [&](std::uint32_t piece) {
        const std::uint64_t at = cta_.shared_at() + piece;
        return at < offset + bytes && offset < at + kPiece;
      });
      if (reads) {
        return str_cat(", which ", place_of(m, warp), " may still read", how_to_wait(m, warp));
      }
    }
  }
  return "";
}

// ---- the instructions ----

// Whether the warps of the warpgroup execute the same.
bool Wgmma::in_step(Warp& warp, const Op& op, const Executed& mine) {
  const std::uint32_t first = warp.index / kWarpgroup * kWarpgroup;
  if (first + kWarpgroup > cta_.warps.size()) {
    warp.fault(op, 0,
               str_cat("all four warps of a warpgroup execute this together, but of warps ", first, " to ",
                       first + kWarpgroup - 1, " the CTA has only ", cta_.warps.size() - first));
    return false;
  }
  GroupState& group = groups_[warp.index / kWarpgroup];
  std::uint64_t& executed = warps_[warp.index].executed;
  for (std::uint32_t other = first; other < first + kWarpgroup; ++other) {
    if (cta_.warps[other].live != 0 || warps_[other].executed > executed) continue;
    warp.fault(op, 0,
               str_cat("all four warps of a warpgroup execute this together, but warp ", other,
                       " has exited without it"));
    return false;
  }
  if (executed - group.first == group.executed.size()) group.executed.push_back(mine);
  const Executed& theirs = group.executed[executed - group.first];
  if (theirs.instruction != mine.instruction) {
    warp.fault(op, 0,
               str_cat("the warps of a warpgroup execute this together, but another one executes ",
                       place(*cta_.launch, theirs.instruction), " in its place"));
    return false;
  }
  if (!(theirs == mine)) {
    warp.fault(op, 0,
               str_cat("the warps of a warpgroup give different operands: descriptors ", hex(mine.a), " and ",
                       hex(mine.b), " and scale-d ", int{mine.accumulate}, " where another gives ",
                       hex(theirs.a), ", ", hex(theirs.b), " and ", int{theirs.accumulate}));
    return false;
  }
  ++executed;
  std::uint64_t slowest = executed;
  for (unsigned i = 0; i < kWarpgroup; ++i) slowest = std::min(slowest, warps_[first + i].executed);
  for (; group.first < slowest; ++group.first) group.executed.pop_front();
  return true;
}

void Wgmma::fence(Warp& warp, const Op& op) {
  if (in_step(warp, op, {op.instruction})) ++warps_[warp.index].fences;
}

void Wgmma::issue(Warp& warp, WgmmaInFlight m) {
  if (!in_step(warp, *m.op, {m.op->instruction, m.a, m.b, m.accumulate})) return;
  if (!check_registers(warp, m) || !read_shared(warp, m)) return;
  WarpState& w = warps_[warp.index];
  m.group = w.groups;
  w.in_flight.push_back(std::move(m));
}

void Wgmma::commit(Warp& warp, const Op& op) {
  if (in_step(warp, op, {op.instruction})) ++warps_[warp.index].groups;
}

void Wgmma::complete(Warp& warp, WgmmaInFlight& m) {
  if (!std::exchange(m.done, true)) multiply(warp, m);
  WarpState& w = warps_[warp.index];
  for (const Slot slot : factors(*m.op)) --w.registers[slot.id].factor_of;
  for (const Slot slot : accumulators(*m.op)) --w.registers[slot.id].accumulating;
  // From here on it is as if the warp had read the bytes itself.
  const AccessRecord record = warp.access(*m.op, 0, false);
  for (const std::uint32_t piece : m.pieces) {
    cta_.shared.read(cta_.shared_at() + piece, kPiece, record);
    cta_.shared.unmark(cta_.shared_at() + piece, kPiece, kSource);
  }
}

void Wgmma::wait(Warp& warp, const Op& op, std::uint64_t pending) {
  if (!in_step(warp, op, {op.instruction})) return;
  WarpState& w = warps_[warp.index];
  bool any = false;
  while (!w.in_flight.empty() && w.in_flight.front().group + pending < w.groups) {
    complete(warp, w.in_flight.front());
    w.in_flight.pop_front();
    any = true;
  }
  if (any) cta_.async->mark_sources();
  warp.synchronise();
}

void Wgmma::advance(std::uint32_t warp) {
  for (WgmmaInFlight& m : warps_[warp].in_flight) {
    if (m.done) continue;
    m.done = true;
    return multiply(cta_.warps[warp], m);
  }
}

void Wgmma::finish() {
  for (std::uint32_t warp = 0; warp < warps_.size(); ++warp) {
    const WarpState& w = warps_[warp];
    if (!w.in_flight.empty()) {
      const WgmmaInFlight& m = w.in_flight.front();
      return cta_.cluster.fail(
          m.op->instruction, cta_.warps[warp].cluster_thread(0),
          str_cat("the warp exits while this is still to be done", how_to_wait(m, warp)));
    }
    const GroupState& group = groups_[warp / kWarpgroup];
    if (w.executed == group.first + group.executed.size()) continue;
    return cta_.cluster.fail(group.executed[w.executed - group.first].instruction,
                             cta_.warps[warp].cluster_thread(0),
                             str_cat("all four warps of a warpgroup execute this together, but warp ", warp,
                                     " has exited without it"));
  }
}

}  // namespace ptxgen::emulator
