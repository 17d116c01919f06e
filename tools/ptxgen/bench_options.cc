#include "tools/ptxgen/bench_options.h"

#include <algorithm>

namespace ptxgen::tool {
namespace {

// What makes a graph, and all its replays, long enough for a median: more of slow calls tells nothing new.
constexpr double kGraphMicroseconds = 5e4, kReplayMicroseconds = 1e6;
constexpr u32 kFewestCalls = 4, kFewestReplays = 3;

u32 as_many(u32 most, u32 fewest, double microseconds, double total) {
  if (most * microseconds <= total) return most;
  return std::clamp(static_cast<u32>(total / microseconds), std::min(fewest, most), most);
}

}  // namespace

TimingOptions::TimingOptions(CLI::App& app, u32 replays) : replays_(replays) {
  app.add_option("--calls", rotation_.calls,
                 "calls in one CUDA graph, each on buffers of its own; default: as many as make 1 to 3 GB")
      ->transform(whole_number(1, 10000))
      ->type_name("NUMBER");
  replays_option_ =
      app.add_option("--replays", replays_, str_cat("timed replays of the graph; default ", replays))
          ->transform(whole_number(1, 10000))
          ->type_name("NUMBER");
}

u32 TimingOptions::calls_for(u32 calls, double microseconds) const {
  if (rotation_.calls != 0) return calls;
  return as_many(calls, kFewestCalls, microseconds, kGraphMicroseconds);
}

u32 TimingOptions::replays_for(u32 calls, double microseconds) const {
  if (replays_option_->count() > 0) return replays_;
  return as_many(replays_, kFewestReplays, calls * microseconds, kReplayMicroseconds);
}

PlotOption::PlotOption(CLI::App& app) {
  app.add_option("--plot", path_, "write a plot of the results as SVG")->type_name("FILE");
}

absl::Status PlotOption::open() {
  if (path_.empty()) return absl::OkStatus();
  absl::StatusOr<OutputFile> file = OutputFile::create(path_);
  if (file.ok()) file_.emplace(*std::move(file));
  return file.status();
}

absl::Status PlotOption::write(const std::string& svg) {
  if (!file_) return absl::OkStatus();
  const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(svg.data()), svg.size());
  if (absl::Status s = file_->write(bytes); !s.ok()) return s;
  return file_->commit();
}

}  // namespace ptxgen::tool
