// Products of the executor, as commands run them: which ones there are, and one with data of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/executor.h"
#include "tools/ptxgen/measure.h"

namespace ptxgen {
namespace tool {

// Executor::gemv_batch() and Executor::gemm().
enum class ProductKind : u8 { kGemv, kGemm };

// Activations as f32, which the call itself converts where it has to, or prepared as their path takes them.
enum class ProductInputs : u8 { kF32, kPrepared };

}  // namespace tool

template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<tool::ProductKind> = {"gemv", "gemm"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<tool::ProductInputs> = {"f32", "prepared"};

namespace tool {

struct ProductShape {
  Format format = Format::kQ4_K;
  u32 n = 4096;
  u32 k = 4096;
  u32 m = 512;
  ProductInputs a_type = ProductInputs::kF32;

  static constexpr auto fields() {
    return std::tuple(field("format", &ProductShape::format, "format of the weights"),
                      field("n", &ProductShape::n, "rows of weights", {1, 1u << 28}),
                      field("k", &ProductShape::k, "values in a row", &ProductShape::k_bounds),
                      field("m", &ProductShape::m, "rows of activations", {1, 1u << 24}),
                      field("a_type", &ProductShape::a_type, "type of the activations"));
  }
  Bounds k_bounds() const { return GemmShape{.format = format}.k_bounds(); }
};

// Who computes a product: a variant that is asked for, or whoever the policy chooses.
struct ProductPath {
  std::variant<std::monostate, GemvVariant, GemmVariant> variant = {};

  std::string to_string() const;  // "auto", "wgmma tile_m=64"

  template <class Variant>
  std::optional<Variant> as() const {
    const Variant* asked = std::get_if<Variant>(&variant);
    return asked ? std::optional(*asked) : std::nullopt;
  }
};

inline constexpr std::string_view kAllPaths = "all";
// "auto", "all", or variants with commas between them: "auto,mma,wgmma tile_m=64".
absl::StatusOr<std::vector<ProductPath>> parse_paths(ProductKind kind, std::string_view text);

struct Product {
  ProductKind kind = ProductKind::kGemm;
  ProductShape shape = {};
  ProductPath path = {};
};

// Weights, activations and room for results on a device, with the random content that
// reference::product_operation() makes of `seed`, and level() of the weights. Every call has weights of its
// own, so that it finds them in no cache; activations and results are the same for all, as the kernels before
// and after them would have it.
class ProductData {
 public:
  // For products with this shape's weights, of up to shape.m rows.
  static absl::StatusOr<ProductData> make(const Device& device, const ProductShape& shape, u64 seed,
                                          const RotationOptions& rotation);

  bool serves(const ProductShape& shape) const;
  u32 calls() const { return static_cast<u32>(weights_.size()); }
  // Enough where copies of the weights in f16 are read.
  u32 calls_on_copies() const { return calls_on_copies_; }
  const WeightMatrix& weights(u32 call) const { return weights_[call]; }
  DevicePtr<const f32, 16> a() const { return a_.ptr<const f32, 16>(); }
  Buffer& c() { return c_; }

 private:
  explicit ProductData(const ProductShape& shape) : shape_(shape) {}

  ProductShape shape_;
  u32 calls_on_copies_ = 0;
  std::vector<WeightMatrix> weights_;
  Buffer a_, c_;
};

// The data of one product after the other; consecutive ones with the same weights share theirs.
class ProductStock {
 public:
  // Room for as many rows as any of `all` with these weights has.
  absl::Status prepare(const Device& device, ProductShape shape, const std::vector<Product>& all, u64 seed,
                       const RotationOptions& rotation);
  ProductData& operator*() { return *data_; }
  ProductData* operator->() { return &*data_; }

 private:
  std::optional<ProductData> data_;
};

// A product as the executor runs it; both and the data must outlive it. The first call compiles what it
// needs, and is not to be recorded.
class ProductRun {
 public:
  // With room for its activations where they are prepared, of this type or of the one its path is fastest
  // with. Refused where the policy refuses it.
  static absl::StatusOr<ProductRun> make(Executor& executor, ProductData& data, const Product& product);
  static absl::StatusOr<ProductRun> make(Executor& executor, ProductData& data, const Product& product,
                                         Activations type);

  // How many it takes for weights that are in no cache.
  u32 calls() const;
  bool prepares() const { return prepared_.has_value(); }
  // What activations the call is given.
  Activations a_type() const { return prepared_ ? prepared_->type() : Activations::kF32; }
  // Prepares the activations; nothing where they are not prepared.
  absl::Status prepare(const Stream& stream);
  // With the weights of this call.
  absl::StatusOr<GemmReport> multiply(const Stream& stream, u32 call) const;

 private:
  ProductRun(Executor& executor, ProductData& data, const Product& product)
      : executor_(executor), data_(data), product_(product) {}

  Executor& executor_;
  ProductData& data_;
  Product product_;
  std::optional<PreparedActivations> prepared_;
};

}  // namespace tool
}  // namespace ptxgen
