#include "src/runtime/cuda_properties.h"

#include <array>
#include <optional>

#include "ptxgen/strings.h"
#include "src/runtime/driver_version.h"

namespace ptxgen::internal {
namespace {

// Reads what describes a device; the first error is kept.
class PropertyReader {
 public:
  PropertyReader(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}

  std::uint32_t attribute(CUdevice_attribute attribute) {
    int value = 0;
    note(driver_.cuDeviceGetAttribute(&value, attribute, device_));
    return static_cast<std::uint32_t>(value);
  }
  std::string name() {
    std::array<char, 256> text = {};
    note(driver_.cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device_));
    return text.data();
  }
  std::uint64_t memory_bytes() {
    std::size_t bytes = 0;
    note(driver_.cuDeviceTotalMem_v2(&bytes, device_));
    return bytes;
  }
  const absl::Status& status() const { return status_; }

 private:
  void note(CUresult result) { status_.Update(driver_.status(result, "reading a device's properties")); }

  const Driver& driver_;
  const CUdevice device_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<DeviceProperties> read_properties(const Driver& driver, CUdevice device, int index) {
  absl::StatusOr<int> version = driver_version(driver);
  if (!version.ok()) return version.status();

  PropertyReader reader(driver, device);
  DeviceProperties properties;
  properties.kind = DeviceKind::kCuda;
  properties.index = index;
  properties.name = reader.name();
  properties.compute_major = static_cast<int>(reader.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  properties.compute_minor = static_cast<int>(reader.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  properties.highest_isa = highest_isa(*version);
  properties.driver_version = *version;
  properties.sm_count = reader.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties.memory_bytes = reader.memory_bytes();
  properties.l2_bytes = reader.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  properties.shared_bytes_per_block = reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties.shared_bytes_per_block_optin =
      reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  properties.max_threads_per_block = reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties.max_block = {reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                          reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                          reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  properties.max_grid = {reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                         reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                         reader.attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  if (!reader.status().ok()) return reader.status();

  std::optional<Target> target =
      device_target(properties.compute_major, properties.compute_minor, properties.highest_isa);
  if (!target.has_value()) {
    return absl::NotFoundError(str_cat(
        "CUDA device ", index, " (", properties.name, ") has compute capability ", properties.compute_major,
        ".", properties.compute_minor, "; ptxgen needs one that runs ", kBaseTarget.to_string(), " code"));
  }
  properties.target = *target;
  return properties;
}

}  // namespace ptxgen::internal
