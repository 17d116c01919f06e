#include "src/runtime/weight_copies.h"

#include <algorithm>

#include "ptxgen/strings.h"

namespace ptxgen::internal {

absl::Status WeightCopy::read_by(const Stream& stream, bool recording) {
  const std::lock_guard lock(mutex_);
  if (recording) {
    recorded_ = true;
    return absl::OkStatus();
  }
  auto reader = std::find_if(readers_.begin(), readers_.end(),
                             [&](const auto& r) { return r.first == stream.native(); });
  if (reader == readers_.end()) {
    absl::StatusOr<Event> event = stream.device().create_event();
    if (!event.ok()) return event.status();
    reader = readers_.emplace(readers_.end(), stream.native(), *std::move(event));
  }
  return reader->second.record(stream);
}

WeightCopy::~WeightCopy() {
  for (const auto& reader : readers_) (void)reader.second.synchronize();
}

WeightCopies::Entry& WeightCopies::entry(const WeightMatrix& weights) {
  Entry& entry = entries_[weights.identity().get()];
  entry.handle = weights.identity();
  return entry;
}

WeightCopyPtr WeightCopies::find_locked(const WeightMatrix& weights, ElementType type) {
  const auto found = entries_.find(weights.identity().get());
  if (found == entries_.end()) return nullptr;
  const WeightCopyPtr& copy = found->second.copies[index(type)];
  if (copy != nullptr) copy->last_use_ = ++uses_;
  return copy;
}

WeightCopyPtr WeightCopies::find(const WeightMatrix& weights, ElementType type) {
  const std::lock_guard lock(mutex_);
  return find_locked(weights, type);
}

WeightCopyPtr WeightCopies::take_eldest() {
  WeightCopyPtr* eldest = nullptr;
  const auto rank = [](const Entry& entry, const WeightCopyPtr& copy) {
    return entry.handle.expired() ? 0 : copy->last_use_ + 1;
  };
  u64 least = 0;
  for (auto& [handle, entry] : entries_) {
    for (WeightCopyPtr& copy : entry.copies) {
      if (copy == nullptr || copy.use_count() > 1) continue;  // a call holds it
      const u64 its = rank(entry, copy);
      const std::lock_guard lock(copy->mutex_);
      if (copy->recorded_ || (eldest != nullptr && its >= least)) continue;
      eldest = &copy, least = its;
    }
  }
  if (eldest == nullptr) return nullptr;
  bytes_ -= (*eldest)->memory().bytes();
  return std::exchange(*eldest, nullptr);
}

absl::StatusOr<std::vector<WeightCopyPtr>> WeightCopies::make_room(u64 bytes) {
  std::vector<WeightCopyPtr> ended;
  const auto refuse = [&](std::string_view why) {
    return absl::ResourceExhaustedError(str_cat("a copy of ", bytes, " bytes ", why, " the budget of ",
                                                max_bytes_, " bytes (ExecutorOptions::copies_max_bytes)"));
  };
  if (bytes > max_bytes_) return refuse("is more than");
  // The others go with their handles' matrices.
  absl::erase_if(entries_, [&](const auto& item) {
    const Entry& entry = item.second;
    return entry.handle.expired() && entry.copies[0] == nullptr && entry.copies[1] == nullptr;
  });
  while (bytes > max_bytes_ - bytes_) {
    WeightCopyPtr eldest = take_eldest();
    if (eldest == nullptr) return refuse("has no room beside those in use within");
    ended.push_back(std::move(eldest));
  }
  bytes_ += bytes;
  return ended;
}

absl::StatusOr<WeightCopyPtr> WeightCopies::find_or_make(
    const WeightMatrix& weights, ElementType type, u64 bytes,
    const std::function<absl::Status(const Buffer&)>& fill) {
  const std::lock_guard making(making_);
  {
    std::unique_lock lock(mutex_);
    if (WeightCopyPtr found = find_locked(weights, type)) return found;
    const absl::StatusOr<std::vector<WeightCopyPtr>> ended = make_room(bytes);
    lock.unlock();  // the copies end without it
    if (!ended.ok()) return ended.status();
  }
  absl::StatusOr<Buffer> memory = device_.allocate(bytes, "weight copy");
  absl::Status status = memory.status();
  if (status.ok()) status = fill(*memory);
  const std::lock_guard lock(mutex_);
  if (!status.ok()) {
    bytes_ -= bytes;
    return status;
  }
  WeightCopyPtr& copy = entry(weights).copies[index(type)];
  copy = std::make_shared<WeightCopy>(*std::move(memory));
  copy->last_use_ = ++uses_;
  return copy;
}

void WeightCopies::release(const WeightMatrix& weights) {
  std::vector<WeightCopyPtr> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(weights.identity().get());
    if (found == entries_.end()) return;
    for (WeightCopyPtr& copy : found->second.copies) {
      if (copy == nullptr) continue;
      bytes_ -= copy->memory().bytes();
      ended.push_back(std::move(copy));
    }
    entries_.erase(found);
  }
}

u64 WeightCopies::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::optional<f32> WeightCopies::largest(const WeightMatrix& weights) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(weights.identity().get());
  return found == entries_.end() ? std::nullopt : found->second.largest;
}

void WeightCopies::set_largest(const WeightMatrix& weights, f32 value) {
  const std::lock_guard lock(mutex_);
  entry(weights).largest = value;
}

}  // namespace ptxgen::internal
