#include "src/reference/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/reference/narrow.h"
#include "src/reference/product.h"
#include "src/reference/unpack.h"

namespace ptxgen::reference {
namespace {

constexpr std::size_t kSlab = 64, kGroup = 8, kOctet = 8;

// The f16 nearest to an f64, ties to even. Rounding to f32 first would round twice: so it is done to odd
// there, which keeps what the second rounding needs to know.
double round_to_f16(double value) {
  float near = static_cast<float>(value);
  if (std::isfinite(near) && near != value) {
    if (std::abs(static_cast<double>(near)) > std::abs(value)) near = std::nextafter(near, 0.f);
    std::uint32_t bits;
    std::memcpy(&bits, &near, sizeof(bits));
    bits |= 1;
    std::memcpy(&near, &bits, sizeof(bits));
  }
  return static_cast<double>(f16_to_f32(f32_to_f16(near)));
}

// The nearest number of as many bits as f16 has, ties to even, of any magnitude that f64 has as a normal one.
double round_to_11_bits(double value) {
  constexpr int kDropped = 52 - 10;
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += (std::uint64_t{1} << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
  bits &= ~((std::uint64_t{1} << kDropped) - 1);
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

constexpr double kLastBitOfF16 = 0x1p-24;
// Half of a row's last bit, of the largest scale that its blocks can have: a unit makes that of one of its
// blocks at least 2^9, and half of the last bit's 2^-24 is 2^-10 of it.
constexpr double kHalfLastBit = 0x1p-10;

// The largest scale, or min, that the bits for it hold.
double most_scale(Format format) {
  switch (format) {
    case Format::kQ2_K: return 15;
    case Format::kQ3_K: return 32;
    case Format::kQ4_K:
    case Format::kQ5_K: return 63;
    case Format::kQ6_K: return 128;
    default: return 1;
  }
}

// Where in its row value `i` of octet `octet` of slab `slab` stands. Four lanes share a block, each taking a
// quarter of its bytes of quantised values, in words of 4; a byte has a value of each run.
std::size_t place_in_row(StagedOrder order, std::size_t slab, std::size_t octet, std::size_t i) {
  const std::size_t lane = i / 2, byte = octet % 2 + i % 2 * 2;
  const std::size_t step = slab * 4 + octet / 2;  // of 16 values
  switch (order) {
    case StagedOrder::kNibbles: return step / 2 * 32 + 16 * (step % 2) + 4 * lane + byte;
    case StagedOrder::kBytes: return step / 2 * 32 + 8 * lane + 4 * (step % 2) + byte;
    case StagedOrder::kWideRuns:
      return step / 16 * 256 + 64 * lane + 32 * (step % 2) + 4 * (step % 16 / 2) + byte;
    case StagedOrder::kNarrowRuns: break;
  }
  return step / 16 * 256 + 128 * (lane / 2) + 16 * (lane % 2) + 32 * (step % 4) + 4 * (step % 16 / 4) + byte;
}

// Calls visit(offset, place) for every value of a row.
template <class Visit>
void for_each_value(StagedOrder order, std::size_t m, std::size_t k, std::size_t row, Visit visit) {
  const std::size_t groups = (m + kGroup - 1) / kGroup;
  for (std::size_t slab = 0; slab * kSlab < k; ++slab) {
    for (std::size_t octet = 0; octet < kOctet; ++octet) {
      for (std::size_t i = 0; i < kOctet; ++i) {
        const std::size_t place = place_in_row(order, slab, octet, i);
        if (place >= k) continue;
        const std::size_t octets = (slab * groups + row / kGroup) * kOctet + octet;
        visit(((octets * kGroup + row % kGroup) * kOctet + i) * sizeof(std::uint16_t), place);
      }
    }
  }
}

std::size_t inverse_offset(std::size_t m, std::size_t k, std::size_t row) {
  const std::size_t groups = (m + kGroup - 1) / kGroup, slabs = (k + kSlab - 1) / kSlab;
  return slabs * groups * kGroup * kSlab * sizeof(std::uint16_t) + row * sizeof(float);
}

}  // namespace

HalfRow half_row(absl::Span<const float> x) {
  float top = 0;
  bool finite = true;
  for (const float value : x) {
    finite &= std::isfinite(value);
    top = std::max(top, std::abs(value));
  }
  int exponent = 0;
  if (finite && top < 0x1p-126f) {
    exponent = 126;
  } else if (finite) {
    int binary = 0;  // top lies in [2^(binary - 1), 2^binary)
    std::frexp(top, &binary);
    exponent = std::min(15 - binary, 126);
  }
  HalfRow row;
  for (const float value : x) row.values.push_back(f16_to_f32(f32_to_f16(std::ldexp(value, exponent))));
  row.inverse = std::ldexp(1.f, -exponent);
  return row;
}

std::vector<std::byte> stage_f16(StagedOrder order, absl::Span<const float> a, std::size_t m, std::size_t k) {
  std::vector<std::byte> staged(staged_f16_bytes(static_cast<u32>(k), static_cast<u32>(m)));
  for (std::size_t row = 0; row < m; ++row) {
    const HalfRow half = half_row(a.subspan(row * k, k));
    for_each_value(order, m, k, row, [&](std::size_t offset, std::size_t place) {
      const std::uint16_t bits = f32_to_f16(half.values[place]);
      std::memcpy(staged.data() + offset, &bits, sizeof(bits));
    });
    std::memcpy(staged.data() + inverse_offset(m, k, row), &half.inverse, sizeof(float));
  }
  return staged;
}

HalfRow staged_row(StagedOrder order, absl::Span<const std::byte> staged, std::size_t m, std::size_t k,
                   std::size_t row) {
  HalfRow half;
  half.values.resize(k);
  for_each_value(order, m, k, row, [&](std::size_t offset, std::size_t place) {
    std::uint16_t bits;
    std::memcpy(&bits, staged.data() + offset, sizeof(bits));
    half.values[place] = f16_to_f32(bits);
  });
  std::memcpy(&half.inverse, staged.data() + inverse_offset(m, k, row), sizeof(float));
  return half;
}

namespace {

// The largest scale that blocks of a row can have, by their d; or their largest m, which must be an f16 in the
// row's unit too, or in that of its last bit, where no mins multiply it.
double largest_scale(Format format, absl::Span<const std::byte> row) {
  double largest = 0;
  for_each_block(format, row, [&](const Unpacked& block) {
    largest = std::max(largest, most_scale(format) * std::abs(static_cast<double>(block.d)));
    if (block.has_min) {
      const double unit = most_scale(format) > 1 ? 1 : kLastBitOfF16;
      largest = std::max(largest, std::abs(static_cast<double>(block.m)) * unit);
    }
  });
  return largest;
}

// What a weight in row units may be off: by its own last bit, and by what the last bit of its min makes of
// the rounding to 11 bits.
double slack_of(double weight, double half_last_bit) {
  const double rounded = round_to_11_bits(weight);
  return half_last_bit + std::max(round_to_11_bits(weight + half_last_bit) - rounded,
                                  rounded - round_to_11_bits(weight - half_last_bit));
}

}  // namespace

Bounded dot(Format format, absl::Span<const std::byte> row, const HalfRow& x, HalfWeights weights) {
  const bool in_units = weights == HalfWeights::kInRowUnits;
  const auto round = in_units ? round_to_11_bits : round_to_f16;
  const double half_last_bit = in_units ? largest_scale(format, row) * kHalfLastBit : 0;
  double sum = 0, magnitude = 0, slack = 0;
  std::size_t first = 0;
  for_each_block(format, row, [&](const Unpacked& block) {
    for (int i = 0; i < block.values; ++i) {
      const int j = i / block.sub_block;
      const float scale = block.d * static_cast<float>(block.scale[static_cast<std::size_t>(j)]);
      const float shift =
          block.has_min ? block.m * static_cast<float>(block.min[static_cast<std::size_t>(j)]) : 0;
      const double q = block.q[static_cast<std::size_t>(i)];
      const double weight = q * round(static_cast<double>(scale)) + round(static_cast<double>(shift));
      const double value = static_cast<double>(x.values[first + static_cast<std::size_t>(i)]);
      const double product = round(weight) * value;
      sum += product;
      magnitude += std::abs(product);
      if (in_units) slack += slack_of(weight, half_last_bit) * std::abs(value);
    }
    first += static_cast<std::size_t>(block.values);
  });
  const double inverse = x.inverse;
  if (!std::isfinite(sum)) return {sum * inverse, 0};
  Bounded result =
      of_matrix_product({sum * inverse, rounding_bound(x.values.size(), magnitude) * inverse + 0x1p-126});
  result.bound += slack * inverse;
  return result;
}

Bounded of_matrix_product(Bounded value) {
  value.bound *= 4;
  return value;
}

}  // namespace ptxgen::reference
