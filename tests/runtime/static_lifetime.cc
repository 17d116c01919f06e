// Objects of static storage, destroyed after main() with the driver gone before or still there. Exits with 0
// when no rule of the driver was broken and, where the driver was there, nothing was left behind.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "ptxgen/device.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"
#include "tests/runtime/fake_cuda.h"

namespace {

using namespace ptxgen;

struct Everything {
  Stream stream;
  Event event;
  Buffer buffer;
  CompiledKernel kernel;
};

testing::FakeCuda* books = nullptr;
bool driver_goes_first = false;

// Constructed first, so destroyed last: reads the books.
struct Auditor {
  ~Auditor() {
    const bool clean =
        books != nullptr && books->violations().empty() && (driver_goes_first || books->alive() == 0);
    if (clean) return;
    std::fputs("the driver's books are not in order\n", stderr);
    std::_Exit(1);
  }
};

Auditor auditor;
std::optional<Device> device;
std::optional<KernelCache> cache;
std::optional<Everything> everything;

int fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 2;
}

}  // namespace

int main(int, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(absl::NotFoundError(argv[1]));
  books = reinterpret_cast<testing::FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
  driver_goes_first = std::string_view(argv[2]) == "driver_first";

  absl::StatusOr<Device> opened = Device::open({.choice = DeviceChoice::kCuda, .libcuda = argv[1]});
  if (!opened.ok()) return fail(opened.status());
  absl::StatusOr<Stream> stream = opened->create_stream();
  absl::StatusOr<Event> event = opened->create_event();
  absl::StatusOr<Buffer> buffer = opened->allocate(1024);
  cache.emplace(*opened, KernelCacheOptions{.store = {.max_bytes = 0}});
  absl::StatusOr<CompiledKernel> kernel = cache->get(Copy{.vectors = 1});
  if (!stream.ok() || !event.ok() || !buffer.ok() || !kernel.ok()) return fail(kernel.status());

  device = *opened;
  everything.emplace(
      Everything{*std::move(stream), *std::move(event), *std::move(buffer), *std::move(kernel)});
  if (driver_goes_first) std::atexit([] { books->shut_down(); });
  return 0;
}
