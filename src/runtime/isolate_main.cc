// ptxgen-isolate INDEX LIBCUDA ENTRY: compiles the PTX on stdin for a CUDA device, loads it and looks for its
// entry, and writes to stdout what came of it. ptxgen starts it (src/runtime/isolate.h); people have no use
// for it.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "absl/strings/numbers.h"
#include "ptxgen/device.h"
#include "ptxgen/kernel_key.h"
#include "src/runtime/isolate.h"

namespace {

using namespace ptxgen;

std::string read_all() {
  std::string text;
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

absl::StatusOr<Image> compile_and_load(const Device& device, const std::string& ptx, const char* entry) {
  absl::StatusOr<Image> image = device.compile(ptx);
  if (!image.ok()) return image;
  const absl::StatusOr<Module> module = device.load(*image);
  if (!module.ok()) return module.status();
  const absl::StatusOr<Function> function = module->function(entry, std::size_t{0});
  if (!function.ok()) return function.status();
  return image;
}

std::string answer(int index, const char* libcuda, const char* entry) {
  const std::string ptx = read_all();
  const absl::StatusOr<Device> device =
      Device::open({.choice = DeviceChoice::kCuda, .index = index, .libcuda = libcuda});
  if (!device.ok()) return internal::encode_isolated({}, ptx, device.status());
  return internal::encode_isolated(KernelKey::of_device(device->properties(), ""), ptx,
                                   compile_and_load(*device, ptx, entry));
}

}  // namespace

int main(int argc, char** argv) {
  int index = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[1], &index)) return 2;
  const std::string text = answer(index, argv[2], argv[3]);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (written > 0) done += static_cast<std::size_t>(written);
    if (written < 0 && errno != EINTR) return 2;
  }
  ::_exit(0);  // whatever the driver would still do
}
