// ptxgen tune: which variant of a product is the fastest on this device, kept for the executors to come.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

#include "ptxgen/device_policy.h"
#include "ptxgen/tuning.h"
#include "src/runtime/gemv_rows.h"
#include "tools/ptxgen/candidates.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/list_options.h"
#include "tools/ptxgen/product_timing.h"
#include "tools/ptxgen/progress.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

// What tells the two kinds of products apart: m for which there are records, and what it stands for.
template <class Shape>
struct Kind;
template <>
struct Kind<GemvShape> {
  using Record = TuneRecord;
  static constexpr ProductKind kKind = ProductKind::kGemv;
  static Activations type(const GemvShape& shape) { return shape.x_type; }
  static absl::Status check_rows(u32 m) {
    if (m == internal::bucket_gemv_rows(m)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        str_cat("m is ", m, "; it must be 3 or a power of two from 1 to ", kMostGemvRows,
                ": kernels are made for so many rows, by which all others are dealt"));
  }
  static absl::Status check(const DevicePolicy&, const GemvShape&) { return absl::OkStatus(); }
};
template <>
struct Kind<GemmShape> {
  using Record = GemmTuneRecord;
  static constexpr ProductKind kKind = ProductKind::kGemm;
  static Activations type(const GemmShape& shape) { return shape.a_type; }
  static absl::Status check_rows(u32 m) {
    if (m == bucket_rows(m)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        str_cat("m is ", m, "; it must be ", bucket_rows(m), ", which stands for it"));
  }
  // Few rows may be no business of a matrix product's record.
  static absl::Status check(const DevicePolicy& policy, const GemmShape& shape) {
    const u32 few = policy.most_gemv_rows(shape, true, {});
    if (shape.m > few) return absl::OkStatus();
    return absl::InvalidArgumentError(str_cat("m is ", shape.m, ", and the executor computes up to ", few,
                                              " rows of ", detail::field_text(shape.a_type),
                                              " as gemv_batch(); tune that, with --operation gemv"));
  }
};

struct Options {
  Options(CLI::App& app, ProductKind kind)
      : timing(app, 10),
        device(app),
        lists(app, "the product",
              kind == ProductKind::kGemm ? field_infos(GemmShape{}) : field_infos(GemvShape{}),
              kind == ProductKind::kGemm
                  ? "numbers that others are rounded up to, 8, 16, 24 ... 65536; default 512"
                  : "1, 2, 3, 4, 8, 16; default 1") {
    add_operation(app, "which product of the executor; default gemv");
    app.add_flag("--list", list, "show the records that are kept, and measure nothing");
    app.add_flag("--json", json, "print JSON");
  }

  TimingOptions timing;
  DeviceOption device;
  ListOptions lists;
  bool list = false, json = false;
};

std::string_view view(absl::string_view text) {
  return {text.data(), text.size()};
}

template <class Shape>
absl::StatusOr<std::vector<Shape>> shapes(const Options& options) {
  absl::StatusOr<std::vector<Shape>> shapes = options.lists.shapes(Shape{});
  if (!shapes.ok()) return shapes;
  for (const Shape& shape : *shapes) {
    if (absl::Status s = shape.validate(); !s.ok()) return s;
    if (absl::Status s = Kind<Shape>::check_rows(shape.m); !s.ok()) return s;
  }
  return shapes;
}

std::vector<GemvVariant> candidates_of(const DevicePolicy& policy, const GemvShape& shape,
                                       const GemvChoice& by_default) {
  return candidates(shape, by_default.variant, policy.device().sm_count);
}
std::vector<GemmVariant> candidates_of(const DevicePolicy& policy, const GemmShape& shape,
                                       const GemmChoice& by_default) {
  std::vector<GemmVariant> on_device = policy.gemm_variants(shape, true);
  // What rounds more than the default is for those who prepare their activations for it.
  if (shape.a_type == Activations::kF32) {
    std::erase_if(on_device, [](const GemmVariant& v) {
      const bool fused = v.path == GemmPath::kFused;
      return fused ? v.schedule == GemmSchedule::kDp4a : v.path == GemmPath::kFp8;
    });
  }
  return candidates(shape, by_default.variant, policy.device().sm_count, on_device);
}

