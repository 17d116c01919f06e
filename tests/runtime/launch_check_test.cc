#include "src/runtime/launch_check.h"

#include <limits>

#include "tests/support/catch.h"

namespace ptxgen::internal {
namespace {

DeviceProperties hopper() {
  DeviceProperties device;
  device.target = {90, true};
  device.shared_bytes_per_block = 49152;
  device.shared_bytes_per_block_optin = 232448;
  device.max_threads_per_block = 1024;
  device.max_block = {1024, 1024, 64};
  device.max_grid = {2147483647, 65535, 65535};
  return device;
}

FunctionInfo function() {
  FunctionInfo info;
  info.static_shared_bytes = 1024;
  info.max_threads = 512;
  return info;
}

std::string error(const LaunchShape& shape, const LaunchOptions& options = {},
                  const DeviceProperties& device = hopper()) {
  return std::string(check_launch(device, function(), shape, options).message());
}

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("launches at the bounds pass", "[runtime]") {
  CHECK(error({.grid = {2147483647, 65535, 65535}, .block = {512}}) == "");
  CHECK(error({.grid = {1}, .block = {2, 4, 64}}) == "");
  CHECK(error({.grid = {1}, .block = {32}, .dynamic_shared_bytes = 232448 - 1024}) == "");
  CHECK(error({.grid = {0}, .block = {32}}) == "");
  CHECK(error({.grid = {16, 3}, .block = {32}, .cluster = {8, 1, 1}}) == "");
  CHECK(error({.grid = {1}, .block = {32}}, {.programmatic_dependent_launch = true}) == "");
}

TEST_CASE("a launch beyond a bound names field, value and bound", "[runtime]") {
  CHECK(error({.grid = {2147483648}, .block = {32}}) ==
        "grid.x is 2147483648; the device allows at most 2147483647");
  CHECK(error({.grid = {1, 65536}, .block = {32}}) == "grid.y is 65536; the device allows at most 65535");
  CHECK(error({.grid = {1, 250880}, .block = {32}}) == "grid.y is 250880; the device allows at most 65535");
  CHECK(error({.grid = {1, 1, kHuge}, .block = {32}}) ==
        "grid.z is 18446744073709551615; the device allows at most 65535");
  CHECK(error({.grid = {1}, .block = {1025}}) == "block.x is 1025; the device allows at most 1024");
  CHECK(error({.grid = {1}, .block = {1, 1, 65}}) == "block.z is 65; the device allows at most 64");
  // 2^32 * 2^32 * 2^0 is 0 in 64 bits: the extents are compared first.
  CHECK(error({.grid = {1}, .block = {std::uint64_t{1} << 32, std::uint64_t{1} << 32}}) ==
        "block.x is 4294967296; the device allows at most 1024");
  CHECK(error({.grid = {1}, .block = {64, 32}}) ==
        "block.x * block.y * block.z is 2048; the device allows at most 1024");
  CHECK(error({.grid = {1}, .block = {513}}) ==
        "block.x * block.y * block.z is 513; the kernel (.maxntid or registers) allows at most 512");
  CHECK(error({.grid = {1}, .block = {32, 0}}) == "block is 32 x 0 x 1; every extent must be at least 1");
}

TEST_CASE("shared memory is bounded with what the kernel declares", "[runtime]") {
  const std::string bound = "; the device, with 1024 bytes static, allows at most 231424";
  CHECK(error({.grid = {1}, .block = {32}, .dynamic_shared_bytes = 231425}) ==
        "dynamic_shared_bytes is 231425" + bound);
  CHECK(error({.grid = {1}, .block = {32}, .dynamic_shared_bytes = kHuge}) ==
        "dynamic_shared_bytes is 18446744073709551615" + bound);
}

TEST_CASE("clusters and dependent launches need sm_90", "[runtime]") {
  DeviceProperties ada = hopper();
  ada.target = {89, false};
  CHECK(error({.grid = {8}, .block = {32}, .cluster = {2}}, {}, ada) ==
        "cluster is 2 x 1 x 1; clusters need sm_90, and the device is sm_89");
  CHECK(error({.grid = {8}, .block = {32}}, {.programmatic_dependent_launch = true}, ada) ==
        "programmatic dependent launch needs sm_90, and the device is sm_89");
  CHECK(error({.grid = {9}, .block = {32}, .cluster = {2}}) ==
        "grid is 9 x 1 x 1; each extent must be a multiple of the cluster's, 2 x 1 x 1");
  CHECK(error({.grid = {9, 9}, .block = {32}, .cluster = {3, 3}}) ==
        "cluster is 3 x 3 x 1; a cluster has 1 to 8 CTAs, or up to 16 with "
        "LaunchOptions::non_portable_cluster");
  CHECK(error({.grid = {9}, .block = {32}, .cluster = {0}}) ==
        "cluster is 0 x 1 x 1; a cluster has 1 to 8 CTAs, or up to 16 with "
        "LaunchOptions::non_portable_cluster");
  CHECK(error({.grid = {9}, .block = {32}, .cluster = {kHuge, 2}}) ==
        "cluster is 18446744073709551615 x 2 x 1; a cluster has 1 to 8 CTAs, or up to 16 with "
        "LaunchOptions::non_portable_cluster");
  CHECK(error({.grid = {16}, .block = {32}, .cluster = {16}}, {.non_portable_cluster = true}) == "");
  CHECK(error({.grid = {32}, .block = {32}, .cluster = {32}}, {.non_portable_cluster = true}) ==
        "cluster is 32 x 1 x 1; a cluster has 1 to 16 CTAs");
}

TEST_CASE("a kernel may say its cluster", "[runtime]") {
  FunctionInfo info = function();
  info.cluster = {4};
  const auto error_of = [&](const LaunchShape& shape, const LaunchOptions& options = {}) {
    return std::string(check_launch(hopper(), info, shape, options).message());
  };
  CHECK(error_of({.grid = {8}, .block = {32}}) == "");
  CHECK(error_of({.grid = {8}, .block = {32}, .cluster = {4}}) == "");
  CHECK(error_of({.grid = {8}, .block = {32}, .cluster = {2}}) ==
        "cluster is 2 x 1 x 1; the kernel (.reqnctapercluster) has 4 x 1 x 1");
  CHECK(error_of({.grid = {6}, .block = {32}}) ==
        "grid is 6 x 1 x 1; each extent must be a multiple of the cluster's, 4 x 1 x 1");
  info.cluster = {16};
  CHECK(error_of({.grid = {16}, .block = {32}}) ==
        "cluster is 16 x 1 x 1; a cluster has 1 to 8 CTAs, or up to 16 with "
        "LaunchOptions::non_portable_cluster");
  CHECK(error_of({.grid = {16}, .block = {32}}, {.non_portable_cluster = true}) == "");
}

TEST_CASE("arguments must have the parameters' number and sizes", "[runtime]") {
  FunctionInfo info = function();
  const std::uint64_t pointer = 7;
  const std::uint32_t count = 3;
  const KernelArg args[] = {KernelArg::of(pointer), KernelArg::of(count)};
  CHECK(check_args(info, args).ok());  // a driver that cannot tell
  info.param_bytes = {8, 4};
  CHECK(check_args(info, args).ok());
  info.param_bytes = {8, 4, 4};
  CHECK(check_args(info, args).message() == "2 arguments given; the kernel has 3");
  info.param_bytes = {8, 8};
  CHECK(check_args(info, args).message() == "argument 1 has 4 bytes; the kernel's parameter has 8");
}

}  // namespace ptxgen::internal
