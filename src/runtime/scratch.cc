#include "src/runtime/scratch.h"

#include <algorithm>
#include <utility>

#include "ptxgen/strings.h"
#include "src/runtime/device_state.h"

namespace ptxgen::internal {

absl::Status Scratch::done(const Stream& stream) {
  return recording_ ? absl::OkStatus() : block_->used.record(stream);
}

ScratchPool::~ScratchPool() {
  for (const BlockPtr& block : blocks_) (void)block->used.synchronize();
}

absl::StatusOr<ScratchPool::BlockPtr> ScratchPool::make() {
  absl::StatusOr<Event> event = device_.create_event();
  if (!event.ok()) return event.status();
  blocks_.push_back(std::make_shared<ScratchBlock>(*std::move(event)));
  return blocks_.back();
}

// The stream's own block, else one of no stream, else the one that is taken over.
ScratchPool::BlockPtr ScratchPool::found(void* stream, std::uint64_t bytes, bool recording) {
  BlockPtr free;
  std::size_t passing = 0, eldest = blocks_.size();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    ScratchBlock& block = *blocks_[i];
    if (block.stream == stream) return blocks_[i];
    if (block.stream) {
      if (!block.recorded && passing++ == 0) eldest = i;
      continue;
    }
    const std::lock_guard lock(block.mutex);
    if (!recording || block.memory.bytes() >= bytes) free = blocks_[i];
  }
  if (free != nullptr || recording || passing < kMostBlocks) return free;
  const auto taken = blocks_.begin() + static_cast<std::ptrdiff_t>(eldest);
  std::rotate(taken, taken + 1, blocks_.end());
  return blocks_.back();
}

absl::StatusOr<ScratchPool::BlockPtr> ScratchPool::block_for(void* stream, std::uint64_t bytes,
                                                             bool recording) {
  const std::lock_guard lock(mutex_);
  BlockPtr block = found(stream, bytes, recording);
  if (block == nullptr) {
    if (recording) return absl::FailedPreconditionError("no memory is ready");
    absl::StatusOr<BlockPtr> made = make();
    if (!made.ok()) return made;
    block = *std::move(made);
  }
  block->stream = stream;
  if (recording) block->recorded = true;
  return block;
}

absl::Status ScratchPool::grow(ScratchBlock& block, std::uint64_t bytes) const {
  if (block.recorded) {
    block.outgrown.push_back(std::move(block.memory));
  } else if (block.memory.bytes() > 0) {
    if (absl::Status s = block.used.synchronize(); !s.ok()) return s;
  }
  block.memory = Buffer();
  absl::StatusOr<Buffer> memory = device_.allocate(bytes, "scratch");
  if (!memory.ok()) return memory.status();
  block.memory = *std::move(memory);
  return absl::OkStatus();
}

absl::StatusOr<Scratch> ScratchPool::take(const Stream& stream, std::uint64_t bytes) {
  const bool recording = DeviceAccess::state(device_)->this_thread_records();
  const auto unprepared = [&] {
    return absl::FailedPreconditionError(str_cat(
        "the product takes ", bytes,
        " bytes of scratch memory, and no block of that size is free for the "
        "stream that is recorded: prepare the product, once for each stream, with Executor::prepare()"));
  };
  absl::StatusOr<BlockPtr> block = block_for(stream.native(), bytes, recording);
  if (!block.ok()) return recording ? unprepared() : block.status();
  Scratch scratch(*std::move(block), recording);
  ScratchBlock& held = *scratch.block_;
  if (held.memory.bytes() < bytes) {
    if (recording) return unprepared();
    if (absl::Status s = grow(held, bytes); !s.ok()) return s;
  }
  if (recording) return scratch;
  if (absl::Status s = stream.wait(held.used); !s.ok()) return s;
  return scratch;
}

absl::Status ScratchPool::prepare(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (std::all_of(blocks_.begin(), blocks_.end(), [](const BlockPtr& b) { return b->stream.has_value(); })) {
    if (const absl::StatusOr<BlockPtr> made = make(); !made.ok()) return made.status();
  }
  for (const BlockPtr& block : blocks_) {
    const std::lock_guard block_lock(block->mutex);
    if (block->memory.bytes() >= bytes) continue;
    if (absl::Status s = grow(*block, bytes); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace ptxgen::internal
