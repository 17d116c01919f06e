// Writes GGUF files byte by byte, right or wrong as the test wants them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ptxgen/gguf.h"

namespace ptxgen::testing {

class GgufWriter {
 public:
  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  GgufWriter& u8(std::uint64_t value) { return integer(value, 1); }
  GgufWriter& u16(std::uint64_t value) { return integer(value, 2); }
  GgufWriter& u32(std::uint64_t value) { return integer(value, 4); }
  GgufWriter& u64(std::uint64_t value) { return integer(value, 8); }
  GgufWriter& f32(float value) { return u32(std::bit_cast<std::uint32_t>(value)); }
  GgufWriter& f64(double value) { return u64(std::bit_cast<std::uint64_t>(value)); }
  GgufWriter& type(gguf::ValueType value) { return u32(static_cast<std::uint32_t>(value)); }

  GgufWriter& text(std::string_view characters) {
    for (const char c : characters) u8(static_cast<unsigned char>(c));
    return *this;
  }
  GgufWriter& string(std::string_view characters) { return u64(characters.size()).text(characters); }

  GgufWriter& header(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    return text("GGUF").u32(version).u64(tensors).u64(entries);
  }
  // The value follows.
  GgufWriter& key(std::string_view name, gguf::ValueType value_type) { return string(name).type(value_type); }
  GgufWriter& array(gguf::ValueType element, std::uint64_t count) { return type(element).u64(count); }
  GgufWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t ggml_type,
                     std::uint64_t offset) {
    string(name).u32(dims.size());
    for (const std::uint64_t dim : dims) u64(dim);
    return u32(ggml_type).u64(offset);
  }

  GgufWriter& align(std::size_t alignment) {
    while (size() % alignment != 0) u8(0);
    return *this;
  }
  // `count` distinct bytes, as far as 256 go.
  GgufWriter& data(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) u8(1 + i);
    return *this;
  }

 private:
  GgufWriter& integer(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace ptxgen::testing
