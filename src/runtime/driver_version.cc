#include "src/runtime/driver_version.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace ptxgen::internal {
namespace {

struct DriverIsa {
  int since;  // cuDriverGetVersion()
  PtxIsa isa;
};

// PTX ISA, release notes: the ISA that came with each CUDA version.
constexpr std::array<DriverIsa, 12> kDriverIsas = {{
    {11080, {7, 8}},
    {12000, {8, 0}},
    {12010, {8, 1}},
    {12020, {8, 2}},
    {12030, {8, 3}},
    {12040, {8, 4}},
    {12050, {8, 5}},
    {12060, {8, 5}},
    {12070, {8, 6}},
    {12080, {8, 7}},
    {12090, {8, 8}},
    {13000, {9, 0}},
}};
static_assert(kDriverIsas.back().isa == kNewestIsa);

}  // namespace

std::string driver_version_text(int driver_version) {
  return absl::StrCat(driver_version / 1000, ".", driver_version % 1000 / 10);
}

PtxIsa highest_isa(int driver_version) {
  PtxIsa highest = kBaseIsa;
  for (const DriverIsa& row : kDriverIsas) {
    if (driver_version >= row.since) highest = row.isa;
  }
  return highest;
}

std::optional<Target> device_target(int compute_major, int compute_minor, PtxIsa isa) {
  const Target device = {static_cast<std::uint16_t>(compute_major * 10 + compute_minor), true};
  std::optional<Target> newest;
  for (const TargetInfo& row : kTargets) {
    if (device.supports(row.target) && row.since <= isa) newest = row.target;
  }
  return newest;
}

}  // namespace ptxgen::internal
