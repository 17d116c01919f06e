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
float round_to_f16(double value) {
  float near = static_cast<float>(value);
  if (std::isfinite(near) && near != value) {
    if (std::abs(static_cast<double>(near)) > std::abs(value)) near = std::nextafter(near, 0.f);
    std::uint32_t bits;
    std::memcpy(&bits, &near, sizeof(bits));
    bits |= 1;
    std::memcpy(&near, &bits, sizeof(bits));
  }
  return f16_to_f32(f32_to_f16(near));
}

// Where in its row value `i` of octet `octet` of slab `slab` stands. Four lanes share a block, each taking a
// quarter of its bytes of quantised values, in words of 4; a byte has a value of each run.
std::size_t place_in_row(StagedOrder order, std::size_t slab, std::size_t octet, std::size_t i) {
  const std::size_t lane = i / 2, byte = octet % 2 * 2 + i % 2;
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

Bounded dot(Format format, absl::Span<const std::byte> row, const HalfRow& x) {
  double sum = 0, magnitude = 0;
  std::size_t first = 0;
  for_each_block(format, row, [&](const Unpacked& block) {
    for (int i = 0; i < block.values; ++i) {
      const int j = i / block.sub_block;
      const float scale = block.d * static_cast<float>(block.scale[static_cast<std::size_t>(j)]);
      const float shift =
          block.has_min ? block.m * static_cast<float>(block.min[static_cast<std::size_t>(j)]) : 0;
      const double q = block.q[static_cast<std::size_t>(i)];
      const double weight = round_to_f16(q * static_cast<double>(f16_to_f32(f32_to_f16(scale))) +
                                         static_cast<double>(f16_to_f32(f32_to_f16(shift))));
      const double product = weight * static_cast<double>(x.values[first + static_cast<std::size_t>(i)]);
      sum += product;
      magnitude += std::abs(product);
    }
    first += static_cast<std::size_t>(block.values);
  });
  const double inverse = x.inverse;
  if (!std::isfinite(sum)) return {sum * inverse, 0};
  return of_matrix_product({sum * inverse, rounding_bound(x.values.size(), magnitude) * inverse + 0x1p-126});
}

Bounded of_matrix_product(Bounded value) {
  value.bound *= 4;
  return value;
}

}  // namespace ptxgen::reference
