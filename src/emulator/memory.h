// Global memory: allocations with a byte-for-byte record of what was written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/emulator.h"

namespace ptxgen::emulator {

// Zeroed host memory that is committed page by page when it is first touched.
class Pages {
 public:
  Pages() = default;
  explicit Pages(std::size_t bytes);  // get() is null when there is none
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* get() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct Allocation {
  std::uint64_t address = 0, bytes = 0;
  std::string name;
  bool freed = false;
  Pages data, shadow;  // `shadow` is 0xff where a byte was written
  // Set once the host has written all of it; the shadow is then neither read nor kept.
  std::atomic<bool> complete{false};

  std::uint64_t end() const { return address + bytes; }

  bool written(std::uint64_t offset, std::uint64_t count) const {
    if (complete.load(std::memory_order_relaxed)) return true;
    const std::byte* s = shadow.get() + offset;
    for (; count >= 8; count -= 8, s += 8) {
      std::uint64_t word;
      std::memcpy(&word, s, 8);
      if (word != ~std::uint64_t{0}) return false;
    }
    for (; count > 0; --count, ++s) {
      if (*s == std::byte{0}) return false;
    }
    return true;
  }
  void mark_written(std::uint64_t offset, std::uint64_t count) {
    if (!complete.load(std::memory_order_relaxed)) std::memset(shadow.get() + offset, 0xff, count);
  }
};

// The allocations of a Memory at one moment, sorted by address, freed ones (without storage) included. It
// keeps their storage alive.
class MemorySnapshot {
 public:
  // The allocation last hit; makes the usual lookup two comparisons.
  struct Cursor {
    Allocation* allocation = nullptr;
  };

  // The allocation that holds all of [address, address + bytes), or null.
  Allocation* find(std::uint64_t address, std::uint64_t bytes, Cursor& cursor) const {
    Allocation* a = cursor.allocation;
    if (a && address - a->address < a->bytes && bytes <= a->end() - address) return a;
    return search(address, bytes, cursor);
  }

  std::string describe(std::uint64_t address) const;

  std::vector<std::shared_ptr<Allocation>> allocations;

 private:
  Allocation* search(std::uint64_t address, std::uint64_t bytes, Cursor& cursor) const;
};

}  // namespace ptxgen::emulator
