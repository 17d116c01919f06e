#include "ptxgen/cubin_store.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "ptxgen/environment.h"
#include "src/runtime/entry.h"
#include "src/runtime/file_system.h"
#include "src/runtime/xxh64.h"
#include "tests/runtime/stored.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::has;
using testing::keep;
using testing::ok;
using testing::stored_kernel;
using testing::take;

CubinStoreOptions in(const fs::path& folder, std::optional<std::uint64_t> max_bytes = 1 << 20) {
  return {.directory = {.path = folder.string(), .shared = false}, .max_bytes = max_bytes};
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  return files;
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : files_in(folder, ".cubin")) bytes += fs::file_size(file);
  return bytes;
}

void set_age(const fs::path& path, std::chrono::minutes age) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - age);
}

// Runs `work` in a child, as another user where this one may become that; what it returns is the exit status.
int in_child(const std::function<int()>& work, bool unprivileged = false) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (unprivileged && ::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(99);
    ::_exit(work());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("XXH64 has the values of its specification", "[runtime][store]") {
  CHECK(internal::xxh64("") == 0xEF46DB3751D8E999);
  CHECK(internal::xxh64("a") == 0xD24EC4F1A98C6E5B);
  CHECK(internal::xxh64("abc") == 0x44BC2CF5AD770999);
  CHECK(internal::xxh64("Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1);
}

TEST_CASE("what one store keeps, another finds", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  const StoredKernel kernel = stored_kernel(1);
  {
    CubinStore store(in(scratch.path()));
    ok(store.status());
    CHECK_FALSE(has(store, kernel));
    ok(keep(store, kernel));
    CHECK(has(store, kernel));
  }
  CubinStore store(in(scratch.path()));
  CHECK(has(store, kernel));
  CHECK_FALSE(has(store, stored_kernel(2)));

  const std::vector<CubinStore::Entry> entries = take(store.entries());
  REQUIRE(entries.size() == 1);
  CHECK(take(entries[0].kernel).key == kernel.key);
  CHECK(take(entries[0].kernel).ptx == kernel.ptx);
  CHECK(entries[0].bytes == fs::file_size(entries[0].path));
  struct stat info = {};
  REQUIRE(::stat(entries[0].path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(files_in(store.directory(), ".tmp").empty());
  CHECK(absl::IsUnimplemented(store.keep(kernel.key, kernel.ptx, {ImageKind::kPtx, kernel.ptx, ""})));
}

TEST_CASE("each field of the key and the text alone make a miss", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path()));
  const StoredKernel kernel = stored_kernel(1);
  ok(keep(store, kernel));
  for (const KernelKey::Field& field : KernelKey::kFields) {
    INFO(field.name);
    KernelKey other = kernel.key;
    other.*field.member += "x";
    CHECK_FALSE(store.find(other, kernel.ptx).has_value());
    other.*field.member = "";
    CHECK_FALSE(store.find(other, kernel.ptx).has_value());
  }
  CHECK_FALSE(store.find(kernel.key, kernel.ptx + " ").has_value());
  CHECK_FALSE(store.find(kernel.key, "").has_value());
  CHECK(has(store, kernel));
}

TEST_CASE("a key survives every byte in it", "[runtime][store]") {
  KernelKey key = stored_kernel(1).key;
  for (int c = 1; c < 256; ++c) key.descriptor += static_cast<char>(c);
  key.target = "a\nb: c";
  CHECK(take(internal::decode_key(internal::encode_key(key))) == key);
  CHECK_FALSE(internal::decode_key("descriptor: x\n").ok());
  CHECK_FALSE(internal::decode_key(internal::encode_key(key) + "more: y\n").ok());
}

TEST_CASE("an entry that was cut, changed or lengthened is a miss, and mended", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path()));
  const StoredKernel kernel = stored_kernel(1, 200);
  ok(keep(store, kernel));
  const fs::path path = take(store.entries()).at(0).path;
  const std::string good = testing::read_file(path).value();
  const auto misses = [&](const std::string& content) {
    REQUIRE(testing::write_file(path, content));
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    const bool miss = !store.find(kernel.key, kernel.ptx).has_value();
    return miss && !take(store.entries()).at(0).kernel.ok();
  };
  for (std::size_t eighth = 0; eighth < 8; ++eighth) CHECK(misses(good.substr(0, good.size() * eighth / 8)));
  CHECK(misses(good + '\0'));
  CHECK(misses(good + good));
  for (std::size_t at = 0; at < good.size(); ++at) {  // head, key, log, text and code
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    INFO(at);
    REQUIRE(misses(bad));
  }
  ok(keep(store, kernel));
  CHECK(testing::read_file(path) == good);
  CHECK(has(store, kernel));
}

TEST_CASE("another kernel's entry under the right name is a miss", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path()));
  const StoredKernel kernel = stored_kernel(1), other = stored_kernel(2);
  ok(keep(store, kernel));
  const fs::path path = take(store.entries()).at(0).path;
  for (const auto& [key, ptx] : {std::pair(other.key, other.ptx), std::pair(kernel.key, other.ptx),
                                 std::pair(other.key, kernel.ptx)}) {
    REQUIRE(testing::write_file(path, internal::encode_entry(key, ptx, other.image)));
    CHECK_FALSE(store.find(kernel.key, kernel.ptx).has_value());
    CHECK(contains(take(store.entries()).at(0).kernel.status().message(), "another kernel's"));
  }
  const Image text = {ImageKind::kPtx, kernel.ptx, ""};
  REQUIRE(testing::write_file(path, internal::encode_entry(kernel.key, kernel.ptx, text)));
  CHECK_FALSE(store.find(kernel.key, kernel.ptx).has_value());
  ok(keep(store, kernel));
  CHECK(has(store, kernel));
}

