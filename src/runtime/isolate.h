// A first compile and load in a child process: PTX that crashes the driver's compiler or poisons a context
// costs that process. See docs/cache.md, "Isolation".
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ptxgen/device.h"
#include "ptxgen/kernel_key.h"
#include "ptxgen/kernel_type.h"

namespace ptxgen::internal {

inline constexpr std::chrono::seconds kIsolationLimit{120};  // longer than any compile

// The program to compile with; nothing where this process is to compile. `wanted`, `path`: as
// KernelCacheOptions has them.
absl::StatusOr<std::optional<std::string>> isolation_helper(std::optional<bool> wanted,
                                                            const std::string& path);

// What `helper` makes of the text on the same device, after it has loaded it and found the entry there.
absl::StatusOr<Image> compile_isolated(const std::string& helper, const DeviceProperties& device,
                                       const GeneratedKernel& kernel,
                                       std::chrono::milliseconds limit = kIsolationLimit);

// The other end: what the child writes, an entry (src/runtime/entry.h) or an error.
std::string encode_isolated(const KernelKey& key, const std::string& ptx, const absl::StatusOr<Image>& image);

}  // namespace ptxgen::internal
