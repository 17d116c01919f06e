// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, "XXH64 Algorithm Description".
#include "src/runtime/xxh64.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace ptxgen::internal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                        kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                        kPrime5 = 0x27D4EB2F165667C5;

template <class T>
T take(std::string_view& data) {
  T value;
  std::memcpy(&value, data.data(), sizeof(T));
  data.remove_prefix(sizeof(T));
  return value;
}

std::uint64_t round(std::uint64_t sum, std::uint64_t word) {
  return std::rotl(sum + word * kPrime2, 31) * kPrime1;
}

// Takes in whole stripes of 32 bytes, and returns the state of what is left.
std::uint64_t absorb_stripes(std::string_view& data, std::uint64_t seed) {
  std::array<std::uint64_t, 4> sums = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
  while (data.size() >= 32) {
    for (std::uint64_t& sum : sums) sum = round(sum, take<std::uint64_t>(data));
  }
  std::uint64_t hash =
      std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) + std::rotl(sums[3], 18);
  for (const std::uint64_t sum : sums) hash = (hash ^ round(0, sum)) * kPrime1 + kPrime4;
  return hash;
}

}  // namespace

std::uint64_t xxh64(std::string_view data, std::uint64_t seed) {
  const std::size_t size = data.size();
  std::uint64_t hash = size < 32 ? seed + kPrime5 : absorb_stripes(data, seed);
  hash += size;
  while (data.size() >= 8)
    hash = std::rotl(hash ^ round(0, take<std::uint64_t>(data)), 27) * kPrime1 + kPrime4;
  if (data.size() >= 4) hash = std::rotl(hash ^ take<std::uint32_t>(data) * kPrime1, 23) * kPrime2 + kPrime3;
  while (!data.empty()) hash = std::rotl(hash ^ take<std::uint8_t>(data) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace ptxgen::internal
