// setmaxnreg: the registers of a CTA, which its warpgroups give to each other (PTX ISA, "Miscellaneous
// Instructions: setmaxnreg").
//
// The threads begin with as many registers as .maxnreg says, or as .maxntid and .minnctapersm leave to each;
// .dec gives registers of a warp to the CTA's pool, .inc waits until the pool has enough of them. How many
// registers the code between really needs is known to ptxas alone.
#include <bit>

#include "src/emulator/decode.h"
#include "src/emulator/matrix.h"
#include "src/emulator/text.h"
#include "src/emulator/wgmma.h"

namespace ptxgen::emulator {
namespace {

// The warps of the CTA's warpgroup that `warp` belongs to.
absl::Span<Warp> warpgroup(Warp& warp) {
  std::vector<Warp>& warps = warp.cta->warps;
  const std::size_t first = warp.index / kWarpgroup * kWarpgroup;
  return absl::MakeSpan(warps).subspan(first, std::min<std::size_t>(kWarpgroup, warps.size() - first));
}

// All warps of a warpgroup execute the same one, and meet before the next.
bool check_group(Warp& warp, const Op& op, unsigned lane) {
  const absl::Span<Warp> group = warpgroup(warp);
  if (group.size() < kWarpgroup) {
    warp.fault(op, lane,
               str_cat("the last ", group.size(), " warps of the CTA are no warpgroup; it has 4 warps, ",
                       kWarpgroup * kWarpSize, " threads"));
    return false;
  }
  for (const Warp& other : group) {
    if (other.adjustments > warp.adjustments && other.adjusted.instruction != op.instruction) {
      warp.fault(op, lane,
                 str_cat("warp ", other.index, " of the warpgroup has executed another one, at ",
                         place(*warp.cta->launch, other.adjusted.instruction),
                         "; all warps of a warpgroup execute the same setmaxnreg"));
      return false;
    }
    const bool behind = other.adjustments < warp.adjustments;
    if (!behind && (other.adjustments == 0 || other.adjustments > warp.adjustments)) continue;
    if (!behind && (&other == &warp || !warp.cta->launch->options.check_races ||
                    warp.cta->shared.happened(other.adjusted, warp.cluster_thread(lane)))) {
      continue;
    }
    warp.fault(
        op, lane,
        str_cat("follows the one at ", place(*warp.cta->launch, warp.adjusted.instruction),
                " before the warpgroup has met: warp ", other.index,
                behind ? " has not executed that yet" : " and this one have no barrier between the two"));
    return false;
  }
  return true;
}

// Op::immediate: registers of a thread. Op::mode: whether they become more.
void setmaxnreg(Warp& warp, const Op& op, LaneMask mask) {
  const auto lane = static_cast<unsigned>(std::countr_zero(mask));
  if (!whole_warp(warp, op, mask)) return;
  const auto wanted = static_cast<std::uint32_t>(op.immediate);
  if (warp.registers == 0) {
    return warp.fault(
        op, lane,
        "nothing says how many registers a thread begins with, so ptxas ignores this: give .maxnreg, or "
        ".maxntid and .minnctapersm");
  }
  if (op.mode != 0 ? wanted < warp.registers : wanted > warp.registers) {
    return warp.fault(op, lane,
                      str_cat("the thread has ", warp.registers, " registers, which ",
                              op.mode != 0 ? ".inc" : ".dec", " cannot make ", wanted));
  }
  if (!check_group(warp, op, lane)) return;
  Cta& cta = *warp.cta;
  if (op.mode == 0) {
    cta.free_registers += std::uint64_t{warp.registers - wanted} * kWarpSize;
    for (Warp& other : cta.warps) {
      for (Split& s : other.splits) {
        if (s.state == Split::State::kRegisters) s.state = Split::State::kReady;
      }
    }
    ++cta.arrivals;
  } else {
    const std::uint64_t more = std::uint64_t{wanted - warp.registers} * kWarpSize;
    if (more > cta.free_registers) return warp.wait(mask, Split::State::kRegisters);
    cta.free_registers -= more;
  }
  warp.registers = wanted;
  warp.adjusted = warp.access(op, lane, false);
  ++warp.adjustments;
  cta.shared.tick(warp.slot);
}

void decode_setmaxnreg(Decoder& d) {
  const bool more = d.expect_one({"inc", "dec"}, "an action") == 0;
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("setmaxnreg is .sync.aligned");
  d.type(types(Type::kU32));
  d.expect_operands(1);
  if (d.failed()) return;
  const std::uint64_t registers = d.constant(d.operand(0), "a number of registers");
  if (registers < 24 || registers > 256 || registers % 8 != 0) {
    return d.fail(str_cat(registers, " registers; setmaxnreg takes a multiple of 8 from 24 to 256"));
  }
  Op& op = d.emit(&setmaxnreg, {}, {});
  op.immediate = registers;
  op.mode = more;
}

constexpr Mnemonic kMnemonics[] = {{"setmaxnreg", decode_setmaxnreg}};

}  // namespace

void check_warpgroups(Cta& cta) {
  for (Warp& warp : cta.warps) {
    for (const Warp& other : warpgroup(warp)) {
      if (other.adjustments >= warp.adjustments) continue;
      return cta.cluster.fail(warp.adjusted.instruction, warp.cluster_thread(0),
                              str_cat("warp ", other.index,
                                      " of the warpgroup never executes this; all warps of a "
                                      "warpgroup execute the same setmaxnreg"));
    }
  }
}

std::uint32_t first_registers(const EntryInfo& info) {
  constexpr std::uint64_t kUnit = 8, kMost = 256;
  if (info.max_registers != 0)
    return static_cast<std::uint32_t>((info.max_registers + kUnit - 1) / kUnit * kUnit);
  const std::optional<Dim3>& block = info.max_threads ? info.max_threads : info.required_threads;
  if (!block || info.min_ctas_per_sm == 0) return 0;
  const std::uint64_t share = kRegistersPerSm / (block->count() * info.min_ctas_per_sm);
  return static_cast<std::uint32_t>(std::min(kMost, share / kUnit * kUnit));
}

absl::Span<const Mnemonic> register_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
