// Machine code on disk, so that a kernel is compiled once for all processes.
//
// The folder "cubins" of the cache directory holds one file a kernel, which appears whole (written beside,
// synced and renamed), is verified in full at every read and never written again. Whatever is wrong with a
// file, the folder or the file system costs a compile and nothing else: a bad file is a miss, and a folder
// that cannot be written keeps nothing. Any number of processes, also on several machines that share the
// folder, may use, sweep and clear it at once. docs/cache.md tells the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/cache_directory.h"
#include "ptxgen/export.h"
#include "ptxgen/kernel_key.h"

namespace ptxgen {

namespace internal {
class FileSystem;
}  // namespace internal

struct CubinStoreOptions {
  CacheDirectoryOptions directory = {};
  // What all files together may have; the kernels used least recently go first. 0: nothing is kept. Nothing:
  // PTXGEN_CACHE_MAX_BYTES.
  std::optional<std::uint64_t> max_bytes = {};
  // How long to wait for another process that is compiling the same kernel, before compiling it too. One that
  // has died is not waited for.
  std::chrono::milliseconds lock_wait{5000};
};

class PTXGEN_API CubinStore {
 public:
  explicit CubinStore(const CubinStoreOptions& options = {});
  // With system calls of its own, for tests.
  CubinStore(const CubinStoreOptions& options, internal::FileSystem& files);
  ~CubinStore();
  CubinStore(const CubinStore&) = delete;
  CubinStore& operator=(const CubinStore&) = delete;

  // Whether there is a folder to use; where there is none, nothing is found and nothing kept.
  bool is_open() const;
  // Ok, or why there is no folder, or else why the last kernel that could not be kept was not.
  absl::Status status() const;
  const std::string& directory() const;  // empty where there is none
  std::uint64_t max_bytes() const;

  // The code kept for exactly this key and text; nothing where there is none that is in order.
  std::optional<Image> find(const KernelKey& key, std::string_view ptx) const;
  // Keeps it, and makes room by the way. PTX is refused: to compile it is what keeping saves.
  absl::Status keep(const KernelKey& key, std::string_view ptx, const Image& image);

  // Ends the exclusion at the end of its life.
  class Lock {
   public:
    Lock() = default;
    Lock(Lock&& other) noexcept { swap(other); }
    Lock& operator=(Lock&& other) noexcept {
      Lock(std::move(other)).swap(*this);
      return *this;
    }
    PTXGEN_API ~Lock();
    bool held() const { return file_ >= 0; }

   private:
    friend class CubinStore;
    void swap(Lock& other) noexcept {
      std::swap(files_, other.files_);
      std::swap(file_, other.file_);
      std::swap(byte_, other.byte_);
    }
    internal::FileSystem* files_ = nullptr;
    int file_ = -1;
    std::uint64_t byte_ = 0;
  };
  // Keeps other processes, and other stores of this one, from compiling this kernel meanwhile. Not held where
  // the wait is over or the file system has no locks: the kernel is then compiled twice, which does no harm.
  Lock lock(const KernelKey& key, std::string_view ptx) const;

  struct Entry {
    std::string path;
    std::uint64_t bytes = 0;
    std::chrono::system_clock::time_point last_used;
    absl::StatusOr<StoredKernel> kernel;  // or what is wrong with the file
  };
  // All of them, read and verified, the most recently used first.
  absl::StatusOr<std::vector<Entry>> entries() const;

  struct Swept {
    std::uint64_t removed = 0, removed_bytes = 0;
    std::uint64_t kept = 0, kept_bytes = 0;
  };
  // Removes what writers that died left behind, and the least recently used until `max_bytes` are left at
  // most.
  absl::StatusOr<Swept> sweep(std::uint64_t max_bytes);
  // Removes the file of an entry. That it is gone already is well.
  absl::Status remove(const Entry& entry);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace ptxgen
