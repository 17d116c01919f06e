#include "ptxgen/cubin_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>

#include "absl/strings/str_format.h"
#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/entry.h"
#include "src/runtime/file_system.h"
#include "src/runtime/xxh64.h"

namespace ptxgen {

using internal::FileSystem;
using internal::OpenFile;

namespace {

constexpr std::string_view kRoom = "cubins", kSuffix = ".cubin", kLocks = "locks";
constexpr int kAttempts = 3;  // at what a network file system may refuse for a moment
constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;
constexpr auto kWriterIsDead = std::chrono::minutes(10);  // a file is written in milliseconds

bool passes(ssize_t result) {
  return result == -EBUSY || result == -ESTALE;
}

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Names the file and the byte to lock.
std::uint64_t hash_of(std::string_view key, std::string_view ptx) {
  return internal::xxh64(ptx, internal::xxh64(key));
}

std::chrono::system_clock::time_point last_used(const struct stat& info) {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec)));
}

}  // namespace

struct CubinStore::State {
  struct File {
    std::string path;
    std::uint64_t bytes;
    std::chrono::system_clock::time_point last_used;
    bool temporary;
  };

  State(const CubinStoreOptions& o, FileSystem& f) : options(o), files(f) {}

  const CubinStoreOptions options;
  FileSystem& files;
  bool shared = false;
  std::string directory;
  std::uint64_t max_bytes = 0;

  mutable std::mutex mutex;  // guards the rest
  absl::Status status;
  std::optional<std::uint64_t> total;  // of all files when they were last counted
  std::uint64_t added = 0;             // by this store since

  absl::Status open();
  absl::Status note(absl::Status failure) {
    const std::lock_guard lock(mutex);
    status = failure;
    return failure;
  }
  std::string path_of(std::uint64_t hash) const {
    return str_cat(directory, "/", absl::StrFormat("%016x", hash), kSuffix);
  }
  absl::StatusOr<std::string> read(const std::string& path, bool used) const;
  int write(const std::string& path, std::string_view bytes) const;
  absl::StatusOr<std::vector<File>> list() const;
  absl::StatusOr<Swept> sweep(std::uint64_t limit, std::uint64_t target);
  bool is_time_to_sweep(std::uint64_t bytes);
};

absl::Status CubinStore::State::open() {
  absl::StatusOr<std::uint64_t> most =
      options.max_bytes.has_value() ? *options.max_bytes : env::cache_max_bytes();
  if (!most.ok()) return most.status();
  if (*most == 0) {
    return absl::FailedPreconditionError(
        str_cat("kernels are not kept on disk: ", env::kCacheMaxBytes.name, " or the option is 0"));
  }
  max_bytes = *most;
  const absl::StatusOr<bool> trusts =
      options.directory.shared.has_value() ? *options.directory.shared : env::cache_shared();
  if (!trusts.ok()) return trusts.status();
  shared = *trusts;
  absl::StatusOr<std::string> path = cache_directory(kRoom, options.directory);
  if (!path.ok()) return path.status();
  directory = *std::move(path);
  return absl::OkStatus();
}

CubinStore::CubinStore(const CubinStoreOptions& options) : CubinStore(options, FileSystem::real()) {}
CubinStore::CubinStore(const CubinStoreOptions& options, FileSystem& files)
    : state_(std::make_unique<State>(options, files)) {
  state_->status = state_->open();
}
CubinStore::~CubinStore() = default;

bool CubinStore::is_open() const {
  return !state_->directory.empty();
}
absl::Status CubinStore::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}
const std::string& CubinStore::directory() const {
  return state_->directory;
}
std::uint64_t CubinStore::max_bytes() const {
  return state_->max_bytes;
}

