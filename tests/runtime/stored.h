// Kernels to keep on disk in tests.
#pragma once

#include <cstdint>
#include <string>

#include "ptxgen/cubin_store.h"

namespace ptxgen::testing {

// A kernel that differs from every other `i`, with code of `bytes` bytes.
inline StoredKernel stored_kernel(std::uint64_t i, std::size_t bytes = 4000) {
  StoredKernel kernel;
  kernel.key = {.descriptor = "scale n=" + std::to_string(i),
                .codegen = "direct",
                .target = "sm_90a",
                .capability = "9.0",
                .isa = "8.4",
                .compiler = "driver 12.4",
                .library = "0.1.0"};
  kernel.ptx = "// PTX of " + std::to_string(i) + "\n";
  kernel.image = {ImageKind::kCubin, std::string(bytes, '\0'), "log"};
  std::uint64_t state = i + 1;
  for (char& byte : kernel.image.bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;  // Knuth, MMIX
    byte = static_cast<char>(state >> 56);
  }
  return kernel;
}

inline absl::Status keep(CubinStore& store, const StoredKernel& kernel) {
  return store.keep(kernel.key, kernel.ptx, kernel.image);
}

// Whether the store has exactly this kernel's code.
inline bool has(const CubinStore& store, const StoredKernel& kernel) {
  const std::optional<Image> image = store.find(kernel.key, kernel.ptx);
  return image.has_value() && image->kind == ImageKind::kCubin && image->bytes == kernel.image.bytes &&
         image->log == kernel.image.log;
}

}  // namespace ptxgen::testing
