#include "src/reference/unpack.h"

#include <cstring>

#include "src/reference/narrow.h"

namespace ptxgen::reference {
namespace {

using Bytes2 = std::array<std::uint8_t, 2>;

std::uint32_t little_endian(const std::uint8_t* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= std::uint32_t{bytes[i]} << (8 * i);
  return value;
}

float half(const Bytes2& bytes) {
  return f16_to_f32(static_cast<std::uint16_t>(little_endian(bytes.data(), 2)));
}

int low_nibble(std::uint8_t byte) {
  return byte & 0x0f;
}
int high_nibble(std::uint8_t byte) {
  return byte >> 4;
}

// Bits [first, first + width) of `word`.
int bits(std::uint32_t word, int first, int width) {
  return static_cast<int>((word >> first) & ((1u << width) - 1));
}

// The blocks as ggml/src/ggml-common.h lays them out, every field as bytes: no padding, no alignment. Each
// take_apart() below follows the function dequantize_row_* of ggml/src/ggml-quants.c with the same suffix.

// One scale of 1 for all values of a block.
void set_plain(Unpacked& out, const Bytes2& d) {
  out.sub_block = 32;
  out.d = half(d);
  out.scale[0] = 1;
}
// The same with a min.
void set_plain(Unpacked& out, const Bytes2& d, const Bytes2& m) {
  set_plain(out, d);
  out.has_min = true;
  out.m = half(m);
  out.min[0] = 1;
}

// 32 values: the low nibbles are values 0..15, the high ones 16..31.
struct Q4_0 {
  Bytes2 d;
  std::array<std::uint8_t, 16> qs;
};

void take_apart(const Q4_0& block, Unpacked& out) {
  set_plain(out, block.d);
  for (int i = 0; i < 16; ++i) {
    out.q[i] = low_nibble(block.qs[i]) - 8;
    out.q[i + 16] = high_nibble(block.qs[i]) - 8;
  }
}

struct Q4_1 {
  Bytes2 d;
  Bytes2 m;
  std::array<std::uint8_t, 16> qs;
};

void take_apart(const Q4_1& block, Unpacked& out) {
  set_plain(out, block.d, block.m);
  for (int i = 0; i < 16; ++i) {
    out.q[i] = low_nibble(block.qs[i]);
    out.q[i + 16] = high_nibble(block.qs[i]);
  }
}

// As q4_0, with bit i of qh the fifth bit of value i.
struct Q5_0 {
  Bytes2 d;
  std::array<std::uint8_t, 4> qh;
  std::array<std::uint8_t, 16> qs;
};

void take_apart(const Q5_0& block, Unpacked& out) {
  set_plain(out, block.d);
  const std::uint32_t qh = little_endian(block.qh.data(), 4);
  for (int i = 0; i < 16; ++i) {
    out.q[i] = (low_nibble(block.qs[i]) | bits(qh, i, 1) << 4) - 16;
    out.q[i + 16] = (high_nibble(block.qs[i]) | bits(qh, i + 16, 1) << 4) - 16;
  }
}

struct Q5_1 {
  Bytes2 d;
  Bytes2 m;
  std::array<std::uint8_t, 4> qh;
  std::array<std::uint8_t, 16> qs;
};

void take_apart(const Q5_1& block, Unpacked& out) {
  set_plain(out, block.d, block.m);
  const std::uint32_t qh = little_endian(block.qh.data(), 4);
  for (int i = 0; i < 16; ++i) {
    out.q[i] = low_nibble(block.qs[i]) | bits(qh, i, 1) << 4;
    out.q[i + 16] = high_nibble(block.qs[i]) | bits(qh, i + 16, 1) << 4;
  }
}

struct Q8_0 {
  Bytes2 d;
  std::array<std::int8_t, 32> qs;
};

void take_apart(const Q8_0& block, Unpacked& out) {
  set_plain(out, block.d);
  for (int i = 0; i < 32; ++i) out.q[i] = block.qs[i];
}

// A K-quant; its mins are subtracted.
void set_k(Unpacked& out, int sub_block, const Bytes2& d, const Bytes2* dmin = nullptr) {
  out.sub_block = sub_block;
  out.d = half(d);
  out.has_min = dmin != nullptr;
  if (dmin) out.m = -half(*dmin);
}

// The K-quants hold 256 values. q2_K and q3_K: sub-blocks of 16; each half of the block takes 32 bytes of qs,
// whose bit pairs 0..3 are four runs of 32 values.

// The low nibble of scales[j] is sub-block j's scale, the high one its min.
struct Q2_K {
  std::array<std::uint8_t, 16> scales;
  std::array<std::uint8_t, 64> qs;
  Bytes2 d;
  Bytes2 dmin;
};

void take_apart(const Q2_K& block, Unpacked& out) {
  set_k(out, 16, block.d, &block.dmin);
  for (int j = 0; j < 16; ++j) {
    out.scale[j] = low_nibble(block.scales[j]);
    out.min[j] = high_nibble(block.scales[j]);
    const std::uint8_t* qs = &block.qs[32 * (j / 8) + 16 * (j % 2)];
    for (int i = 0; i < 16; ++i) out.q[16 * j + i] = bits(qs[i], 2 * (j / 2 % 4), 2);
  }
}

// The third bit of a value is bit (run of 32) of hmask; where it is clear the value is 4 less.
struct Q3_K {
  std::array<std::uint8_t, 32> hmask;
  std::array<std::uint8_t, 64> qs;
  std::array<std::uint8_t, 12> scales;
  Bytes2 d;

