#include "tests/kernels/harness.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

TEST_CASE("copy moves every vector and nothing else", "[kernels][device]") {
  for (const u32 vectors : {1u, 31u, 255u, 256u, 257u, 1023u, 1024u, 1025u, 1279u, 2048u, 3001u, 70001u}) {
    CAPTURE(vectors);
    const Copy kernel{.vectors = vectors};
    const std::vector<std::byte> data = random_input(kernel, vectors);
    CHECK(data.size() == u64{vectors} * 16);
    CHECK(run_kernel(kernel, data) == data);
  }
}

TEST_CASE("copy has CTAs for all vectors, up to the most there can be", "[kernels]") {
  const auto ctas = [](u32 vectors) { return Copy{.vectors = vectors}.launch_shape({}).grid.x; };
  CHECK(ctas(1) == 1);
  CHECK(ctas(1024) == 1);
  CHECK(ctas(1025) == 2);
  CHECK(ctas(1u << 31) == 1u << 21);
  CHECK(Copy{.vectors = 1u << 31}.bytes({}) == u64{1} << 35);
}

}  // namespace
}  // namespace ptxgen::testing
