#include "tools/ptxgen/product.h"

#include <algorithm>
#include <memory>

#include "src/reference/gemv_operation.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {
namespace {

constexpr std::string_view kAuto = "auto";

// Every schedule and path there is, with tiles and plans of the policy's choice.
std::string all_paths(ProductKind kind) {
  std::string text(kAuto);
  if (kind == ProductKind::kGemv) {
    for (const std::string_view name : kEnumNames<Schedule>) str_append(&text, ",", name);
  } else {
    for (const std::string_view name : kEnumNames<GemmSchedule>) str_append(&text, ",", name);
    for (std::size_t i = 1; i < kEnumNames<GemmPath>.size(); ++i)  // 0: those
      str_append(&text, ",", kEnumNames<GemmPath>[i]);
  }
  return text;
}

template <class Variant>
absl::StatusOr<ProductPath> parse_path(const std::string& text) {
  const absl::StatusOr<Variant> variant = Variant::parse(text);
  if (variant.ok()) return ProductPath{*variant};
  return absl::InvalidArgumentError(
      str_cat("--path ", variant.status().message(), "; or ", kAuto, ", or ", kAllPaths));
}

GemvShape gemv_shape(const ProductShape& shape, Activations type) {
  return {shape.format, shape.n, shape.k, shape.m, type};
}
GemmShape gemm_shape(const ProductShape& shape, Activations type) {
  return {shape.format, shape.n, shape.k, shape.m, type};
}

// Ok, or why the policy has no such product.
absl::Status allows(const DevicePolicy& policy, const Product& product, Activations type) {
  if (product.kind == ProductKind::kGemm) {
    return policy.choose(gemm_shape(product.shape, type), true, product.path.as<GemmVariant>()).status();
  }
  return policy.choose(gemv_shape(product.shape, type), true, product.path.as<GemvVariant>()).status();
}

// The prepared activations that the product's path takes, the fastest first.
absl::StatusOr<Activations> prepared_type(const DevicePolicy& policy, const Product& product) {
  absl::Status first_refusal;
  for (const Activations type :
       {Activations::kF16, Activations::kQ8_1, Activations::kF16Rows, Activations::kE4m3}) {
    if (product.kind == ProductKind::kGemv && type != Activations::kQ8_1) continue;
    const absl::Status allowed = allows(policy, product, type);
    if (allowed.ok()) return type;
    first_refusal.Update(allowed);
  }
  return first_refusal;
}

absl::StatusOr<PreparedActivations> make_activations(const Executor& executor, const ProductShape& shape,
                                                     Activations type) {
  if (type == Activations::kF16)
    return executor.make_activations(shape.k, shape.m, staged_order(shape.format));
  return executor.make_activations(shape.k, shape.m, type);
}

absl::Status fill(const reference::Operation& operation, std::size_t argument, u64 seed, Buffer& buffer) {
  std::vector<std::byte> content(operation.arguments()[argument].bytes);
  if (absl::Status s = operation.make_input(argument, seed, 0, absl::MakeSpan(content)); !s.ok()) return s;
  operation.level(argument, absl::MakeSpan(content));
  return buffer.copy_from_host(content.data(), content.size());
}

}  // namespace

std::string ProductPath::to_string() const {
  if (const auto* gemv = std::get_if<GemvVariant>(&variant)) return gemv->to_string();
  if (const auto* gemm = std::get_if<GemmVariant>(&variant)) return gemm->to_string();
  return std::string(kAuto);
}

absl::StatusOr<std::vector<ProductPath>> parse_paths(ProductKind kind, std::string_view text) {
  const absl::StatusOr<std::vector<std::string>> parts =
      split_list("--path", text == kAllPaths ? all_paths(kind) : text);
  if (!parts.ok()) return parts.status();
  std::vector<ProductPath> paths;
  for (const std::string& part : *parts) {
    absl::StatusOr<ProductPath> path = part == kAuto                ? ProductPath{}
                                       : kind == ProductKind::kGemv ? parse_path<GemvVariant>(part)
                                                                    : parse_path<GemmVariant>(part);
    if (!path.ok()) return path.status();
    paths.push_back(*std::move(path));
  }
  return paths;
}

