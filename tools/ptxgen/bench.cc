// ptxgen bench: how long kernels take, beside kernels that do nothing but move as many bytes in the same run.
#include <memory>

#include "ptxgen/gemm.h"
#include "tools/ptxgen/arguments.h"
#include "tools/ptxgen/bench_options.h"
#include "tools/ptxgen/bench_report.h"
#include "tools/ptxgen/combinations.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/floor.h"
#include "tools/ptxgen/startup.h"

namespace ptxgen::tool {
namespace {

struct Options {
  Options(CLI::App& app, const NamedKernel& named)
      : kernel(app, named),
        scalars(app),
        timing(app, 20),
        plot(app),
        device(app),
        cache(app, true),
        startup(app),
        app(app) {
    add_operation(app, "time products of the executor instead");
    app.add_option("--shapes", shapes, "rows x values in a row, instead of --n and --k: 14336x4096,1024x4096")
        ->type_name("LIST");
    app.add_flag("--plain", plain, "launch without programmatic dependent launch");
    app.add_flag("--json", json, "print JSON");
  }
  KernelOptions kernel;
  ScalarOptions scalars;
  TimingOptions timing;
  PlotOption plot;
  DeviceOption device;
  CacheOptions cache;
  StartupOptions startup;
  const CLI::App& app;
  std::string shapes;
  bool plain = false, json = false;
};

// What one row is about, or a row for each of several code generators.
struct Case {
  FieldValues constants, scalars;
};

absl::StatusOr<std::vector<Case>> cases(const Options& options) {
  if (!options.kernel.family().ok()) return options.kernel.family().status();
  const KernelFamily& family = **options.kernel.family();
  const auto constants = combinations(family.name, family.fields, options.kernel.given(), options.shapes);
  if (!constants.ok()) return constants.status();
  const absl::StatusOr<FieldValues> given = options.scalars.parse();
  if (!given.ok()) return given.status();
  const auto scalars = combinations(*given);
  if (!scalars.ok()) return scalars.status();
  for (const FieldValues& values : *scalars) {
    const auto legal = options.scalars.values(*family.defaults, values);
    if (!legal.ok()) return legal.status();
  }
  std::vector<Case> all;
  for (const FieldValues& c : *constants) {
    for (const FieldValues& s : *scalars) all.push_back({c, s});
  }
  return all;
}

std::string text_of(std::string_view name, const FieldValues& values) {
  std::string text(name);
  for (const auto& [field, value] : values) str_append(&text, " ", field, "=", value);
  return text;
}

// Measures kernels; consecutive ones on equal arguments share their buffers.
class Bench {
 public:
  Bench(const Device& device, const std::vector<KernelCacheOptions>& generators, const Options& options)
      : device_(device),
        options_(options),
        floor_cache_(device),
        floors_(floor_cache_, options.timing.rotation(), options.timing.replays()) {
    for (const KernelCacheOptions& generator : generators)
      caches_.push_back(std::make_unique<KernelCache>(device, generator));
  }

  // A row for each code generator that makes the kernel, which take turns; else why it does not.
  std::vector<absl::StatusOr<BenchRow>> rows(const KernelType& kernel, const std::vector<u64>& values) {
    std::vector<absl::StatusOr<CompiledKernel>> compiled;
    std::vector<CompiledKernel> made;
    for (const auto& cache : caches_) {
      compiled.push_back(cache->get(kernel));
      if (compiled.back().ok()) made.push_back(*compiled.back());
    }
    const absl::StatusOr<std::vector<BenchRow>> measured = measure_all(kernel, values, made);
    std::vector<absl::StatusOr<BenchRow>> rows;
    for (std::size_t i = 0, next = 0; i < compiled.size(); ++i) {
      if (!compiled[i].ok()) {
        rows.push_back(compiled[i].status());
      } else if (!measured.ok()) {
        rows.push_back(measured.status());
      } else {
        rows.push_back((*measured)[next++]);
      }
    }
    return rows;
  }

  std::vector<BenchRow> floors() const { return floors_.rows(); }

 private:
  absl::StatusOr<std::vector<BenchRow>> measure_all(const KernelType& kernel, const std::vector<u64>& values,
                                                    const std::vector<CompiledKernel>& made) {
    if (made.empty()) return std::vector<BenchRow>();
    if (absl::Status s = prepare(kernel, values); !s.ok()) return s;
    const bool dependent = !options_.plain && made[0].generated().waits_for_predecessor;
    absl::StatusOr<std::vector<BenchRow>> rows =
        measure(made, device_, *workload_, options_.timing.replays(), dependent);
    if (!rows.ok()) return rows;
    for (BenchRow& row : *rows) {
      if (const Gemm* gemm = kernel.get_if<Gemm>()) row.operations = 2 * values.back() * gemm->n * gemm->k;
      if (absl::Status s = add_ratios(row); !s.ok()) return s;
    }
    return rows;
  }

