// ptxgen verify: a kernel on generated data, or every quantised tensor of a GGUF file, compared with the
// reference.
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>

#include "ptxgen/gguf.h"
#include "tools/ptxgen/arguments.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/compare.h"
#include "tools/ptxgen/files.h"
#include "tools/ptxgen/progress.h"
#include "tools/ptxgen/verify_report.h"

namespace ptxgen::tool {
namespace {

struct Options {
  Options(CLI::App& app, const NamedKernel& named)
      : kernel(app, named), kernel_is_named(named.is_named()), scalars(app), device(app), cache(app) {
    if (!kernel_is_named) app.allow_extras(false);
    add_operation(app, "verify products of the executor instead");
    gguf_option =
        app.add_option("--gguf", gguf, "verify every quantised tensor of this model")->type_name("FILE");
    tensor_option =
        app.add_option("--tensor", tensor, "with --gguf: only tensors whose name matches, as 'blk.0.*'")
            ->type_name("GLOB");
    seed_option = app.add_option("--seed", seed, "with --kernel: what the data is made from; default 1")
                      ->transform(whole_number(0, std::numeric_limits<u64>::max()))
                      ->type_name("NUMBER");
    app.add_flag("--json", json, "print JSON");
    if (kernel_is_named) return;
    for (const FieldInfo& field : field_infos(Dequant{})) {
      if (field.name == kOutType) out_type = add_field(app, field);
    }
  }
  static constexpr std::string_view kOutType = "out_type";

