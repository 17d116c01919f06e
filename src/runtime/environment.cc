#include "ptxgen/environment.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "ptxgen/strings.h"

namespace ptxgen::env {
namespace {

constexpr std::uint32_t kMaxEmulatorThreads = 1024;

absl::Status refuse(const EnvironmentVariable& variable, const std::string& value) {
  return absl::InvalidArgumentError(str_cat(variable.name, "=", value, ": allowed is ", variable.values,
                                            "; unset it for ", variable.default_value));
}

absl::StatusOr<bool> flag(const EnvironmentVariable& variable) {
  const std::string value = text(variable);
  if (value == "1") return true;
  if (value.empty() || value == "0") return false;
  return refuse(variable, value);
}

}  // namespace

std::string text(const EnvironmentVariable& variable) {
  const char* value = std::getenv(std::string(variable.name).c_str());
  return value == nullptr ? "" : value;
}

std::string libcuda() {
  std::string path = text(kLibcuda);
  return path.empty() ? std::string(kLibcuda.default_value) : path;
}

absl::StatusOr<std::uint32_t> emulator_threads() {
  const std::string value = text(kEmulatorThreads);
  if (value.empty()) return std::clamp(std::thread::hardware_concurrency(), 1u, kMaxEmulatorThreads);
  std::uint32_t threads = 0;
  if (!absl::SimpleAtoi(value, &threads) || threads == 0 || threads > kMaxEmulatorThreads) {
    return refuse(kEmulatorThreads, value);
  }
  return threads;
}

absl::StatusOr<Target> emulator_target() {
  const std::string value = text(kEmulatorTarget);
  absl::StatusOr<Target> target =
      Target::parse(value.empty() ? kEmulatorTarget.default_value : std::string_view(value));
  if (!target.ok()) {
    return absl::InvalidArgumentError(str_cat(kEmulatorTarget.name, ": ", target.status().message()));
  }
  return target;
}

absl::StatusOr<bool> cache_shared() {
  return flag(kCacheShared);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const unsigned shift = unit == kUnits.npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  if (shift != 0) text.remove_suffix(1);
  std::uint64_t number = 0;
  if (text.find_first_not_of("0123456789") != text.npos ||
      !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number) ||
      number << shift >> shift != number) {
    return std::nullopt;
  }
  return number << shift;
}

absl::StatusOr<std::uint64_t> cache_max_bytes() {
  const std::string value = text(kCacheMaxBytes);
  const std::optional<std::uint64_t> bytes =
      parse_bytes(value.empty() ? kCacheMaxBytes.default_value : std::string_view(value));
  if (!bytes.has_value()) return refuse(kCacheMaxBytes, value);
  return *bytes;
}

absl::StatusOr<std::optional<std::uint64_t>> copies_max_bytes() {
  const std::string value = text(kCopiesMaxBytes);
  const std::optional<std::uint64_t> bytes = parse_bytes(value);
  if (!value.empty() && !bytes.has_value()) return refuse(kCopiesMaxBytes, value);
  return value.empty() ? std::nullopt : bytes;
}

}  // namespace ptxgen::env