absl::Status takes_all_rows(const GemvShape& shape, const GemvChoice& choice) {
  if (choice.rows == shape.m) return absl::OkStatus();
  if (choice.rows > shape.m) {
    return absl::FailedPreconditionError(str_cat("the kernel of ", choice.rows, " rows serves m = ", shape.m,
                                                 " here: tune m = ", choice.rows));
  }
  return absl::FailedPreconditionError(
      str_cat("no kernel takes ", shape.m, " rows at once here: ", choice.reason));
}
absl::Status takes_all_rows(const GemmShape&, const GemmChoice&) {
  return absl::OkStatus();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d", &utc)};
}

template <class Shape>
struct Tuned {
  typename Kind<Shape>::Record record;
  double by_default = 0;  // microseconds
  std::size_t tried = 0;
};

// Times variants of one kind of products.
template <class Shape>
class Tuner {
 public:
  using Kind = tool::Kind<Shape>;
  using Variant = decltype(Kind::Record::variant);

  Tuner(KernelCache& cache, Stream stream, const Options& options)
      : device_(cache.device()),
        executor_(cache, {.tuned = TuneRecords{}}),
        stream_(std::move(stream)),
        options_(options) {}

  // Times all candidates, and the fastest of them once more and longer, so that chance has little to say.
  absl::StatusOr<Tuned<Shape>> tune(const Shape& shape) {
    constexpr std::size_t kFinalists = 6;
    const DevicePolicy policy(device_.properties(), {}, {});
    if (absl::Status s = Kind::check(policy, shape); !s.ok()) return s;
    const auto by_default = policy.choose(shape, true);
    if (!by_default.ok()) return by_default.status();
    if (absl::Status s = takes_all_rows(shape, *by_default); !s.ok()) return s;
    if (absl::Status s = prepare(shape); !s.ok()) return s;
    const std::vector<Variant> all = candidates_of(policy, shape, *by_default);
    ProgressBar progress(all.size() + kFinalists);
    const absl::StatusOr<std::vector<Measured>> measured = time_all(shape, all, progress);
    if (!measured.ok()) return measured.status();
    std::vector<Measured> finalists = *measured;
    std::stable_sort(finalists.begin() + (finalists[0].variant == by_default->variant), finalists.end());
    finalists.resize(std::min(finalists.size(), kFinalists));
    Tuned<Shape> tuned = {Kind::Record::of_device(device_.properties()), 0, measured->size()};
    for (Measured& finalist : finalists) {
      const absl::StatusOr<double> time = this->time(shape, finalist.variant, 3);
      if (!time.ok()) return time.status();
      finalist.microseconds = *time;
      if (finalist.variant == by_default->variant) tuned.by_default = *time;
      progress.advance(1);
    }
    const Measured& best = *std::min_element(finalists.begin(), finalists.end());
    tuned.record.shape = shape;
    tuned.record.variant = best.variant;
    tuned.record.microseconds = best.microseconds;
    tuned.record.date = today();
    return tuned;
  }

 private:
  struct Measured {
    Variant variant;
    double microseconds;
    bool operator<(const Measured& other) const { return microseconds < other.microseconds; }
  };

  static ProductShape product_shape(const Shape& shape) { return {shape.format, shape.n, shape.k, shape.m}; }

  absl::Status prepare(const Shape& shape) {
    constexpr u64 kSeed = 1;
    return data_.prepare(device_, product_shape(shape), {}, kSeed, options_.timing.rotation());
  }

  absl::StatusOr<std::vector<Measured>> time_all(const Shape& shape, const std::vector<Variant>& all,
                                                 ProgressBar& progress) {
    std::vector<Measured> measured;
    absl::Status first_failure;
    for (const Variant& variant : all) {
      progress.show_at(text_of_fields(shape));
      const absl::StatusOr<double> time = this->time(shape, variant, 1);
      if (absl::Status s = device_.health(); !s.ok()) return s;
      if (time.ok()) measured.push_back({variant, *time});
      first_failure.Update(time.status());
      progress.advance(1);
    }
    if (measured.empty()) return first_failure;
    return measured;
  }

  // The product alone: how its activations were prepared is no variant's business.
  absl::StatusOr<double> time(const Shape& shape, const Variant& variant, u32 longer) {
    const Product product = {Kind::kKind, product_shape(shape), {variant}};
    absl::StatusOr<ProductRun> run = ProductRun::make(executor_, *data_, product, Kind::type(shape));
    if (!run.ok()) return run.status();
    const absl::StatusOr<TimedProduct> timed =
        time_product(stream_, *run, options_.timing, {.preparation = false, .longer = longer});
    if (!timed.ok()) return timed.status();
    return timed->time.median;
  }