TEST_CASE("what stands in a file's place costs the keeping and nothing else", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path()));
  const StoredKernel kernel = stored_kernel(1);
  ok(keep(store, kernel));
  const fs::path path = take(store.entries()).at(0).path;
  const fs::path elsewhere = scratch.path() / "elsewhere";
  fs::rename(path, elsewhere);
  fs::create_directory(path);
  CHECK_FALSE(has(store, kernel));
  const absl::Status kept = keep(store, kernel);
  CHECK(contains(kept.message(), "the code of scale n=1 is not kept"));
  CHECK(store.status() == kept);
  CHECK(files_in(store.directory(), ".tmp").empty());
  CHECK_FALSE(take(store.entries()).at(0).kernel.ok());
  fs::remove(path);

  fs::create_symlink(elsewhere, path);  // a link is not followed, and is replaced
  CHECK_FALSE(has(store, kernel));
  ok(keep(store, kernel));
  CHECK(fs::is_regular_file(fs::symlink_status(path)));
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);  // nobody waits for its writer
  CHECK_FALSE(has(store, kernel));
  ok(keep(store, kernel));

  REQUIRE(::chmod(path.c_str(), 0602) == 0);
  CHECK_FALSE(has(store, kernel));
  CHECK(contains(take(store.entries()).at(0).kernel.status().message(), "can be written by others"));
}

TEST_CASE("a folder that vanishes is made again", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path() / "cache"));
  ok(keep(store, stored_kernel(1)));
  fs::remove_all(scratch.path() / "cache");
  CHECK_FALSE(has(store, stored_kernel(1)));
  ok(keep(store, stored_kernel(1)));
  CHECK(has(store, stored_kernel(1)));
}

TEST_CASE("where there is no folder nothing is kept and nothing breaks", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  REQUIRE(testing::write_file(scratch.path() / "file", "in the way"));
  const testing::ScopedVariable no_home("HOME", nullptr), no_xdg("XDG_CACHE_HOME", nullptr),
      no_name(env::kCacheDir.name, nullptr);
  for (const CubinStoreOptions& options :
       {in(scratch.path() / "file"), in(scratch.path(), 0), in(""), in("/proc/no/such")}) {
    CubinStore store(options);
    CHECK_FALSE(store.is_open());
    CHECK_FALSE(store.status().ok());
    ok(keep(store, stored_kernel(1)));
    CHECK_FALSE(has(store, stored_kernel(1)));
    CHECK_FALSE(store.lock(stored_kernel(1).key, "").held());
    CHECK(store.entries().status() == store.status());
    CHECK(store.sweep(0).status() == store.status());
  }
  for (const char* bad : {"-1", "18446744073709551616", "20000000000G", "many", "1T", "M", "1.5M"}) {
    const testing::ScopedVariable variable(env::kCacheMaxBytes.name, bad);
    CubinStore store(in(scratch.path(), std::nullopt));
    INFO(bad);
    CHECK_FALSE(store.is_open());
    CHECK(contains(store.status().message(), std::string("PTXGEN_CACHE_MAX_BYTES=") + bad));
  }
  const testing::ScopedVariable variable(env::kCacheMaxBytes.name, "3M");
  CHECK(CubinStore(in(scratch.path(), std::nullopt)).max_bytes() == 3u << 20);
}

