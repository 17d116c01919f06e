#include "ptxgen/cache_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "ptxgen/environment.h"
#include "ptxgen/strings.h"

namespace ptxgen {
namespace {

constexpr mode_t kPrivate = 0700, kOthersWrite = 0022;

std::string remedy() {
  return str_cat("; name a folder of your own in ", env::kCacheDir.name);
}

absl::StatusOr<std::string> chosen_path(const CacheDirectoryOptions& options) {
  std::string path = options.path.empty() ? env::text(env::kCacheDir) : options.path;
  if (path.empty()) {
    const auto variable = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value != nullptr && value[0] == '/' ? value : "");
    };
    std::string base = variable("XDG_CACHE_HOME");
    if (base.empty() && !variable("HOME").empty()) base = str_cat(variable("HOME"), "/.cache");
    if (base.empty()) {
      return absl::NotFoundError(str_cat(
          "there is no cache directory: neither XDG_CACHE_HOME nor HOME is an absolute path", remedy()));
    }
    path = str_cat(base, "/ptxgen");
  }
  if (path[0] != '/') {
    std::error_code error;
    const std::filesystem::path here = std::filesystem::current_path(error);
    if (error) {
      return absl::NotFoundError(
          str_cat("the cache directory '", path,
                  "' is relative to a working directory that is gone: ", error.message(), remedy()));
    }
    path = str_cat(here.string(), "/", path);
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // lstat() follows "link/"
  return path;
}

// Makes the folder and those above it. That it is there already, or appears meanwhile, is well.
int make_folders(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return 0;
  const std::size_t slash = path.rfind('/');
  if (errno != ENOENT || slash == 0 || slash == path.npos) return errno;
  if (const int error = make_folders(path.substr(0, slash), mode); error != 0) return error;
  return ::mkdir(path.c_str(), mode) == 0 || errno == EEXIST ? 0 : errno;
}

absl::Status not_private(const std::string& path, absl::string_view why) {
  return absl::PermissionDeniedError(str_cat("the cache directory '", path, "' is not used because it ", why,
                                             remedy(), ", or set ", env::kCacheShared.name,
                                             "=1 to trust whoever can write there"));
}

absl::Status make_and_check(const std::string& path, bool shared) {
  if (const int error = make_folders(path, shared ? 0777 : kPrivate); error != 0)
    return absl::ErrnoToStatus(error, str_cat("cannot make the cache directory '", path, "'", remedy()));
  struct stat info;
  if ((shared ? ::stat(path.c_str(), &info) : ::lstat(path.c_str(), &info)) != 0)
    return absl::ErrnoToStatus(errno, str_cat("cannot use the cache directory '", path, "'", remedy()));
  if (S_ISLNK(info.st_mode)) return not_private(path, "is a symbolic link");
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        str_cat("the cache directory '", path, "' is not used because it is no folder", remedy()));
  }
  if (shared) return absl::OkStatus();
  if (info.st_uid != ::geteuid()) return not_private(path, str_cat("belongs to user ", info.st_uid));
  if ((info.st_mode & kOthersWrite) != 0) {
    return not_private(path, str_cat("can be written by others (mode ", absl::Hex((info.st_mode >> 6) & 7),
                                     absl::Hex((info.st_mode >> 3) & 7), absl::Hex(info.st_mode & 7), ")"));
  }
  return absl::OkStatus();
}

bool is_room(std::string_view room) {
  return std::all_of(room.begin(), room.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

absl::StatusOr<std::string> cache_directory(std::string_view room, const CacheDirectoryOptions& options) {
  if (!is_room(room)) {
    return absl::InvalidArgumentError(
        str_cat("'", room, "' names no folder of the cache directory: use a-z, 0-9, '_' and '-'"));
  }
  const absl::StatusOr<bool> shared = options.shared.has_value() ? *options.shared : env::cache_shared();
  if (!shared.ok()) return shared.status();
  absl::StatusOr<std::string> path = chosen_path(options);
  if (!path.ok()) return path.status();
  if (absl::Status s = make_and_check(*path, *shared); !s.ok()) return s;
  if (room.empty()) return path;
  std::string inner = str_cat(*path, "/", room);
  if (absl::Status s = make_and_check(inner, *shared); !s.ok()) return s;
  return inner;
}

}  // namespace ptxgen
