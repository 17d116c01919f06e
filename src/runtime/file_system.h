// The system calls by which the cache directory is used, one a function, so that a test can stand between and
// do what network file systems do.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::internal {

// Each returns what the call of its name does, or -errno. EINTR is seen by nobody.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, int flags, mode_t mode);
  virtual int close(int file);
  virtual int stat(int file, struct stat* info);
  virtual ssize_t read(int file, void* data, std::size_t bytes);
  // A limit on the size of files (RLIMIT_FSIZE) is an error like any other here, and no signal.
  virtual ssize_t write(int file, const void* data, std::size_t bytes);
  virtual int sync(int file);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);
  // Sets the time of last modification to now.
  virtual int touch(int file);
  // Locks one byte of the file for this open file (F_OFD_SETLK), without waiting: -EAGAIN while another has
  // it. Ends with unlock(), or when the last process with this open file is gone.
  virtual int lock(int file, std::uint64_t byte);
  virtual int unlock(int file, std::uint64_t byte);
  // Names in a folder, without "." and "..".
  virtual int list(const std::string& folder, std::vector<std::string>& names);
  // Of what is called so, links not followed.
  virtual int stat_name(const std::string& path, struct stat* info);

  static FileSystem& real();
};

// Closes a file at the end of the scope.
class OpenFile {
 public:
  OpenFile(FileSystem& files, const std::string& path, int flags, mode_t mode = 0)
      : files_(files), number_(files.open(path, flags, mode)) {}
  ~OpenFile() {
    if (number_ >= 0) files_.close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int number() const { return number_; }  // or -errno
  // Closes it now.
  int close() {
    const int result = files_.close(number_);
    number_ = -1;
    return result;
  }

 private:
  FileSystem& files_;
  int number_;
};

// Writes a file beside `path` and renames it once its bytes are on the disk: whoever opens `path` finds all
// of them, or what was there before. 0 or -errno. A process that dies meanwhile leaves a file with the
// suffix.
inline constexpr std::string_view kTemporarySuffix = ".tmp";
int replace_file(FileSystem& files, const std::string& path, std::string_view bytes, mode_t mode);

}  // namespace ptxgen::internal