absl::StatusOr<ProductData> ProductData::make(const Device& device, const ProductShape& shape, u64 seed,
                                              const RotationOptions& rotation) {
  if (absl::Status s = check_fields(shape); !s.ok()) return s;
  const auto operation = reference::product_operation(shape.format, shape.n, shape.k, shape.m,
                                                      reference::Arithmetic::kF32, true);
  ProductData data(shape);
  const auto allocate = [&](std::size_t argument) {
    const ArgInfo& info = operation->arguments()[argument];
    return device.allocate(info.bytes, info.name);
  };
  absl::StatusOr<Buffer> a = allocate(1), c = allocate(2);
  for (const absl::Status& s : {a.status(), c.status()}) {
    if (!s.ok()) return s;
  }
  data.a_ = *std::move(a), data.c_ = *std::move(c);
  if (absl::Status s = fill(*operation, 1, seed, data.a_); !s.ok()) return s;

  const u64 bytes = operation->arguments()[0].bytes, memory = device.properties().memory_bytes;
  data.calls_on_copies_ = calls_for(u64{shape.n} * shape.k * sizeof(f16), memory, rotation);
  const Stream stream = device.default_stream();
  std::shared_ptr<Buffer> first;
  for (u32 calls = calls_for(bytes, memory, rotation); calls > 0; --calls) {
    absl::StatusOr<Buffer> buffer = allocate(0);
    if (!buffer.ok()) return buffer.status();
    const auto own = std::make_shared<Buffer>(*std::move(buffer));
    const absl::Status filled =
        first ? own->copy_from(*first, bytes, stream) : fill(*operation, 0, seed, *own);
    if (!filled.ok()) return filled;
    if (!first) first = own;
    absl::StatusOr<WeightMatrix> matrix = WeightMatrix::own(shape.format, shape.n, shape.k, own);
    if (!matrix.ok()) return matrix.status();
    data.weights_.push_back(*std::move(matrix));
  }
  if (absl::Status s = stream.synchronize(); !s.ok()) return s;
  return data;
}

bool ProductData::serves(const ProductShape& shape) const {
  return shape.format == shape_.format && shape.n == shape_.n && shape.k == shape_.k && shape.m <= shape_.m;
}

absl::Status ProductStock::prepare(const Device& device, ProductShape shape, const std::vector<Product>& all,
                                   u64 seed, const RotationOptions& rotation) {
  if (data_ && data_->serves(shape)) return absl::OkStatus();
  data_.reset();  // its memory is needed
  for (const Product& other : all) {
    const ProductShape& s = other.shape;
    if (s.format == shape.format && s.n == shape.n && s.k == shape.k) shape.m = std::max(shape.m, s.m);
  }
  absl::StatusOr<ProductData> made = ProductData::make(device, shape, seed, rotation);
  if (made.ok()) data_ = *std::move(made);
  return made.status();
}

absl::StatusOr<ProductRun> ProductRun::make(Executor& executor, ProductData& data, const Product& product,
                                            Activations type) {
  if (!executor.policy().ok()) return executor.policy().status();
  if (absl::Status s = allows(*executor.policy(), product, type); !s.ok()) return s;
  ProductRun run(executor, data, product);
  if (type == Activations::kF32) return run;
  absl::StatusOr<PreparedActivations> made = tool::make_activations(executor, product.shape, type);
  if (!made.ok()) return made.status();
  run.prepared_ = *std::move(made);
  return run;
}

absl::StatusOr<ProductRun> ProductRun::make(Executor& executor, ProductData& data, const Product& product) {
  if (product.shape.a_type == ProductInputs::kF32) return make(executor, data, product, Activations::kF32);
  if (!executor.policy().ok()) return executor.policy().status();
  const absl::StatusOr<Activations> type = prepared_type(*executor.policy(), product);
  if (!type.ok()) return type.status();
  return make(executor, data, product, *type);
}

u32 ProductRun::calls() const {
  const auto* variant = std::get_if<GemmVariant>(&product_.path.variant);
  const bool copies = variant && (variant->path == GemmPath::kHgemm || variant->path == GemmPath::kFp8);
  return copies ? std::min(data_.calls(), data_.calls_on_copies()) : data_.calls();
}

absl::Status ProductRun::prepare(const Stream& stream) {
  if (!prepared_) return absl::OkStatus();
  return executor_.prepare_activations(stream, data_.a(), product_.shape.m, *prepared_);
}

absl::StatusOr<GemmReport> ProductRun::multiply(const Stream& stream, u32 call) const {
  const ProductInput a = prepared_ ? ProductInput(*prepared_) : ProductInput(data_.a());
  const DevicePtr<f32> c = data_.c().ptr<f32>();
  const WeightMatrix& weights = data_.weights(call);
  const u32 m = product_.shape.m;
  if (product_.kind == ProductKind::kGemm)
    return executor_.gemm(stream, weights, a, m, c, {.variant = product_.path.as<GemmVariant>()});
  const absl::StatusOr<GemvReport> report =
      executor_.gemv_batch(stream, weights, a, m, c, {.variant = product_.path.as<GemvVariant>()});
  if (!report.ok()) return report.status();
  return GemmReport{report->path, report->reason, report->kernels, 0};
}

}  // namespace ptxgen::tool
