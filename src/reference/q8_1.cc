#include "src/reference/q8_1.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "src/reference/narrow.h"

namespace ptxgen::reference {
namespace {

constexpr std::uint16_t kNan = 0x7fff;
constexpr float kLeast = 0x1p-118f;  // of a block's largest |x|; what is smaller is zero

// The least bf16 that is not below `value`, a finite number of at least 0.
std::uint16_t up_to_bf16(float value) {
  const std::uint16_t nearest = f32_to_bf16(value);
  return bf16_to_f32(nearest) < value ? static_cast<std::uint16_t>(nearest + 1) : nearest;
}

// Ties to even, whatever the host's rounding mode is.
int to_integer(double value) {
  const double below = std::floor(value), above = value - below;
  const int integer = static_cast<int>(below);
  if (above == 0.5) return integer + (integer & 1);
  return above < 0.5 ? integer : integer + 1;
}

void write(const Q8_1& block, std::byte* out) {
  const auto sum = static_cast<std::uint16_t>(block.sum);
  for (const unsigned half : {unsigned{block.d}, unsigned{sum}}) {
    *out++ = static_cast<std::byte>(half);
    *out++ = static_cast<std::byte>(half >> 8);
  }
  for (const std::int8_t q : block.q) *out++ = static_cast<std::byte>(q);
}

Q8_1 read(const std::byte* bytes) {
  const auto half = [&](int at) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) |
                                      std::to_integer<unsigned>(bytes[at + 1]) << 8);
  };
  Q8_1 block{half(0), static_cast<std::int16_t>(half(2)), {}};
  for (std::size_t i = 0; i < kQ8_1Values; ++i)
    block.q[i] = static_cast<std::int8_t>(std::to_integer<unsigned>(bytes[4 + i]));
  return block;
}

}  // namespace

float Q8_1::scale() const {
  return bf16_to_f32(d);
}
bool Q8_1::is_nan() const {
  return std::isnan(scale());
}

Q8_1 quantize_q8_1(absl::Span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) return {.d = kNan};
    largest = std::max(largest, std::abs(value));
  }
  if (largest < kLeast) return {};
  Q8_1 block{.d = up_to_bf16(largest * (1.0f / 127.0f))};
  const double reciprocal = 1.0f / block.scale();
  for (std::size_t i = 0; i < kQ8_1Values; ++i) {
    const int q = to_integer(values[i] * reciprocal);  // 24 bits by 24: exact in f64
    block.q[i] = static_cast<std::int8_t>(q);
    block.sum = static_cast<std::int16_t>(block.sum + q);
  }
  return block;
}

absl::Status quantize_q8_1(absl::Span<const float> values, absl::Span<std::byte> blocks) {
  if (values.size() % kQ8_1Values != 0 || blocks.size() != values.size() / kQ8_1Values * kQ8_1Bytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("quantize_q8_1: %d values do not make blocks of %d in %d bytes", values.size(),
                        kQ8_1Values, blocks.size()));
  }
  for (std::size_t i = 0; i * kQ8_1Values < values.size(); ++i)
    write(quantize_q8_1(values.subspan(i * kQ8_1Values, kQ8_1Values)), &blocks[i * kQ8_1Bytes]);
  return absl::OkStatus();
}

namespace {

// The d of a block whose largest |x| is `largest`.
float scale_of(double largest) {
  return largest < kLeast ? 0 : bf16_to_f32(up_to_bf16(static_cast<float>(largest) * (1.0f / 127.0f)));
}

void add_block(absl::Span<const Bounded> values, UncertainQ8_1& out) {
  std::vector<float> middles;
  double least = 0, most = 0;  // what the largest |x| can be
  for (const Bounded& value : values) {
    middles.push_back(static_cast<float>(value.value));
    least = std::max(least, std::abs(value.value) - value.bound);
    most = std::max(most, std::abs(value.value) + value.bound);
  }
  const Q8_1& block = out.blocks.emplace_back(quantize_q8_1(middles));
  if (block.is_nan()) {
    out.slack.resize(out.slack.size() + kQ8_1Values);
    return;
  }
  // One rounding to f32 more than the bounds know of.
  const double low = scale_of(least * (1 - 0x1p-23)), high = scale_of(most * (1 + 0x1p-23));
  for (const Bounded& value : values) {
    if (low != high) {
      out.slack.push_back(127 * (high - low) + high);
    } else if (high == 0) {
      out.slack.push_back(0);
    } else {
      const double reciprocal = 1.0f / static_cast<float>(high);
      const double off = value.bound + 0x1p-24 * std::abs(value.value);
      const int steps =
          to_integer((value.value + off) * reciprocal) - to_integer((value.value - off) * reciprocal);
      out.slack.push_back(steps * high);
    }
  }
}

}  // namespace

UncertainQ8_1 quantize_q8_1(absl::Span<const Bounded> values) {
  UncertainQ8_1 all;
  for (std::size_t i = 0; i + kQ8_1Values <= values.size(); i += kQ8_1Values)
    add_block(values.subspan(i, kQ8_1Values), all);
  return all;
}

absl::StatusOr<std::vector<Q8_1>> read_q8_1(absl::Span<const std::byte> blocks) {
  if (blocks.size() % kQ8_1Bytes != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "read_q8_1: %d bytes are no whole number of blocks of %d", blocks.size(), kQ8_1Bytes));
  }
  std::vector<Q8_1> all;
  for (std::size_t at = 0; at < blocks.size(); at += kQ8_1Bytes) all.push_back(read(&blocks[at]));
  return all;
}

void canonicalize_q8_1(absl::Span<std::byte> blocks) {
  for (std::size_t at = 0; at + kQ8_1Bytes <= blocks.size(); at += kQ8_1Bytes) {
    if (read(&blocks[at]).is_nan()) write({.d = kNan}, &blocks[at]);
  }
}

}  // namespace ptxgen::reference
