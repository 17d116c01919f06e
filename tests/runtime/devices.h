// The devices that a test runs on: the emulated one, and CUDA device 0 where there is one.
#pragma once

#include <vector>

#include "ptxgen/device.h"

namespace ptxgen::testing {

inline std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const DeviceChoice choice : {DeviceChoice::kEmulator, DeviceChoice::kCuda}) {
    absl::StatusOr<Device> device = Device::open({.choice = choice, .libcuda = "libcuda.so.1"});
    if (device.ok()) devices.push_back(*device);
  }
  return devices;
}

}  // namespace ptxgen::testing
