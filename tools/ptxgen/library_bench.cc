#include "tools/ptxgen/library_bench.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "src/reference/generate.h"
#include "src/reference/narrow.h"

namespace ptxgen::tool {
namespace {

using internal::LtMultiplier;
using internal::LtProduct;
using internal::LtType;
using reference::FloatType;

constexpr std::pair<std::string_view, LtType> kTypes[] = {
    {"f32", LtType::kF32}, {"f16", LtType::kF16}, {"e4m3", LtType::kE4m3}};

FloatType float_type(LtType type) {
  if (type == LtType::kF32) return FloatType::kF32;
  return type == LtType::kF16 ? FloatType::kF16 : FloatType::kE4m3;
}

absl::StatusOr<LtProduct> parse(const std::string& launch) {
  LtProduct product = {};
  bool typed = false;
  std::map<std::string_view, u32*> numbers = {{"m", &product.m}, {"n", &product.n}, {"k", &product.k}};
  for (const absl::string_view word : absl::StrSplit(launch, ' ')) {
    const std::pair<std::string, std::string> field = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto number = numbers.find(field.first);
    if (number != numbers.end() && absl::SimpleAtoi(field.second, number->second)) numbers.erase(number);
    for (const auto& [name, type] : kTypes) {
      if (field.first != "type" || field.second != name) continue;
      product.type = type;
      typed = true;
    }
  }
  product.ldc = product.n;
  if (typed && numbers.empty()) return product;
  return absl::UnimplementedError(
      str_cat("'", launch, "' is no product of cuBLASLt that can be timed alone"));
}

// The same random values over and over: what they are matters little to the time, that they are no zeros
// much.
absl::StatusOr<Buffer> random_buffer(const Device& device, FloatType type, u64 values,
                                     std::string_view name) {
  constexpr u64 kSeed = 1, kAtOnce = 1 << 18;
  const std::vector<float> some = reference::random_activations(kAtOnce, kSeed);
  std::vector<std::byte> piece(kAtOnce * size_of(type));
  if (absl::Status s = reference::narrow(type, some, absl::MakeSpan(piece)); !s.ok()) return s;
  absl::StatusOr<Buffer> buffer = device.allocate(values * size_of(type), name);
  if (!buffer.ok()) return buffer;
  for (u64 at = 0; at < buffer->bytes(); at += piece.size()) {
    const u64 bytes = std::min<u64>(piece.size(), buffer->bytes() - at);
    if (absl::Status s = buffer->copy_from_host(piece.data(), bytes, at); !s.ok()) return s;
  }
  return buffer;
}

}  // namespace

absl::Status LibraryBench::open() {
  if (multiplier_) return absl::OkStatus();
  const absl::StatusOr<const internal::CublasLt*> lt = internal::open_cublaslt("");
  if (!lt.ok()) return lt.status();
  auto multiplier = LtMultiplier::create(**lt, internal::DeviceAccess::state(device_));
  if (!multiplier.ok()) return multiplier.status();
  absl::StatusOr<Buffer> workspace = device_.allocate(LtMultiplier::kWorkspaceBytes, "workspace");
  if (!workspace.ok()) return workspace.status();
  workspace_ = *std::move(workspace);
  multiplier_ = *std::move(multiplier);
  return absl::OkStatus();
}

absl::Status LibraryBench::prepare_weights(const LtProduct& product) {
  const FloatType type = float_type(product.type);
  const u64 values = u64{product.n} * product.k, bytes = values * size_of(type);
  std::string wanted = str_cat(static_cast<int>(type), " ", product.n, " ", product.k);
  if (weights_of_ == wanted) return absl::OkStatus();
  weights_of_.clear();
  weights_.clear();  // their memory is needed
  const u32 calls = calls_for(bytes, device_.properties().memory_bytes, options_.rotation());
  while (weights_.size() < calls) {
    absl::StatusOr<Buffer> buffer = weights_.empty() ? random_buffer(device_, type, values, "weights")
                                                     : device_.allocate(bytes, "weights");
    if (!buffer.ok()) return buffer.status();
    if (!weights_.empty()) {
      if (absl::Status s = buffer->copy_from(weights_[0], bytes, stream_); !s.ok()) return s;
    }
    weights_.push_back(*std::move(buffer));
  }
  weights_of_ = std::move(wanted);
  return stream_.synchronize();
}

absl::StatusOr<LibraryCall> LibraryBench::prepare(LtProduct product) {
  if (absl::Status s = open(); !s.ok()) return s;
  if (absl::Status s = prepare_weights(product); !s.ok()) return s;
  const FloatType type = float_type(product.type);
  absl::StatusOr<Buffer> a = random_buffer(device_, type, u64{product.m} * product.k, "a");
  absl::StatusOr<Buffer> c = device_.allocate(u64{product.m} * product.n * sizeof(f32), "c");
  absl::StatusOr<Buffer> one = device_.allocate(sizeof(f32), "scale");
  for (const absl::Status& s : {a.status(), c.status(), one.status()}) {
    if (!s.ok()) return s;
  }
  constexpr f32 kOne = 1;
  if (absl::Status s = one->copy_from_host(&kOne, sizeof(kOne)); !s.ok()) return s;
  product.a = a->address();
  product.c = c->address();
  if (type == FloatType::kE4m3) product.a_scale = product.w_scale = one->address();
  LibraryCall prepared{product, *std::move(a), *std::move(c), *std::move(one)};
  // The library may load code for its first call, which no recording does.
  if (absl::Status s = multiply(prepared, 0); !s.ok()) return s;
  if (absl::Status s = stream_.synchronize(); !s.ok()) return s;
  const absl::StatusOr<Timing> alone =
      time_calls(stream_, 1, 1, [&](u32 call) { return multiply(prepared, call); });
  if (!alone.ok()) return alone.status();
  prepared.alone = alone->median;
  prepared.calls = options_.calls_for(static_cast<u32>(weights_.size()), alone->median);
  return prepared;
}

absl::Status LibraryBench::multiply(const LibraryCall& prepared, u32 call) const {
  LtProduct own = prepared.product;
  own.w = weights_[call].address();
  return multiplier_->multiply(stream_.native(), own, workspace_.address());
}

absl::StatusOr<LibraryTime> LibraryBench::time(const std::string& launch) {
  const auto found = measured_.find(launch);
  if (found != measured_.end()) return found->second;
  const absl::StatusOr<LtProduct> product = parse(launch);
  if (!product.ok()) return product.status();
  const auto measure = [&]() -> absl::StatusOr<LibraryTime> {
    const absl::StatusOr<LibraryCall> prepared = prepare(*product);
    if (!prepared.ok()) return prepared.status();
    const absl::StatusOr<Timing> time =
        time_calls(stream_, prepared->calls, options_.replays_for(prepared->calls, prepared->alone),
                   [&](u32 call) { return multiply(*prepared, call); });
    if (!time.ok()) return time.status();
    return LibraryTime{*time, prepared->calls};
  };
  return measured_.emplace(launch, measure()).first->second;
}

absl::StatusOr<LibraryCall> LibraryBench::prepare_f16(u32 m, u32 n, u32 k) {
  return prepare({.type = LtType::kF16, .m = m, .n = n, .k = k, .ldc = n, .a = 0, .w = 0, .c = 0});
}

}  // namespace ptxgen::tool
