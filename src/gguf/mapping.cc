#include "src/gguf/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

namespace ptxgen::gguf {
namespace {

absl::Status system_error(const char* subject, int error, const std::string& path, const char* action) {
  return absl::ErrnoToStatus(error, absl::StrFormat("%s: cannot %s '%s'", subject, action, path));
}

absl::StatusOr<absl::Span<const std::byte>> map(int descriptor, const std::string& path,
                                               const char* subject) {
  struct stat file;
  if (::fstat(descriptor, &file) != 0) return system_error(subject, errno, path, "inspect");
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: '%s' is no regular file", subject, path));
  }
  if (file.st_size == 0) return absl::Span<const std::byte>();  // mmap refuses a length of 0
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (size > std::numeric_limits<std::size_t>::max()) return system_error(subject, EFBIG, path, "map");
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return system_error(subject, errno, path, "map");
  return absl::Span<const std::byte>(static_cast<const std::byte*>(address), size);
}

}  // namespace

absl::StatusOr<Mapping> Mapping::open(const std::string& path, const char* subject) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error(subject, errno, path, "open");
  const auto bytes = map(descriptor, path, subject);
  ::close(descriptor);  // the mapping stays
  if (!bytes.ok()) return bytes.status();
  return Mapping(*bytes);
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace ptxgen::gguf