  absl::Status prepare(const KernelType& kernel, const std::vector<u64>& values) {
    const auto operation = reference::operation_of(kernel, values);
    if (!operation.ok()) return operation.status();
    std::string key = str_cat(kernel->name());
    for (const ArgInfo& argument : (*operation)->arguments())
      str_append(&key, " ", argument.name, "=", argument.bytes);
    for (const u64 value : values) str_append(&key, " ", value);
    if (workload_ && key == key_) return absl::OkStatus();
    workload_.reset();  // its memory is needed
    absl::StatusOr<Workload> prepared =
        Workload::prepare(device_, **operation, values, options_.timing.rotation());
    if (!prepared.ok()) return prepared.status();
    workload_ = *std::move(prepared);
    key_ = std::move(key);
    return absl::OkStatus();
  }

  absl::Status add_ratios(BenchRow& row) {
    for (const bool dependent : {false, true}) {
      const auto floor = floors_.read(row.bytes, dependent);
      if (!floor.ok()) return floor.status();
      if (*floor) (dependent ? row.over_read_dependent : row.over_read) = row.time.median / **floor;
    }
    if (workload_->bytes_written() * 4 < row.bytes) return absl::OkStatus();
    const absl::StatusOr<double> copy = floors_.copy(row.bytes);
    if (copy.ok()) row.over_copy = row.time.median / *copy;
    return copy.status();
  }

  const Device device_;
  const Options& options_;
  std::vector<std::unique_ptr<KernelCache>> caches_;  // by generator
  KernelCache floor_cache_;  // floors are the same whoever generates what is measured beside them
  Floors floors_;
  std::optional<Workload> workload_;
  std::string key_;
};

// A row for each code generator.
std::vector<absl::StatusOr<BenchRow>> bench_case(const Options& options, const Case& c,
                                                 std::size_t generators, Bench& bench) {
  const auto refused = [&](const absl::Status& status) {
    return std::vector<absl::StatusOr<BenchRow>>(generators, status);
  };
  const absl::StatusOr<KernelType> kernel = (*options.kernel.family())->make(c.constants);
  if (!kernel.ok()) return refused(kernel.status());
  const absl::StatusOr<std::vector<u64>> values = options.scalars.values(**kernel, c.scalars);
  if (!values.ok()) return refused(values.status());
  std::vector<absl::StatusOr<BenchRow>> rows = bench.rows(*kernel, *values);
  for (absl::StatusOr<BenchRow>& row : rows) {
    if (row.ok()) row->kernel = (*kernel)->text();
  }
  return rows;
}

absl::StatusOr<BenchReport> report_on(const Options& options, const std::vector<Case>& all,
                                      const Device& device,
                                      const std::vector<KernelCacheOptions>& generators) {
  BenchReport report{device.description(), {}, {}};
  Bench bench(device, generators, options);
  absl::Status first_refusal;
  bool any = false;
  for (const Case& c : all) {
    std::vector<absl::StatusOr<BenchRow>> rows = bench_case(options, c, generators.size(), bench);
    if (absl::Status s = device.health(); !s.ok()) return s;
    for (std::size_t g = 0; g < rows.size(); ++g) {
      absl::StatusOr<BenchRow>& row = rows[g];
      any |= row.ok();
      first_refusal.Update(row.status());
      if (!row.ok()) {
        row = BenchRow{.kernel = text_of((*options.kernel.family())->name, c.constants),
                       .refused = std::string(row.status().message())};
      }
      FieldValues more = c.scalars;
      if (generators.size() > 1) more.emplace_back("codegen", detail::field_text(generators[g].codegen));
      row->kernel = text_of(row->kernel, more);
      row->constants = c.constants;
      row->constants.insert(row->constants.end(), more.begin(), more.end());
      report.rows.push_back(*std::move(row));
    }
  }
  if (!any) return first_refusal;
  report.floors = bench.floors();
  return report;
}

absl::StatusOr<Outcome> bench(Options& options) {
  if (absl::Status s = options.startup.check(); !s.ok()) return s;
  if (options.startup.wanted())
    return measure_startup(options.startup, options.app, options.device, options.json);
  const absl::StatusOr<std::vector<KernelCacheOptions>> generators = options.cache.each();
  if (!generators.ok()) return generators.status();
  const absl::StatusOr<std::vector<Case>> all = cases(options);
  if (!all.ok()) return all.status();
  const absl::StatusOr<Device> device = options.device.open_cuda("timed");
  if (!device.ok()) return device.status();
  if (absl::Status s = options.plot.open(); !s.ok()) return s;
  const absl::StatusOr<BenchReport> report = report_on(options, *all, *device, *generators);
  if (!report.ok()) return report.status();
  if (absl::Status s = options.plot.write(report->svg()); !s.ok()) return s;
  return Outcome{options.json ? to_text(report->json()) : report->text()};
}

}  // namespace

Action declare_bench(CLI::App& app, const NamedKernel& named) {
  if (named.is_operation()) return declare_product_bench(app);
  auto options = std::make_shared<Options>(app, named);
  return [options] { return bench(*options); };
}

}  // namespace ptxgen::tool