// The whole file; `used`: note that it was. kNotFound where there is none.
absl::StatusOr<std::string> CubinStore::State::read(const std::string& path, bool used) const {
  const auto failed = [&](ssize_t result) {
    return absl::ErrnoToStatus(static_cast<int>(-result), str_cat("cannot read '", path, "'"));
  };
  ssize_t result = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) pause();
    // O_NONBLOCK: a FIFO of that name must not keep anybody waiting.
    const OpenFile file(files, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat info = {};
    result = file.number();
    if (result >= 0) result = files.stat(file.number(), &info);
    if (passes(result)) continue;
    if (result < 0) return failed(result);
    const bool foreign = info.st_uid != ::geteuid() || (info.st_mode & 0022) != 0;
    if (!S_ISREG(info.st_mode)) return absl::DataLossError(str_cat("'", path, "' is no file"));
    if (foreign && !shared)
      return absl::PermissionDeniedError(str_cat("'", path, "' can be written by others"));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (size > kMaxEntryBytes) return absl::DataLossError(str_cat("'", path, "' has ", size, " bytes"));

    std::string bytes(size, '\0');
    std::size_t done = 0;
    do {
      result = files.read(file.number(), bytes.data() + done, size - done);
      if (result > 0) done += static_cast<std::size_t>(result);
    } while (result > 0 && done < size);
    if (passes(result)) continue;
    if (result < 0) return failed(result);
    bytes.resize(done);
    if (used) (void)files.touch(file.number());
    return bytes;
  }
  return failed(result);
}

std::optional<Image> CubinStore::find(const KernelKey& key, std::string_view ptx) const {
  if (!is_open()) return std::nullopt;
  const std::string wanted = internal::encode_key(key);
  const absl::StatusOr<std::string> bytes = state_->read(state_->path_of(hash_of(wanted, ptx)), true);
  if (!bytes.ok()) return std::nullopt;
  const absl::StatusOr<internal::EntryView> view = internal::view_entry(*bytes);
  if (!view.ok() || view->key != wanted || view->ptx != ptx || view->kind != ImageKind::kCubin)
    return std::nullopt;
  return internal::image_of(*view);
}

// 0 or -errno.
int CubinStore::State::write(const std::string& path, std::string_view bytes) const {
  int result = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) pause();
    result = internal::replace_file(files, path, bytes, shared ? 0666 : 0600);
    // Somebody may have removed the folder, or a sweeper with another clock the file.
    const bool gone = result == -ENOENT && cache_directory(kRoom, options.directory).ok();
    if (!gone && !passes(result)) break;
  }
  return result;
}

absl::Status CubinStore::keep(const KernelKey& key, std::string_view ptx, const Image& image) {
  if (!is_open()) return absl::OkStatus();
  State& state = *state_;
  if (image.kind != ImageKind::kCubin) {
    return state.note(absl::UnimplementedError(
        str_cat("the code of ", key.descriptor, " is not kept: the driver hands out no cubins")));
  }
  const std::string bytes = internal::encode_entry(key, ptx, image);
  if (bytes.size() > std::min(state.max_bytes, kMaxEntryBytes)) {
    return state.note(absl::ResourceExhaustedError(str_cat(
        "the code of ", key.descriptor, " is not kept: its ", bytes.size(), " bytes are more than the ",
        std::min(state.max_bytes, kMaxEntryBytes), " that are allowed")));
  }
  const std::string path = state.path_of(hash_of(internal::encode_key(key), ptx));
  if (const int result = state.write(path, bytes); result != 0) {
    return state.note(absl::ErrnoToStatus(
        -result, str_cat("the code of ", key.descriptor, " is not kept: cannot write '", path, "'")));
  }
  if (!state.is_time_to_sweep(bytes.size())) return absl::OkStatus();
  return state.sweep(state.max_bytes, state.max_bytes - state.max_bytes / 8).status();
}

// Counting all files at each new one would cost more and more. It is done again when this store has added a
// sixteenth of the room that there was: so many processes may write at once before the cap is overrun for
// long.
bool CubinStore::State::is_time_to_sweep(std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  added += bytes;
  const std::uint64_t room = total.has_value() && *total < max_bytes ? max_bytes - *total : 0;
  return added > room / 16;
}

CubinStore::Lock CubinStore::lock(const KernelKey& key, std::string_view ptx) const {
  Lock lock;
  if (!is_open()) return lock;
  FileSystem& files = state_->files;
  // Any byte beyond the end of a file can be locked; the highest bits would make a negative offset.
  const std::uint64_t byte = hash_of(internal::encode_key(key), ptx) >> 2;
  const int file = files.open(str_cat(state_->directory, "/", kLocks), O_RDWR | O_CREAT | O_NOFOLLOW,
                              state_->shared ? 0666 : 0600);
  if (file < 0) return lock;
  const auto deadline = std::chrono::steady_clock::now() + state_->options.lock_wait;
  auto wait = std::chrono::microseconds(200);
  int result = files.lock(file, byte);
  while (result == -EAGAIN && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(wait);
    wait = std::min(wait * 2, std::chrono::microseconds(5000));
    result = files.lock(file, byte);
  }
  if (result != 0) {
    files.close(file);
    return lock;
  }
  lock.files_ = &files;
  lock.file_ = file;
  lock.byte_ = byte;
  return lock;
}

