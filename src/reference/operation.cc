#include "src/reference/operation.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "ptxgen/kernels.h"
#include "src/reference/convert_operation.h"
#include "src/reference/dequantize.h"
#include "src/reference/gemv_operation.h"
#include "src/reference/generate.h"

namespace ptxgen::reference {
namespace {

class DequantOperation final : public Operation {
 public:
  DequantOperation(const Dequant& kernel, ArgInfos arguments)
      : Operation(std::move(arguments)), kernel_(kernel) {}

  u64 unit(std::size_t argument) const override {
    const FormatInfo& format = info(kernel_.format);
    return argument == kWeights ? format.block_bytes : format.block_values * bytes_of(kernel_.out_type);
  }

 private:
  static constexpr std::size_t kWeights = 0, kOut = 1;

  void make(std::size_t, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    random_blocks_at(kernel_.format, seed, offset / unit(kWeights), piece);
  }
  absl::Status compute(std::size_t, u64 offset, ReadInput read, absl::Span<std::byte> piece) const override {
    const u64 first = offset / unit(kOut), count = piece.size() / unit(kOut);
    std::vector<std::byte> blocks(count * unit(kWeights));
    if (absl::Status s = read(kWeights, first * unit(kWeights), absl::MakeSpan(blocks)); !s.ok()) return s;
    std::vector<float> values(count * info(kernel_.format).block_values);
    if (absl::Status s = dequantize(kernel_.format, blocks, absl::MakeSpan(values)); !s.ok()) return s;
    return narrow(float_type(kernel_.out_type), values, piece);
  }
  std::optional<FloatType> type(std::size_t) const override { return float_type(kernel_.out_type); }

  const Dequant kernel_;
};

// Bytes that betray the wrong place: each 8-byte word is its index, mixed with the seed.
void fill_with_places(u64 seed, u64 offset, absl::Span<std::byte> piece) {
  for (std::size_t at = 0; at < piece.size(); at += sizeof(u64)) {
    const u64 word = ((offset + at) / sizeof(u64) + 1) * 0x9e3779b97f4a7c15 ^ seed;
    std::memcpy(piece.data() + at, &word, std::min(sizeof(word), piece.size() - at));
  }
}

class CopyOperation final : public Operation {
 public:
  explicit CopyOperation(ArgInfos arguments) : Operation(std::move(arguments)) {}

  u64 unit(std::size_t) const override { return 16; }

 private:
  static constexpr std::size_t kSrc = 0;

  void make(std::size_t, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    fill_with_places(seed, offset, piece);
  }
  absl::Status compute(std::size_t, u64 offset, ReadInput read, absl::Span<std::byte> piece) const override {
    return read(kSrc, offset, piece);
  }
  std::optional<FloatType> type(std::size_t) const override { return std::nullopt; }
};

class ReadOperation final : public Operation {
 public:
  ReadOperation(ArgInfos arguments, u32 least) : Operation(std::move(arguments)), least_(least) {}

  u64 unit(std::size_t argument) const override { return argument == kSrc ? 16 : sizeof(u32); }

 private:
  static constexpr std::size_t kSrc = 0, kSum = 1;

  void make(std::size_t, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    fill_with_places(seed, offset, piece);
  }
  absl::Status compute(std::size_t, u64 offset, ReadInput read, absl::Span<std::byte> piece) const override {
    if (least_ != 0) {
      return absl::UnimplementedError(str_cat("least is ", least_,
                                              ", and with that the sum depends on which thread reads what; "
                                              "compare with least=0"));
    }
    if (absl::Status s = read(kSum, offset, piece); !s.ok()) return s;
    constexpr u64 kBytesAtOnce = 1 << 20;
    std::vector<std::byte> words(std::min(arguments()[kSrc].bytes, kBytesAtOnce));
    for (u64 at = 0; at < arguments()[kSrc].bytes; at += words.size()) {
      words.resize(std::min<u64>(words.size(), arguments()[kSrc].bytes - at));
      if (absl::Status s = read(kSrc, at, absl::MakeSpan(words)); !s.ok()) return s;
      for (std::size_t i = 0; i < words.size(); ++i) piece[i % sizeof(u32)] ^= words[i];
    }
    return absl::OkStatus();
  }
  std::optional<FloatType> type(std::size_t) const override { return std::nullopt; }