  // Six bits, biased by 32: the low four in a nibble of bytes 0..7, the high two in a bit pair of
  // bytes 8..11.
  int scale(int j) const {
    const int low = j < 8 ? low_nibble(scales[j]) : high_nibble(scales[j - 8]);
    return (low | bits(scales[8 + j % 4], 2 * (j / 4), 2) << 4) - 32;
  }
};

void take_apart(const Q3_K& block, Unpacked& out) {
  set_k(out, 16, block.d);
  for (int j = 0; j < 16; ++j) {
    out.scale[j] = block.scale(j);
    const int run = j / 2;
    const std::uint8_t* qs = &block.qs[32 * (run / 4) + 16 * (j % 2)];
    const std::uint8_t* hmask = &block.hmask[16 * (j % 2)];
    for (int i = 0; i < 16; ++i) {
      out.q[16 * j + i] = bits(qs[i], 2 * (run % 4), 2) - (bits(hmask[i], run, 1) ? 0 : 4);
    }
  }
}

// Eight six-bit scales and mins in 12 bytes (get_scale_min_k4): sub-blocks 0..3 in the low six bits of bytes
// 0..3 (scale) and 4..7 (min); sub-blocks 4..7 with four bits in a nibble of bytes 8..11 and two on top of
// those bytes.
struct ScalesK4 {
  std::array<std::uint8_t, 12> bytes;

