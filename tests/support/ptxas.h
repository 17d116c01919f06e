// The assembler as the suite uses it: PTX in, verdict out. A verdict is remembered by content, so an
// unchanged kernel is assembled once a machine; and a machine without ptxas gives failures, never skips.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/target.h"
#include "src/runtime/ptxas.h"

namespace ptxgen::testing {

struct PtxasJob {
  std::string ptx;
  Target target;
};

// A ptxas and the folder where its verdicts are kept: one file each, named by the SHA-256 of ptxas version,
// flags, target and text. A file that does not carry its own checksum is a miss. Thread-safe, and safe
// between processes.
class PtxasHarness {
 public:
  PtxasHarness(absl::StatusOr<Ptxas> ptxas, std::filesystem::path verdicts)
      : ptxas_(std::move(ptxas)), verdicts_(std::move(verdicts)) {}

  // Without a ptxas, ok is false and log says what to do.
  PtxasReport assemble(std::string_view ptx, Target target);

  // The same for each job, in the order of the jobs, on all processors.
  std::vector<PtxasReport> assemble_all(std::span<const PtxasJob> jobs);

  std::uint64_t hits() const { return hits_; }  // verdicts that came from the folder
  std::uint64_t runs() const { return runs_; }  // times that ptxas ran

 private:
  absl::StatusOr<Ptxas> ptxas_;
  std::filesystem::path verdicts_;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> runs_ = 0;
};

// The harness of this process: the ptxas that Ptxas::find() finds, verdicts in ~/.cache/ptxgen/ptxas-verdicts
// (XDG_CACHE_HOME is respected).
PtxasHarness& ptxas();

inline PtxasReport assemble(std::string_view ptx, Target target) {
  return ptxas().assemble(ptx, target);
}
inline std::vector<PtxasReport> assemble_all(std::span<const PtxasJob> jobs) {
  return ptxas().assemble_all(jobs);
}

}  // namespace ptxgen::testing