  KernelOptions kernel;
  bool kernel_is_named;
  ScalarOptions scalars;
  DeviceOption device;
  CacheOptions cache;
  std::string gguf, tensor = "*";
  u64 seed = 1;
  CLI::Option *gguf_option, *tensor_option, *seed_option;
  CLI::Option* out_type = nullptr;  // the constant of every tensor's kernel
  bool json = false;
};

std::string shape_of(const gguf::Tensor& tensor) {
  std::string shape;
  for (std::uint32_t d = tensor.n_dims; d-- > 0;)
    str_append(&shape, shape.empty() ? "" : " x ", tensor.dims[d]);
  return shape;
}

// Why a tensor has no kernel.
std::string reason_to_skip(const gguf::Tensor& tensor) {
  constexpr std::array<std::string_view, 8> kPlain = {"f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64"};
  if (tensor.type_name.empty()) return str_cat("ggml type ", tensor.ggml_type, " is not known");
  for (const std::string_view plain : kPlain) {
    if (tensor.type_name == plain) return "not quantised";
  }
  return str_cat("no kernel for ", tensor.type_name);
}

// The kernel for the tensor's shape.
absl::StatusOr<KernelType> kernel_for(const gguf::Tensor& tensor, Format format,
                                      const FieldValues& constants) {
  const absl::StatusOr<const KernelFamily*> family = find_kernel(Dequant{.format = format}.name());
  if (!family.ok()) return family.status();
  FieldValues values = constants;
  values.emplace_back("k", str_cat(tensor.k()));
  values.emplace_back("n", str_cat(tensor.n()));
  return (*family)->make(values);
}

void verify_tensor(KernelCache& cache, const gguf::Tensor& tensor, const FieldValues& constants,
                   VerifyReport& report) {
  VerifyReport::Subject subject{
      std::string(tensor.name), std::string(tensor.type_name), shape_of(tensor), {}, {}};
  const std::optional<Format> format = tensor.format();
  if (!format) return report.skip(subject, reason_to_skip(tensor));
  const absl::StatusOr<KernelType> kernel = kernel_for(tensor, *format, constants);
  if (!kernel.ok()) return report.add(subject, kernel.status());
  subject.kernel = (*kernel)->name();
  subject.descriptor = (*kernel)->text();
  const auto read_tensor = [&](std::size_t, u64 offset, absl::Span<std::byte> piece) {
    std::copy_n(tensor.data.begin() + offset, piece.size(), piece.begin());
    return absl::OkStatus();
  };
  report.add(subject, verify_with(cache, *kernel, (*kernel)->default_arguments(), read_tensor));
}

absl::Status verify_gguf(const Options& options, KernelCache& cache, const gguf::File& file,
                         VerifyReport& report) {
  FieldValues constants;
  if (options.out_type->count() > 0) {
    constants.emplace_back(Options::kOutType, options.out_type->as<std::string>());
    Dequant probe;
    if (absl::Status s = set_field(probe, Options::kOutType, constants[0].second); !s.ok()) return s;
  }
  std::vector<const gguf::Tensor*> selected;
  u64 bytes = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (::fnmatch(options.tensor.c_str(), std::string(tensor.name).c_str(), 0) != 0) continue;
    selected.push_back(&tensor);
    bytes += tensor.format() ? tensor.data.size() : 0;
  }
  if (selected.empty() && options.tensor_option->count() > 0) {
    return absl::InvalidArgumentError(str_cat("--tensor '", options.tensor, "' matches none of the ",
                                              file.tensors().size(), " tensors of ", options.gguf,
                                              "; without --tensor all of them are listed"));
  }
  ProgressBar progress(bytes);
  for (const gguf::Tensor* tensor : selected) {
    progress.show_at(tensor->name);
    verify_tensor(cache, *tensor, constants, report);
    progress.advance(tensor->format() ? tensor->data.size() : 0);
  }
  return absl::OkStatus();
}

absl::Status verify_kernel(const Options& options, KernelCache& cache, VerifyReport& report) {
  const absl::StatusOr<KernelType> kernel = options.kernel.kernel();
  if (!kernel.ok()) return kernel.status();
  const absl::StatusOr<std::vector<u64>> values = options.scalars.values(**kernel);
  if (!values.ok()) return values.status();
  VerifyReport::Subject subject{str_cat("(seed ", options.seed, ")"), "-", "-", (*kernel)->name(),
                                (*kernel)->text()};
  if (const Dequant* dequant = kernel->get_if<Dequant>()) {
    subject.format = std::string(info(dequant->format).ggml_name);
    subject.shape = str_cat(dequant->n, " x ", dequant->k);
  }
  const absl::StatusOr<Verified> verified = verify_generated(cache, *kernel, *values, options.seed);
  if (!verified.ok()) return verified.status();
  report.add(subject, verified);
  return absl::OkStatus();
}

absl::Status check(const Options& options) {
  const bool gguf = options.gguf_option->count() > 0;
  if (gguf == options.kernel_is_named) {
    return absl::InvalidArgumentError(
        str_cat(gguf ? "--kernel and --gguf are both given" : "nothing to verify is given",
                "; give either --kernel NAME or --gguf FILE"));
  }
  for (const auto& [given, option] :
       {std::pair(options.seed_option->count() > 0, "--seed"), std::pair(options.scalars.given(), "--arg")}) {
    if (gguf && given) {
      return absl::InvalidArgumentError(
          str_cat(option, " is given with --gguf; it goes with --kernel: leave it out"));
    }
  }
  if (!gguf && options.tensor_option->count() > 0)
    return absl::InvalidArgumentError("--tensor is given with --kernel; it goes with --gguf: leave it out");
  return absl::OkStatus();
}

absl::StatusOr<Outcome> verify(const Options& options) {
  if (absl::Status s = check(options); !s.ok()) return s;
  std::optional<gguf::File> file;
  if (!options.kernel_is_named) {
    absl::StatusOr<gguf::File> opened = gguf::File::open(options.gguf);
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
  }
  const absl::StatusOr<KernelCacheOptions> cache_options = options.cache.options();
  if (!cache_options.ok()) return cache_options.status();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  KernelCache cache(*device, *cache_options);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  VerifyReport report("no quantised tensor that ptxgen has a kernel for");
  const absl::Status done =
      file ? verify_gguf(options, cache, *file, report) : verify_kernel(options, cache, report);
  if (!done.ok()) return done;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!cache.dump_status().ok()) say(str_cat("warning: ", cache.dump_status().message()));
  return report.outcome(*device, seconds, options.json);
}

}  // namespace

Action declare_verify(CLI::App& app, const NamedKernel& named) {
  if (named.is_operation()) return declare_product_verify(app);
  const auto options = std::make_shared<Options>(app, named);
  return [options] { return verify(*options); };
}

}  // namespace ptxgen::tool
