// ptxgen devices: what kernels can run on here, why CUDA is or is not among it, and the environment
// variables.
#include <memory>

#include "ptxgen/environment.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

// An emulated device has no memory size or number of processors of its own.
Cell if_known(std::uint64_t value, std::uint64_t unit, std::string_view unit_name) {
  if (value == 0) return Json();
  return {Json(value), str_cat(value / unit, unit_name)};
}

std::vector<Cell> row_of(const std::string& name, const DeviceProperties& p) {
  constexpr std::uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
  return {name,
          p.kind == DeviceKind::kEmulator && p.name.empty() ? std::string("emulated device") : p.name,
          p.target.to_string(),
          p.highest_isa.to_string(),
          if_known(p.sm_count, 1, ""),
          if_known(p.memory_bytes, kMiB, " MiB"),
          if_known(p.l2_bytes, kKiB, " KiB"),
          if_known(p.shared_bytes_per_block_optin, kKiB, " KiB")};
}

absl::StatusOr<Device> add_device(Table& table, const std::string& name) {
  const absl::StatusOr<DeviceOptions> options = DeviceOptions::parse(name);
  if (!options.ok()) return options.status();
  absl::StatusOr<Device> device = Device::open(*options);
  if (device.ok()) table.add(row_of(name, device->properties()));
  return device;
}

// One line: the CUDA devices, or what stands in the way of them.
std::string add_cuda_devices(Table& table) {
  const absl::StatusOr<int> count = Device::cuda_device_count();
  if (!count.ok()) return std::string(count.status().message());
  std::string troubles;
  for (int i = 0; i < *count; ++i) {
    const absl::StatusOr<Device> device = add_device(table, str_cat("cuda:", i));
    if (!device.ok()) str_append(&troubles, "; cuda:", i, ": ", std::string(device.status().message()));
  }
  return str_cat(*count, *count == 1 ? " device" : " devices", troubles);
}

Table environment_variables() {
  Table table({{"name", "variable"},
               {"value", "value now"},
               {"allowed", "allowed"},
               {"default", "default"},
               {"meaning", "meaning"}});
  for (const EnvironmentVariable& variable : env::kAll) {
    const std::string value = env::text(variable);
    table.add({variable.name, value.empty() ? Json() : Json(value), variable.values, variable.default_value,
               variable.meaning});
  }
  return table;
}

absl::StatusOr<Outcome> devices(bool json) {
  Table table({{"device", "device"},
               {"name", "name"},
               {"target", "target"},
               {"ptx_isa", "PTX ISA"},
               {"sm_count", "SMs"},
               {"memory_bytes", "memory"},
               {"l2_bytes", "L2"},
               {"shared_bytes_per_cta", "shared/CTA"}});
  const std::string cuda = add_cuda_devices(table);
  const absl::StatusOr<Device> emulator = add_device(table, "emulator");
  if (!emulator.ok()) return emulator.status();
  const absl::StatusOr<Device> chosen = Device::open();
  const std::string automatic = chosen.ok() ? str_cat(chosen->description(), " (", chosen->reason(), ")")
                                            : std::string(chosen.status().message());

  const Table environment = environment_variables();
  if (json) {
    return Outcome{to_text({{"devices", table.json()},
                            {"cuda", cuda},
                            {"default", automatic},
                            {"environment", environment.json()}})};
  }
  return Outcome{str_cat(table.text(), "\nCUDA: ", printable(cuda),
                         "\nwithout --device: ", printable(automatic), "\n\n", environment.text())};
}

}  // namespace

Action declare_devices(CLI::App& app, const NamedKernel&) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json] { return devices(*json); };
}

}  // namespace ptxgen::tool
