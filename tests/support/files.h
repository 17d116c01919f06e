// Files that tests read and write.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace ptxgen::testing {

// The content of `path`; nothing when it cannot be read.
std::optional<std::string> read_file(const std::filesystem::path& path);

// Writes `content` to `path`, creating its folder, by a temporary file and a rename; false when that fails.
bool write_file(const std::filesystem::path& path, std::string_view content);

// A new empty folder, removed with everything in it at the end of the scope.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ptxgen::testing
