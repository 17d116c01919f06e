#include "src/reference/product.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "src/reference/unpack.h"

namespace ptxgen::reference {
namespace {

constexpr double kUnit = 0x1p-24;

// A sub-block's d * scale and m * min, exact in f64.
struct Factors {
  double scale, shift;
};

Factors factors(const Unpacked& block, int j) {
  const double scale = static_cast<double>(block.d) * block.scale[j];
  return {scale, block.has_min ? static_cast<double>(block.m) * block.min[j] : 0};
}

// Calls visit(block, j, first) for every sub-block j; `first` is the place of its first value in the row.
template <class Visit>
void for_each_sub_block(Format format, absl::Span<const std::byte> row, Visit visit) {
  std::size_t first = 0;
  for_each_block(format, row, [&](const Unpacked& block) {
    for (int j = 0; j * block.sub_block < block.values; ++j) {
      visit(block, j, first);
      first += static_cast<std::size_t>(block.sub_block);
    }
  });
}

}  // namespace

double rounding_bound(std::size_t k, double magnitude) {
  if (magnitude > std::numeric_limits<float>::max()) return std::numeric_limits<double>::infinity();
  const double terms = static_cast<double>(k);
  return (terms / 16 + 32) * kUnit * magnitude + terms * 0x1p-126;
}

Bounded dot(Format format, absl::Span<const std::byte> row, absl::Span<const float> x) {
  double sum = 0, magnitude = 0;
  for_each_sub_block(format, row, [&](const Unpacked& block, int j, std::size_t first) {
    const Factors f = factors(block, j);
    for (int i = 0; i < block.sub_block; ++i) {
      const double q = block.q[j * block.sub_block + i], activation = x[first + static_cast<std::size_t>(i)];
      sum += (q * f.scale + f.shift) * activation;
      magnitude += (std::abs(q * f.scale) + std::abs(f.shift)) * std::abs(activation);
    }
  });
  if (!std::isfinite(sum)) return {sum, 0};
  return {sum, rounding_bound(x.size(), magnitude)};
}

Bounded dot(Format format, absl::Span<const std::byte> row, absl::Span<const Q8_1> x) {
  double sum = 0, magnitude = 0;
  for_each_sub_block(format, row, [&](const Unpacked& block, int j, std::size_t first) {
    const Factors f = factors(block, j);
    const Q8_1& activations = x[first / kQ8_1Values];
    const std::int8_t* xq = &activations.q[first % kQ8_1Values];
    std::int64_t products = 0, total = 0, absolute_products = 0, absolute_total = 0;
    for (int i = 0; i < block.sub_block; ++i) {
      const int q = block.q[j * block.sub_block + i];
      products += q * xq[i];
      total += xq[i];
      absolute_products += std::abs(q * xq[i]);
      absolute_total += std::abs(xq[i]);
    }
    const double d = activations.scale();
    sum += d * (f.scale * static_cast<double>(products) + f.shift * static_cast<double>(total));
    magnitude += std::abs(d) * (std::abs(f.scale) * static_cast<double>(absolute_products) +
                                std::abs(f.shift) * static_cast<double>(absolute_total));
  });
  if (!std::isfinite(sum)) return {sum, 0};
  return {sum, rounding_bound(x.size() * kQ8_1Values, magnitude)};
}

namespace {

// The sum of |w| * slack(i); terms without slack count nothing, whatever w is.
template <class Slack>
double spread(Format format, absl::Span<const std::byte> row, Slack slack) {
  double sum = 0;
  for_each_sub_block(format, row, [&](const Unpacked& block, int j, std::size_t first) {
    const Factors f = factors(block, j);
    for (int i = 0; i < block.sub_block; ++i) {
      const double one = slack(first + static_cast<std::size_t>(i));
      if (one != 0) sum += std::abs(block.q[j * block.sub_block + i] * f.scale + f.shift) * one;
    }
  });
  return sum;
}

}  // namespace

Bounded dot(Format format, absl::Span<const std::byte> row, absl::Span<const Bounded> x) {
  std::vector<float> middles;
  for (const Bounded& value : x) middles.push_back(static_cast<float>(value.value));
  Bounded product = dot(format, row, middles);
  // The middles were rounded to f32.
  product.bound += spread(format, row, [&](std::size_t i) {
    return std::isfinite(x[i].value) ? x[i].bound + kUnit * std::abs(x[i].value) : 0;
  });
  return product;
}

Bounded dot(Format format, absl::Span<const std::byte> row, const UncertainQ8_1& x) {
  Bounded product = dot(format, row, absl::MakeConstSpan(x.blocks));
  product.bound += spread(format, row, [&](std::size_t i) { return x.slack[i]; });
  return product;
}

}  // namespace ptxgen::reference
