// Every environment variable that ptxgen reads. All of them have a counterpart in an options struct,
// which wins. None changes a result, but that kernels and libraries differ in the rounding of theirs
// (PTXGEN_COPIES_MAX_BYTES, PTXGEN_CUBLASLT_LIBRARY, PTXGEN_GEMM, PTXGEN_GEMV).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ptxgen/export.h"
#include "ptxgen/target.h"

namespace ptxgen {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view values;         // what may be written
  std::string_view default_value;  // in words where it is not a text
  std::string_view meaning;
};

namespace env {

inline constexpr EnvironmentVariable kDevice = {"PTXGEN_DEVICE", "auto, cuda, cuda:<index>, emulator", "auto",
                                                "the device that Device::open() opens"};
inline constexpr EnvironmentVariable kLibcuda = {"PTXGEN_LIBCUDA", "a file name or path", "libcuda.so.1",
                                                 "the CUDA driver library to open"};
inline constexpr EnvironmentVariable kCublasLt = {
    "PTXGEN_CUBLASLT_LIBRARY", "a file name or path",
    "the first of libcublasLt.so.13 and libcublasLt.so.12 that is found",
    "the cuBLASLt library behind the paths sgemm, hgemm, dequant_hgemm and fp8 of matrix products"};
inline constexpr EnvironmentVariable kDump = {
    "PTXGEN_DUMP", "a folder", "(nothing is written)",
    "where PTX, descriptor and ptxas log of every kernel used are written"};
inline constexpr EnvironmentVariable kPtxas = {
    "PTXGEN_PTXAS", "a path", "ptxas in PATH, /usr/local/cuda/bin or ~/.cache/ptxgen/tools/bin",
    "the assembler behind the ptxas log of a dump"};
inline constexpr EnvironmentVariable kEmulatorThreads = {"PTXGEN_EMULATOR_THREADS", "1 to 1024",
                                                         "one for each processor",
                                                         "host threads that run the emulated device"};
inline constexpr EnvironmentVariable kEmulatorTarget = {"PTXGEN_EMULATOR_TARGET", "a target such as sm_80",
                                                        "sm_90a", "the target that the emulated device has"};
inline constexpr EnvironmentVariable kCacheDir = {"PTXGEN_CACHE_DIR", "a folder",
                                                  "$XDG_CACHE_HOME/ptxgen, else $HOME/.cache/ptxgen",
                                                  "where cubins are kept from one process to the next"};
inline constexpr EnvironmentVariable kCacheShared = {
    "PTXGEN_CACHE_SHARED", "0, 1", "0",
    "1 trusts a cache directory that is a link, belongs to another user or can be written by others"};
inline constexpr EnvironmentVariable kCacheMaxBytes = {
    "PTXGEN_CACHE_MAX_BYTES", "bytes, or as 256M or 4G; 0 keeps nothing", "1G",
    "what the cubins that are kept may have together; the least recently used are removed"};

inline constexpr EnvironmentVariable kIsolate = {
    "PTXGEN_ISOLATE", "0, 1, or the path of ptxgen-isolate", "0",
    "1 compiles and first loads each kernel in a process of its own, which a crash of the driver costs"};

inline constexpr EnvironmentVariable kCopiesMaxBytes = {
    "PTXGEN_COPIES_MAX_BYTES", "bytes, or as 256M or 4G; 0 keeps none", "half of the device's memory",
    "what the copies of weights that an executor keeps, as f16 or e4m3, may have together"};
inline constexpr EnvironmentVariable kGemm = {
    "PTXGEN_GEMM",
    "a schedule, with its constants where wanted: \"mma tile_m=64\"; or sgemm, hgemm, dequant_hgemm, fp8",
    "the choice of the executor",
    "the kernel of the matrix products of executors, in place of the one of their policy"};
inline constexpr EnvironmentVariable kGemv = {
    "PTXGEN_GEMV", "a schedule, with its constants where wanted: \"multi_warp num_warps=8\"",
    "the choice of the executor",
    "the kernel of the products of executors, in place of the one of their policy"};

inline constexpr EnvironmentVariable kLlvmLibrary = {
    "PTXGEN_LLVM_LIBRARY", "a file name or path",
    "the first of libLLVM.so.19.1, newer and older ones that is found",
    "the LLVM library behind the code generator llvm"};

// The table, for listings.
inline constexpr auto kAll = std::to_array<EnvironmentVariable>({
    kDevice,
    kLibcuda,
    kCublasLt,
    kDump,
    kPtxas,
    kEmulatorThreads,
    kEmulatorTarget,
    kCacheDir,
    kCacheShared,
    kCacheMaxBytes,
    kIsolate,
    kCopiesMaxBytes,
    kGemm,
    kGemv,
    kLlvmLibrary,
});

// The value as written; the empty string when the variable is unset or empty, which mean the same.
PTXGEN_API std::string text(const EnvironmentVariable& variable);

// The value in force: what is written, else the default. A value that `values` does not allow is an error
// that names the variable.
std::string libcuda();
absl::StatusOr<std::uint32_t> emulator_threads();
absl::StatusOr<Target> emulator_target();
absl::StatusOr<bool> cache_shared();
absl::StatusOr<std::uint64_t> cache_max_bytes();
absl::StatusOr<std::optional<std::uint64_t>> copies_max_bytes();  // nothing: the default

// Reads a number of bytes, as a plain number or with K, M or G (2^10, 2^20, 2^30) behind it.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace env
}  // namespace ptxgen
