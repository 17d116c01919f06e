#include "src/reference/gemv_operation.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "src/reference/generate.h"
#include "src/reference/half.h"
#include "src/reference/layer.h"
#include "src/reference/product.h"
#include "src/reference/q8_1.h"

namespace ptxgen::reference {
namespace {

using Bytes = std::vector<std::byte>;

constexpr u64 kF32Unit = kQ8_1Values * sizeof(float);  // of activations: what makes a block of int8

std::vector<float> floats_of(absl::Span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Activations in f32 from any place on; both ends may lie within a block of 32.
void make_f32(u64 seed, u64 offset, absl::Span<std::byte> piece) {
  const u64 skipped = offset % kF32Unit;
  std::vector<float> values((skipped + piece.size() + kF32Unit - 1) / kF32Unit * kQ8_1Values);
  random_activations_at(seed, (offset - skipped) / sizeof(float), absl::MakeSpan(values));
  std::memcpy(piece.data(), reinterpret_cast<const std::byte*>(values.data()) + skipped, piece.size());
}

// The same as blocks of int8.
void make_q8_1(u64 seed, u64 offset, absl::Span<std::byte> piece) {
  Bytes values(piece.size() / kQ8_1Bytes * kF32Unit);
  make_f32(seed, offset / kQ8_1Bytes * kF32Unit, absl::MakeSpan(values));
  quantize_q8_1(floats_of(values), piece).IgnoreError();  // the piece is whole blocks
}

// All of m rows of k values, staged as f16.
void make_staged(StagedOrder order, u64 m, u64 k, u64 seed, absl::Span<std::byte> piece) {
  Bytes values(m * k * sizeof(float));
  make_f32(seed, 0, absl::MakeSpan(values));
  const Bytes staged = stage_f16(order, floats_of(values), m, k);
  std::copy(staged.begin(), staged.end(), piece.begin());
}

class QuantizeOperation final : public Operation {
 public:
  explicit QuantizeOperation(ArgInfos arguments) : Operation(std::move(arguments)) {}

  u64 unit(std::size_t argument) const override { return argument == kSrc ? kF32Unit : kQ8_1Bytes; }

 private:
  static constexpr std::size_t kSrc = 0;

  void make(std::size_t, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    make_f32(seed, offset, piece);
  }
  absl::Status compute(std::size_t, u64 offset, ReadInput read, absl::Span<std::byte> piece) const override {
    Bytes values(piece.size() / kQ8_1Bytes * kF32Unit);
    const u64 first = offset / kQ8_1Bytes * kF32Unit;
    if (absl::Status s = read(kSrc, first, absl::MakeSpan(values)); !s.ok()) return s;
    return quantize_q8_1(floats_of(values), piece);
  }
  std::optional<FloatType> type(std::size_t) const override { return std::nullopt; }
  void canonicalize(std::size_t, absl::Span<std::byte> piece) const override { canonicalize_q8_1(piece); }
};

class StageOperation final : public Operation {
 public:
  StageOperation(const StageF16& kernel, ArgInfos arguments, u64 m)
      : Operation(std::move(arguments)), kernel_(kernel), m_(m) {}

  // Of the results all, since a row's values lie in many places.
  u64 unit(std::size_t argument) const override {
    return argument == kSrc ? kF32Unit : std::max<u64>(1, arguments()[argument].bytes);
  }

 private:
  static constexpr std::size_t kSrc = 0;

  void make(std::size_t, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    make_f32(seed, offset, piece);
  }
  absl::Status compute(std::size_t, u64, ReadInput read, absl::Span<std::byte> piece) const override {
    Bytes values(arguments()[kSrc].bytes);
    if (absl::Status s = read(kSrc, 0, absl::MakeSpan(values)); !s.ok()) return s;
    const Bytes staged = stage_f16(kernel_.order, floats_of(values), m_, kernel_.k);
    std::copy(staged.begin(), staged.end(), piece.begin());
    return absl::OkStatus();
  }
  std::optional<FloatType> type(std::size_t) const override { return std::nullopt; }

  const StageF16 kernel_;
  const u64 m_;
};

// Products of one x with several matrices, and what comes before and after them. Arguments by their places.
struct Products {
  struct Matrix {
    std::size_t weights, y;
    Format format;
    u64 n;
  };
  u64 k = 0;
  std::size_t x = 0;
  Activations x_type = Activations::kF32;
  u64 m = 1;
  bool int8 = false;                     // f32 activations are quantised first
  std::optional<HalfWeights> half = {};  // weights and activations are rounded to f16
  bool matrix = false;                   // as many rows of x as there are
  std::vector<Matrix> matrices = {};
  std::optional<std::size_t> gamma = {};  // RMSNorm
  float epsilon = 0;
  bool swiglu = false;                       // y of the first matrix is silu(its product) times the second's
  std::optional<std::size_t> residual = {};  // added to y of the first matrix

  void set(Arithmetic arithmetic) {
    int8 = arithmetic == Arithmetic::kInt8;
    if (arithmetic == Arithmetic::kF16) half = HalfWeights::kAsTheyAre;
    if (arithmetic == Arithmetic::kF16InRowUnits) half = HalfWeights::kInRowUnits;
  }
};

class ProductsOperation final : public Operation {
 public:
  ProductsOperation(Products products, ArgInfos arguments)
      : Operation(std::move(arguments)), products_(std::move(products)) {}

  u64 unit(std::size_t argument) const override {
    if (argument == products_.x && products_.x_type == Activations::kQ8_1) return kQ8_1Bytes;
    if (argument == products_.x && products_.x_type == Activations::kF16)
      return std::max<u64>(1, arguments()[argument].bytes);
    if (argument == products_.x || argument == products_.gamma) return kF32Unit;
    const Products::Matrix* matrix = matrix_of(argument);
    return matrix ? info(matrix->format).block_bytes : sizeof(float);
  }
  bool is_bounded(std::size_t) const override { return true; }
  void level(std::size_t argument, absl::Span<std::byte> all) const override {
    if (const Products::Matrix* matrix = matrix_of(argument)) level_scales(matrix->format, all);
  }

 private:
  // A row of activations as the products take it.
  using Row =
      std::variant<std::vector<float>, std::vector<Bounded>, std::vector<Q8_1>, UncertainQ8_1, HalfRow>;

  const Products::Matrix* matrix_of(std::size_t weights) const {
    for (const Products::Matrix& matrix : products_.matrices) {
      if (matrix.weights == weights) return &matrix;
    }
    return nullptr;
  }

  void make(std::size_t argument, u64 seed, u64 offset, absl::Span<std::byte> piece) const override {
    const u64 own_seed = seed + argument;
    if (const Products::Matrix* matrix = matrix_of(argument))
      return random_blocks_at(matrix->format, own_seed, offset / unit(argument), piece);
    if (argument == products_.x && products_.x_type == Activations::kF16)
      return make_staged(staged_order(products_.matrices[0].format), products_.m, products_.k, own_seed,
                         piece);
    if (unit(argument) == kQ8_1Bytes) return make_q8_1(own_seed, offset, piece);
    make_f32(own_seed, offset, piece);
  }

  std::optional<FloatType> type(std::size_t) const override { return FloatType::kF32; }

  absl::StatusOr<Row> row_of_x(u64 m, ReadInput read) const {
    if (products_.x_type == Activations::kF16) {
      Bytes staged(arguments()[products_.x].bytes);
      if (absl::Status s = read(products_.x, 0, absl::MakeSpan(staged)); !s.ok()) return s;
      return staged_row(staged_order(products_.matrices[0].format), staged, products_.m, products_.k, m);
    }
    Bytes x(products_.k / kQ8_1Values * unit(products_.x));
    if (absl::Status s = read(products_.x, m * x.size(), absl::MakeSpan(x)); !s.ok()) return s;
    if (products_.x_type == Activations::kQ8_1) return read_q8_1(x);
    std::vector<float> values = floats_of(x);
    if (products_.gamma) {
      Bytes gamma(products_.k * sizeof(float));
      if (absl::Status s = read(*products_.gamma, 0, absl::MakeSpan(gamma)); !s.ok()) return s;
      std::vector<Bounded> normed = rms_norm(values, floats_of(gamma), products_.epsilon);
      if (products_.int8) return quantize_q8_1(absl::MakeConstSpan(normed));
      return normed;
    }
    if (products_.half) return half_row(values);
    if (!products_.int8) return values;
    std::vector<Q8_1> blocks;
    for (u64 i = 0; i < products_.k; i += kQ8_1Values)
      blocks.push_back(quantize_q8_1(absl::MakeConstSpan(values).subspan(i, kQ8_1Values)));
    return blocks;
  }

  Bounded product(Format format, absl::Span<const std::byte> row, const Row& x) const {
    if (const HalfRow* half = std::get_if<HalfRow>(&x)) return dot(format, row, *half, *products_.half);
    return std::visit(
        [&]<class T>(const T& values) {
          if constexpr (std::is_same_v<T, HalfRow>) {
            return Bounded{};  // above
          } else {
            return dot(format, row, values);
          }
        },
        x);
  }

  // The products of rows [first, first + count) of a matrix; about a megabyte of weights at a time.
  absl::StatusOr<std::vector<Bounded>> multiply(const Products::Matrix& matrix, u64 first, u64 count,
                                                const Row& x, ReadInput read) const {
    const FormatInfo& format = info(matrix.format);
    const u64 row_bytes = products_.k / format.block_values * format.block_bytes;
    const u64 rows_at_once = std::max<u64>(1, (u64{1} << 20) / row_bytes);
    std::vector<Bounded> results;
    while (results.size() < count) {
      Bytes rows(std::min<u64>(rows_at_once, count - results.size()) * row_bytes);
      const u64 offset = (first + results.size()) * row_bytes;
      if (absl::Status s = read(matrix.weights, offset, absl::MakeSpan(rows)); !s.ok()) return s;
      for (u64 at = 0; at < rows.size(); at += row_bytes) {
        const auto row = absl::MakeConstSpan(rows).subspan(at, row_bytes);
        const Bounded result = product(matrix.format, row, x);
        // Of f16, dot() knows that.
        results.push_back(products_.matrix && !products_.half ? of_matrix_product(result) : result);
      }
    }
    return results;
  }

  // Rows [first, first + count) of a matrix for row m of x, with what is combined and added.
  absl::StatusOr<std::vector<Bounded>> compute_rows(const Products::Matrix& matrix, u64 m, u64 first,
                                                    u64 count, ReadInput read) const {
    const absl::StatusOr<Row> x = row_of_x(m, read);
    if (!x.ok()) return x.status();
    absl::StatusOr<std::vector<Bounded>> results = multiply(matrix, first, count, *x, read);
    if (!results.ok() || &matrix != products_.matrices.data()) return results;
    if (products_.swiglu) {
      const auto up = multiply(products_.matrices[1], first, count, *x, read);
      if (!up.ok()) return up.status();
      for (u64 i = 0; i < count; ++i) (*results)[i] = swiglu((*results)[i], (*up)[i]);
    }
    if (products_.residual) {
      Bytes residual(count * sizeof(float));
      const u64 offset = (m * matrix.n + first) * sizeof(float);
      if (absl::Status s = read(*products_.residual, offset, absl::MakeSpan(residual)); !s.ok()) return s;
      const std::vector<float> values = floats_of(residual);
      for (u64 i = 0; i < count; ++i) (*results)[i] = add({values[i], 0}, (*results)[i]);
    }
    return results;
  }

  absl::StatusOr<std::vector<Bounded>> compute_bounded(std::size_t argument, u64 offset, ReadInput read,
                                                       std::size_t count) const override {
    const auto& matrices = products_.matrices;
    const auto matrix = std::find_if(matrices.begin(), matrices.end(),
                                     [&](const Products::Matrix& one) { return one.y == argument; });
    // Staged activations are read once: they come as a whole only.
    Bytes staged;
    const auto read_once = [&](std::size_t input, u64 at, absl::Span<std::byte> piece) {
      if (input != products_.x || products_.x_type != Activations::kF16) return read(input, at, piece);
      if (staged.empty()) {
        staged.resize(piece.size());
        if (absl::Status s = read(input, at, absl::MakeSpan(staged)); !s.ok()) return s;
      }
      std::copy(staged.begin(), staged.end(), piece.begin());
      return absl::OkStatus();
    };
    std::vector<Bounded> results;
    while (results.size() < count) {
      const u64 element = offset / sizeof(float) + results.size();
      const u64 m = element / matrix->n, first = element % matrix->n;
      const auto rows = compute_rows(*matrix, m, first,
                                     std::min<u64>(matrix->n - first, count - results.size()), read_once);
      if (!rows.ok()) return rows.status();
      results.insert(results.end(), rows->begin(), rows->end());
    }
    return results;
  }

  const Products products_;
};

bool multiplies_int8(Schedule schedule) {
  switch (schedule) {
    case Schedule::kMultiWarpDp4a:
    case Schedule::kHalfWarpDp4a:
    case Schedule::kStream: return true;
    default: return false;
  }
}

}  // namespace

absl::StatusOr<Arithmetic> arithmetic_of(const KernelType& kernel) {
  if (const auto* gemv = kernel.get_if<Gemv>()) {
    const bool int8 = multiplies_int8(gemv->schedule) || gemv->x_type == Activations::kQ8_1;
    return int8 ? Arithmetic::kInt8 : Arithmetic::kF32;
  }
  if (kernel.get_if<BatchedGemv>()) return Arithmetic::kInt8;
  if (const auto* gemm = kernel.get_if<Gemm>()) {
    switch (gemm->schedule) {
      case GemmSchedule::kTiled: return Arithmetic::kF32;
      case GemmSchedule::kDp4a: return Arithmetic::kInt8;
      case GemmSchedule::kWmma:
      case GemmSchedule::kWmmaMultiWarp: return Arithmetic::kF16;
      case GemmSchedule::kMma:
      case GemmSchedule::kWgmma: return Arithmetic::kF16InRowUnits;
    }
  }
  return absl::UnimplementedError(str_cat(kernel->name(), " computes no product of one matrix"));
}

std::unique_ptr<Operation> product_operation(Format format, u32 n, u32 k, u32 m, Arithmetic arithmetic,
                                             bool matrix) {
  const KernelType of_f32 =
      Gemm{.format = format, .k = k, .n = n, .schedule = GemmSchedule::kTiled, .a_type = Activations::kF32};
  Products products;
  products.k = k;
  products.x = 1;
  products.m = m;
  products.set(arithmetic);
  products.matrix = matrix;
  products.matrices = {{0, 2, format, n}};
  return std::make_unique<ProductsOperation>(std::move(products),
                                             of_f32->arguments(std::vector<u64>{0, 0, 0, m}));
}

std::unique_ptr<Operation> quantize_operation(ArgInfos arguments) {
  return std::make_unique<QuantizeOperation>(std::move(arguments));
}

std::unique_ptr<Operation> gemv_operation(const Gemv& kernel, ArgInfos arguments) {
  Products products;
  products.k = kernel.k;
  products.x = 1;
  products.x_type = kernel.x_type;
  products.int8 = multiplies_int8(kernel.schedule);
  products.matrices = {{0, 2, kernel.format, kernel.n}};
  return std::make_unique<ProductsOperation>(std::move(products), std::move(arguments));
}

std::unique_ptr<Operation> gemv_operation(const BatchedGemv& kernel, ArgInfos arguments) {
  Products products;
  products.k = kernel.k;
  products.x = 1;
  products.x_type = kernel.x_type;
  products.int8 = true;
  products.matrices = {{0, 2, kernel.format, kernel.n}};
  return std::make_unique<ProductsOperation>(std::move(products), std::move(arguments));
}

std::unique_ptr<Operation> stage_operation(const StageF16& kernel, ArgInfos arguments, u64 m) {
  return std::make_unique<StageOperation>(kernel, std::move(arguments), m);
}

std::unique_ptr<Operation> gemm_operation(const Gemm& kernel, ArgInfos arguments, u64 m) {
  Products products;
  products.k = kernel.k;
  products.x = 1;
  products.x_type = kernel.a_type;
  products.m = m;
  products.set(*arithmetic_of(kernel));
  products.matrix = true;
  products.matrices = {{0, 2, kernel.format, kernel.n}};
  return std::make_unique<ProductsOperation>(std::move(products), std::move(arguments));
}

std::unique_ptr<Operation> gemv_operation(const FusedGemv& kernel, ArgInfos arguments, float epsilon) {
  Products products;
  products.k = kernel.k;
  products.x = 3;
  products.x_type = kernel.x_type;
  products.int8 = true;
  products.matrices = {{0, 6, kernel.format, kernel.n}};
  if (kernel.n_b > 0) products.matrices.push_back({1, 7, kernel.format_b, kernel.n_b});
  if (kernel.n_c > 0) products.matrices.push_back({2, 8, kernel.format_c, kernel.n_c});
  if (kernel.norm == Norm::kRms) products.gamma = 4;
  products.epsilon = epsilon;
  products.swiglu = kernel.combine == Combine::kSwiglu;
  if (kernel.residual == Residual::kAdd) products.residual = 5;
  return std::make_unique<ProductsOperation>(std::move(products), std::move(arguments));
}

}  // namespace ptxgen::reference
