#include "tools/ptxgen/arguments.h"

#include <bit>

#include "tests/support/catch.h"

namespace ptxgen::tool {
namespace {

// y[m][n] = factor * x[m][n]: a kernel whose extents depend on a scalar.
struct Scale {
  u32 n = 8;
  static constexpr auto fields() { return std::tuple(field("n", &Scale::n, "values in a row")); }
  struct Args {
    DevicePtr<const f32> x;
    u32 m = 3;
    DevicePtr<f32> y;
    f32 factor = 0.5f;
    static constexpr auto fields() {
      return std::tuple(input("x", &Args::x, &Scale::bytes), scalar("m", &Args::m),
                        output("y", &Args::y, &Scale::bytes), scalar("factor", &Args::factor));
    }
  };
  u64 bytes(const Args& args) const { return u64{args.m} * n * sizeof(f32); }
  std::string name() const { return "scale"; }
  LaunchShape launch_shape(const Args& args) const { return {.grid = {args.m}, .block = {32}}; }
  void build(KernelBuilder&) const {}
};

absl::StatusOr<std::vector<u64>> values(std::vector<std::string> reversed_arguments) {
  CLI::App app;
  const ScalarOptions scalars(app);
  app.parse(std::move(reversed_arguments));
  return scalars.values(DescriptorOf<Scale>({.n = 8}));
}

std::string refusal(const std::string& text) {
  const auto refused = values({text, "--arg"});
  CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(refused.status().message());
}

TEST_CASE("scalars that are not given are the kernel's own", "[cli]") {
  constexpr u64 kHalf = std::bit_cast<u32>(0.5f), kTwo = std::bit_cast<u32>(2.0f);
  CHECK(*values({}) == std::vector<u64>{0, 3, 0, kHalf});
  CHECK(*values({"m=7", "--arg"}) == std::vector<u64>{0, 7, 0, kHalf});
  CHECK(*values({"m=0", "--arg", "factor=2", "--arg"}) == std::vector<u64>{0, 0, 0, kTwo});
  const DescriptorOf<Scale> kernel({.n = 8});
  CHECK(kernel.arguments(*values({"m=7", "--arg"}))[2].bytes == 7 * 8 * 4);
  CHECK(kernel.launch_shape(*values({"m=7", "--arg"})).grid.x == 7);
}

TEST_CASE("scalars of other names, buffers and bad values are refused", "[cli]") {
  CHECK(refusal("k=7") == "--arg names 'k'; the kernel has m, factor");
  CHECK(refusal("x=7") == "--arg names 'x'; the kernel has m, factor");
  CHECK(refusal("m=-1") == "--arg m is '-1'; give a whole number from 0 to 4294967295");
  CHECK(refusal("m=") == "--arg is 'm='; give it as --arg NAME=VALUE");
}

}  // namespace
}  // namespace ptxgen::tool
