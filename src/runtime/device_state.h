// What the classes of device.h share: the backend, and which threads are recording.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/runtime/backend.h"

namespace ptxgen::internal {

class DeviceState : public std::enable_shared_from_this<DeviceState> {
 public:
  DeviceState(std::unique_ptr<Backend> backend, std::string description, std::string reason)
      : backend_(std::move(backend)), description_(std::move(description)), reason_(std::move(reason)) {}

  Backend& backend() const { return *backend_; }
  const std::string& description() const { return description_; }
  const std::string& reason() const { return reason_; }

  // A call that a driver forbids to a thread that records a stream, and that would end the recording with an
  // error.
  absl::Status refuse_while_recording(absl::string_view doing) const;
  bool this_thread_records() const;

  // Ends an object's life, now or, for a thread that is recording, when its recordings have ended.
  void release(std::function<void(Backend&)> end);

  absl::Status begin_capture(Handle stream);
  absl::StatusOr<Handle> end_capture(Handle stream);

 private:
  const std::unique_ptr<Backend> backend_;
  const std::string description_, reason_;

  std::atomic<int> recordings_ = 0;  // the size of recorders_, so that the usual case takes no lock
  mutable std::mutex mutex_;  // guards the two below; ThreadSanitizer sees through it, unlike an absl::Mutex
  std::vector<std::thread::id> recorders_;  // one entry a recording
  std::vector<std::pair<std::thread::id, std::function<void(Backend&)>>> released_;
};

// A device's state, for what of the runtime is no class of device.h.
struct DeviceAccess {
  static const std::shared_ptr<DeviceState>& state(const Device& device) { return device.state_; }
};

}  // namespace ptxgen::internal
