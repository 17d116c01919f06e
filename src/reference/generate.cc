#include "src/reference/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/types/span.h"

namespace ptxgen::reference {
namespace {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // In [0, bound), close enough to uniform for the small bounds used here.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_;
};

// Where a block keeps its f16 scale and, when there are two, its min just behind it.
struct HalfFields {
  std::size_t offset;
  int count;
};

HalfFields half_fields(Format format) {
  switch (format) {
    case Format::kQ4_0: return {0, 1};
    case Format::kQ4_1: return {0, 2};
    case Format::kQ5_0: return {0, 1};
    case Format::kQ5_1: return {0, 2};
    case Format::kQ8_0: return {0, 1};
    case Format::kQ2_K: return {80, 2};
    case Format::kQ3_K: return {108, 1};
    case Format::kQ4_K: return {0, 2};
    case Format::kQ5_K: return {0, 2};
    case Format::kQ6_K: return {208, 1};
  }
  return {0, 0};
}

using Block = absl::Span<std::byte>;

void fill(Block block, Random& random) {
  for (std::byte& byte : block) byte = static_cast<std::byte>(random.next() >> 56);
}

template <typename NextHalf>
void set_halves(Format format, Block block, NextHalf next_half) {
  const HalfFields fields = half_fields(format);
  for (int i = 0; i < fields.count; ++i) {
    const std::uint32_t bits = next_half();
    block[fields.offset + 2 * i] = static_cast<std::byte>(bits);
    block[fields.offset + 2 * i + 1] = static_cast<std::byte>(bits >> 8);
  }
}

std::uint32_t moderate_half(Random& random) {
  const std::uint32_t exponent = 7 + random.below(8);  // 2^-8 .. 2^-1
  return random.below(2) << 15 | exponent << 10 | random.below(1024);
}

std::uint32_t subnormal_half(Random& random) {
  return random.below(2) << 15 | (1 + random.below(1023));
}

std::uint32_t special_half(Random& random) {
  constexpr std::array<std::uint16_t, 10> kSpecial = {0x7c00, 0xfc00, 0x7e00, 0x7d01, 0xfe00,
                                                      0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff};
  return kSpecial[random.below(kSpecial.size())];
}

// `kCount` different numbers of [first, last], in random order.
template <std::size_t kCount>
std::array<int, kCount> distinct(int first, int last, Random& random) {
  std::array<int, 256> pool;
  const auto size = static_cast<std::size_t>(last - first + 1);
  std::iota(pool.begin(), pool.begin() + size, first);
  std::array<int, kCount> chosen;
  for (std::size_t i = 0; i < kCount; ++i) {
    std::swap(pool[i], pool[i + random.below(static_cast<std::uint32_t>(size - i))]);
    chosen[i] = pool[i];
  }
  return chosen;
}

void set(std::byte& byte, int value) {
  byte = static_cast<std::byte>(value);
}

// The sub-block scales, packed as the decoders in dequantize.cc describe.

void set_scales_q2(Block scales, Random& random) {
  // Only fifteen of sixteen can differ and be non-zero: the last one repeats the first.
  const auto scale = distinct<15>(1, 15, random);
  const auto min = distinct<15>(1, 15, random);
  for (std::size_t j = 0; j < 16; ++j) set(scales[j], scale[j % 15] | min[j % 15] << 4);
}

void set_scales_q3(Block scales, Random& random) {
  auto biased = distinct<16>(0, 62, random);
  for (int& scale : biased) scale += scale >= 32;  // 32 stands for the scale 0
  for (int j = 0; j < 8; ++j) set(scales[j], (biased[j] & 15) | (biased[j + 8] & 15) << 4);
  for (int j = 0; j < 4; ++j) {
    set(scales[8 + j],
        biased[j] >> 4 | biased[j + 4] >> 4 << 2 | biased[j + 8] >> 4 << 4 | biased[j + 12] >> 4 << 6);
  }
}

void set_scales_k4(Block scales, Random& random) {
  const auto scale = distinct<8>(1, 63, random);
  const auto min = distinct<8>(1, 63, random);
  for (int j = 0; j < 4; ++j) {
    set(scales[j], scale[j] | scale[j + 4] >> 4 << 6);
    set(scales[j + 4], min[j] | min[j + 4] >> 4 << 6);
    set(scales[j + 8], (scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
  }
}

void set_scales_q6(Block scales, Random& random) {
  auto signed_scales = distinct<16>(-127, 126, random);
  for (std::size_t j = 0; j < 16; ++j) set(scales[j], signed_scales[j] + (signed_scales[j] >= 0));
}

void set_scales(Format format, Block block, Random& random) {
  switch (format) {
    case Format::kQ2_K: return set_scales_q2(block.subspan(0, 16), random);
    case Format::kQ3_K: return set_scales_q3(block.subspan(96, 12), random);
    case Format::kQ4_K:
    case Format::kQ5_K: return set_scales_k4(block.subspan(4, 12), random);
    case Format::kQ6_K: return set_scales_q6(block.subspan(192, 16), random);
    default: return;  // one scale a block
  }
}

template <typename MakeBlock>
std::vector<std::byte> make_blocks(Format format, std::size_t count, MakeBlock make_block) {
  const std::size_t size = info(format).block_bytes;
  std::vector<std::byte> blocks(count * size);
  for (std::size_t i = 0; i < count; ++i) make_block(i, Block(blocks).subspan(i * size, size));
  return blocks;
}

}  // namespace

std::vector<std::byte> random_blocks(Format format, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  return make_blocks(format, count, [&](std::size_t index, Block block) {
    fill(block, random);
    set_scales(format, block, random);
    const bool subnormal = index % 8 == 5;
    set_halves(format, block, [&] { return subnormal ? subnormal_half(random) : moderate_half(random); });
  });
}

void level_scales(Format format, absl::Span<std::byte> blocks) {
  const HalfFields fields = half_fields(format);
  for (std::size_t at = 0; at < blocks.size(); at += info(format).block_bytes) {
    for (int i = 0; i < fields.count; ++i) {
      std::byte& high = blocks[at + fields.offset + static_cast<std::size_t>(2 * i + 1)];
      high = (high & std::byte{0x83}) | std::byte{7 << 2};  // sign and mantissa stay
    }
  }
}

std::vector<std::byte> random_bytes(Format format, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  return make_blocks(format, count, [&](std::size_t index, Block block) {
    fill(block, random);
    if (index % 4 == 3) set_halves(format, block, [&] { return special_half(random); });
  });
}

std::vector<float> random_activations(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  float scale = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 32 == 0) {
      const std::uint32_t kind = i / 32 % 16;
      const int exponent = kind == 7 ? -130 : static_cast<int>(random.below(9)) - 5;
      scale = kind == 3 ? 0 : std::ldexp(1.0f, exponent);
    }
    constexpr int kHalf = 1 << 20;  // in steps of 2^-20 between -1 and 1: never 0
    const int steps = static_cast<int>(random.below(2 * kHalf)) - kHalf;
    values[i] = scale * (static_cast<float>(2 * steps + 1) / (2 * kHalf));
  }
  return values;
}