CubinStore::Lock::~Lock() {
  if (!held()) return;
  (void)files_->unlock(file_, byte_);  // said, since a child that was forked meanwhile has the file open too
  files_->close(file_);
}

// The files that are entries or become some, the least recently used first.
absl::StatusOr<std::vector<CubinStore::State::File>> CubinStore::State::list() const {
  std::vector<std::string> names;
  if (const int result = files.list(directory, names); result < 0)
    return absl::ErrnoToStatus(-result, str_cat("cannot list '", directory, "'"));
  std::vector<File> found;
  for (const std::string_view name : names) {
    const bool temporary = name.ends_with(internal::kTemporarySuffix);
    if (!temporary && !name.ends_with(kSuffix)) continue;
    std::string path = str_cat(directory, "/", name);
    struct stat info = {};
    if (files.stat_name(path, &info) < 0) continue;  // gone meanwhile
    found.push_back({std::move(path), static_cast<std::uint64_t>(info.st_size), last_used(info), temporary});
  }
  std::sort(found.begin(), found.end(),
            [](const File& a, const File& b) { return a.last_used < b.last_used; });
  return found;
}

absl::StatusOr<std::vector<CubinStore::Entry>> CubinStore::entries() const {
  if (!is_open()) return status();
  absl::StatusOr<std::vector<State::File>> files = state_->list();
  if (!files.ok()) return files.status();
  std::vector<Entry> entries;
  for (auto file = files->rbegin(); file != files->rend(); ++file) {
    if (file->temporary) continue;
    const absl::StatusOr<std::string> bytes = state_->read(file->path, false);
    if (absl::IsNotFound(bytes.status())) continue;
    absl::StatusOr<StoredKernel> kernel = bytes.ok() ? internal::decode_entry(*bytes) : bytes.status();
    if (kernel.ok() &&
        file->path != state_->path_of(hash_of(internal::encode_key(kernel->key), kernel->ptx))) {
      kernel = absl::DataLossError("it is another kernel's, which no lookup finds under this name");
    }
    entries.push_back({std::move(file->path), file->bytes, file->last_used, std::move(kernel)});
  }
  return entries;
}

// Where more than `limit` bytes are there, removes until `target` are left.
absl::StatusOr<CubinStore::Swept> CubinStore::State::sweep(std::uint64_t limit, std::uint64_t target) {
  absl::StatusOr<std::vector<File>> found = list();
  if (!found.ok()) return found.status();
  Swept swept;
  for (const File& file : *found) {
    ++swept.kept;
    swept.kept_bytes += file.bytes;
  }
  const auto now = std::chrono::system_clock::now();
  const bool too_much = swept.kept_bytes > limit;
  for (const File& file : *found) {
    const auto age = now - file.last_used;
    const bool abandoned = file.temporary && (age > kWriterIsDead || age < -kWriterIsDead);
    const bool evicted = !file.temporary && too_much && swept.kept_bytes > target;
    if (!abandoned && !evicted) continue;
    const int result = files.remove(file.path);  // whoever has it open reads on
    if (result != 0 && result != -ENOENT) continue;
    swept.removed += result == 0;
    swept.removed_bytes += result == 0 ? file.bytes : 0;
    swept.kept_bytes -= file.bytes;
    --swept.kept;
  }
  const std::lock_guard lock(mutex);
  total = swept.kept_bytes;
  added = 0;
  return swept;
}

absl::StatusOr<CubinStore::Swept> CubinStore::sweep(std::uint64_t max_bytes) {
  if (!is_open()) return status();
  return state_->sweep(max_bytes, max_bytes);
}

absl::Status CubinStore::remove(const Entry& entry) {
  const int result = state_->files.remove(entry.path);
  if (result == 0 || result == -ENOENT) return absl::OkStatus();
  return absl::ErrnoToStatus(-result, str_cat("cannot remove '", entry.path, "'"));
}

}  // namespace ptxgen
