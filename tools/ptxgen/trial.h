// A kernel's first CTAs on the emulator, for what they execute.
#pragma once

#include "absl/status/statusor.h"
#include "ptxgen/codegen.h"
#include "ptxgen/emulator.h"
#include "ptxgen/kernel_type.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {

class Trial {
 public:
  // Buffers have their whole size, and those that are read are filled with zeros; where that takes too much of the host, or the
  // kernel does not come to its end, the trial says why there are no figures.
  static Trial run(const Descriptor& descriptor, ArgValues values, const GeneratedKernel& kernel);

  Json json() const;
  std::string text() const;

 private:
  std::uint64_t ctas_ = 0, of_ = 0;
  absl::StatusOr<emulator::LaunchStats> stats_ = absl::UnknownError("");
};

}  // namespace ptxgen::tool
