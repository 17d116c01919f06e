#include <utility>

#include "ptxgen/device.h"
#include "ptxgen/strings.h"
#include "src/runtime/device_state.h"

namespace ptxgen {
namespace {

using internal::Backend;
using internal::DeviceState;

// Runs `copy` on the default stream and waits for it.
template <class Copy>
absl::Status and_wait(DeviceState& state, Copy copy) {
  if (absl::Status s = state.refuse_while_recording("a copy that names no stream"); !s.ok()) return s;
  if (absl::Status s = copy(state.backend(), nullptr); !s.ok()) return s;
  return state.backend().synchronize(nullptr);
}

}  // namespace

Buffer::~Buffer() {
  if (address_ == 0) return;
  state_->release([address = address_](Backend& backend) { backend.free(address); });
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
}

absl::Status Buffer::check_range(std::string_view action, std::uint64_t bytes, std::uint64_t offset) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return absl::OkStatus();
  return absl::OutOfRangeError(
      str_cat(action, " ", bytes, " bytes at offset ", offset, " of a buffer of ", bytes_, " bytes"));
}

absl::Status Buffer::check_stream(const Stream& stream) const {
  if (state_ == nullptr || state_ == stream.state_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      str_cat("the buffer is on ", state_->description(),
              ", the stream on another device: ", stream.state_->description()));
}

absl::Status Buffer::copy_from_host(const void* source, std::uint64_t bytes, std::uint64_t offset) {
  if (absl::Status s = check_range("writing", bytes, offset); !s.ok() || bytes == 0) return s;
  return and_wait(*state_, [&](Backend& backend, void* stream) {
    return backend.copy_in(address_ + offset, source, bytes, stream);
  });
}

absl::Status Buffer::copy_from_host(const void* source, std::uint64_t bytes, std::uint64_t offset,
                                    const Stream& stream) {
  absl::Status s = check_range("writing", bytes, offset);
  s.Update(check_stream(stream));
  if (!s.ok() || bytes == 0) return s;
  return state_->backend().copy_in(address_ + offset, source, bytes, stream.handle_);
}

absl::Status Buffer::copy_to_host(void* target, std::uint64_t bytes, std::uint64_t offset) const {
  if (absl::Status s = check_range("reading", bytes, offset); !s.ok() || bytes == 0) return s;
  return and_wait(*state_, [&](Backend& backend, void* stream) {
    return backend.copy_out(target, address_ + offset, bytes, stream);
  });
}

absl::Status Buffer::copy_to_host(void* target, std::uint64_t bytes, std::uint64_t offset,
                                  const Stream& stream) const {
  absl::Status s = check_range("reading", bytes, offset);
  s.Update(check_stream(stream));
  if (!s.ok() || bytes == 0) return s;
  return state_->backend().copy_out(target, address_ + offset, bytes, stream.handle_);
}

absl::Status Buffer::copy_from(const Buffer& source, std::uint64_t bytes, const Stream& stream) {
  absl::Status s = check_range("writing", bytes, 0);
  s.Update(source.check_range("reading", bytes, 0));
  s.Update(check_stream(stream));
  s.Update(source.check_stream(stream));
  if (!s.ok() || bytes == 0) return s;
  return state_->backend().copy(address_, source.address_, bytes, stream.handle_);
}

absl::Status Buffer::fill(std::uint8_t value) {
  if (bytes_ == 0) return absl::OkStatus();
  return and_wait(
      *state_, [&](Backend& backend, void* stream) { return backend.fill(address_, value, bytes_, stream); });
}

absl::Status Buffer::fill(std::uint8_t value, const Stream& stream) {
  if (absl::Status s = check_stream(stream); !s.ok() || bytes_ == 0) return s;
  return state_->backend().fill(address_, value, bytes_, stream.handle_);
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ == nullptr) return;
  state_->release([data = data_](Backend& backend) { backend.free_pinned(data); });
}

void PinnedBuffer::swap(PinnedBuffer& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace ptxgen
