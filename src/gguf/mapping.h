// A file mapped into memory.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ptxgen::gguf {

// Owns a read-only mapping of a whole regular file.
class Mapping {
 public:
  // `subject` begins the messages: "gguf".
  static absl::StatusOr<Mapping> open(const std::string& path, const char* subject);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  absl::Span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit Mapping(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  absl::Span<const std::byte> bytes_;
};

}  // namespace ptxgen::gguf
