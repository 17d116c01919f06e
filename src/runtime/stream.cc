#include <utility>

#include "absl/strings/str_cat.h"
#include "ptxgen/device.h"
#include "src/runtime/device_state.h"

namespace ptxgen {
namespace {

using internal::Backend;
using internal::DeviceState;

absl::Status check_same(const DeviceState& stream, const std::shared_ptr<DeviceState>& other,
                        absl::string_view what) {
  if (&stream == other.get()) return absl::OkStatus();
  if (other == nullptr) return absl::InvalidArgumentError(absl::StrCat("the ", what, " is empty"));
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " is on ", other->description(),
                                                 ", the stream on another device: ", stream.description()));
}

}  // namespace

Stream::~Stream() {
  if (!owned_) return;
  state_->release([handle = handle_](Backend& backend) { backend.destroy_stream(handle); });
}

void Stream::swap(Stream& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
  std::swap(owned_, other.owned_);
}

absl::Status Stream::synchronize() const {
  if (absl::Status s = state_->refuse_while_recording("waiting for a stream"); !s.ok()) return s;
  return state_->backend().synchronize(handle_);
}

absl::Status Stream::wait(const Event& event) const {
  if (absl::Status s = check_same(*state_, event.state_, "event"); !s.ok()) return s;
  return state_->backend().wait(handle_, event.handle_);
}

absl::Status Stream::begin_capture() const {
  if (handle_ == nullptr) {
    return absl::InvalidArgumentError(
        "the default stream cannot be recorded: record one made by create_stream()");
  }
  return state_->begin_capture(handle_);
}

absl::StatusOr<Graph> Stream::end_capture() const {
  absl::StatusOr<void*> graph = state_->end_capture(handle_);
  if (!graph.ok()) return graph.status();
  return Graph(state_, *graph);
}

Graph::~Graph() {
  if (handle_ == nullptr) return;
  state_->release([handle = handle_](Backend& backend) { backend.destroy_graph(handle); });
}

void Graph::swap(Graph& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
}

absl::Status Graph::launch(const Stream& stream) const {
  if (absl::Status s = check_same(*stream.state_, state_, "graph"); !s.ok()) return s;
  return state_->backend().launch_graph(handle_, stream.handle_);
}

Event::~Event() {
  if (handle_ == nullptr) return;
  state_->release([handle = handle_](Backend& backend) { backend.destroy_event(handle); });
}

void Event::swap(Event& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(handle_, other.handle_);
}

absl::Status Event::record(const Stream& stream) {
  if (absl::Status s = check_same(*stream.state_, state_, "event"); !s.ok()) return s;
  return state_->backend().record(handle_, stream.handle_);
}

absl::Status Event::synchronize() const {
  if (absl::Status s = state_->refuse_while_recording("waiting for an event"); !s.ok()) return s;
  return state_->backend().synchronize_event(handle_);
}

absl::StatusOr<float> Event::elapsed_ms_since(const Event& start) const {
  if (state_ != start.state_) return absl::InvalidArgumentError("the two events are on different devices");
  return state_->backend().elapsed_ms(start.handle_, handle_);
}

}  // namespace ptxgen
