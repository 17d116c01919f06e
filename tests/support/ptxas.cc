#include "tests/support/ptxas.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "src/runtime/sha256.h"
#include "tests/support/files.h"

namespace ptxgen::testing {
namespace {

namespace fs = std::filesystem;

// Changes when what is kept of a log does (src/runtime/ptxas.cc, stable_log), so that older verdicts are
// misses.
constexpr const char* kFormat = "1\n";
constexpr const char* kAccepted = "accepted\n";
constexpr const char* kRefused = "refused\n";

// A verdict file is "<SHA-256 of the rest>\n<key>\naccepted\n<log>" or "...refused\n<log>"; the entries are
// read from the log again.
std::string print_verdict(const std::string& key, const PtxasReport& report) {
  const std::string body = key + "\n" + (report.ok ? kAccepted : kRefused) + report.log;
  return sha256_hex(body) + "\n" + body;
}

std::optional<PtxasReport> parse_verdict(const std::string& key, const std::optional<std::string>& file) {
  if (!file.has_value()) return std::nullopt;
  for (const bool ok : {true, false}) {
    const std::string head = key + "\n" + (ok ? kAccepted : kRefused);
    const std::size_t body = file->find('\n') + 1;
    if (file->compare(body, head.size(), head) != 0) continue;
    if (sha256_hex(file->substr(body)) + "\n" != file->substr(0, body)) continue;
    PtxasReport report;
    report.ok = ok;
    report.log = file->substr(body + head.size());
    if (ok) report.entries = parse_ptxas_log(report.log);
    return report;
  }
  return std::nullopt;
}

PtxasReport refused(const absl::Status& status) {
  PtxasReport report;
  report.log = std::string(status.message());
  return report;
}

fs::path default_verdicts() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path root = cache != nullptr && *cache != '\0' ? fs::path(cache)
                        : home != nullptr                  ? fs::path(home) / ".cache"
                                                           : fs::temp_directory_path();
  return root / "ptxgen" / "ptxas-verdicts";
}

}  // namespace

PtxasReport PtxasHarness::assemble(std::string_view ptx, Target target) {
  if (!ptxas_.ok()) return refused(ptxas_.status());
  const std::string key = sha256_hex(ptxas_->version() + "\n" + Ptxas::kFlags + "\n" + target.to_string() +
                                     "\n" + std::string(ptx));
  const fs::path file = verdicts_ / key;
  if (std::optional<PtxasReport> known = parse_verdict(key, read_file(file))) {
    ++hits_;
    return *std::move(known);
  }
  ++runs_;
  absl::StatusOr<PtxasReport> report = ptxas_->assemble(ptx, target);
  if (!report.ok()) return refused(report.status());
  write_file(file, print_verdict(key, *report));  // a folder that cannot be written costs a run the next time
  return *std::move(report);
}

std::vector<PtxasReport> PtxasHarness::assemble_all(std::span<const PtxasJob> jobs) {
  std::vector<PtxasReport> reports(jobs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      reports[i] = assemble(jobs[i].ptx, jobs[i].target);
    }
  };
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 1u);
  std::vector<std::thread> helpers(std::min(processors, std::max<std::size_t>(jobs.size(), 1)) - 1);
  for (std::thread& helper : helpers) helper = std::thread(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return reports;
}

PtxasHarness& ptxas() {
  static PtxasHarness harness(Ptxas::find(), default_verdicts());
  return harness;
}

}  // namespace ptxgen::testing