  int scale(int j) const {
    return j < 4 ? bits(bytes[j], 0, 6) : low_nibble(bytes[j + 4]) | bits(bytes[j - 4], 6, 2) << 4;
  }
  int min(int j) const {
    return j < 4 ? bits(bytes[j + 4], 0, 6) : high_nibble(bytes[j + 4]) | bits(bytes[j], 6, 2) << 4;
  }
};

// q4_K and q5_K: sub-blocks of 32; sub-blocks 2c and 2c + 1 are the low and high nibbles of bytes 32c..32c+31
// of qs.
struct Q4_K {
  Bytes2 d;
  Bytes2 dmin;
  ScalesK4 scales;
  std::array<std::uint8_t, 128> qs;
};

void take_apart(const Q4_K& block, Unpacked& out) {
  set_k(out, 32, block.d, &block.dmin);
  for (int j = 0; j < 8; ++j) {
    out.scale[j] = block.scales.scale(j);
    out.min[j] = block.scales.min(j);
    const std::uint8_t* qs = &block.qs[32 * (j / 2)];
    for (int i = 0; i < 32; ++i) out.q[32 * j + i] = bits(qs[i], 4 * (j % 2), 4);
  }
}

// Bit j of qh[i] is the fifth bit of value i of sub-block j.
struct Q5_K {
  Bytes2 d;
  Bytes2 dmin;
  ScalesK4 scales;
  std::array<std::uint8_t, 32> qh;
  std::array<std::uint8_t, 128> qs;
};

void take_apart(const Q5_K& block, Unpacked& out) {
  set_k(out, 32, block.d, &block.dmin);
  for (int j = 0; j < 8; ++j) {
    out.scale[j] = block.scales.scale(j);
    out.min[j] = block.scales.min(j);
    const std::uint8_t* qs = &block.qs[32 * (j / 2)];
    for (int i = 0; i < 32; ++i)
      out.q[32 * j + i] = bits(qs[i], 4 * (j % 2), 4) | bits(block.qh[i], j, 1) << 4;
  }
}

// Sub-blocks of 16. Each half of the block takes 64 bytes of ql and 32 of qh and is four runs of 32 values:
// run r has its low four bits in nibble r / 2 of ql[32 * (r % 2) + i], its high two in bit pair r of qh[i].
struct Q6_K {
  std::array<std::uint8_t, 128> ql;
  std::array<std::uint8_t, 64> qh;
  std::array<std::int8_t, 16> scales;
  Bytes2 d;
};

void take_apart(const Q6_K& block, Unpacked& out) {
  set_k(out, 16, block.d);
  for (int j = 0; j < 16; ++j) {
    out.scale[j] = block.scales[j];
    const int half_block = j / 8;
    const int run = j / 2 % 4;
    const std::uint8_t* ql = &block.ql[64 * half_block + 32 * (run % 2) + 16 * (j % 2)];
    const std::uint8_t* qh = &block.qh[32 * half_block + 16 * (j % 2)];
    for (int i = 0; i < 16; ++i) {
      out.q[16 * j + i] = (bits(ql[i], 4 * (run / 2), 4) | bits(qh[i], 2 * run, 2) << 4) - 32;
    }
  }
}

using TakeApart = void (*)(const std::byte*, Unpacked&);

template <Format format, typename Block>
constexpr TakeApart of() {
  static_assert(sizeof(Block) == info(format).block_bytes && alignof(Block) == 1);
  return [](const std::byte* bytes, Unpacked& out) {
    Block block;
    std::memcpy(&block, bytes, sizeof(Block));
    take_apart(block, out);
  };
}

TakeApart find(Format format) {
  switch (format) {
    case Format::kQ4_0: return of<Format::kQ4_0, Q4_0>();
    case Format::kQ4_1: return of<Format::kQ4_1, Q4_1>();
    case Format::kQ5_0: return of<Format::kQ5_0, Q5_0>();
    case Format::kQ5_1: return of<Format::kQ5_1, Q5_1>();
    case Format::kQ8_0: return of<Format::kQ8_0, Q8_0>();
    case Format::kQ2_K: return of<Format::kQ2_K, Q2_K>();
    case Format::kQ3_K: return of<Format::kQ3_K, Q3_K>();
    case Format::kQ4_K: return of<Format::kQ4_K, Q4_K>();
    case Format::kQ5_K: return of<Format::kQ5_K, Q5_K>();
    case Format::kQ6_K: return of<Format::kQ6_K, Q6_K>();
  }
  return nullptr;
}

}  // namespace

void for_each_block(Format format, absl::Span<const std::byte> blocks,
                    absl::FunctionRef<void(const Unpacked&)> visit) {
  const TakeApart take_apart = find(format);
  Unpacked unpacked;
  unpacked.values = static_cast<int>(info(format).block_values);
  for (std::size_t offset = 0; offset < blocks.size(); offset += info(format).block_bytes) {
    take_apart(blocks.data() + offset, unpacked);
    visit(unpacked);
  }
}

}  // namespace ptxgen::reference