  const Device device_;
  Executor executor_;
  const Stream stream_;
  const Options& options_;
  ProductStock data_;
};

Cell microseconds(double value) {
  return value > 0 ? rounded(value, 3) : Cell(Json());
}

template <class Record>
void add_records(Table& table, const std::vector<Record>& records, std::string_view operation,
                 const DeviceProperties& device) {
  for (const Record& r : records) {
    const absl::Status ours = r.belongs_to(device);
    table.add({std::string(operation), text_of_fields(r.shape), r.variant.to_string(),
               microseconds(r.microseconds), printable(r.date), printable(r.device), printable(r.compiler),
               printable(r.library), ours.ok() ? Cell(Json()) : Cell(printable(view(ours.message())))});
  }
}

absl::StatusOr<Outcome> list(const Options& options) {
  const TuneRecords kept = TuneRecords::read();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  Table table({{"operation", "operation"},
               {"product", "product"},
               {"variant", "variant"},
               {"microseconds", "us"},
               {"date", "date"},
               {"device", "device"},
               {"compiler", "compiler"},
               {"library", "ptxgen"},
               {"ignored", "ignored here"}});
  add_records(table, kept.records, "gemv", device->properties());
  add_records(table, kept.gemms, "gemm", device->properties());
  if (options.json) return Outcome{to_text({{"records", table.json()}, {"broken", kept.ignored}})};
  std::string text = table.empty() ? std::string("no records; ptxgen tune makes them\n") : table.text();
  for (const std::string& broken : kept.ignored) str_append(&text, "ignored: ", printable(broken), "\n");
  return Outcome{std::move(text)};
}

template <class Shape>
absl::StatusOr<Outcome> run(const Options& options) {
  const absl::StatusOr<std::vector<Shape>> all = shapes<Shape>(options);
  if (!all.ok()) return all.status();
  const absl::StatusOr<Device> device = options.device.open_cuda("tuned for");
  if (!device.ok()) return device.status();
  KernelCache cache(*device);
  absl::StatusOr<Stream> stream = device->create_stream();
  if (!stream.ok()) return stream.status();
  Tuner<Shape> tuner(cache, *std::move(stream), options);
  Table table({{"product", "product"},
               {"variant", "fastest"},
               {"microseconds", "us"},
               {"by_default", "us by default"},
               {"tried", "tried"},
               {"file", ""},
               {"refused", "refused"}});
  bool any = false;
  absl::Status first_refusal;
  for (const Shape& shape : *all) {
    const absl::StatusOr<Tuned<Shape>> tuned = tuner.tune(shape);
    if (absl::Status s = device->health(); !s.ok()) return s;
    first_refusal.Update(tuned.status());
    if (!tuned.ok()) {
      table.add({text_of_fields(shape), Json(), Json(), Json(), Json(), Json(),
                 printable(view(tuned.status().message()))});
      continue;
    }
    any = true;
    const absl::StatusOr<std::string> file = keep(tuned->record);
    if (!file.ok()) return file.status();
    table.add({text_of_fields(shape), tuned->record.variant.to_string(),
               microseconds(tuned->record.microseconds), microseconds(tuned->by_default), tuned->tried, *file,
               Json()});
  }
  if (!any) return first_refusal;
  return Outcome{options.json ? to_text({{"device", device->description()}, {"rows", table.json()}})
                              : str_cat(device->description(), "\n\n", table.text())};
}

}  // namespace

Action declare_tune(CLI::App& app, const NamedKernel& named) {
  ProductKind kind = ProductKind::kGemv;
  absl::Status known;
  if (named.is_operation()) known = detail::parse_field("--operation", named.operation(), {}, kind);
  auto options = std::make_shared<Options>(app, kind);
  return [options, kind, known]() -> absl::StatusOr<Outcome> {
    if (!known.ok()) return known;
    if (options->list) return list(*options);
    return kind == ProductKind::kGemm ? run<GemmShape>(*options) : run<GemvShape>(*options);
  };
}

}  // namespace ptxgen::tool
