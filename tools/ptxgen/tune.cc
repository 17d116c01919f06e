// ptxgen tune: which variant of a product is the fastest on this device, kept for the executors to come.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <memory>

#include "ptxgen/device_policy.h"
#include "ptxgen/tuning.h"
#include "tools/ptxgen/candidates.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/measure.h"
#include "tools/ptxgen/progress.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

struct Options {
  explicit Options(CLI::App& app) : device(app) {
    for (const FieldInfo& info : field_infos(GemvShape{})) {
      lists.emplace_back(std::string(info.name), "");
      std::string values = allowed_values(info);
      if (info.name == "m") values = "1, 2, 4, 8, 16";
      options.push_back(app.add_option(option_of(info.name), lists.back().second,
                                       str_cat(info.meaning, ": a list of ", values))
                            ->type_name("LIST"));
    }
    app.add_option("--calls", rotation.calls,
                   "calls in one CUDA graph, each on buffers of its own; default: as many as make 1 to 3 GB")
        ->transform(whole_number(1, 10000))
        ->type_name("NUMBER");
    app.add_option("--replays", replays, str_cat("timed replays of the graph; default ", replays))
        ->transform(whole_number(1, 10000))
        ->type_name("NUMBER");
    app.add_flag("--list", list, "show the records that are kept, and measure nothing");
    app.add_flag("--json", json, "print JSON");
  }
  Options(const Options&) = delete;

  DeviceOption device;
  std::deque<std::pair<std::string, std::string>> lists;  // the parser keeps the addresses of the texts
  std::vector<CLI::Option*> options;
  RotationOptions rotation;
  u32 replays = 10;
  bool list = false, json = false;
};

std::string_view view(absl::string_view text) {
  return {text.data(), text.size()};
}

absl::StatusOr<std::vector<GemvShape>> shapes(const Options& options) {
  std::vector<GemvShape> all = {GemvShape{}};
  for (std::size_t i = 0; i < options.lists.size(); ++i) {
    const auto& [name, text] = options.lists[i];
    if (options.options[i]->count() == 0) continue;
    const absl::StatusOr<std::vector<std::string>> parts = split_list(option_of(name), text);
    if (!parts.ok()) return parts.status();
    std::vector<GemvShape> more;
    for (const GemvShape& shape : all) {
      for (const std::string& part : *parts) {
        more.push_back(shape);
        if (absl::Status s = set_field(more.back(), name, part); !s.ok()) return s;
      }
    }
    all = std::move(more);
  }
  for (const GemvShape& shape : all) {
    if (absl::Status s = shape.validate(); !s.ok()) return s;
    if (shape.m == 0 || shape.m > kMostGemvRows || (shape.m & (shape.m - 1)) != 0) {
      return absl::InvalidArgumentError(str_cat("m is ", shape.m, "; kernels are made for 1, 2, 4, 8 and ",
                                                kMostGemvRows,
                                                " rows, by which all others are dealt: tune these"));
    }
  }
  return all;
}

// One product's buffers, and what each variant takes on them.
class Tuner {
 public:
  Tuner(KernelCache& cache, const Options& options) : cache_(cache), options_(options) {}

  absl::Status prepare(const GemvShape& shape, const GemvVariant& variant) {
    const KernelType kernel = kernel_of(shape, variant);
    std::vector<u64> values = kernel->default_arguments();
    if (shape.m > 1) values.back() = shape.m;
    const auto operation = reference::operation_of(kernel, values);
    if (!operation.ok()) return operation.status();
    absl::StatusOr<Workload> workload =
        Workload::prepare(cache_.device(), **operation, values, options_.rotation);
    if (!workload.ok()) return workload.status();
    workload_ = *std::move(workload);
    return absl::OkStatus();
  }

  absl::StatusOr<double> time(const GemvShape& shape, const GemvVariant& variant, u32 replays) {
    const absl::StatusOr<CompiledKernel> kernel = cache_.get(kernel_of(shape, variant));
    if (!kernel.ok()) return kernel.status();
    const bool dependent =
        kernel->generated().waits_for_predecessor && cache_.device().target().supports(kHopper);
    const absl::StatusOr<Timing> timing =
        time_calls(*kernel, cache_.device(), *workload_, replays, dependent);
    if (!timing.ok()) return timing.status();
    return timing->median;
  }

 private:
  KernelCache& cache_;
  const Options& options_;
  std::optional<Workload> workload_;
};

struct Measured {
  GemvVariant variant;
  double microseconds;
};

struct Tuned {
  TuneRecord record;
  double by_default = 0;  // microseconds
  std::size_t tried = 0;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d", &utc)};
}

