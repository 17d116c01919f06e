// Runs hand-written PTX in the emulator.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator.h"
#include "tests/support/catch.h"

namespace ptxgen::emulator {

// A module of sm_90 code around `text`.
inline std::string module_of(std::string_view text, std::string_view target = "sm_90",
                             std::string_view version = "8.3") {
  return std::string(".version ")
      .append(version)
      .append("\n.target ")
      .append(target)
      .append("\n.address_size 64\n")
      .append(text);
}

inline std::shared_ptr<const Program> parsed(const std::string& ptx) {
  auto program = Program::parse(ptx);
  INFO(ptx);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return *program;
}

// The message of the parse error.
inline std::string parse_failure(const std::string& ptx) {
  auto program = Program::parse(ptx);
  INFO(ptx);
  REQUIRE_FALSE(program.ok());
  return std::string(program.status().message());
}

// Bytes of parameters of one size after another; all of ours are 8-byte aligned.
template <class... Ts>
std::vector<std::byte> params_of(Ts... values) {
  std::vector<std::byte> bytes;
  const auto add = [&](const auto& v) {
    bytes.resize((bytes.size() + sizeof(v) - 1) / sizeof(v) * sizeof(v) + sizeof(v));
    std::memcpy(bytes.data() + bytes.size() - sizeof(v), &v, sizeof(v));
  };
  (add(values), ...);
  return bytes;
}

template <class T>
std::uint64_t upload(Memory& memory, const std::vector<T>& values, std::string_view name) {
  auto address = memory.allocate(values.size() * sizeof(T), name);
  REQUIRE(address.ok());
  REQUIRE(memory
              .write(*address, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                                                   values.size() * sizeof(T)))
              .ok());
  return *address;
}

template <class T>
std::vector<T> download(const Memory& memory, std::uint64_t address, std::size_t count) {
  std::vector<T> values(count);
  const absl::Status s = memory.read(
      address, absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), count * sizeof(T)), true);
  INFO(s.ToString());
  REQUIRE(s.ok());
  return values;
}

inline LaunchStats run(const Program& program, std::string_view entry, const LaunchConfig& config,
                       Memory& memory, const Options& options = {}) {
  auto stats = launch(program, entry, config, memory, options);
  INFO(stats.status().ToString());
  REQUIRE(stats.ok());
  return *stats;
}

// The message of the launch that must fail.
inline std::string failure(const Program& program, std::string_view entry, const LaunchConfig& config,
                           Memory& memory, const Options& options = {}) {
  auto stats = launch(program, entry, config, memory, options);
  REQUIRE_FALSE(stats.ok());
  return std::string(stats.status().message());
}

// A kernel `k` with `declarations` and `body`, whose threads own out[tid]: %out is the address of that
// element
// (`stride` bytes each), %t the thread's number, both u32-based; %rd0-9, %r0-39, %h0-19, %f0-19, %d0-9, %p0-9
// are free.
inline std::string kernel_text(std::string_view body, int stride = 4) {
  return module_of(std::string(".visible .entry k(.param .u64 out_param) {\n"
                               "  .reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<10>;\n"
                               "  .reg .f32 %f<20>; .reg .f64 %d<10>; .reg .b32 %t; .reg .b64 %out;\n"
                               "  ld.param.u64 %out, [out_param];\n  mov.u32 %t, %tid.x;\n"
                               "  mad.wide.u32 %out, %t, ") +
                   std::to_string(stride) + ", %out;\n" + std::string(body) + "\n  ret;\n}\n");
}

// What `threads` threads of kernel_text(body) leave in out.
template <class T>
std::vector<T> results(std::string_view body, std::uint32_t threads = 1, const Options& options = {}) {
  Memory memory;
  auto out = memory.allocate(threads * sizeof(T), "out");
  REQUIRE(out.ok());
  const std::string text = kernel_text(body, sizeof(T));
  INFO(text);
  const auto params = params_of(*out);
  run(*parsed(text), "k", {.grid = {}, .block = {threads}, .dynamic_shared_bytes = 0, .params = params},
      memory, options);
  return download<T>(memory, *out, threads);
}

// The single result of a kernel that ends by storing %r0, %rd0, %h0, %f0 or %d0.
inline std::uint32_t r0(std::string_view body) {
  return results<std::uint32_t>(std::string(body) + "\n  st.global.b32 [%out], %r0;")[0];
}
inline std::uint64_t rd0(std::string_view body) {
  return results<std::uint64_t>(std::string(body) + "\n  st.global.b64 [%out], %rd0;")[0];
}
inline std::uint16_t h0(std::string_view body) {
  return results<std::uint16_t>(std::string(body) + "\n  st.global.b16 [%out], %h0;")[0];
}
inline std::uint32_t f0(std::string_view body) {
  return results<std::uint32_t>(std::string(body) + "\n  st.global.f32 [%out], %f0;")[0];
}
inline std::uint64_t d0(std::string_view body) {
  return results<std::uint64_t>(std::string(body) + "\n  st.global.f64 [%out], %d0;")[0];
}

// The message of the fault that `threads` threads of kernel_text(body) run into.
inline std::string fault(std::string_view body, std::uint32_t threads = 32, const Options& options = {}) {
  Memory memory;
  auto out = memory.allocate(4096, "out");
  REQUIRE(out.ok());
  const auto params = params_of(*out);
  return failure(*parsed(kernel_text(body)), "k",
                 {.grid = {}, .block = {threads}, .dynamic_shared_bytes = 0, .params = params}, memory,
                 options);
}

}  // namespace ptxgen::emulator
