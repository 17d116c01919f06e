#include "tools/ptxgen/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ptxgen/strings.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

absl::Status failure(std::string_view doing, const std::string& path, int error, std::string_view advice) {
  return absl::FailedPreconditionError(
      str_cat("cannot ", doing, " '", path, "': ", std::strerror(error), "; ", advice));
}

absl::Status cannot_read(const std::string& path, int error) {
  return failure("read", path, error, "name a file that can be read");
}
absl::Status cannot_write(const std::string& path, int error) {
  return failure("write", path, error, "name a file in a folder that exists and can be written");
}

// 0, or what went wrong.
int write_all(int descriptor, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

// Reads until `bytes` are there or the file ends.
absl::StatusOr<std::size_t> read_up_to(int descriptor, const std::string& path, std::byte* data,
                                       std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(descriptor, data + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

absl::Status wrong_size(const std::string& path, std::string_view has, std::uint64_t bytes) {
  return absl::InvalidArgumentError(
      str_cat("'", path, "' has ", has, " bytes; the kernel with these constants takes exactly ", bytes));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Permissions of a new file: what the process's mask leaves of rw-rw-rw-.
mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

absl::Status read_exactly(const std::string& path, std::uint64_t bytes, TakePiece take) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0) return cannot_read(path, errno);
  if (S_ISDIR(info.st_mode)) return cannot_read(path, EISDIR);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (S_ISREG(info.st_mode) && size != bytes) return wrong_size(path, str_cat(size), bytes);

  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, kPieceBytes));
  for (std::uint64_t offset = 0; offset < bytes;) {
    const std::size_t wanted = std::min<std::uint64_t>(bytes - offset, piece.size());
    const absl::StatusOr<std::size_t> got = read_up_to(file.number(), path, piece.data(), wanted);
    if (!got.ok()) return got.status();
    if (*got < wanted) return wrong_size(path, str_cat(offset + *got), bytes);
    if (absl::Status s = take({piece.data(), wanted}, offset); !s.ok()) return s;
    offset += wanted;
  }
  std::byte more;
  const absl::StatusOr<std::size_t> got = read_up_to(file.number(), path, &more, 1);
  if (!got.ok()) return got.status();
  return *got == 0 ? absl::OkStatus() : wrong_size(path, str_cat("more than ", bytes), bytes);
}

absl::StatusOr<std::string> read_text(const std::string& path, std::uint64_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return cannot_read(path, errno);
  std::string text;
  std::vector<std::byte> piece(1 << 16);
  while (true) {
    const absl::StatusOr<std::size_t> got = read_up_to(file.number(), path, piece.data(), piece.size());
    if (!got.ok()) return got.status();
    text.append(reinterpret_cast<const char*>(piece.data()), *got);
    if (text.size() > most) {
      return absl::InvalidArgumentError(
          str_cat("'", path, "' has more than ", most, " bytes; name a smaller file"));
    }
    if (*got < piece.size()) return text;
  }
}

absl::StatusOr<OutputFile> OutputFile::create(const std::string& path) {
  if (path.empty()) return cannot_write(path, ENOENT);
  OutputFile file;
  file.path_ = path;
  struct stat info;
  const bool exists = ::stat(path.c_str(), &info) == 0;
  const int missing = errno;
  struct stat link;
  if (!exists && ::lstat(path.c_str(), &link) == 0) return cannot_write(path, missing);  // a link to nowhere
  if (exists && S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return cannot_write(path, errno);
    return file;
  }
  // A link stays one: the file that it leads to is replaced.
  const std::unique_ptr<char, decltype(&std::free)> resolved(
      exists ? ::realpath(path.c_str(), nullptr) : nullptr, &std::free);
  file.target_ = resolved ? resolved.get() : path;
  std::string temporary = file.target_ + ".XXXXXX";
  file.descriptor_ = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file.descriptor_ < 0) return cannot_write(path, errno);
  file.temporary_ = std::move(temporary);
  (void)::fchmod(file.descriptor_, exists ? info.st_mode & 0777 : default_mode());
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status OutputFile::write(absl::Span<const std::byte> bytes) {
  const int error = write_all(descriptor_, bytes.data(), bytes.size());
  return error == 0 ? absl::OkStatus() : cannot_write(path_, error);
}

absl::Status OutputFile::commit() {
  if (::close(std::exchange(descriptor_, -1)) != 0) return cannot_write(path_, errno);
  if (temporary_.empty()) return absl::OkStatus();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return cannot_write(path_, errno);
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status write_file(const std::string& path, std::string_view text) {
  absl::StatusOr<OutputFile> file = OutputFile::create(path);
  if (!file.ok()) return file.status();
  if (absl::Status s = file->write({reinterpret_cast<const std::byte*>(text.data()), text.size()}); !s.ok())
    return s;
  return file->commit();
}

absl::Status write_stdout(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text.data(), text.size());
  return error == 0 || error == EPIPE ? absl::OkStatus() : cannot_write("/dev/stdout", error);
}

void say(std::string_view message) {
  const std::string line = str_cat("ptxgen: ", printable(message), "\n");
  write_all(STDERR_FILENO, line.data(), line.size());
}

}  // namespace ptxgen::tool