TEST_CASE("a read-only folder is read", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  REQUIRE(::chmod(scratch.path().c_str(), 0777) == 0);  // another user is to make a folder in it
  const fs::path cache = scratch.path() / "cache";
  const int status = in_child(
      [&] {
        CubinStore store(in(cache));
        if (!keep(store, stored_kernel(1)).ok()) return 1;
        const std::string cubins = store.directory();
        if (::chmod(cubins.c_str(), 0555) != 0) return 2;
        CubinStore again(in(cache));
        if (!has(again, stored_kernel(1))) return 3;
        if (!absl::IsPermissionDenied(keep(again, stored_kernel(2)))) return 4;
        if (!absl::IsPermissionDenied(again.status()) || has(again, stored_kernel(2))) return 5;
        if (::chmod(cubins.c_str(), 0300) != 0) return 6;  // cannot be listed
        if (again.entries().ok() || again.sweep(0).ok() || !has(again, stored_kernel(1))) return 7;
        if (::chmod((cubins + "/locks").c_str(), 0) != 0 && errno != ENOENT) return 8;
        if (::chmod(cubins.c_str(), 0000) != 0) return 9;  // cannot be read at all
        if (has(again, stored_kernel(1)) || keep(again, stored_kernel(1)).ok()) return 10;
        return ::chmod(cubins.c_str(), 0700) == 0 && has(again, stored_kernel(1)) ? 0 : 11;
      },
      true);
  CHECK(status == 0);
}

TEST_CASE("a full disk keeps what it has", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  if (::geteuid() != 0 || ::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0)
    return;  // RLIMIT_FSIZE below is the same for everybody else
  {
    CubinStore store(in(scratch.path()));
    ok(keep(store, stored_kernel(1)));
    const absl::Status full = keep(store, stored_kernel(2, 100000));
    CHECK(absl::IsResourceExhausted(full));
    CHECK(store.status() == full);
    CHECK(files_in(store.directory(), ".tmp").empty());
    CHECK(has(store, stored_kernel(1)));
    CHECK_FALSE(has(store, stored_kernel(2, 100000)));
    ok(keep(store, stored_kernel(3)));
  }
  CHECK(::umount2(scratch.path().c_str(), MNT_DETACH) == 0);
}

TEST_CASE("a limit on file sizes is an error and no signal", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CHECK(in_child([&] {
          CubinStore store(in(scratch.path()));
          const rlimit limit = {8192, 8192};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
          if (keep(store, stored_kernel(1, 20000)).ok()) return 2;
          if (!files_in(store.directory(), ".tmp").empty()) return 3;
          return keep(store, stored_kernel(2)).ok() && has(store, stored_kernel(2)) ? 0 : 4;
        }) == 0);
}

TEST_CASE("the least recently used are evicted, and no reader is broken", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path(), 64 << 10));
  for (std::uint64_t i = 0; i < 10; ++i) {
    ok(keep(store, stored_kernel(i)));
    for (const CubinStore::Entry& entry : take(store.entries())) {
      if (take(entry.kernel).key == stored_kernel(i).key) set_age(entry.path, std::chrono::minutes(1000 - i));
    }
  }
  CHECK(has(store, stored_kernel(0)));  // used now
  const std::string oldest = take(store.entries()).back().path;
  const int reader = ::open(oldest.c_str(), O_RDONLY);
  REQUIRE(reader >= 0);
  const std::string before = testing::read_file(oldest).value();
  const CubinStore::Swept swept = take(store.sweep(22000));
  CHECK(swept.removed == 5);
  CHECK(swept.kept == 5);
  CHECK(swept.kept_bytes <= 22000);
  CHECK(swept.kept_bytes == bytes_in(store.directory()));
  CHECK(has(store, stored_kernel(0)));
  for (std::uint64_t i = 1; i <= 5; ++i) CHECK_FALSE(has(store, stored_kernel(i)));
  for (std::uint64_t i = 6; i < 10; ++i) CHECK(has(store, stored_kernel(i)));
  std::string read(before.size(), '\0');
  CHECK(::read(reader, read.data(), read.size()) == static_cast<ssize_t>(read.size()));
  CHECK(read == before);
  ::close(reader);

  CHECK(take(store.sweep(22000)).removed == 0);
  CHECK(take(store.sweep(0)).kept == 0);
}

