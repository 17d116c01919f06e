// ptxgen verify --operation: products of the executor on generated data, by every path, compared with the
// reference.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "src/reference/gemv_operation.h"
#include "src/reference/scaled_operation.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"
#include "tools/ptxgen/kernel_list.h"
#include "tools/ptxgen/product_options.h"
#include "tools/ptxgen/progress.h"
#include "tools/ptxgen/verify_report.h"

namespace ptxgen::tool {
namespace {

struct Options {
  explicit Options(CLI::App& app) : products(app), device(app), cache(app) {
    app.add_option("--seed", seed, "what the data is made from; default 1")
        ->transform(whole_number(0, std::numeric_limits<u64>::max()))
        ->type_name("NUMBER");
    app.add_flag("--json", json, "print JSON");
  }
  ProductOptions products;
  DeviceOption device;
  CacheOptions cache;
  u64 seed = 1;
  bool json = false;
};

using Computes = std::unique_ptr<reference::Operation>;

// Of a path of cuBLASLt.
Computes library_operation(const ProductShape& s, GemmPath path) {
  Computes plain = reference::product_operation(s.format, s.n, s.k, s.m, reference::Arithmetic::kF32, true);
  if (path == GemmPath::kSgemm) return plain;
  const auto type = path == GemmPath::kFp8 ? reference::FloatType::kE4m3 : reference::FloatType::kF16;
  return reference::scaled_operation(s.format, s.n, s.k, type, std::move(plain));
}

// What the kernels that ran compute together: all of a call multiply in the same way.
absl::StatusOr<Computes> operation_of(const Product& product, const GemmReport& ran) {
  const absl::StatusOr<GemmVariant> variant = GemmVariant::parse(ran.path);
  if (variant.ok() && variant->path != GemmPath::kFused)
    return library_operation(product.shape, variant->path);
  std::optional<reference::Arithmetic> common;
  bool matrix = false;
  for (const std::string& text : ran.kernels) {
    const absl::StatusOr<KernelType> kernel = parse_kernel(text);
    if (!kernel.ok()) return kernel.status();
    if (kernel->get_if<StageF16>()) continue;  // the kernel behind it multiplies
    const absl::StatusOr<reference::Arithmetic> own = reference::arithmetic_of(*kernel);
    if (!own.ok()) return own.status();
    if (common && *common != *own) {
      return absl::InternalError(
          str_cat("its kernels multiply in different ways, which no reference does: ", ran.path));
    }
    common = *own;
    matrix |= kernel->get_if<Gemm>() != nullptr;
  }
  if (!common) return absl::InternalError(str_cat("path ", ran.path, " names no kernels"));
  const ProductShape& shape = product.shape;
  return reference::product_operation(shape.format, shape.n, shape.k, shape.m, *common, matrix);
}

// Whether it says that there is no such product here, and not that one went wrong.
bool is_refusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented: return true;
    default: return false;
  }
}

class ProductVerify {
 public:
  ProductVerify(KernelCache& cache, const std::vector<Product>& all, u64 seed)
      : device_(cache.device()), executor_(cache), all_(all), seed_(seed) {}

  absl::StatusOr<Verified> verify(const Product& product, VerifyReport::Subject& subject) {
    if (absl::Status s = data_.prepare(device_, product.shape, all_, seed_, {.calls = 1}); !s.ok()) return s;
    absl::StatusOr<ProductRun> run = ProductRun::make(executor_, *data_, product);
    if (!run.ok()) return run.status();
    constexpr u8 kNotWritten = 0xff;  // in every byte: NaN
    if (absl::Status s = data_->c().fill(kNotWritten); !s.ok()) return s;
    Verified verified;
    const absl::StatusOr<GemmReport> ran = multiply(*run, verified.ms);
    if (!ran.ok()) return ran.status();
    subject.kernel = ran->path;
    subject.descriptor = ran->kernels;
    const absl::StatusOr<Computes> operation = operation_of(product, *ran);
    if (!operation.ok()) return absl::InternalError(str_cat(operation.status().message()));
    const auto read = [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
      const absl::Status made = (*operation)->make_input(argument, seed_, offset, piece);
      if (made.ok()) (*operation)->level(argument, piece);  // as ProductData has it
      return made;
    };
    constexpr std::size_t kC = 2;
    if (absl::Status s = compare_output(**operation, kC, read, data_->c(), verified); !s.ok()) return s;
    return verified;
  }

 private:
  absl::StatusOr<GemmReport> multiply(ProductRun& run, float& ms) {
    const Stream stream = device_.default_stream();
    absl::StatusOr<Event> start = device_.create_event(), end = device_.create_event();
    for (const absl::Status& s : {start.status(), end.status()}) {
      if (!s.ok()) return s;
    }
    if (absl::Status s = start->record(stream); !s.ok()) return s;
    if (absl::Status s = run.prepare(stream); !s.ok()) return s;
    absl::StatusOr<GemmReport> ran = run.multiply(stream, 0);
    if (!ran.ok()) return ran;
    if (absl::Status s = end->record(stream); !s.ok()) return s;
    if (absl::Status s = stream.synchronize(); !s.ok()) return s;
    const absl::StatusOr<float> took = end->elapsed_ms_since(*start);
    if (!took.ok()) return took.status();
    ms = *took;
    return ran;
  }

  const Device device_;
  Executor executor_;
  const std::vector<Product>& all_;
  const u64 seed_;
  ProductStock data_;
};

absl::StatusOr<Outcome> verify(const Options& options) {
  const absl::StatusOr<std::vector<Product>> all = options.products.products(false);
  if (!all.ok()) return all.status();
  const absl::StatusOr<KernelCacheOptions> cache_options = options.cache.options();
  if (!cache_options.ok()) return cache_options.status();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  KernelCache cache(*device, *cache_options);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ProductVerify verifier(cache, *all, options.seed);
  VerifyReport report("no path has such a product here");
  ProgressBar progress(all->size());
  for (const Product& product : *all) {
    const ProductShape& shape = product.shape;
    VerifyReport::Subject subject{
        str_cat("(seed ", options.seed, ")"),
        std::string(info(shape.format).ggml_name),
        str_cat(shape.n, " x ", shape.k, ", m = ", shape.m, ", a ", detail::field_text(shape.a_type)),
        product.path.to_string(),
        {}};
    progress.show_at(subject.shape);
    const absl::StatusOr<Verified> verified = verifier.verify(product, subject);
    if (options.products.every_path() && is_refusal(verified.status())) {
      report.skip(subject, std::string(verified.status().message()));
    } else {
      report.add(subject, verified);
    }
    if (absl::Status s = device->health(); !s.ok()) return s;
    progress.advance(1);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!cache.dump_status().ok()) say(str_cat("warning: ", cache.dump_status().message()));
  return report.outcome(*device, seconds, options.json);
}

}  // namespace

Action declare_product_verify(CLI::App& app) {
  const auto options = std::make_shared<Options>(app);
  return [options] { return verify(*options); };
}

}  // namespace ptxgen::tool
