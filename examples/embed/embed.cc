// An engine that embeds ptxgen: it dequantises a tensor of a GGUF file on whatever device there is.
//
//   embed FILE.gguf [TENSOR]

#include <cstdio>
#include <limits>
#include <vector>

#include "ptxgen/ptxgen.h"

namespace {

absl::Status dequantise(const char* path, const char* wanted) {
  const auto file = ptxgen::gguf::File::open(path);
  if (!file.ok()) return file.status();
  const auto device = ptxgen::Device::open();
  if (!device.ok()) return device.status();
  std::printf("%s\n", device->description().c_str());

  ptxgen::KernelCache cache(*device);
  for (const ptxgen::gguf::Tensor& tensor : file->tensors()) {
    if (!tensor.format() || (wanted && tensor.name != wanted)) continue;
    constexpr std::uint64_t kMost = std::numeric_limits<ptxgen::u32>::max();
    if (tensor.k() > kMost || tensor.n() > kMost) return absl::UnimplementedError("the tensor is too large");
    const ptxgen::Dequant dequant{.format = *tensor.format(),
                                  .k = static_cast<ptxgen::u32>(tensor.k()),
                                  .n = static_cast<ptxgen::u32>(tensor.n())};
    auto kernel = cache.get(dequant);
    if (!kernel.ok()) return kernel.status();
    auto weights = device->allocate(tensor.data.size(), "weights");
    if (!weights.ok()) return weights.status();
    auto out = device->allocate(dequant.out_bytes({}), "out");
    if (!out.ok()) return out.status();
    if (auto copied = weights->copy_from_host(tensor.data.data(), tensor.data.size()); !copied.ok())
      return copied;

    const ptxgen::Stream stream = device->default_stream();
    const ptxgen::Dequant::Args args{.weights = weights->ptr<const std::byte>(),
                                     .out = out->ptr<std::byte, 16>()};
    if (auto launched = kernel->launch(stream, args); !launched.ok()) return launched;
    if (auto done = stream.synchronize(); !done.ok()) return done;

    std::vector<float> values(tensor.k());
    if (auto copied = out->copy_to_host(values.data(), values.size() * sizeof(float)); !copied.ok())
      return copied;
    std::printf("%.*s: %s, first values %g %g %g %g\n", static_cast<int>(tensor.name.size()),
                tensor.name.data(), kernel->descriptor().text().c_str(), values[0], values[1], values[2],
                values[3]);
    return absl::OkStatus();
  }
  return absl::NotFoundError("the file has no such quantised tensor");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: embed FILE.gguf [TENSOR]\n");
    return 2;
  }
  const absl::Status status = dequantise(argv[1], argc > 2 ? argv[2] : nullptr);
  if (!status.ok()) std::fprintf(stderr, "embed: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
