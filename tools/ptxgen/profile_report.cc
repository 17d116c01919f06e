#include "tools/ptxgen/profile_report.h"

#include "absl/strings/str_format.h"
#include "ptxgen/strings.h"

namespace ptxgen::tool {
namespace {

using emulator::GlobalAccesses;
using emulator::InstructionProfile;
using emulator::LaunchStats;
using emulator::Profile;
using emulator::SharedAccesses;

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

Cell decimal(double value) {
  return {Json(value), absl::StrFormat("%.2f", value)};
}

// What a request of contiguous, aligned bytes would touch is bytes / 32 sectors.
Cell used(const GlobalAccesses& accesses) {
  const double share = ratio(accesses.bytes, 32 * accesses.sectors);
  return {Json(share), absl::StrFormat("%.0f %%", 100 * share)};
}

Table totals(const LaunchStats& stats) {
  const Profile& p = *stats.profile;
  Table table({{"thread_instructions", "thread instructions"},
               {"warp_instructions", "warp instructions"},
               {"active_lanes", "active lanes of 32"},
               {"executing_lanes", "of those, guard true"},
               {"branches", "branches of warps"},
               {"divergent_branches", "of those, divergent"},
               {"shared_requests", "shared requests"},
               {"shared_wavefronts", "shared wavefronts"},
               {"bank_conflicts", "of those, by bank conflicts"},
               {"global_loads", "global load requests"},
               {"load_sectors", "sectors a load request"},
               {"load_bytes_used", "of the sectors' bytes, loaded"},
               {"global_stores", "global store requests"},
               {"store_sectors", "sectors a store request"},
               {"store_bytes_used", "of the sectors' bytes, stored"}});
  table.add({stats.thread_instructions, stats.warp_instructions,
             decimal(ratio(p.active_lanes, stats.warp_instructions)),
             decimal(ratio(stats.thread_instructions, stats.warp_instructions)), p.branches.executed,
             p.branches.divergent, p.shared.requests, p.shared.wavefronts, p.shared.conflicts,
             p.loads.requests, decimal(p.loads.sectors_per_request()), used(p.loads), p.stores.requests,
             decimal(p.stores.sectors_per_request()), used(p.stores)});
  return table;
}

Table kinds(const Profile& profile) {
  Table table({{"kind", "kind"}, {"thread_instructions", "thread instructions"}});
  for (const auto& [kind, count] : profile.by_kind) table.add({kind, count});
  return table;
}

Table spaces(const Profile& profile) {
  Table table({{"space", "space"}, {"bytes_read", "bytes read"}, {"bytes_written", "bytes written"}});
  for (const auto& [space, bytes] : profile.bytes_by_space) table.add({space, bytes.read, bytes.written});
  return table;
}

// In `costly` only the instructions that could do with less.
Table instructions(const Profile& profile, bool costly) {
  Table table({{"line", "line"},
               {"function", ""},
               {"text", "instruction"},
               {"shared_requests", "shared requests"},
               {"shared_wavefronts", "wavefronts"},
               {"bank_conflicts", "conflicts"},
               {"global_requests", "global requests"},
               {"sectors", "sectors"},
               {"bytes_used", "used"},
               {"branches", "branches"},
               {"divergent_branches", "divergent"}});
  for (const InstructionProfile& i : profile.instructions) {
    const bool scattered = i.global.requests != 0 && 32 * i.global.sectors > i.global.bytes;
    if (costly && i.shared.conflicts == 0 && !scattered && i.branches.divergent == 0) continue;
    table.add({i.line,
               i.function,
               {Json(i.text), printable(i.text)},
               i.shared.requests,
               i.shared.wavefronts,
               i.shared.conflicts,
               i.global.requests,
               i.global.sectors,
               used(i.global),
               i.branches.executed,
               i.branches.divergent});
  }
  return table;
}

}  // namespace

Json profile_json(const LaunchStats& stats) {
  Json json = totals(stats).json().front();
  json["kinds"] = kinds(*stats.profile).json();
  json["spaces"] = spaces(*stats.profile).json();
  json["instructions"] = instructions(*stats.profile, false).json();
  return json;
}

std::string profile_text(const LaunchStats& stats) {
  std::string text = str_cat(totals(stats).text_by_cell(), "\n", kinds(*stats.profile).text());
  if (!stats.profile->bytes_by_space.empty()) str_append(&text, "\n", spaces(*stats.profile).text());
  const Table costly = instructions(*stats.profile, true);
  if (!costly.empty())
    str_append(&text, "\nwith conflicts, unused bytes of sectors, or divergence:\n", costly.text());
  return text;
}

}  // namespace ptxgen::tool
