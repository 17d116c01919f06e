#include "tests/support/files.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace ptxgen::testing {

namespace fs = std::filesystem;

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) return std::nullopt;
  return text;
}

bool write_file(const fs::path& path, std::string_view content) {
  static std::atomic<std::uint64_t> serial = 0;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = absl::StrCat(path.string(), ".", ::getpid(), ".", serial++);
  std::ofstream out(temporary, std::ios::binary);
  out << content;
  out.close();
  if (out) fs::rename(temporary, path, error);
  if (out && !error) return true;
  fs::remove(temporary, error);
  return false;
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (fs::temp_directory_path() / "ptxgen-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::generic_category(), pattern);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace ptxgen::testing
