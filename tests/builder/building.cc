#include "tests/builder/building.h"

#include <cstring>

#include "ptxgen/strings.h"

namespace ptxgen::testing {
namespace {

absl::Status with_text(const absl::Status& status, const std::string& ptx) {
  return absl::Status(status.code(), str_cat(std::string(status.message()), "\n", ptx));
}

template <class T>
absl::Span<const std::byte> bytes_of(const T& words) {
  return {reinterpret_cast<const std::byte*>(words.data()), words.size() * sizeof(words[0])};
}

}  // namespace

absl::StatusOr<std::vector<u32>> run(const emulator::Program& program, const std::string& entry, u32 threads,
                                     absl::Span<const u32> in, u32 n, std::size_t outputs, u64 seed) {
  emulator::Memory memory;
  std::vector<u32> out(outputs, 0xdeadbeef);
  const auto in_address = memory.allocate(in.size() * sizeof(u32), "in");
  const auto out_address = memory.allocate(out.size() * sizeof(u32), "out");
  if (!in_address.ok() || !out_address.ok()) return absl::ResourceExhaustedError("no emulated memory");
  absl::Status status = memory.write(*in_address, bytes_of(in));
  if (status.ok()) status = memory.write(*out_address, bytes_of(out));

  const emulator::EntryInfo& found = *program.find_entry(entry);
  std::vector<std::byte> params(found.param_bytes);
  std::memcpy(&params[found.params[0].offset], &*in_address, sizeof(u64));
  std::memcpy(&params[found.params[1].offset], &*out_address, sizeof(u64));
  std::memcpy(&params[found.params[2].offset], &n, sizeof(u32));
  emulator::LaunchConfig config;
  config.block = {threads, 1, 1};
  config.dynamic_shared_bytes = 1024;
  config.params = params;
  emulator::Options options;
  options.workers = 1;
  options.seed = seed;
  if (status.ok()) status = emulator::launch(program, entry, config, memory, options).status();
  if (status.ok()) {
    status = memory.read(*out_address, {reinterpret_cast<std::byte*>(out.data()), out.size() * sizeof(u32)});
  }
  if (!status.ok()) return status;
  return out;
}

absl::StatusOr<std::vector<u32>> run_ptx(const std::string& ptx, const std::string& entry, u32 threads,
                                         absl::Span<const u32> in, u32 n, std::size_t outputs, u64 seed) {
  const auto program = emulator::Program::parse(ptx);
  if (!program.ok()) return with_text(program.status(), ptx);
  auto out = run(**program, entry, threads, in, n, outputs, seed);
  if (!out.ok()) return with_text(out.status(), ptx);
  return out;
}

absl::StatusOr<std::vector<u32>> run(const Kernel& kernel, u32 threads, absl::Span<const u32> in, u32 n,
                                     std::size_t outputs, u64 seed) {
  return run_ptx(print_ptx(kernel), kernel.name, threads, in, n, outputs, seed);
}

}  // namespace ptxgen::testing
