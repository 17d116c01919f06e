// ptxgen bench --operation: how long products of the executor take, by every path, beside the mere reading of
// their weights in the same run.
#include <algorithm>
#include <memory>

#include "tools/ptxgen/bench_options.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/floor.h"
#include "tools/ptxgen/product_options.h"
#include "tools/ptxgen/product_report.h"
#include "tools/ptxgen/progress.h"

namespace ptxgen::tool {
namespace {

struct Options {
  explicit Options(CLI::App& app) : products(app), timing(app, 20), plot(app), device(app), cache(app) {
    app.add_flag("--plain", plain, "launch without programmatic dependent launch");
    app.add_flag("--trace", trace, "time each kernel of a call on its own too");
    app.add_flag("--cliffs", cliffs, "measure m + 1 too, and list where that takes over 20 % longer");
    app.add_flag("--json", json, "print JSON");
  }
  ProductOptions products;
  TimingOptions timing;
  PlotOption plot;
  DeviceOption device;
  CacheOptions cache;
  bool plain = false, trace = false, cliffs = false, json = false;
};

// Measures rows; consecutive ones with the same weights share their data.
class ProductBench {
 public:
  ProductBench(KernelCache& cache, Stream stream, const Options& options, const std::vector<Product>& all)
      : options_(options),
        all_(all),
        cache_(cache),
        stream_(std::move(stream)),
        executor_(cache, {.programmatic_dependent_launch = !options.plain}),
        library_(cache.device(), stream_, options.timing),
        floors_(cache, options.timing.rotation(), options.timing.replays()) {}

  absl::StatusOr<ProductRow> row(const Product& product) {
    constexpr u64 kSeed = 1;
    const absl::Status ready =
        data_.prepare(cache_.device(), product.shape, all_, kSeed, options_.timing.rotation());
    if (!ready.ok()) return ready;
    absl::StatusOr<ProductRun> run = ProductRun::make(executor_, *data_, product);
    if (!run.ok()) return run.status();
    const ProductShape& shape = product.shape;
    const absl::StatusOr<LibraryCall> f16 = library_.prepare_f16(shape.m, shape.n, shape.k);
    if (!f16.ok()) no_cublas_ = std::string(f16.status().message());
    const auto multiply = [&](u32 call) { return library_.multiply(*f16, call); };
    const Beside cublas = {f16.ok() ? f16->calls : 0, multiply};
    absl::StatusOr<TimedProduct> timed =
        time_product(stream_, *run, options_.timing, {.beside = f16.ok() ? &cublas : nullptr});
    if (!timed.ok()) return timed.status();
    ProductRow row{.product = product,
                   .a_type = run->a_type(),
                   .ran = timed->ran,
                   .calls = timed->calls,
                   .time = timed->time,
                   .prepared = timed->prepared};
    if (absl::Status s = add_ratios(row); !s.ok()) return s;
    if (timed->beside) {
      row.over_cublas = row.time.median / timed->beside->median;
      keep_cublas({.product = {.shape = shape}, .calls = f16->calls, .time = *timed->beside});
    }
    if (!options_.trace) return row;
    absl::StatusOr<std::vector<Phase>> phases =
        time_phases(stream_, cache_, library_, product, *run, *timed, options_.timing, options_.plain);
    if (!phases.ok()) return phases.status();
    row.phases = *std::move(phases);
    return row;
  }

  // What the rows were compared with.
  void add_yardsticks(ProductReport& report) {
    report.floors = floors_.rows();
    report.cublas = cublas_;
    report.no_cublas = no_cublas_;
  }

 private:
  absl::Status add_ratios(ProductRow& row) {
    for (const bool dependent : {false, true}) {
      const auto floor = floors_.read(row.weight_bytes(), dependent);
      if (!floor.ok()) return floor.status();
      if (*floor) (dependent ? row.over_read_dependent : row.over_read) = row.time.median / **floor;
    }
    return absl::OkStatus();
  }

  // The first of each shape.
  void keep_cublas(ProductRow row) {
    const auto same = [&](const ProductRow& other) {
      const ProductShape &a = row.product.shape, &b = other.product.shape;
      return a.m == b.m && a.n == b.n && a.k == b.k;
    };
    if (std::none_of(cublas_.begin(), cublas_.end(), same)) cublas_.push_back(std::move(row));
  }

  const Options& options_;
  const std::vector<Product>& all_;
  KernelCache& cache_;
  const Stream stream_;
  Executor executor_;
  LibraryBench library_;
  Floors floors_;
  std::vector<ProductRow> cublas_;
  std::string no_cublas_;  // why not
  ProductStock data_;
};

absl::StatusOr<ProductReport> report_on(const Options& options, const std::vector<Product>& all,
                                        KernelCache& cache) {
  absl::StatusOr<Stream> stream = cache.device().create_stream();
  if (!stream.ok()) return stream.status();
  ProductReport report{.device = cache.device().description()};
  ProductBench bench(cache, *std::move(stream), options, all);
  ProgressBar progress(all.size());
  absl::Status first_refusal;
  bool any = false;
  for (const Product& product : all) {
    progress.show_at(str_cat(text_of_fields(product.shape), " ", product.path.to_string()));
    absl::StatusOr<ProductRow> row = bench.row(product);
    if (absl::Status s = cache.device().health(); !s.ok()) return s;
    progress.advance(1);
    any |= row.ok();
    first_refusal.Update(row.status());
    if (!row.ok()) row = ProductRow{.product = product, .refused = std::string(row.status().message())};
    report.rows.push_back(*std::move(row));
  }
  if (!any) return first_refusal;
  bench.add_yardsticks(report);
  return report;
}

absl::StatusOr<Outcome> bench(Options& options) {
  const absl::StatusOr<KernelCacheOptions> cache_options = options.cache.options();
  if (!cache_options.ok()) return cache_options.status();
  const absl::StatusOr<std::vector<Product>> all = options.products.products(options.cliffs);
  if (!all.ok()) return all.status();
  const absl::StatusOr<Device> device = options.device.open_cuda("timed");
  if (!device.ok()) return device.status();
  if (absl::Status s = options.plot.open(); !s.ok()) return s;
  KernelCache cache(*device, *cache_options);
  const absl::StatusOr<ProductReport> report = report_on(options, *all, cache);
  if (!report.ok()) return report.status();
  if (absl::Status s = options.plot.write(report->svg()); !s.ok()) return s;
  return Outcome{options.json ? to_text(report->json()) : report->text()};
}

}  // namespace

Action declare_product_bench(CLI::App& app) {
  auto options = std::make_shared<Options>(app);
  return [options] { return bench(*options); };
}

}  // namespace ptxgen::tool
