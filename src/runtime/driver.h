// libcuda, opened at run time: the entry points that ptxgen calls, and its errors as statuses.
#pragma once

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ptxgen::internal {

// Every entry point by the name of the ABI that driver 11.8 exports, which newer drivers keep: cuda.h of a
// newer toolkit maps some plain names (cuEventElapsedTime) to later versions with the same signature that
// older drivers lack, and the table's names are not subject to that mapping.
#define PTXGEN_CUDA_ENTRIES(X)                   \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceTotalMem_v2)                         \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease_v2)                \
  X(cuCtxGetCurrent)                             \
  X(cuCtxPushCurrent_v2)                         \
  X(cuCtxPopCurrent_v2)                          \
  X(cuCtxSynchronize)                            \
  X(cuMemAlloc_v2)                               \
  X(cuMemFree_v2)                                \
  X(cuMemAllocHost_v2)                           \
  X(cuMemFreeHost)                               \
  X(cuMemcpyHtoDAsync_v2)                        \
  X(cuMemcpyDtoHAsync_v2)                        \
  X(cuMemcpyDtoDAsync_v2)                        \
  X(cuMemsetD8Async)                             \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy_v2)                          \
  X(cuStreamSynchronize)                         \
  X(cuStreamWaitEvent)                           \
  X(cuStreamBeginCapture_v2)                     \
  X(cuStreamEndCapture)                          \
  X(cuEventCreate)                               \
  X(cuEventDestroy_v2)                           \
  X(cuEventRecord)                               \
  X(cuEventSynchronize)                          \
  X(cuEventElapsedTime)                          \
  X(cuModuleLoadDataEx)                          \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuLaunchKernelEx)                            \
  X(cuGraphInstantiateWithFlags)                 \
  X(cuGraphLaunch)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)

// The oldest driver that ptxgen runs on: the first with cuLaunchKernelEx and PTX ISA 7.8.
inline constexpr int kOldestDriver = 11080;

// An opened, initialised driver library. Never closed: handles of static storage may outlive main().
struct Driver {
#define PTXGEN_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  PTXGEN_CUDA_ENTRIES(PTXGEN_CUDA_MEMBER)
#undef PTXGEN_CUDA_MEMBER

  // cuFuncGetParamInfo, since 12.4; nullptr before. Typed here because older headers lack it.
  CUresult (*func_get_param_info)(CUfunction, std::size_t index, std::size_t* offset,
                                  std::size_t* size) = nullptr;

  // The linker, the one way to get the cubin that the driver's compiler makes. Whoever calls one calls all
  // four; link_create is nullptr in a driver that lacks any.
  decltype(&::cuLinkCreate_v2) link_create = nullptr;
  decltype(&::cuLinkAddData_v2) link_add_data = nullptr;
  decltype(&::cuLinkComplete) link_complete = nullptr;
  decltype(&::cuLinkDestroy) link_destroy = nullptr;

  // nullptr in a driver before 12.0.
  decltype(&::cuTensorMapEncodeTiled) tensor_map_encode_tiled = nullptr;

  // Ok for CUDA_SUCCESS; else a status that says what was being done and names the error.
  absl::Status status(CUresult result, absl::string_view doing) const;

  // "CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed)"
  std::string describe(CUresult result) const;
};

// Whether a context that reported `result` is beyond repair: every later call in it fails (CUDA Driver API,
// CUresult).
bool is_sticky(CUresult result);

// Opens and initialises `path` (a name for dlopen); every call with that path returns the same. kNotFound:
// there is no driver here, or a driver without devices; other codes: there is one and it does not work.
absl::StatusOr<const Driver*> open_driver(const std::string& path);

// 12040 is 12.4; older than kOldestDriver is an error.
absl::StatusOr<int> driver_version(const Driver& driver);

}  // namespace ptxgen::internal
