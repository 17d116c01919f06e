#include "src/runtime/launch_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ptxgen::internal {
namespace {

absl::Status at_most(absl::string_view field, std::uint64_t value, std::uint64_t bound,
                     absl::string_view whose) {
  if (value <= bound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; ", whose, " allows at most ", bound));
}

absl::Status at_most(absl::string_view field, const Dim3& value, const Dim3& bound) {
  absl::Status status = at_most(absl::StrCat(field, ".x"), value.x, bound.x, "the device");
  status.Update(at_most(absl::StrCat(field, ".y"), value.y, bound.y, "the device"));
  status.Update(at_most(absl::StrCat(field, ".z"), value.z, bound.z, "the device"));
  return status;
}

bool fits(const Dim3& value, const Dim3& bound) {
  return value.x <= bound.x && value.y <= bound.y && value.z <= bound.z;
}

std::string text(const Dim3& dim) {
  return absl::StrCat(dim.x, " x ", dim.y, " x ", dim.z);
}

// CUDA C++ Programming Guide, "Thread Block Clusters".
absl::Status check_cluster(const DeviceProperties& device, const FunctionInfo& function, const Dim3& grid,
                           const Dim3& cluster, const LaunchOptions& options) {
  if (!device.target.supports(kHopper)) {
    return absl::FailedPreconditionError(absl::StrCat("cluster is ", text(cluster),
                                                      "; clusters need sm_90, and the device is ",
                                                      device.target.to_string()));
  }
  if (function.cluster != Dim3() && cluster != function.cluster) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster is ", text(cluster), "; the kernel (.reqnctapercluster) has ", text(function.cluster)));
  }
  const std::uint64_t most = options.non_portable_cluster ? kMaxClusterCtas : kMaxPortableClusterCtas;
  if (cluster.empty() || !fits(cluster, {most, most, most}) || cluster.count() > most) {
    const std::string more =
        most == kMaxClusterCtas
            ? ""
            : absl::StrCat(", or up to ", kMaxClusterCtas, " with LaunchOptions::non_portable_cluster");
    return absl::InvalidArgumentError(
        absl::StrCat("cluster is ", text(cluster), "; a cluster has 1 to ", most, " CTAs", more));
  }
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grid is ", text(grid), "; each extent must be a multiple of the cluster's, ", text(cluster)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_launch(const DeviceProperties& device, const FunctionInfo& function,
                          const LaunchShape& shape, const LaunchOptions& options) {
  if (shape.block.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("block is ", text(shape.block), "; every extent must be at least 1"));
  }
  if (!fits(shape.block, device.max_block)) return at_most("block", shape.block, device.max_block);
  if (!fits(shape.grid, device.max_grid)) return at_most("grid", shape.grid, device.max_grid);
  const std::uint64_t threads = shape.block.x * shape.block.y * shape.block.z;
  const std::uint64_t device_threads = device.max_threads_per_block;
  if (threads > device_threads)
    return at_most("block.x * block.y * block.z", threads, device_threads, "the device");
  if (threads > function.max_threads) {
    return at_most("block.x * block.y * block.z", threads, function.max_threads,
                   "the kernel (.maxntid or registers)");
  }
  // Compared without a sum, which a hostile size could wrap.
  const std::uint64_t optin = device.shared_bytes_per_block_optin;
  const std::uint64_t room = optin - std::min(optin, function.static_shared_bytes);
  if (shape.dynamic_shared_bytes > room) {
    return at_most("dynamic_shared_bytes", shape.dynamic_shared_bytes, room,
                   absl::StrCat("the device, with ", function.static_shared_bytes, " bytes static,"));
  }
  const Dim3& cluster = shape.cluster != Dim3() ? shape.cluster : function.cluster;
  if (cluster != Dim3()) {
    if (absl::Status s = check_cluster(device, function, shape.grid, cluster, options); !s.ok()) return s;
  }
  if (options.programmatic_dependent_launch && !device.target.supports(kHopper)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "programmatic dependent launch needs sm_90, and the device is ", device.target.to_string()));
  }
  return absl::OkStatus();
}

absl::Status check_args(const FunctionInfo& function, absl::Span<const KernelArg> args) {
  if (!function.param_bytes.has_value()) return absl::OkStatus();
  const std::vector<std::uint32_t>& params = *function.param_bytes;
  if (args.size() != params.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(args.size(), " arguments given; the kernel has ", params.size()));
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (args[i].bytes == params[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("argument ", i, " has ", args[i].bytes,
                                                   " bytes; the kernel's parameter has ", params[i]));
  }
  return absl::OkStatus();
}

}  // namespace ptxgen::internal
