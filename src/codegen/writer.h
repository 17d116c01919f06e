// A growing buffer of text.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "src/builder/spelling.h"

namespace ptxgen {

// Appends to one growing buffer. A kernel is some thousand pieces of a few characters, so those are copied in
// place, without a call: always 16 bytes, of which the next piece overwrites what was too much.
class Writer {
 public:
  void text(std::string_view part) {
    std::memcpy(room(part.size()), part.data(), part.size());
    end_ += part.size();
  }
  void text(const ShortText& part) {
    std::memcpy(room(ShortText::kMax), part.bytes.data(), ShortText::kMax);
    end_ += part.size;
  }
  void character(char c) {
    *room(1) = c;
    ++end_;
  }
  void number(s64 value) {
    char* at = room(kNumberRoom);
    if (value < 0 || value >= 1000) return to_chars(at, value, 10);
    const u32 digits = static_cast<u32>(value);
    if (digits >= 100) *at++ = static_cast<char>('0' + digits / 100);
    if (digits >= 10) *at++ = static_cast<char>('0' + digits / 10 % 10);
    *at++ = static_cast<char>('0' + digits % 10);
    end_ = static_cast<std::size_t>(at - text_.get());
  }
  void mask(s64 value) {
    text("0x");
    to_chars(room(kNumberRoom), value, 16);
  }
  // "0f3F800000": the digits of an immediate float.
  void hex(u64 bits, int digits) {
    char* at = room(kNumberRoom);
    for (int i = 0; i < digits; ++i) at[i] = "0123456789ABCDEF"[(bits >> (4 * (digits - 1 - i))) & 15];
    end_ += static_cast<std::size_t>(digits);
  }
  std::string_view view() const { return {text_.get(), end_}; }

 private:
  static constexpr std::size_t kNumberRoom = 24;

  void to_chars(char* at, s64 value, int base) {
    end_ = static_cast<std::size_t>(std::to_chars(at, at + kNumberRoom, value, base).ptr - text_.get());
  }

  char* room(std::size_t bytes) {
    if (end_ + bytes > size_) grow(bytes);
    return text_.get() + end_;
  }
  void grow(std::size_t bytes) {
    size_ = std::max(2 * (end_ + bytes), std::size_t{1} << 14);
    auto larger = std::make_unique_for_overwrite<char[]>(size_);
    if (end_) std::memcpy(larger.get(), text_.get(), end_);
    text_ = std::move(larger);
  }

  std::unique_ptr<char[]> text_;
  std::size_t size_ = 0;
  std::size_t end_ = 0;
};

}  // namespace ptxgen
