// Runs the library's kernels on the device under test, between guards, and says what must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/device.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"

namespace ptxgen::testing {

// What the kernels' tests run on, opened once: the emulated device, or CUDA device 0 when PTXGEN_TEST_DEVICE
// is "cuda".
const Device& test_device();
KernelCache& test_kernels();

// Of a kernel whose arguments are one input and one output: what the reference gives for the input.
std::vector<std::byte> random_input(const KernelType& kernel, std::uint64_t seed);

// Blocks of arbitrary bytes for every value of `kernel`.
std::vector<std::byte> arbitrary_input(const Dequant& kernel, std::uint64_t seed);

// Blocks of q8_0 whose scales have few bits, so that many values lie halfway between two of f16 or bf16.
std::vector<std::byte> halfway_input(const Dequant& kernel, std::uint64_t seed);

// What must come of `input` by the reference, for such a kernel too.
std::vector<std::byte> expected_output(const KernelType& kernel, absl::Span<const std::byte> input);

// Device memory for an input, exactly as long as it is and no better aligned than the kernel asks for: it
// ends where its allocation ends, and the `alignment` bytes before it were never written.
class TightInput {
 public:
  TightInput(const Device& device, absl::Span<const std::byte> data, std::size_t alignment,
             std::string_view name);
  std::uint64_t address() const { return buffer_.address() + offset_; }

 private:
  Buffer buffer_;
  std::uint64_t offset_;
};

// Device memory for an output, no better aligned than the kernel asks for, filled with a pattern and with
// guards of the same pattern before and behind it.
class GuardedOutput {
 public:
  GuardedOutput(const Device& device, std::uint64_t bytes, std::size_t alignment, std::string_view name);
  std::uint64_t address() const { return buffer_.address() + before_; }

  // What an output that is read too begins with.
  void write(absl::Span<const std::byte> data);

  // The output, once the guards are found untouched; else which byte of them was written.
  absl::StatusOr<std::vector<std::byte>> read() const;

 private:
  Buffer buffer_;
  std::uint64_t before_;
  std::uint64_t bytes_;
};

// Launches `kernel`, whose arguments are one input and one output, over `input`, and returns the output. The
// kernel comes from test_kernels(), or is generated for `target` when one is given. A failure of any step
// fails the test.
std::vector<std::byte> run_kernel(const KernelType& kernel, absl::Span<const std::byte> input,
                                  std::optional<Target> target = {});
// The same for PTX that was generated already.
std::vector<std::byte> run_text(const GeneratedKernel& text, const KernelType& kernel,
                                absl::Span<const std::byte> input);

// Whether two outputs of `kernel` are the same, bit for bit; in f32 a NaN equals any NaN, because ggml's host
// and a GPU make different ones. Narrower types have one NaN.
bool same_values(const Dequant& kernel, absl::Span<const std::byte> expected,
                 absl::Span<const std::byte> actual);

// Checks that `actual` is expected_output(kernel, blocks).
void check_values(const Dequant& kernel, absl::Span<const std::byte> blocks,
                  absl::Span<const std::byte> actual);

// Runs `kernel` over `blocks` and checks what comes out.
void check_dequant(const Dequant& kernel, absl::Span<const std::byte> blocks,
                   std::optional<Target> target = {});

// The kernel for `target`, in the first PTX ISA that knows this target or an older one.
GeneratedKernel generated_for(const KernelType& kernel, Target target);

}  // namespace ptxgen::testing
