#include "tools/ptxgen/startup.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "absl/strings/str_format.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr u32 kHits = 1000000;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// A folder that is removed with all that is in it.
class Folder {
 public:
  Folder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "ptxgen-startup-XXXXXX").string();
    if (!error && ::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }  // empty where there is none

 private:
  std::string path_;
};

std::vector<KernelType> kernels_to_start() {
  std::vector<KernelType> kernels;
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : {ElementType::kF32, ElementType::kF16, ElementType::kBf16})
      kernels.push_back(Dequant{.format = format.format, .out_type = type});
  }
  kernels.push_back(Copy{});
  kernels.push_back(Read{});
  return kernels;
}

// Of each kernel: how long `get` took, in microseconds.
struct Times {
  std::vector<double> each;
  double total = 0;

  double median() const {
    std::vector<double> sorted = each;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double worst() const { return *std::max_element(each.begin(), each.end()); }
};

absl::StatusOr<Times> time_each(const std::vector<KernelType>& kernels,
                                const std::function<absl::Status(std::size_t)>& get) {
  Times times;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Clock::time_point start = Clock::now();
    if (absl::Status s = get(i); !s.ok()) return s;
    times.each.push_back(microseconds_since(start));
    times.total += times.each.back();
  }
  return times;
}

struct Startup {
  Times cold, warm, load;
  double parallel = 0, warm_parallel = 0;  // all kernels, in microseconds
  double hit_nanoseconds = 0;
  u64 second_start_compiles = 0, kernels = 0;
};

class Measure {
 public:
  Measure(const Device& device, u32 threads) : device_(device), threads_(threads) {}

  absl::StatusOr<Startup> run() {
    if (one_.path().empty() || many_.path().empty())
      return absl::UnavailableError("there is no temporary folder to keep kernels in; set TMPDIR");
    result_.kernels = kernels_.size();
    absl::Status status = cold();
    if (status.ok()) status = parallel(many_, result_.parallel);
    if (status.ok()) status = warm();
    if (status.ok()) status = parallel(one_, result_.warm_parallel);
    if (status.ok()) status = load_alone();
    if (!status.ok()) return status;
    return result_;
  }

 private:
  KernelCacheOptions in(const Folder& folder) const {
    return {.dump = "",
            .store = {.directory = {.path = folder.path(), .shared = false}, .max_bytes = u64{1} << 30}};
  }

  absl::Status cold() {
    KernelCache cache(device_, in(one_));
    auto times = time_each(kernels_, [&](std::size_t i) { return cache.get(kernels_[i]).status(); });
    if (!times.ok()) return times.status();
    result_.cold = *std::move(times);
    return cache.store_status();
  }

  absl::Status parallel(const Folder& folder, double& total) {
    KernelCache cache(device_, in(folder));
    const Clock::time_point start = Clock::now();
    const std::vector<absl::Status> statuses = cache.prepare(kernels_, {.threads = threads_});
    total = microseconds_since(start);
    for (const absl::Status& status : statuses) {
      if (!status.ok()) return status;
    }
    return cache.store_status();
  }

  absl::Status warm() {
    KernelCache cache(device_, in(one_));
    auto times = time_each(kernels_, [&](std::size_t i) { return cache.get(kernels_[i]).status(); });
    if (!times.ok()) return times.status();
    result_.warm = *std::move(times);
    result_.second_start_compiles = cache.stats().compiles;
    const Clock::time_point start = Clock::now();
    for (u32 i = 0; i < kHits; ++i) {
      if (absl::Status s = cache.get(kernels_[i % kernels_.size()]).status(); !s.ok()) return s;
    }
    result_.hit_nanoseconds = microseconds_since(start) * 1000 / kHits;
    return absl::OkStatus();
  }

  // What the driver takes to load the same code, without finding it.
  absl::Status load_alone() {
    CubinStore store(in(one_).store);
    const auto entries = store.entries();
    if (!entries.ok()) return entries.status();
    std::vector<Image> images;
    for (const CubinStore::Entry& entry : *entries) {
      if (!entry.kernel.ok()) return entry.kernel.status();
      images.push_back(entry.kernel->image);
    }
    if (images.size() != kernels_.size()) return absl::InternalError("not every kernel was kept");
    std::vector<Module> modules;  // unloading is not part of it
    auto times = time_each(kernels_, [&](std::size_t i) {
      absl::StatusOr<Module> module = device_.load(images[i]);
      if (module.ok()) modules.push_back(*std::move(module));
      return module.status();
    });
    if (!times.ok()) return times.status();
    result_.load = *std::move(times);
    return absl::OkStatus();
  }

