// Reads the fields of a GGUF file one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ptxgen::gguf {

// What an error calls a field: "key", "dimension 2".
struct Field {
  Field(const char* field_name) : name(field_name) {}
  Field(const char* field_name, std::uint32_t field_index) : name(field_name), index(field_index) {}

  std::string_view name;
  std::optional<std::uint32_t> index;
};

// The first field that the bytes cannot satisfy, or that the caller refuses, fails the cursor for good: from
// then on every read returns zero or nothing and only the first error is kept. So a reader checks ok() where
// it loops or before it uses what it read, not after each field.
class Cursor {
 public:
  explicit Cursor(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }
  // The bytes from `start` to the position.
  absl::Span<const std::byte> since(std::uint64_t start) const;

  // All integers are little-endian.
  std::uint32_t u32(Field field) { return static_cast<std::uint32_t>(integer(field, 4)); }
  std::uint64_t u64(Field field) { return integer(field, 8); }
  absl::Span<const std::byte> take(Field field, std::uint64_t size);
  // A 64-bit length and that many characters.
  std::string_view string(Field field);

  // What the fields read from here on belong to, as errors say it: "tensor 3 'output.weight'".
  void enter(std::string_view kind, std::uint64_t index, std::string_view name = {});
  void leave() { kind_ = {}; }

  // "gguf: <subject>: <field> at byte <position> <problem>".
  void fail(Field field, std::uint64_t position, std::string_view problem,
            absl::StatusCode code = absl::StatusCode::kInvalidArgument);

 private:
  std::uint64_t integer(Field field, std::size_t size);

  absl::Span<const std::byte> bytes_;
  std::size_t position_ = 0;
  absl::Status status_;
  std::string_view kind_;
  std::uint64_t index_ = 0;
  std::string_view name_;
};

// The unsigned little-endian integer that `bytes`, at most 8 of them, are.
std::uint64_t little_endian(absl::Span<const std::byte> bytes);

}  // namespace ptxgen::gguf
