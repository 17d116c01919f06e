// What the kernels refuse, and in which words.

#include "absl/strings/match.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr u32 kMost = 0xffffffff;

struct Refusal {
  Dequant kernel;
  std::string_view message;
};

const Refusal kRefusals[] = {
    {{Format::kQ4_K, 128, 1, ElementType::kF32},
     "k is 128; it must be from 256 to 16777216, a multiple of 256 (a block of q4_K)"},
    {{Format::kQ4_K, 7680 + 128, 3, ElementType::kF16},
     "k is 7808; it must be from 256 to 16777216, a multiple of 256 (a block of q4_K)"},
    {{Format::kQ6_K, 896, 3, ElementType::kBf16},
     "k is 896; it must be from 256 to 16777216, a multiple of 256 (a block of q6_K)"},
    {{Format::kQ4_0, 33, 1, ElementType::kF32},
     "k is 33; it must be from 32 to 16777216, a multiple of 32 (a block of q4_0)"},
    {{Format::kQ8_0, 31, 1, ElementType::kF32},
     "k is 31; it must be from 32 to 16777216, a multiple of 32 (a block of q8_0)"},
    {{Format::kQ4_0, 0, 1, ElementType::kF32},
     "k is 0; it must be from 32 to 16777216, a multiple of 32 (a block of q4_0)"},
    {{Format::kQ4_0, 32, 0, ElementType::kF32}, "n is 0; it must be from 1 to 268435456"},
    {{Format::kQ4_0, (1u << 24) + 32, 1, ElementType::kF32},
     "k is 16777248; it must be from 32 to 16777216, a multiple of 32 (a block of q4_0)"},
    {{Format::kQ4_0, kMost - 31, 1, ElementType::kF32},
     "k is 4294967264; it must be from 32 to 16777216, a multiple of 32 (a block of q4_0)"},
    {{Format::kQ4_0, 32, (1u << 28) + 1, ElementType::kF32}, "n is 268435457; it must be from 1 to 268435456"},
    {{Format::kQ4_0, 32, kMost, ElementType::kF32}, "n is 4294967295; it must be from 1 to 268435456"},
    {{Format::kQ4_0, 512, 1u << 28, ElementType::kF32},
     "n is 268435456 with k 512, which makes 4294967296 blocks; the kernel counts up to 4294967295: split "
     "the "
     "rows"},
    {{Format::kQ6_K, 1u << 24, 1u << 16, ElementType::kF32},
     "n is 65536 with k 16777216, which makes 4294967296 blocks; the kernel counts up to 4294967295: split "
     "the rows"},
};

TEST_CASE("a shape that a kernel cannot have is refused by field, value and rule", "[kernels]") {
  for (const Refusal& refusal : kRefusals) {
    const KernelType kernel(refusal.kernel);
    const absl::Status status = kernel->validate();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(status.message()) == std::string(refusal.message));
    // Nothing is generated or compiled either.
    const auto generated = generate(*kernel, {});
    CHECK(std::string(generated.status().message()) == str_cat(kernel->text(), ": ", refusal.message));
    const auto compiled = test_kernels().get(kernel);
    CHECK(absl::StrContains(std::string(compiled.status().message()), std::string(refusal.message)));
  }
}

TEST_CASE("the largest legal shapes are accepted", "[kernels]") {
  for (const Dequant& kernel : {Dequant{Format::kQ4_0, 1u << 24, 8191, ElementType::kF32},
                                Dequant{Format::kQ4_0, 480, 1u << 28, ElementType::kF32},
                                Dequant{Format::kQ6_K, 1u << 24, 65535, ElementType::kF16},
                                Dequant{Format::kQ6_K, 15 * 256, 1u << 28, ElementType::kBf16}}) {
    INFO(KernelType(kernel)->text());
    CHECK(KernelType(kernel)->validate().ok());
  }
  CHECK(KernelType(Copy{.vectors = 1u << 31})->validate().ok());
  const auto message = [](u32 vectors) {
    return std::string(KernelType(Copy{.vectors = vectors})->validate().message());
  };
  CHECK(message(0) == "vectors is 0; it must be from 1 to 2147483648");
  CHECK(message((1u << 31) + 1) == "vectors is 2147483649; it must be from 1 to 2147483648");
}

// The launch of a kernel over one block a row at these addresses, which must be refused.
std::string launch_refusal(Format format, u64 weights, u64 out) {
  const Dequant kernel = {format, info(format).block_values, 3, ElementType::kF16};
  const auto compiled = test_kernels().get(kernel);
  REQUIRE(compiled.ok());
  const absl::Status status =
      compiled->launch(test_device().default_stream(), {.weights = {weights}, .out = {out}});
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST_CASE("a misaligned or missing buffer is refused by argument and alignment", "[kernels][device]") {
  const Buffer buffer = *test_device().allocate(1u << 16);
  const u64 base = buffer.address();
  for (const FormatInfo& format : kFormats) {
    const std::string text =
        KernelType(Dequant{format.format, format.block_values, 3, ElementType::kF16})->text();
    CAPTURE(text);
    for (u64 off = 1; off < format.alignment; off *= 2) {
      CHECK(launch_refusal(format.format, base + off, base + 4096) ==
            str_cat("kernel ", text, ": argument weights is at 0x", absl::Hex(base + off),
                    "; its address must be a multiple of ", format.alignment));
    }
    for (const u64 off : {1u, 2u, 4u, 8u, 15u}) {
      CHECK(launch_refusal(format.format, base, base + 4096 + off) ==
            str_cat("kernel ", text, ": argument out is at 0x", absl::Hex(base + 4096 + off),
                    "; its address must be a multiple of 16"));
    }
    CHECK(launch_refusal(format.format, 0, base) == str_cat("kernel ", text,
                                                            ": argument weights is null; the kernel uses ",
                                                            3 * format.block_bytes, " bytes of it"));
    CHECK(absl::StrContains(launch_refusal(format.format, base, 0), "argument out is null"));
  }
}

TEST_CASE("the alignment of weights is the largest that all blocks have", "[kernels]") {
  for (const FormatInfo& format : kFormats) {
    const KernelType kernel(Dequant{format.format, format.block_values, 3, ElementType::kF32});
    const auto arguments = kernel->arguments(std::array<u64, 2>{});
    CHECK(arguments[0].alignment == (format.block_bytes & -format.block_bytes));
    CHECK(arguments[1].alignment == 16);
  }
}

}  // namespace
}  // namespace ptxgen::testing
