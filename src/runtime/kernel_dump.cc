#include "src/runtime/kernel_dump.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/sha256.h"

namespace ptxgen::internal {
namespace {

namespace fs = std::filesystem;

absl::Status failed(const char* action, const fs::path& path, const std::string& why) {
  return absl::UnavailableError(str_cat("dumping a kernel: ", action, " ", path.string(), ": ", why));
}

// Writes beside the file and renames, so that a reader sees the whole text or the one before.
absl::Status write_file(const fs::path& path, const std::string& text) {
  static std::atomic<std::uint64_t> serial = 0;
  fs::path temporary = path;
  temporary += str_cat(".", ::getpid(), ".", serial.fetch_add(1), ".tmp");
  std::error_code error;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << text;
    out.close();
    if (!out) {
      fs::remove(temporary, error);
      return failed("writing", path, "the file cannot be created or the disk is full");
    }
  }
  fs::rename(temporary, path, error);
  if (!error) return absl::OkStatus();
  const std::string why = error.message();
  fs::remove(temporary, error);
  return failed("writing", path, why);
}

absl::Status make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? failed("creating the folder", path, error.message()) : absl::OkStatus();
}

}  // namespace

std::string KernelDump::folder_of(const std::string& below, const std::string& name, const std::string& key) {
  // The name is for people, the hash tells keys apart.
  return (fs::path(below) / str_cat(name, "-", sha256_hex(key).substr(0, 16))).string();
}

void KernelDump::write_kernel(const std::string& folder, const std::string& key, const std::string& ptx) {
  const fs::path path = folder;
  note(make_folder(path));
  note(write_file(path / "descriptor.txt", str_cat(key, "\n")));
  note(write_file(path / "kernel.ptx", ptx));
  if (const std::optional<std::string> log = ptxas_log(ptx); log.has_value())
    note(write_file(path / "ptxas.log", *log));
  std::error_code ignored;
  fs::remove(path / "error.txt", ignored);  // of an earlier attempt
}

void KernelDump::write_error(const std::string& folder, const std::string& key, const absl::Status& error) {
  const fs::path path = folder;
  note(make_folder(path));
  note(write_file(path / "descriptor.txt", str_cat(key, "\n")));
  note(write_file(path / "error.txt", str_cat(error.message(), "\n")));
}

void KernelDump::note(const absl::Status& status) {
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  status_ = status;
}

absl::Status KernelDump::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::optional<std::string> KernelDump::ptxas_log(const std::string& ptx) {
  std::optional<Ptxas> ptxas;
  {
    const std::lock_guard lock(mutex_);
    if (!ptxas_.has_value()) ptxas_ = Ptxas::find();
    if (!ptxas_->ok()) {
      // No ptxas is no failure; one that is named and cannot be run is.
      if (!env::text(env::kPtxas).empty()) status_ = ptxas_->status();
      return std::nullopt;
    }
    ptxas = **ptxas_;
  }
  absl::StatusOr<PtxasReport> report = ptxas->assemble(ptx, target_);
  if (report.ok()) return report->log;
  note(report.status());
  return std::nullopt;
}

}  // namespace ptxgen::internal
