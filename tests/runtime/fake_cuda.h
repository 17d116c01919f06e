// A libcuda without a GPU: keeps the books that a driver keeps, and says afterwards who broke which rule.
// Selected like any driver, by DeviceOptions::libcuda or PTXGEN_LIBCUDA; a test finds the books through
// fake_cuda().
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::testing {

struct FakeDevice {
  std::string name;
  int major, minor;
};

struct FakeLaunch {
  std::string entry;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  unsigned cluster_x = 0;
  bool programmatic = false;
  bool non_portable_cluster = false;
  std::vector<std::vector<std::byte>> args;
  int device;
};

// What cuTensorMapEncodeTiled was given.
struct FakeTensorMap {
  int type, swizzle, promotion, fill;
  unsigned rank;
  unsigned long long address;
  std::vector<unsigned long long> extents, strides;
  std::vector<unsigned> box, element_strides;
};

class FakeCuda {
 public:
  // A driver for CUDA 12.4 with an sm_80 and an sm_89 device, nothing alive, nothing injected.
  virtual void reset() = 0;
  virtual void set_version(int version) = 0;
  virtual void set_devices(std::vector<FakeDevice> devices) = 0;
  // The calls of `entry` fail with `result`: `times` of them, after `skip` good ones.
  virtual void fail(std::string entry, CUresult result, int times = 1, int skip = 0) = 0;
  // As when the process ends: every call from now on is CUDA_ERROR_DEINITIALIZED.
  virtual void shut_down() = 0;
  // How long the compiler takes.
  virtual void set_jit_milliseconds(int milliseconds) = 0;

  // How many texts the compiler was given, by whatever call.
  virtual int jits() = 0;
  virtual int calls(std::string_view entry) = 0;
  // Contexts held, memory, streams, events, modules and graphs that nobody has released.
  virtual int alive() = 0;
  // "cuMemFree_v2: the memory belongs to another context"; empty when all went by the rules.
  virtual std::vector<std::string> violations() = 0;
  virtual std::vector<FakeLaunch> launches() = 0;
  virtual std::vector<FakeTensorMap> tensor_maps() = 0;
  // A context outside of ptxgen's hands, made current by the caller's own means.
  virtual CUcontext make_context(int device) = 0;
  virtual void set_current(CUcontext context) = 0;
  virtual CUcontext current() = 0;

 protected:
  ~FakeCuda() = default;
};

}  // namespace ptxgen::testing

extern "C" ptxgen::testing::FakeCuda* fake_cuda();
