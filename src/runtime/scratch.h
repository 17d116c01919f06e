// Device memory that an executor's products write to on their way.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/device.h"

namespace ptxgen::internal {

// A stream's memory. Its products use it one after the other, as the stream orders them; who adds some to the
// stream holds `mutex`, so that two threads' do not mix.
struct ScratchBlock {
  explicit ScratchBlock(Event event) : used(std::move(event)) {}

  std::optional<void*> stream;         // nothing: of none yet. The pool's mutex guards it
  std::atomic<bool> recorded = false;  // graphs use it
  std::mutex mutex;                    // guards the rest
  Buffer memory;
  Event used;                    // after the last product that was not recorded
  std::vector<Buffer> outgrown;  // by products, and graphs still use it
};

// The block of one call, held until its work has been added to the stream.
class Scratch {
 public:
  Scratch(std::shared_ptr<ScratchBlock> block, bool recording)
      : block_(std::move(block)), lock_(block_->mutex), recording_(recording) {}

  std::uint64_t address() const { return block_->memory.address(); }
  // What the call had to add has been added.
  absl::Status done(const Stream& stream);

 private:
  friend class ScratchPool;
  std::shared_ptr<ScratchBlock> block_;
  std::unique_lock<std::mutex> lock_;
  bool recording_;
};

// One block a stream, which grows to what its largest product takes. Of streams that nothing was recorded
// from, at most kMostBlocks have one: a further stream takes over the one that was taken over or made first,
// and waits for its work. A block that graphs use stays its stream's as long as the pool is: graphs recorded
// from one stream share it, so they run one after the other.
class ScratchPool {
 public:
  static constexpr std::size_t kMostBlocks = 4;

  explicit ScratchPool(const Device& device) : device_(device) {}
  ~ScratchPool();

  // At least `bytes` for this stream. A recording thread gets what is there, or else kFailedPrecondition.
  absl::StatusOr<Scratch> take(const Stream& stream, std::uint64_t bytes);
  // All blocks, and one for the next stream that has none, get as many bytes at least.
  absl::Status prepare(std::uint64_t bytes);

 private:
  using BlockPtr = std::shared_ptr<ScratchBlock>;
  absl::StatusOr<BlockPtr> block_for(void* stream, std::uint64_t bytes, bool recording);
  BlockPtr found(void* stream, std::uint64_t bytes, bool recording);
  absl::StatusOr<BlockPtr> make();
  absl::Status grow(ScratchBlock& block, std::uint64_t bytes) const;

  const Device device_;
  std::mutex mutex_;  // guards blocks_ and whose they are
  std::vector<BlockPtr> blocks_;
};

}  // namespace ptxgen::internal
