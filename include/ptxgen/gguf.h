// Reads GGUF files (version 2 and 3, little-endian) and trusts nothing in them. The format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
// Every count, length, offset and alignment is checked against the bytes that are really there before it is
// used, in 64-bit arithmetic that cannot wrap; what a file makes the reader allocate is bounded by a small
// multiple of the file's size. Errors name the field, its byte offset and what is allowed:
//   gguf: tensor 3 'blk.0.attn_q.weight': dimension 2 at byte 1234 is 0, but a tensor has at least one value
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/export.h"
#include "ptxgen/format.h"

namespace ptxgen::gguf {

// enum gguf_type of ggml/include/gguf.h, as the file stores it.
enum class ValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

class Array;

// One metadata value: a view of its encoding in the file, decoded when asked for. An accessor returns nothing
// when the value is of another type.
class PTXGEN_API Value {
 public:
  // `encoding` is one whole value of `type`, as GGUF stores it.
  Value(ValueType type, absl::Span<const std::byte> encoding) : type_(type), encoding_(encoding) {}

  ValueType type() const { return type_; }

  // An integer of any width and signedness, if the result's type can hold it.
  std::optional<std::uint64_t> as_unsigned() const;
  std::optional<std::int64_t> as_signed() const;
  // f32 or f64.
  std::optional<double> as_float() const;
  std::optional<bool> as_bool() const;
  // The characters as they stand in the file, in UTF-8 if its writer kept to the specification.
  std::optional<std::string_view> as_string() const;
  // The elements of an array; none when the value is no array.
  Array elements() const;

 private:
  ValueType type_;
  absl::Span<const std::byte> encoding_;
};

// The elements of an array value, in order: `for (const Value value : array)`. Arrays nest at most kMaxDepth
// deep.
class PTXGEN_API Array {
 public:
  static constexpr int kMaxDepth = 4;

  class PTXGEN_API Iterator {
   public:
    using value_type = Value;
    using difference_type = std::ptrdiff_t;

    Iterator(ValueType type, std::uint64_t count, absl::Span<const std::byte> encodings);
    Value operator*() const { return Value(type_, encodings_.first(current_)); }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return count_ == 0; }

   private:
    void measure();

    ValueType type_;
    std::uint64_t count_;                    // elements left
    absl::Span<const std::byte> encodings_;  // of the elements left
    std::size_t current_ = 0;                // size of the first one's encoding
  };

  Array(ValueType element_type, std::uint64_t size, absl::Span<const std::byte> encodings)
      : element_type_(element_type), size_(size), encodings_(encodings) {}

  ValueType element_type() const { return element_type_; }
  std::uint64_t size() const { return size_; }
  Iterator begin() const { return Iterator(element_type_, size_, encodings_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  ValueType element_type_;
  std::uint64_t size_;
  absl::Span<const std::byte> encodings_;
};

struct Entry {
  std::string_view key;
  Value value;
};

struct Tensor {
  std::string_view name;
  std::uint32_t ggml_type;            // enum ggml_type of ggml/include/ggml.h
  std::string_view type_name;         // as ggml prints it ("q4_K"); empty when the type is unknown
  std::uint32_t n_dims;               // 1..4
  std::array<std::uint64_t, 4> dims;  // in elements, dims[0] contiguous; 1 beyond n_dims, never 0
  std::uint64_t offset;               // of the data, in bytes from the start of the file
  absl::Span<const std::byte> data;   // all of it, row after row; empty when the type is unknown

  // The row length and the number of rows of the matrix that ggml multiplies with. No product of dims wraps.
  std::uint64_t k() const { return dims[0]; }
  std::uint64_t n() const { return dims[1] * dims[2] * dims[3]; }
  std::uint64_t values() const { return k() * n(); }

  // Nothing when ptxgen has no kernels for the type.
  std::optional<Format> format() const { return find_format(ggml_type); }
};

// An opened file. Everything it hands out (names, strings, values, tensor data) points into the file's bytes
// and is valid while the File lives, moved-to Files included; a moved-from File may only be assigned to or
// destroyed.
class PTXGEN_API File {
 public:
  // Maps the file at `path` read-only. NotFound and the like when it cannot be opened; InvalidArgument when
  // it is no regular file or not well-formed; Unimplemented for other versions and for big-endian files.
  // Hazard: the mapping follows the file. If somebody truncates it meanwhile, reading the missing part raises
  // SIGBUS, and what somebody overwrites changes under the reader; replace model files by renaming a new one
  // over them.
  static absl::StatusOr<File> open(const std::string& path);

  // Reads a file that is already in memory; `bytes` must outlive the File. Errors as above. Tensor data is as
  // aligned as `bytes` and alignment() together allow.
  static absl::StatusOr<File> parse(absl::Span<const std::byte> bytes);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  std::uint32_t version() const;
  // Tensor data starts at multiples of this many bytes: general.alignment, a power of two, 32 when the file
  // says nothing.
  std::uint32_t alignment() const;

  // In the file's order. Keys and tensor names are unique.
  absl::Span<const Entry> metadata() const;
  absl::Span<const Tensor> tensors() const;

  // nullptr when there is none of that name.
  const Value* find_value(std::string_view key) const;
  const Tensor* find_tensor(std::string_view name) const;

 private:
  struct Contents;
  explicit File(std::unique_ptr<Contents> contents);

  std::unique_ptr<Contents> contents_;
};

}  // namespace ptxgen::gguf