  const u32 least_;
};

}  // namespace

bool Operation::reads(std::size_t argument) const {
  const Direction direction = arguments_[argument].direction;
  return direction == Direction::kIn || direction == Direction::kInOut;
}
bool Operation::writes(std::size_t argument) const {
  const Direction direction = arguments_[argument].direction;
  return direction == Direction::kOut || direction == Direction::kInOut;
}

absl::Status Operation::check_piece(std::size_t argument, u64 offset, u64 bytes) const {
  const ArgInfo& info = arguments_[argument];
  if (offset > info.bytes || bytes > info.bytes - offset) {
    return absl::InvalidArgumentError(str_cat(info.name, " has ", info.bytes, " bytes; a piece of ", bytes,
                                              " at ", offset, " is not in it"));
  }
  if (offset % unit(argument) != 0 || bytes % unit(argument) != 0) {
    return absl::InvalidArgumentError(str_cat("a piece of ", bytes, " bytes at ", offset, " of ", info.name,
                                              " does not begin and end at a multiple of ", unit(argument)));
  }
  return absl::OkStatus();
}

absl::Status Operation::make_input(std::size_t argument, u64 seed, u64 offset,
                                   absl::Span<std::byte> piece) const {
  if (!reads(argument)) return absl::InvalidArgumentError(str_cat(arguments_[argument].name, " is no input"));
  if (absl::Status s = check_piece(argument, offset, piece.size()); !s.ok()) return s;
  make(argument, seed, offset, piece);
  return absl::OkStatus();
}

absl::Status Operation::check_output(std::size_t argument, u64 offset, u64 bytes) const {
  if (!writes(argument))
    return absl::InvalidArgumentError(str_cat(arguments_[argument].name, " is no output"));
  return check_piece(argument, offset, bytes);
}

absl::Status Operation::expect(std::size_t argument, u64 offset, ReadInput read,
                               absl::Span<std::byte> piece) const {
  if (absl::Status s = check_output(argument, offset, piece.size()); !s.ok()) return s;
  return compute(argument, offset, read, piece);
}

absl::StatusOr<std::vector<Bounded>> Operation::compute_bounded(std::size_t argument, u64, ReadInput,
                                                                std::size_t) const {
  return absl::UnimplementedError(str_cat(arguments_[argument].name, " has no bounds"));
}

absl::Status Operation::compute(std::size_t argument, u64 offset, ReadInput read,
                                absl::Span<std::byte> piece) const {
  const auto expected = compute_bounded(argument, offset, read, piece.size() / sizeof(f32));
  if (!expected.ok()) return expected.status();
  std::vector<float> values;
  for (const Bounded& bounded : *expected) values.push_back(static_cast<float>(bounded.value));
  return narrow(FloatType::kF32, values, piece);
}

absl::StatusOr<Comparison> Operation::check(std::size_t argument, u64 offset, ReadInput read,
                                            absl::Span<const std::byte> actual) const {
  if (absl::Status s = check_output(argument, offset, actual.size()); !s.ok()) return s;
  absl::StatusOr<Comparison> piece;
  if (is_bounded(argument)) {
    const auto expected = compute_bounded(argument, offset, read, actual.size() / sizeof(f32));
    if (!expected.ok()) return expected.status();
    piece = compare(*expected, actual);
  } else {
    std::vector<std::byte> expected(actual.size()), given(actual.begin(), actual.end());
    if (absl::Status s = compute(argument, offset, read, absl::MakeSpan(expected)); !s.ok()) return s;
    canonicalize(argument, absl::MakeSpan(expected));
    canonicalize(argument, absl::MakeSpan(given));
    piece = compare(type(argument), expected, given);
  }
  if (!piece.ok()) return piece;
  for (Mismatch& mismatch : piece->first) mismatch.index += offset / size_of(type(argument));
  return piece;
}

absl::StatusOr<std::unique_ptr<Operation>> operation_of(const KernelType& kernel, ArgValues values) {
  ArgInfos arguments = kernel->arguments(values);
  if (const auto* dequant = kernel.get_if<Dequant>())
    return std::make_unique<DequantOperation>(*dequant, std::move(arguments));
  if (kernel.get_if<Copy>()) return std::make_unique<CopyOperation>(std::move(arguments));
  if (kernel.get_if<Read>())
    return std::make_unique<ReadOperation>(std::move(arguments), static_cast<u32>(values[2]));
  if (kernel.get_if<QuantizeQ8_1>()) return quantize_operation(std::move(arguments));
  if (const auto* convert = kernel.get_if<Convert>())
    return convert_operation(*convert, std::move(arguments),
                             std::bit_cast<float>(static_cast<u32>(values[3])));
  if (const auto* absmax = kernel.get_if<Absmax>()) return absmax_operation(*absmax, std::move(arguments));
  if (const auto* gemv = kernel.get_if<Gemv>()) return gemv_operation(*gemv, std::move(arguments));
  if (const auto* batched = kernel.get_if<BatchedGemv>())
    return gemv_operation(*batched, std::move(arguments));
  if (const auto* fused = kernel.get_if<FusedGemv>()) {
    const float epsilon = std::bit_cast<float>(static_cast<u32>(values.back()));
    return gemv_operation(*fused, std::move(arguments), epsilon);
  }
  if (const auto* stage = kernel.get_if<StageF16>())
    return stage_operation(*stage, std::move(arguments), values.back());
  if (const auto* gemm = kernel.get_if<Gemm>())
    return gemm_operation(*gemm, std::move(arguments), values.back());
  return absl::UnimplementedError(str_cat("there is no reference for ", kernel->name(),
                                          "; run it with `ptxgen run` and compare its results"));
}

}  // namespace ptxgen::reference