TEST_CASE("the cap holds while kernels are kept, read and swept at once", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  constexpr std::uint64_t kCap = 1 << 20;
  std::atomic<int> wrong = 0, hits = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      CubinStore store(in(scratch.path(), kCap));
      for (std::uint64_t i = 0; i < 100; ++i) {
        const StoredKernel kernel = stored_kernel(i % 60, 20000 + i % 60 * 500);
        if (t == 3) {
          wrong += !store.sweep(kCap).ok();
        } else if (const auto image = store.find(kernel.key, kernel.ptx); image.has_value()) {
          ++hits;
          wrong += image->bytes != kernel.image.bytes;
        } else {
          wrong += !keep(store, kernel).ok();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(hits > 0);
  CubinStore store(in(scratch.path(), kCap));
  CHECK(take(store.sweep(kCap)).kept_bytes <= kCap);
  CHECK(bytes_in(store.directory()) <= kCap);
  CHECK(bytes_in(store.directory()) > kCap / 4);
  for (const CubinStore::Entry& entry : take(store.entries())) CHECK(entry.kernel.ok());
}

TEST_CASE("what is larger than the cap is not kept", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path(), 3000));
  CHECK(contains(keep(store, stored_kernel(1)).message(), "more than the 3000 that are allowed"));
  ok(keep(store, stored_kernel(2, 1000)));
}

TEST_CASE("what dead writers left is removed when it is old", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path()));
  ok(keep(store, stored_kernel(1)));
  const fs::path folder = store.directory();
  for (const char* name : {"a.cubin.1.1.1.tmp", "b.cubin.1.1.1.tmp", "c.cubin.1.1.1.tmp"})
    REQUIRE(testing::write_file(folder / name, "half"));
  REQUIRE(testing::write_file(folder / "README", "not ours"));
  set_age(folder / "a.cubin.1.1.1.tmp", std::chrono::minutes(11));
  set_age(folder / "c.cubin.1.1.1.tmp", std::chrono::minutes(-11));
  set_age(folder / "README", std::chrono::minutes(100000));
  CHECK(take(store.sweep(1 << 20)).removed == 2);
  CHECK(fs::exists(folder / "b.cubin.1.1.1.tmp"));
  CHECK(fs::exists(folder / "README"));
  CHECK(has(store, stored_kernel(1)));
}

TEST_CASE("times decide about eviction alone", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStore store(in(scratch.path()));
  ok(keep(store, stored_kernel(1)));
  for (const int minutes : {-100000, 1000000}) {
    set_age(take(store.entries()).at(0).path, std::chrono::minutes(minutes));
    const testing::ScopedVariable path("PATH", "/nowhere"), home("HOME", "/nowhere");
    CHECK(has(store, stored_kernel(1)));
  }
}

TEST_CASE("a kernel's lock keeps others out, for so long", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  CubinStoreOptions options = in(scratch.path());
  options.lock_wait = std::chrono::milliseconds(30);
  const CubinStore first(options), second(options);
  const StoredKernel kernel = stored_kernel(1), other = stored_kernel(2);
  std::optional<CubinStore::Lock> lock = first.lock(kernel.key, kernel.ptx);
  CHECK(lock->held());
  CHECK_FALSE(second.lock(kernel.key, kernel.ptx).held());
  CHECK_FALSE(first.lock(kernel.key, kernel.ptx).held());
  CHECK(second.lock(other.key, other.ptx).held());
  // A child that is forked meanwhile keeps the file open, and the lock for no longer than this process does.
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  lock.reset();
  CHECK(second.lock(kernel.key, kernel.ptx).held());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);

  // One who dies with the lock leaves it.
  CHECK(in_child([&]() -> int {
          const CubinStore theirs(options);
          const CubinStore::Lock held = theirs.lock(kernel.key, kernel.ptx);
          ::_exit(held.held() ? 0 : 1);  // without giving it back
          return 1;
        }) == 0);
  CHECK(second.lock(kernel.key, kernel.ptx).held());
}

namespace {

// Fails the calls of one function `times` times.
class Unreliable final : public internal::FileSystem {
 public:
  std::string function;
  int error = 0, times = 0;
  int calls = 0;

