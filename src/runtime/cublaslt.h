// libcublasLt, opened at run time: the entry points that ptxgen calls, and its errors as statuses. What they
// take is declared here, so that building needs none of its headers; values and layouts are those of
// cublasLt.h, which versions 12 and 13 share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ptxgen::internal {

using LtHandle = struct LtContext*;
using LtMatmulDesc = struct LtMatmulDescOpaque*;
using LtLayout = struct LtLayoutOpaque*;
using LtPreference = struct LtPreferenceOpaque*;
using LtTransformDesc = struct LtTransformDescOpaque*;

enum class LtStatus : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kArchMismatch = 8,
  kNotSupported = 15,
};
enum class LtType : int { kF32 = 0, kF16 = 2, kE4m3 = 28 };  // cudaDataType
enum class LtCompute : int { kF32 = 68 };                    // CUBLAS_COMPUTE_32F
enum class LtAttribute : int {                               // cublasLtMatmulDescAttributes_t
  kPointerMode = 2,
  kTransA = 3,
  kAScale = 17,
  kBScale = 18,
};
enum class LtPreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8,
};
inline constexpr std::int32_t kLtTranspose = 1, kLtPointersOnDevice = 1;

struct LtAlgo {
  std::uint64_t data[8];
};
struct LtHeuristicResult {
  LtAlgo algo;
  std::size_t workspace_bytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

// How a stand-in for the library reaches the memory of an emulated device: false where there is none.
struct EmulatedMemory {
  void* device;
  bool (*read)(void* device, std::uint64_t address, void* to, std::size_t bytes);
  bool (*write)(void* device, std::uint64_t address, const void* from, std::size_t bytes);
};

// name, result, parameters
#define PTXGEN_CUBLASLT_ENTRIES(X)                                                                           \
  X(cublasLtGetVersion, std::size_t, ())                                                                     \
  X(cublasLtGetStatusName, const char*, (LtStatus))                                                          \
  X(cublasLtCreate, LtStatus, (LtHandle*))                                                                   \
  X(cublasLtDestroy, LtStatus, (LtHandle))                                                                   \
  X(cublasLtMatmul, LtStatus,                                                                                \
    (LtHandle, LtMatmulDesc, const void* alpha, const void* a, LtLayout, const void* b, LtLayout,            \
     const void* beta, const void* c, LtLayout, void* d, LtLayout, const LtAlgo*, void* workspace,           \
     std::size_t workspace_bytes, void* stream))                                                             \
  X(cublasLtMatmulAlgoGetHeuristic, LtStatus,                                                                \
    (LtHandle, LtMatmulDesc, LtLayout a, LtLayout b, LtLayout c, LtLayout d, LtPreference, int requested,    \
     LtHeuristicResult*, int* returned))                                                                     \
  X(cublasLtMatmulDescCreate, LtStatus, (LtMatmulDesc*, LtCompute, LtType scale))                            \
  X(cublasLtMatmulDescDestroy, LtStatus, (LtMatmulDesc))                                                     \
  X(cublasLtMatmulDescSetAttribute, LtStatus, (LtMatmulDesc, LtAttribute, const void*, std::size_t bytes))   \
  X(cublasLtMatrixLayoutCreate, LtStatus,                                                                    \
    (LtLayout*, LtType, std::uint64_t rows, std::uint64_t columns, std::int64_t leading))                    \
  X(cublasLtMatrixLayoutDestroy, LtStatus, (LtLayout))                                                       \
  X(cublasLtMatmulPreferenceCreate, LtStatus, (LtPreference*))                                               \
  X(cublasLtMatmulPreferenceDestroy, LtStatus, (LtPreference))                                               \
  X(cublasLtMatmulPreferenceSetAttribute, LtStatus,                                                          \
    (LtPreference, LtPreferenceAttribute, const void*, std::size_t bytes))                                   \
  X(cublasLtMatrixTransform, LtStatus,                                                                       \
    (LtHandle, LtTransformDesc, const void* alpha, const void* a, LtLayout, const void* beta, const void* b, \
     LtLayout, void* c, LtLayout, void* stream))                                                             \
  X(cublasLtMatrixTransformDescCreate, LtStatus, (LtTransformDesc*, LtType scale))                           \
  X(cublasLtMatrixTransformDescDestroy, LtStatus, (LtTransformDesc))

// An opened library. Never closed: handles of static storage may outlive main().
struct CublasLt {
#define PTXGEN_CUBLASLT_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  PTXGEN_CUBLASLT_ENTRIES(PTXGEN_CUBLASLT_MEMBER)
#undef PTXGEN_CUBLASLT_MEMBER
  // ptxgen_emulated_memory, of a stand-in alone: what the calling thread's next calls work on.
  void (*emulated_memory)(const EmulatedMemory*) = nullptr;
  std::string name;  // "libcublasLt.so.13 13.1.0"

  // Ok, or a status that says what was being done and names the error.
  absl::Status status(LtStatus result, std::string_view doing) const;
};

// Opens `path` (a name for dlopen); empty: PTXGEN_CUBLASLT_LIBRARY, else the first that is found. Every call
// with that path returns the same. kNotFound: there is none here; other codes: there is one that does not do.
absl::StatusOr<const CublasLt*> open_cublaslt(const std::string& path);

}  // namespace ptxgen::internal
