#include "tools/ptxgen/compare.h"

#include <algorithm>
#include <vector>

#include "src/reference/compare.h"
#include "src/reference/dequantize.h"
#include "src/reference/generate.h"
#include "src/reference/narrow.h"
#include "tools/ptxgen/launch.h"

namespace ptxgen::tool {
namespace {

using reference::FloatType;

constexpr u64 kPieceValues = 1 << 18;

constexpr FloatType float_type(OutType type) {
  switch (type) {
    case OutType::kF16: return FloatType::kF16;
    case OutType::kBf16: return FloatType::kBf16;
    case OutType::kF32: break;
  }
  return FloatType::kF32;
}

// The first difference of a piece that begins at value `first`.
std::string difference_of(reference::Comparison piece, u64 first) {
  piece.first.resize(1);
  piece.first.front().index += first;
  return piece.to_string();
}

// Calls visit(first, count) for pieces of `total`.
template <class Visit>
absl::Status for_each_piece(u64 total, u64 piece, Visit visit) {
  for (u64 first = 0; first < total; first += piece) {
    if (absl::Status s = visit(first, std::min(piece, total - first)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// One piece of a dequantisation: what it should be, what it is.
class PieceChecker {
 public:
  explicit PieceChecker(const Dequant& kernel) : kernel_(kernel), type_(float_type(kernel.out_type)) {}

  absl::Status check(absl::Span<const std::byte> blocks, u64 first_value, const Buffer& out,
                     Verified& verified) {
    const FormatInfo& format = info(kernel_.format);
    values_.resize(blocks.size() / format.block_bytes * format.block_values);
    expected_.resize(values_.size() * size_of(type_));
    actual_.resize(expected_.size());
    if (absl::Status s = reference::dequantize(kernel_.format, blocks, absl::MakeSpan(values_)); !s.ok())
      return s;
    if (absl::Status s = reference::narrow(type_, values_, absl::MakeSpan(expected_)); !s.ok()) return s;
    const u64 offset = first_value * size_of(type_);
    if (absl::Status s = out.copy_to_host(actual_.data(), actual_.size(), offset); !s.ok()) return s;
    const absl::StatusOr<reference::Comparison> piece = reference::compare(type_, expected_, actual_);
    if (!piece.ok()) return piece.status();
    verified.values += piece->values;
    verified.mismatches += piece->mismatches;
    if (!piece->equal() && verified.difference.empty())
      verified.difference = difference_of(*piece, first_value);
    return absl::OkStatus();
  }

 private:
  const Dequant kernel_;
  const FloatType type_;
  std::vector<float> values_;
  std::vector<std::byte> expected_, actual_;
};

// Bytes that a copy of the wrong place would betray: each 8-byte word is its index, mixed with the seed.
std::vector<std::byte> words(u64 seed, u64 first, u64 count) {
  std::vector<u64> numbers(count);
  for (u64 i = 0; i < count; ++i) numbers[i] = (first + i + 1) * 0x9e3779b97f4a7c15 ^ seed;
  const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
  return {bytes, bytes + count * sizeof(u64)};
}

absl::StatusOr<Verified> verify_copy(KernelCache& cache, const Copy& kernel, u64 seed) {
  absl::StatusOr<Launch> launch = Launch::prepare(cache, kernel, {0, 0});
  if (!launch.ok()) return launch.status();
  constexpr u64 kWord = sizeof(u64);
  const u64 total = kernel.bytes({}) / kWord;
  const auto upload = [&](u64 first, u64 count) {
    return launch->buffer(0).copy_from_host(words(seed, first, count).data(), count * kWord, first * kWord);
  };
  if (absl::Status s = for_each_piece(total, kPieceValues, upload); !s.ok()) return s;
  const absl::StatusOr<float> ms = launch->run();
  if (!ms.ok()) return ms.status();

  Verified verified{.values = total * kWord, .ms = *ms};
  const auto compare = [&](u64 first, u64 count) {
    const std::vector<std::byte> expected = words(seed, first, count);
    std::vector<std::byte> actual(expected.size());
    if (absl::Status s = launch->buffer(1).copy_to_host(actual.data(), actual.size(), first * kWord); !s.ok())
      return s;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (actual[i] == expected[i]) continue;
      if (verified.mismatches++ > 0) continue;
      verified.difference = str_cat("byte ", first * kWord + i, ": expected ", static_cast<int>(expected[i]),
                                    ", got ", static_cast<int>(actual[i]));
    }
    return absl::OkStatus();
  };
  if (absl::Status s = for_each_piece(total, kPieceValues, compare); !s.ok()) return s;
  return verified;
}

}  // namespace

absl::StatusOr<Verified> verify_dequant(KernelCache& cache, const Dequant& kernel, BlockSource blocks) {
  absl::StatusOr<Launch> launch = Launch::prepare(cache, kernel, {0, 0});
  if (!launch.ok()) return launch.status();
  const FormatInfo& format = info(kernel.format);
  const u64 piece = kPieceValues / format.block_values;
  const auto upload = [&](u64 first, u64 count) {
    return blocks(first, count, [&](absl::Span<const std::byte> bytes) {
      return launch->buffer(0).copy_from_host(bytes.data(), bytes.size(), first * format.block_bytes);
    });
  };
  if (absl::Status s = for_each_piece(kernel.num_blocks(), piece, upload); !s.ok()) return s;
  const absl::StatusOr<float> ms = launch->run();
  if (!ms.ok()) return ms.status();

  Verified verified{.ms = *ms};
  PieceChecker checker(kernel);
  const auto check = [&](u64 first, u64 count) {
    return blocks(first, count, [&](absl::Span<const std::byte> bytes) {
      return checker.check(bytes, first * format.block_values, launch->buffer(1), verified);
    });
  };
  if (absl::Status s = for_each_piece(kernel.num_blocks(), piece, check); !s.ok()) return s;
  return verified;
}

absl::StatusOr<Verified> verify_generated(KernelCache& cache, const KernelType& kernel, u64 seed) {
  if (const Dequant* dequant = kernel.get_if<Dequant>()) {
    return verify_dequant(cache, *dequant, [&](u64 first, u64 count, UseBlocks use) {
      return use(reference::random_blocks(dequant->format, count, seed ^ first));
    });
  }
  if (const Copy* copy = kernel.get_if<Copy>()) return verify_copy(cache, *copy, seed);
  return absl::UnimplementedError(str_cat("there is no reference for ", kernel->name(),
                                          "; run it with `ptxgen run` and compare its results"));
}

}  // namespace ptxgen::tool
