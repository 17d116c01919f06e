// Writes what a kernel is made of, for people: one folder a key.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/kernel_type.h"
#include "src/runtime/ptxas.h"

namespace ptxgen::internal {

// Thread-safe. Failures are kept and change nothing else.
class KernelDump {
 public:
  explicit KernelDump(Target target) : target_(target) {}

  // The folder of a key: `name`, the descriptor's, and a hash of the key.
  static std::string folder_of(const std::string& below, const std::string& name, const std::string& key);

  // descriptor.txt, kernel.ptx and ptxas.log of a kernel that is about to be given to the device or has been.
  void write_kernel(const std::string& folder, const std::string& key, const std::string& ptx);
  // descriptor.txt and error.txt of one that could not be compiled.
  void write_error(const std::string& folder, const std::string& key, const absl::Status& error);

  // The last failure.
  absl::Status status() const;

 private:
  void note(const absl::Status& status);
  // ptxas' messages about `ptx`; nothing where there is no ptxas.
  std::optional<std::string> ptxas_log(const std::string& ptx);

  const Target target_;
  mutable std::mutex mutex_;  // guards the two below
  absl::Status status_;
  std::optional<absl::StatusOr<Ptxas>> ptxas_;
};

}  // namespace ptxgen::internal