namespace {

// Fills `out` with elements `first` and following of a sequence made in stretches of kStretch, each with a
// seed of its own: make(count, seed) gives the first `count` elements of one.
template <class T, class Make>
void fill_from(std::uint64_t seed, std::uint64_t first, std::size_t element, absl::Span<T> out, Make make) {
  constexpr std::uint64_t kStretch = 1024;
  while (!out.empty()) {
    const std::uint64_t stretch = first / kStretch, skipped = first % kStretch;
    const std::uint64_t count = std::min<std::uint64_t>(kStretch - skipped, out.size() / element);
    const auto made = make(skipped + count, seed ^ stretch * 0xbf58476d1ce4e5b9);
    std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(skipped * element), count * element, out.begin());
    out.remove_prefix(count * element);
    first += count;
  }
}

}  // namespace

void random_blocks_at(Format format, std::uint64_t seed, std::uint64_t first, absl::Span<std::byte> blocks) {
  fill_from(seed, first, info(format).block_bytes, blocks,
            [&](std::size_t count, std::uint64_t stretch) { return random_blocks(format, count, stretch); });
}

void random_activations_at(std::uint64_t seed, std::uint64_t first, absl::Span<float> values) {
  constexpr std::size_t kBlock = 32;
  fill_from(seed, first / kBlock, kBlock, values, [&](std::size_t count, std::uint64_t stretch) {
    return random_activations(kBlock * count, stretch);
  });
}

}  // namespace ptxgen::reference
