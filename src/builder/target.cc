#include "ptxgen/target.h"

#include "ptxgen/strings.h"

namespace ptxgen {

std::string PtxIsa::to_string() const {
  return str_cat(major, ".", minor);
}

std::string Target::to_string() const {
  return str_cat("sm_", sm, arch_specific ? "a" : "");
}

absl::StatusOr<Target> Target::parse(std::string_view text) {
  for (const TargetInfo& info : kTargets) {
    if (info.target.to_string() == text) return info.target;
  }
  std::string message = str_cat("target '", text, "' is not known; choose one of ");
  for (const TargetInfo& info : kTargets) {
    str_append(&message, &info == kTargets.data() ? "" : ", ", info.target.to_string());
  }
  return absl::InvalidArgumentError(message);
}

const TargetLimits& limits(Target target) {
  for (const TargetInfo& info : kTargets) {
    if (info.target.sm == target.sm) return info.limits;
  }
  return kTargets.front().limits;
}

PtxIsa first_isa(Target target) {
  for (const TargetInfo& info : kTargets) {
    if (info.target == target) return info.since;
  }
  return {};
}

}  // namespace ptxgen
