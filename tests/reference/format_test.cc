#include "ptxgen/format.h"

#include "tests/support/catch.h"

namespace ptxgen {
namespace {

TEST_CASE("formats are found by both names and by ggml's number", "[reference]") {
  for (const FormatInfo& format : kFormats) {
    CHECK(info(format.format).ggml_type == format.ggml_type);
    CHECK(find_format(format.name) == format.format);
    CHECK(find_format(format.ggml_name) == format.format);
    CHECK(find_format(format.ggml_type) == format.format);
    CHECK(format.block_bytes % format.alignment == 0);
    CHECK(format.block_bytes / format.alignment % 2 == 1);
  }
  CHECK(find_format("Q4_k") == Format::kQ4_K);
  CHECK(find_format("q4_1") == Format::kQ4_1);
}

TEST_CASE("nothing is found for what is no format", "[reference]") {
  for (const char* name : {"", "q4", "Q4K", "q4_", "q4_K ", "q4k_dequant", "f32"})
    CHECK(find_format(name) == std::nullopt);
  for (const std::uint32_t type : {0u, 1u, 4u, 5u, 9u, 15u, 20u, 0xffffffffu})
    CHECK(find_format(type) == std::nullopt);
}

}  // namespace
}  // namespace ptxgen