  int open(const std::string& path, int flags, mode_t mode) override {
    const int failure = fails((flags & O_CREAT) != 0 ? "create" : "open");
    return failure != 0 ? failure : FileSystem::open(path, flags, mode);
  }
  int close(int file) override {
    const int result = FileSystem::close(file), failure = fails("close");
    return failure != 0 ? failure : result;
  }
  int stat(int file, struct stat* info) override {
    const int failure = fails("stat");
    return failure != 0 ? failure : FileSystem::stat(file, info);
  }
  ssize_t read(int file, void* data, std::size_t bytes) override {
    const int failure = fails("read");
    return failure != 0 ? failure : FileSystem::read(file, data, std::min<std::size_t>(bytes, 100));
  }
  ssize_t write(int file, const void* data, std::size_t bytes) override {
    const int failure = fails("write");
    return failure != 0 ? failure : FileSystem::write(file, data, std::min<std::size_t>(bytes, 100));
  }
  int sync(int file) override {
    const int failure = fails("sync");
    return failure != 0 ? failure : FileSystem::sync(file);
  }
  int rename(const std::string& from, const std::string& to) override {
    const int failure = fails("rename");
    return failure != 0 ? failure : FileSystem::rename(from, to);
  }
  int lock(int file, std::uint64_t byte) override {
    const int failure = fails("lock");
    return failure != 0 ? failure : FileSystem::lock(file, byte);
  }
  int touch(int file) override {
    const int failure = fails("touch");
    return failure != 0 ? failure : FileSystem::touch(file);
  }
  int list(const std::string& folder, std::vector<std::string>& names) override {
    const int failure = fails("list");
    return failure != 0 ? failure : FileSystem::list(folder, names);
  }

 private:
  int fails(const std::string& name) {
    if (name != function || times == 0) return 0;
    --times;
    ++calls;
    return -error;
  }
};

}  // namespace

TEST_CASE("a network file system's moods are survived", "[runtime][store]") {
  for (const int error : {EBUSY, ESTALE}) {
    for (const char* function : {"open", "stat", "read", "create", "write", "sync", "close", "rename"}) {
      INFO(function << " " << error);
      const testing::ScratchFolder scratch;
      Unreliable files;
      CubinStore store(in(scratch.path()), files);
      const bool reads = std::string("open stat read").find(function) != std::string::npos;
      const StoredKernel kernel = stored_kernel(1);
      if (reads) ok(keep(store, kernel));
      files.function = function;
      files.error = error;
      files.times = 2;  // passes
      if (!reads) ok(keep(store, kernel));
      CHECK(has(store, kernel));
      CHECK(files.calls == 2);
      files.times = 1000;  // stays
      if (reads) {
        CHECK_FALSE(store.find(kernel.key, kernel.ptx).has_value());
      } else {
        CHECK_FALSE(keep(store, stored_kernel(2)).ok());
        CHECK_FALSE(store.status().ok());
      }
      files.times = 0;
      CHECK(has(store, kernel));
      CHECK_FALSE(has(store, stored_kernel(2)));
      CHECK(files_in(store.directory(), ".tmp").empty());
    }
  }
}

TEST_CASE("errors of the disk cost the keeping and nothing else", "[runtime][store]") {
  for (const int error : {ENOSPC, EIO, EDQUOT, EROFS, ENOENT}) {
    for (const char* function : {"create", "write", "sync", "close", "rename"}) {
      INFO(function << " " << error);
      const testing::ScratchFolder scratch;
      Unreliable files;
      CubinStore store(in(scratch.path()), files);
      files.function = function;
      files.error = error;
      files.times = 1000;
      CHECK_FALSE(keep(store, stored_kernel(1)).ok());
      CHECK_FALSE(has(store, stored_kernel(1)));
      CHECK(files_in(store.directory(), ".tmp").empty());
      files.times = 0;
      ok(keep(store, stored_kernel(1)));
      CHECK(has(store, stored_kernel(1)));
    }
  }
}

TEST_CASE("without locks, times and lists a store still keeps and finds", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  Unreliable files;
  CubinStore store(in(scratch.path()), files);
  files.times = 1000;
  for (const auto& [function, error] :
       {std::pair("lock", ENOLCK), std::pair("lock", EINVAL), std::pair("touch", EROFS)}) {
    files.function = function;
    files.error = error;
    if (function == std::string("lock")) CHECK_FALSE(store.lock(stored_kernel(1).key, "").held());
    ok(keep(store, stored_kernel(1)));
    CHECK(has(store, stored_kernel(1)));
  }
  files.function = "list";
  files.error = EIO;
  CHECK_FALSE(store.entries().ok());
  CHECK_FALSE(store.sweep(0).ok());
  CHECK(has(store, stored_kernel(1)));
}

}  // namespace ptxgen
