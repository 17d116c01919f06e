// Small kernels for the tests of the builder: built from a lambda, printed, run on the emulator.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/codegen.h"
#include "ptxgen/emulator.h"
#include "ptxgen/kernel_builder.h"

namespace ptxgen::testing {

// Every test kernel has these arguments.
struct Args {
  DevicePtr<const u32, 16> in;
  DevicePtr<u32, 16> out;
  u32 n = 0;
  static constexpr auto fields() {
    return std::tuple(input("in", &Args::in, nullptr), output("out", &Args::out, nullptr),
                      scalar("n", &Args::n));
  }
};

template <class Body>
absl::StatusOr<Kernel> build(Body&& body, const BuildOptions& options = {}) {
  KernelBuilder k("test", options);
  k.declare_parameters<Args>();
  body(k);
  return k.finish();
}

// The instructions and labels of the kernel's body, or the mistake.
template <class Body>
std::string instructions(Body&& body, const BuildOptions& options = {}) {
  const absl::StatusOr<Kernel> kernel = build(body, options);
  if (!kernel.ok()) return std::string(kernel.status().message());
  std::string text;
  const std::string all = print_ptx(*kernel);
  for (std::size_t at = all.find("{\n") + 2; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    const std::string line = all.substr(at, end - at);
    if (line != "}" && line.rfind("  .", 0) != 0) text += line + "\n";
    at = end + 1;
  }
  return text;
}

// The mistake that finish() reports, or "".
template <class Body>
std::string mistake(Body&& body, const BuildOptions& options = {}) {
  return std::string(build(body, options).status().message());
}

// What `threads` threads of one CTA of an entry with these arguments leave in `out` (outputs words, first
// 0xdeadbeef each). A fault is a message in the status. `seed` is that of emulator::Options.
absl::StatusOr<std::vector<u32>> run(const emulator::Program& program, const std::string& entry, u32 threads,
                                     absl::Span<const u32> in, u32 n, std::size_t outputs, u64 seed = 0);
// The same for PTX with this entry; a message has the text behind it.
absl::StatusOr<std::vector<u32>> run_ptx(const std::string& ptx, const std::string& entry, u32 threads,
                                         absl::Span<const u32> in, u32 n, std::size_t outputs, u64 seed = 0);
// What `threads` threads of one CTA leave in `out` (outputs words, first 0xdeadbeef each). A fault is a
// message in the status, with the text of the kernel.
absl::StatusOr<std::vector<u32>> run(const Kernel& kernel, u32 threads, absl::Span<const u32> in, u32 n,
                                     std::size_t outputs, u64 seed = 0);

template <class Body>
absl::StatusOr<std::vector<u32>> build_and_run(Body&& body, u32 threads, absl::Span<const u32> in, u32 n,
                                               std::size_t outputs) {
  const absl::StatusOr<Kernel> kernel = build(body);
  if (!kernel.ok()) return kernel.status();
  return run(*kernel, threads, in, n, outputs);
}

}  // namespace ptxgen::testing