  const Device device_;
  const u32 threads_;
  const Folder one_, many_;
  const std::vector<KernelType> kernels_ = kernels_to_start();
  Startup result_;
};

Outcome report(const Startup& s, const Device& device, u32 threads, bool json) {
  const double ratio = s.cold.total / s.parallel;
  if (json) {
    return Outcome{to_text({{"device", device.description()},
                            {"kernels", s.kernels},
                            {"threads", threads},
                            {"cold_ms", s.cold.total / 1000},
                            {"cold_median_ms", s.cold.median() / 1000},
                            {"cold_parallel_ms", s.parallel / 1000},
                            {"parallel_speedup", ratio},
                            {"warm_ms", s.warm.total / 1000},
                            {"warm_median_us", s.warm.median()},
                            {"warm_worst_us", s.warm.worst()},
                            {"warm_parallel_ms", s.warm_parallel / 1000},
                            {"load_alone_median_us", s.load.median()},
                            {"load_alone_worst_us", s.load.worst()},
                            {"hit_ns", s.hit_nanoseconds},
                            {"second_start_compiles", s.second_start_compiles}})};
  }
  return Outcome{str_cat(
      device.description(), ", ", s.kernels, " kernels\n",
      absl::StrFormat("cold, one after the other    %9.1f ms   median %.2f ms a kernel\n",
                      s.cold.total / 1000, s.cold.median() / 1000),
      absl::StrFormat("cold, %3d threads            %9.1f ms   %.2f times faster\n", threads,
                      s.parallel / 1000, ratio),
      absl::StrFormat("warm, from disk              %9.1f ms   median %.1f us, worst %.1f us a kernel\n",
                      s.warm.total / 1000, s.warm.median(), s.warm.worst()),
      absl::StrFormat("warm, %3d threads            %9.1f ms\n", threads, s.warm_parallel / 1000),
      absl::StrFormat("loading the cubins alone     %9.1f ms   median %.1f us, worst %.1f us a kernel\n",
                      s.load.total / 1000, s.load.median(), s.load.worst()),
      absl::StrFormat("hit in memory                %9.1f ns\n", s.hit_nanoseconds),
      "compiled by the second start ", s.second_start_compiles, "\n")};
}

}  // namespace

StartupOptions::StartupOptions(CLI::App& app) {
  app.add_flag("--startup", wanted_,
               "measure instead how long the library's kernels take to be ready, cold and warm");
  threads_option_ =
      app.add_option("--jobs", threads_, str_cat("with --startup: that compile at once; default ", threads_))
          ->transform(whole_number(1, PrepareOptions::kMaxThreads))
          ->type_name("NUMBER");
}

absl::Status StartupOptions::check() const {
  if (wanted_ || threads_option_->count() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("--jobs is given without --startup; it goes with it: leave it out");
}

absl::StatusOr<Outcome> measure_startup(const StartupOptions& options, const CLI::App& app,
                                        const DeviceOption& chosen, bool json) {
  for (const CLI::Option* option : app.get_options()) {
    constexpr std::array<std::string_view, 4> kOurs = {"--startup", "--jobs", "--device", "--json"};
    if (option->count() > 0 && std::find(kOurs.begin(), kOurs.end(), option->get_name()) == kOurs.end())
      return absl::InvalidArgumentError(
          str_cat(option->get_name(), " is given with --startup, which has its own kernels: leave it out"));
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty())
    return absl::InvalidArgumentError(str_cat("'", extras.front(), "' is no option of bench --startup"));
  ::setenv("CUDA_CACHE_DISABLE", "1", 1);  // read when the driver is initialised
  const absl::StatusOr<Device> device = chosen.open();
  if (!device.ok()) return device.status();
  if (device->kind() != DeviceKind::kCuda) {
    return absl::FailedPreconditionError(str_cat("only a CUDA device compiles, and this is the ",
                                                 device->description(), "; choose one with --device cuda"));
  }
  absl::StatusOr<Startup> measured = Measure(*device, options.threads()).run();
  if (!measured.ok()) return measured.status();
  return report(*measured, *device, options.threads(), json);
}

}  // namespace ptxgen::tool
