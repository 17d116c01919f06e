#include "src/runtime/device_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ptxgen::internal {

bool DeviceState::this_thread_records() const {
  if (recordings_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  return std::find(recorders_.begin(), recorders_.end(), std::this_thread::get_id()) != recorders_.end();
}

absl::Status DeviceState::refuse_while_recording(absl::string_view doing) const {
  if (!this_thread_records()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      doing, " is not possible while this thread records a stream: do it before begin_capture()"));
}

void DeviceState::release(std::function<void(Backend&)> end) {
  if (!this_thread_records()) return end(*backend_);
  const std::lock_guard lock(mutex_);
  released_.emplace_back(std::this_thread::get_id(), std::move(end));
}

absl::Status DeviceState::begin_capture(Handle stream) {
  if (absl::Status s = backend_->begin_capture(stream); !s.ok()) return s;
  const std::lock_guard lock(mutex_);
  recorders_.push_back(std::this_thread::get_id());
  ++recordings_;
  return absl::OkStatus();
}

absl::StatusOr<Handle> DeviceState::end_capture(Handle stream) {
  const auto self = std::this_thread::get_id();
  if (!this_thread_records()) {
    return absl::FailedPreconditionError("end_capture(): this thread records no stream");
  }
  absl::StatusOr<Handle> graph = backend_->end_capture(stream);

  std::vector<std::function<void(Backend&)>> due;
  {
    const std::lock_guard lock(mutex_);
    recorders_.erase(std::find(recorders_.begin(), recorders_.end(), self));
    --recordings_;
    if (std::find(recorders_.begin(), recorders_.end(), self) == recorders_.end()) {
      const auto mine = std::stable_partition(released_.begin(), released_.end(),
                                              [&](const auto& entry) { return entry.first != self; });
      for (auto it = mine; it != released_.end(); ++it) due.push_back(std::move(it->second));
      released_.erase(mine, released_.end());
    }
  }
  for (const auto& end : due) end(*backend_);
  return graph;
}

}  // namespace ptxgen::internal
