// ptxgen bench: how long a kernel takes, beside a copy of as many bytes in the same run.
#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"

#include "ptxgen/kernels.h"
#include "tools/ptxgen/arguments.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/measure.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

struct Options {
  Options(CLI::App& app, const NamedKernel& named) : kernel(app, named), scalars(app), device(app) {
    app.add_option("--calls", measure.calls, str_cat("calls in one CUDA graph; default ", measure.calls))
        ->transform(whole_number(1, 10000))
        ->type_name("NUMBER");
    app.add_option("--replays", measure.replays,
                   str_cat("replays of the graph, the first a warm-up; default ", measure.replays))
        ->transform(whole_number(2, 10000))
        ->type_name("NUMBER");
    app.add_flag("--json", json, "print JSON");
  }
  KernelOptions kernel;
  ScalarOptions scalars;
  DeviceOption device;
  MeasureOptions measure;
  bool json = false;
};

void add_row(Table& table, const KernelType& kernel, const Measurement& m, const Measurement& floor) {
  const double gigabytes = m.gigabytes_per_second();
  const double ratio = gigabytes / floor.gigabytes_per_second();
  const auto microseconds = [](double value) { return Cell(Json(value), absl::StrFormat("%.2f", value)); };
  table.add({kernel->text(), microseconds(m.microseconds), microseconds(m.fastest), microseconds(m.slowest),
             m.bytes, Cell(Json(gigabytes), absl::StrFormat("%.0f", gigabytes)),
             Cell(Json(ratio), absl::StrFormat("%.3f", ratio)), m.buffer_sets});
}

absl::StatusOr<Outcome> bench(const Options& options) {
  absl::StatusOr<KernelType> kernel = options.kernel.kernel();
  if (!kernel.ok()) return kernel.status();
  absl::StatusOr<std::vector<u64>> values = options.scalars.values(**kernel);
  if (!values.ok()) return values.status();
  absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  KernelCache cache(*device);
  absl::StatusOr<Measurement> measured = measure(cache, *kernel, *values, options.measure);
  if (!measured.ok()) return measured.status();
  constexpr u64 kCopiedPerVector = 32;  // 16 bytes read, 16 written
  const KernelType copy =
      Copy{.vectors = static_cast<u32>(std::max<u64>(measured->bytes / kCopiedPerVector, 1))};
  absl::StatusOr<Measurement> floor = measure(cache, copy, copy->default_arguments(), options.measure);
  if (!floor.ok()) return floor.status();

  Table table({{"kernel", "kernel"},
               {"microseconds", "us"},
               {"fastest", "fastest"},
               {"slowest", "slowest"},
               {"bytes", "bytes"},
               {"gigabytes_per_second", "GB/s"},
               {"ratio_to_copy", "of copy"},
               {"buffer_sets", "buffer sets"}});
  add_row(table, *kernel, *measured, *floor);
  add_row(table, copy, *floor, *floor);
  if (options.json) return Outcome{to_text({{"device", device->description()}, {"rows", table.json()}})};
  return Outcome{str_cat(device->description(), "\n", table.text())};
}

}  // namespace

Action declare_bench(CLI::App& app, const NamedKernel& named) {
  auto options = std::make_shared<Options>(app, named);
  return [options] { return bench(*options); };
}

}  // namespace ptxgen::tool
