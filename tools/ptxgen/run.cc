// ptxgen run: a kernel on raw buffers, files in and files out.
#include <algorithm>
#include <map>
#include <memory>

#include "tools/ptxgen/arguments.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"
#include "tools/ptxgen/launch.h"

namespace ptxgen::tool {
namespace {

struct Options {
  Options(CLI::App& app, const NamedKernel& named)
      : kernel(app, named),
        in(app, "--in", "FILE", "the content of a buffer that the kernel reads; once for each"),
        out(app, "--out", "FILE", "where a buffer goes that the kernel writes; once for each"),
        scalars(app),
        device(app),
        cache(app) {}
  KernelOptions kernel;
  NamedValues in, out;
  ScalarOptions scalars;
  DeviceOption device;
  CacheOptions cache;
};

struct Arguments {
  Texts in, out;
  std::vector<u64> values;
};

absl::StatusOr<Arguments> arguments_of(const Options& options, const Descriptor& kernel) {
  absl::StatusOr<std::vector<u64>> values = options.scalars.values(kernel);
  if (!values.ok()) return values.status();
  const ArgInfos infos = kernel.arguments(*values);
  absl::StatusOr<Texts> in = match_all(options.in, infos, {Direction::kIn, Direction::kInOut});
  if (!in.ok()) return in.status();
  absl::StatusOr<Texts> out = match_all(options.out, infos, {Direction::kOut, Direction::kInOut});
  if (!out.ok()) return out.status();
  return Arguments{*std::move(in), *std::move(out), *std::move(values)};
}

absl::Status download(const Buffer& buffer, OutputFile& file) {
  std::vector<std::byte> piece(std::min<u64>(buffer.bytes(), kPieceBytes));
  for (u64 offset = 0; offset < buffer.bytes(); offset += piece.size()) {
    const u64 bytes = std::min<u64>(buffer.bytes() - offset, piece.size());
    if (absl::Status s = buffer.copy_to_host(piece.data(), bytes, offset); !s.ok()) return s;
    if (absl::Status s = file.write({piece.data(), bytes}); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<Outcome> run(const Options& options) {
  const absl::StatusOr<KernelType> kernel = options.kernel.kernel();
  if (!kernel.ok()) return kernel.status();
  const absl::StatusOr<Arguments> arguments = arguments_of(options, **kernel);
  if (!arguments.ok()) return arguments.status();
  const absl::StatusOr<KernelCacheOptions> cache_options = options.cache.options();
  if (!cache_options.ok()) return cache_options.status();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  std::map<std::size_t, OutputFile> files;  // before the work, so that a wrong path costs none
  for (std::size_t i = 0; i < arguments->out.size(); ++i) {
    if (!arguments->out[i]) continue;
    absl::StatusOr<OutputFile> file = OutputFile::create(*arguments->out[i]);
    if (!file.ok()) return file.status();
    files.emplace(i, *std::move(file));
  }

  KernelCache cache(*device, *cache_options);
  absl::StatusOr<Launch> launch = Launch::prepare(cache, *kernel, arguments->values);
  if (!launch.ok()) return launch.status();
  for (std::size_t i = 0; i < arguments->in.size(); ++i) {
    if (!arguments->in[i]) continue;
    const absl::Status read =
        read_exactly(*arguments->in[i], launch->arguments()[i].bytes, [&](auto piece, u64 offset) {
          return launch->buffer(i).copy_from_host(piece.data(), piece.size(), offset);
        });
    if (!read.ok()) return read;
  }
  const absl::StatusOr<float> ms = launch->run();
  if (!ms.ok()) return ms.status();
  for (auto& [i, file] : files) {
    if (absl::Status s = download(launch->buffer(i), file); !s.ok()) return s;
  }
  for (auto& [i, file] : files) {
    if (absl::Status s = file.commit(); !s.ok()) return s;
  }
  say(str_cat("ran ", (*kernel)->text(), " in ", *ms, " ms on ", device->description()));
  if (!cache.dump_status().ok()) say(str_cat("warning: ", cache.dump_status().message()));
  return Outcome{};
}

}  // namespace

Action declare_run(CLI::App& app, const NamedKernel& named) {
  const auto options = std::make_shared<Options>(app, named);
  return [options] { return run(*options); };
}

}  // namespace ptxgen::tool