// Times all candidates, and the fastest of them once more and longer, so that chance has little to say.
absl::StatusOr<Tuned> tune(KernelCache& cache, const Options& options, const GemvShape& shape) {
  constexpr std::size_t kFinalists = 6;
  const DeviceProperties& device = cache.device().properties();
  const absl::StatusOr<GemvChoice> by_default = DevicePolicy(device, {}, {}).choose(shape, true);
  if (!by_default.ok()) return by_default.status();
  if (by_default->rows != shape.m) {
    return absl::FailedPreconditionError(
        str_cat("no kernel takes ", shape.m, " rows at once here: ", by_default->reason));
  }
  Tuner tuner(cache, options);
  if (absl::Status s = tuner.prepare(shape, by_default->variant); !s.ok()) return s;
  const std::vector<GemvVariant> all = candidates(shape, by_default->variant, device.sm_count);
  std::vector<Measured> measured;
  ProgressBar progress(all.size() + kFinalists);
  absl::Status first_failure;
  for (const GemvVariant& variant : all) {
    progress.show_at(text_of_fields(shape));
    const absl::StatusOr<double> time = tuner.time(shape, variant, options.replays);
    if (absl::Status s = cache.device().health(); !s.ok()) return s;
    if (time.ok()) measured.push_back({variant, *time});
    first_failure.Update(time.status());
    progress.advance(1);
  }
  if (measured.empty()) return first_failure;
  std::stable_sort(measured.begin() + (measured[0].variant == by_default->variant), measured.end(),
                   [](const Measured& a, const Measured& b) { return a.microseconds < b.microseconds; });
  const std::size_t tried = measured.size();
  measured.resize(std::min(measured.size(), kFinalists));
  Tuned tuned = {TuneRecord::of_device(device), 0, tried};
  for (Measured& finalist : measured) {
    const absl::StatusOr<double> time = tuner.time(shape, finalist.variant, 3 * options.replays);
    if (!time.ok()) return time.status();
    finalist.microseconds = *time;
    if (finalist.variant == by_default->variant) tuned.by_default = *time;
    progress.advance(1);
  }
  const Measured& best =
      *std::min_element(measured.begin(), measured.end(),
                        [](const Measured& a, const Measured& b) { return a.microseconds < b.microseconds; });
  tuned.record.shape = shape;
  tuned.record.variant = best.variant;
  tuned.record.microseconds = best.microseconds;
  tuned.record.date = today();
  return tuned;
}

Cell microseconds(double value) {
  if (value <= 0) return Json();
  char text[32];
  return {Json(value),
          std::string(text, static_cast<std::size_t>(std::snprintf(text, sizeof(text), "%.3f", value)))};
}

absl::StatusOr<Outcome> list(const Options& options) {
  const TuneRecords kept = TuneRecords::read();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  Table table({{"product", "product"},
               {"variant", "variant"},
               {"microseconds", "us"},
               {"date", "date"},
               {"device", "device"},
               {"compiler", "compiler"},
               {"library", "ptxgen"},
               {"ignored", "ignored here"}});
  for (const TuneRecord& r : kept.records) {
    const absl::Status ours = r.belongs_to(device->properties());
    table.add({text_of_fields(r.shape), r.variant.to_string(), microseconds(r.microseconds),
               printable(r.date), printable(r.device), printable(r.compiler), printable(r.library),
               ours.ok() ? Cell(Json()) : Cell(printable(view(ours.message())))});
  }
  if (options.json) return Outcome{to_text({{"records", table.json()}, {"broken", kept.ignored}})};
  std::string text = table.empty() ? std::string("no records; ptxgen tune makes them\n") : table.text();
  for (const std::string& broken : kept.ignored) str_append(&text, "ignored: ", printable(broken), "\n");
  return Outcome{std::move(text)};
}

absl::StatusOr<Outcome> run(const Options& options) {
  if (options.list) return list(options);
  const absl::StatusOr<std::vector<GemvShape>> all = shapes(options);
  if (!all.ok()) return all.status();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  if (device->kind() != DeviceKind::kCuda) {
    return absl::FailedPreconditionError(str_cat("only a CUDA device can be tuned for, and this is the ",
                                                 device->description(), "; choose one with --device cuda"));
  }
  KernelCache cache(*device);
  Table table({{"product", "product"},
               {"variant", "fastest"},
               {"microseconds", "us"},
               {"by_default", "us by default"},
               {"tried", "tried"},
               {"file", ""},
               {"refused", "refused"}});
  bool any = false;
  absl::Status first_refusal;
  for (const GemvShape& shape : *all) {
    const absl::StatusOr<Tuned> tuned = tune(cache, options, shape);
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

Action declare_tune(CLI::App& app, const NamedKernel&) {
  auto options = std::make_shared<Options>(app);
  return [options] { return run(*options); };
}

}  // namespace ptxgen::tool
