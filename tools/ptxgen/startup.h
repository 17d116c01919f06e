// ptxgen bench --startup: how long an engine waits for its kernels.
#pragma once

#include "absl/status/statusor.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {

class StartupOptions {
 public:
  explicit StartupOptions(CLI::App& app);
  bool wanted() const { return wanted_; }
  u32 threads() const { return threads_; }
  // What is given without --startup, and means nothing then.
  absl::Status check() const;

 private:
  bool wanted_ = false;
  u32 threads_ = 16;
  CLI::Option* threads_option_;
};

// Compiles 32 kernels of the library into folders of their own, one after the other and at once, and loads
// them from there as a second start does. The driver's own cache of compiled PTX is switched off for this
// process. Of the options of `app` it takes its own, --device and --json.
absl::StatusOr<Outcome> measure_startup(const StartupOptions& options, const CLI::App& app,
                                        const DeviceOption& device, bool json);

}  // namespace ptxgen::tool
