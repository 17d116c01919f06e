// Options of the commands that time something.
#pragma once

#include <optional>
#include <string>

#include "tools/ptxgen/files.h"
#include "tools/ptxgen/measure.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {

// --calls and --replays
class TimingOptions {
 public:
  TimingOptions(CLI::App& app, u32 replays);

  const RotationOptions& rotation() const { return rotation_; }
  u32 replays() const { return replays_; }
  // For calls that take so long: the number asked for, or else fewer of what would take long.
  u32 calls_for(u32 calls, double microseconds) const;
  u32 replays_for(u32 calls, double microseconds) const;

 private:
  RotationOptions rotation_;
  u32 replays_;
  CLI::Option* replays_option_;
};

// --plot
class PlotOption {
 public:
  explicit PlotOption(CLI::App& app);
  // Before the work, so that a wrong path costs none. Without the option these do nothing.
  absl::Status open();
  absl::Status write(const std::string& svg);

 private:
  std::string path_;
  std::optional<OutputFile> file_;
};

}  // namespace ptxgen::tool
