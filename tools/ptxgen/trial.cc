#include "tools/ptxgen/trial.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ptxgen/strings.h"
#include "tools/ptxgen/profile_report.h"

namespace ptxgen::tool {
namespace {

constexpr std::uint64_t kMostCtas = 4, kMostBytes = std::uint64_t{256} << 20, kMostInstructions = 1 << 22;

// Memory for the buffers, and the parameters.
absl::Status prepare(const Descriptor& descriptor, ArgValues values, emulator::Memory& memory,
                     emulator::Arguments& arguments) {
  const ArgInfos infos = descriptor.arguments(values);
  std::vector<std::uint64_t> placed(values.begin(), values.end());
  std::uint64_t left = kMostBytes;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    std::uint64_t& value = placed[i];
    if (infos[i].direction != Direction::kScalar) {
      const std::uint64_t bytes = std::max<std::uint64_t>(infos[i].bytes, 1);
      if (bytes > left) {
        return absl::ResourceExhaustedError(
            str_cat("its buffers have more than ", kMostBytes >> 20, " MiB; explain a smaller shape"));
      }
      left -= bytes;
      const absl::StatusOr<std::uint64_t> address = memory.allocate(bytes, infos[i].name);
      if (!address.ok()) return address.status();
      if (infos[i].direction != Direction::kOut) {
        if (absl::Status s = memory.fill(*address, std::byte{0}, bytes); !s.ok()) return s;
      }
      value = *address;
    }
    const std::size_t bytes = std::min<std::size_t>(arguments.entry().params[i].size, sizeof(value));
    if (absl::Status s = arguments.set_bytes(i, {reinterpret_cast<const std::byte*>(&value), bytes}); !s.ok())
      return s;
  }
  const std::optional<TiledTensor> tensor = descriptor.tensor(placed);
  if (!tensor) return absl::OkStatus();
  const absl::StatusOr<TensorMap> map = emulator::encode_tensor_map(*tensor);
  if (!map.ok()) return map.status();
  return arguments.set_bytes(infos.size(), {reinterpret_cast<const std::byte*>(&*map), sizeof(*map)});
}

absl::StatusOr<emulator::LaunchStats> launch(const Descriptor& descriptor, ArgValues values,
                                             const GeneratedKernel& kernel, const LaunchShape& shape,
                                             Dim3 grid) {
  if (shape.cluster.count() != 1)
    return absl::UnimplementedError("its CTAs run in clusters, whole ones only");
  const auto program = emulator::Program::parse(kernel.ptx);
  if (!program.ok()) return program.status();
  const emulator::EntryInfo* entry = (*program)->find_entry(kernel.entry);
  if (entry == nullptr || entry->params.size() != descriptor.num_parameters())
    return absl::InternalError(str_cat("the text has no entry '", kernel.entry, "' with its parameters"));
  emulator::Memory memory;
  emulator::Arguments arguments(*entry);
  if (absl::Status s = prepare(descriptor, values, memory, arguments); !s.ok()) return s;
  const auto params = arguments.bytes();
  if (!params.ok()) return params.status();
  emulator::Options options;
  options.profile = true;
  options.max_warp_instructions = kMostInstructions;
  return emulator::launch(**program, kernel.entry,
                          {.grid = grid,
                           .block = shape.block,
                           .dynamic_shared_bytes = shape.dynamic_shared_bytes,
                           .params = *params},
                          memory, options);
}

}  // namespace

Trial Trial::run(const Descriptor& descriptor, ArgValues values, const GeneratedKernel& kernel) {
  const LaunchShape shape = descriptor.launch_shape(values);
  const Dim3 grid(std::min(shape.grid.x, kMostCtas), std::min<std::uint64_t>(shape.grid.y, 1),
                  std::min<std::uint64_t>(shape.grid.z, 1));
  Trial trial;
  trial.ctas_ = grid.count();
  trial.of_ = shape.grid.count();
  trial.stats_ = launch(descriptor, values, kernel, shape, grid);
  return trial;
}

Json Trial::json() const {
  if (!stats_.ok()) return {{"reason", std::string(stats_.status().message())}};
  Json json = profile_json(*stats_);
  json["ctas"] = ctas_;
  return json;
}

std::string Trial::text() const {
  if (!stats_.ok()) {
    return str_cat("counts on the emulator: not known: ", printable(std::string(stats_.status().message())),
                   "\n");
  }
  return str_cat("counts of the first ", ctas_, " of ", of_, " CTAs, on the emulator:\n",
                 profile_text(*stats_));
}

}  // namespace ptxgen::tool
