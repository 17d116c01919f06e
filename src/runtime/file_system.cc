#include "src/runtime/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "ptxgen/strings.h"

namespace ptxgen::internal {
namespace {

template <class Call>
auto without_interruption(Call call) -> decltype(call()) {
  while (true) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

// Holds back the SIGXFSZ that a write beyond RLIMIT_FSIZE raises in the writing thread beside its error.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    ours_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0 &&
            pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  ~NoFileSizeSignal() {
    if (!ours_) return;
    const timespec now = {};
    while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool ours_;
};

int set_lock(int file, std::uint64_t byte, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(byte);
  range.l_len = 1;
  const int result = without_interruption([&] { return ::fcntl(file, F_OFD_SETLK, &range); });
  return result == -EACCES ? -EAGAIN : result;  // fcntl(2): either says that another has it
}

}  // namespace

int FileSystem::open(const std::string& path, int flags, mode_t mode) {
  return without_interruption([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

int FileSystem::close(int file) {
  return ::close(file) == 0 || errno == EINTR ? 0 : -errno;  // Linux has closed it in any case
}

int FileSystem::stat(int file, struct stat* info) {
  return ::fstat(file, info) == 0 ? 0 : -errno;
}

ssize_t FileSystem::read(int file, void* data, std::size_t bytes) {
  return without_interruption([&] { return ::read(file, data, bytes); });
}

ssize_t FileSystem::write(int file, const void* data, std::size_t bytes) {
  const NoFileSizeSignal held_back;
  return without_interruption([&] { return ::write(file, data, bytes); });
}

int FileSystem::sync(int file) {
  return without_interruption([&] { return ::fsync(file); });
}

int FileSystem::rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : -errno;
}

int FileSystem::remove(const std::string& path) {
  return ::unlink(path.c_str()) == 0 ? 0 : -errno;
}

int FileSystem::touch(int file) {
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  return ::futimens(file, times) == 0 ? 0 : -errno;
}

int FileSystem::lock(int file, std::uint64_t byte) {
  return set_lock(file, byte, F_WRLCK);
}

int FileSystem::unlock(int file, std::uint64_t byte) {
  return set_lock(file, byte, F_UNLCK);
}

int FileSystem::list(const std::string& folder, std::vector<std::string>& names) {
  DIR* stream = ::opendir(folder.c_str());
  if (stream == nullptr) return -errno;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(stream);
  return -error;
}

int FileSystem::stat_name(const std::string& path, struct stat* info) {
  return ::lstat(path.c_str(), info) == 0 ? 0 : -errno;
}

FileSystem& FileSystem::real() {
  static FileSystem& instance = *new FileSystem;
  return instance;
}

namespace {

// 0 or -errno. `temporary` is the name of the file where there is one.
int write_beside(FileSystem& files, const std::string& path, std::string_view bytes, mode_t mode,
                 std::string& temporary) {
  static std::atomic<std::uint64_t> serial = 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string name = str_cat(path, ".", ::getpid(), ".", now, ".", serial++, kTemporarySuffix);
  OpenFile file(files, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (file.number() < 0) return file.number();
  temporary = name;
  while (!bytes.empty()) {
    const ssize_t written = files.write(file.number(), bytes.data(), bytes.size());
    if (written < 0) return static_cast<int>(written);
    if (written == 0) return -ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (const int result = files.sync(file.number()); result < 0) return result;
  return file.close();  // NFS and quotas may report here what write() let pass
}

}  // namespace

int replace_file(FileSystem& files, const std::string& path, std::string_view bytes, mode_t mode) {
  std::string temporary;
  int result = write_beside(files, path, bytes, mode, temporary);
  if (result == 0) result = files.rename(temporary, path);
  if (result != 0 && !temporary.empty()) (void)files.remove(temporary);
  return result;
}

}  // namespace ptxgen::internal
