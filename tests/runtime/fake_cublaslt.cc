// The shared library behind fake_cublaslt.h.
#include "tests/runtime/fake_cublaslt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <set>

using namespace ptxgen::internal;  // NOLINT: it stands in for what that declares
using ptxgen::testing::FakeCublasLt;

namespace ptxgen::internal {
struct LtContext {};
struct LtMatmulDescOpaque {
  bool transposed = false, pointers_on_device = false;
  const void* scale[2] = {};
};
struct LtLayoutOpaque {
  LtType type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};
struct LtPreferenceOpaque {
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};
struct LtTransformDescOpaque {};
}  // namespace ptxgen::internal

namespace {

struct Injection {
  LtStatus result;
  int times, skip;
};

class Fake final : public FakeCublasLt {
 public:
  void reset() override {
    const std::lock_guard lock(mutex);
    version = 130100;
    injections.clear();
    call_counts.clear();
    objects.clear();
    broken_rules.clear();
  }
  void set_version(std::size_t v) override {
    const std::lock_guard lock(mutex);
    version = v;
  }
  void fail(std::string entry, LtStatus result, int times, int skip) override {
    const std::lock_guard lock(mutex);
    injections[std::move(entry)] = {result, times, skip};
  }
  int calls(std::string_view entry) override {
    const std::lock_guard lock(mutex);
    return call_counts[std::string(entry)];
  }
  int alive() override {
    const std::lock_guard lock(mutex);
    return static_cast<int>(objects.size());
  }
  std::vector<std::string> violations() override {
    const std::lock_guard lock(mutex);
    return broken_rules;
  }

  // What was injected for this call.
  LtStatus enter(const char* entry) {
    const std::lock_guard lock(mutex);
    ++call_counts[entry];
    const auto found = injections.find(entry);
    if (found == injections.end()) return LtStatus::kSuccess;
    Injection& injection = found->second;
    if (injection.skip-- > 0 || injection.times-- <= 0) return LtStatus::kSuccess;
    return injection.result;
  }
  LtStatus broke(const char* entry, const char* rule) {
    const std::lock_guard lock(mutex);
    broken_rules.push_back(std::string(entry) + ": " + rule);
    return LtStatus::kInvalidValue;
  }
  template <class T, class... Args>
  LtStatus make(const char* entry, T** out, Args... args) {
    if (const LtStatus s = enter(entry); s != LtStatus::kSuccess) return s;
    *out = new T{args...};
    const std::lock_guard lock(mutex);
    objects.insert(*out);
    return LtStatus::kSuccess;
  }
  template <class T>
  LtStatus destroy(const char* entry, T* object) {
    (void)enter(entry);
    {
      const std::lock_guard lock(mutex);
      if (objects.erase(object) == 1) {
        delete object;
        return LtStatus::kSuccess;
      }
    }
    return broke(entry, "there is no such object");
  }

  std::mutex mutex;  // guards all of it
  std::size_t version = 130100;
  std::map<std::string, Injection> injections;
  std::map<std::string, int> call_counts;
  std::set<const void*> objects;
  std::vector<std::string> broken_rules;
};

Fake& fake() {
  static auto& one = *new Fake;
  return one;
}

thread_local const EmulatedMemory* memory = nullptr;

bool read(const void* from, void* to, std::size_t bytes) {
  if (memory == nullptr) {
    std::memcpy(to, from, bytes);
    return true;
  }
  return memory->read(memory->device, reinterpret_cast<std::uint64_t>(from), to, bytes);
}
bool write(void* to, const void* from, std::size_t bytes) {
  if (memory == nullptr) {
    std::memcpy(to, from, bytes);
    return true;
  }
  return memory->write(memory->device, reinterpret_cast<std::uint64_t>(to), from, bytes);
}

float widen_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float value = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                      : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                       : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return bits >> 15 ? -value : value;
}
float widen_e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float value = (bits & 127) == 127 ? NAN
                      : exponent == 0     ? std::ldexp(static_cast<float>(mantissa), -9)
                                          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits >> 7 ? -value : value;
}

std::size_t size_of(LtType type) {
  return type == LtType::kF32 ? 4 : type == LtType::kF16 ? 2 : 1;
}

// The matrix, column after column, as f32.
bool read_matrix(const void* from, const LtLayoutOpaque& layout, std::vector<float>& values) {
  const std::size_t count = static_cast<std::size_t>(layout.leading) * (layout.columns - 1) + layout.rows;
  std::vector<std::byte> bytes(count * size_of(layout.type));
  if (!read(from, bytes.data(), bytes.size())) return false;
  values.resize(layout.rows * layout.columns);
  for (std::uint64_t column = 0; column < layout.columns; ++column) {
    for (std::uint64_t row = 0; row < layout.rows; ++row) {
      const std::size_t at = column * static_cast<std::size_t>(layout.leading) + row;
      float& value = values[column * layout.rows + row];
      if (layout.type == LtType::kF32) {
        std::memcpy(&value, bytes.data() + at * 4, 4);
      } else if (layout.type == LtType::kF16) {
        std::uint16_t bits;
        std::memcpy(&bits, bytes.data() + at * 2, 2);
        value = widen_f16(bits);
      } else {
        value = widen_e4m3(std::to_integer<std::uint8_t>(bytes[at]));
      }
    }
  }
  return true;
}
bool write_matrix(void* to, const LtLayoutOpaque& layout, const std::vector<float>& values) {
  for (std::uint64_t column = 0; column < layout.columns; ++column) {
    const std::size_t at = column * static_cast<std::size_t>(layout.leading) * 4;
    if (!write(static_cast<std::byte*>(to) + at, values.data() + column * layout.rows, layout.rows * 4))
      return false;
  }
  return true;
}

// What an algorithm is of.
std::array<std::uint64_t, 8> algorithm_of(const LtLayoutOpaque& a, const LtLayoutOpaque& b,
                                          const LtLayoutOpaque& c) {
  return {0xa190,
          static_cast<std::uint64_t>(a.type),
          a.rows,
          a.columns,
          b.columns,
          static_cast<std::uint64_t>(c.leading),
          static_cast<std::uint64_t>(c.type),
          0};
}

// cuBLAS documentation, cublasLtMatmul, "To use FP8 kernels": dimensions and pointers by 16 bytes, A
// transposed and B not.
bool has_kernel(const LtMatmulDescOpaque& desc, const LtLayoutOpaque& a, const LtLayoutOpaque& c,
                const std::uint32_t (&alignment)[4]) {
  if (a.type != LtType::kE4m3) return true;
  return desc.transposed && a.rows % 16 == 0 && a.columns % 16 == 0 && a.leading % 16 == 0 &&
         c.leading % 4 == 0 && *std::min_element(alignment, alignment + 4) >= 16;
}

bool aligned(const void* address, std::uint32_t alignment) {
  return reinterpret_cast<std::uint64_t>(address) % alignment == 0;
}

float dot(const float* x, const float* y, std::uint64_t count) {
  double sum[4] = {};
  for (std::uint64_t i = 0; i < count; i += 4) {
    for (std::uint64_t j = 0; j < std::min<std::uint64_t>(4, count - i); ++j)
      sum[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
  }
  return static_cast<float>(sum[0] + sum[1] + sum[2] + sum[3]);
}

// A scalar in device memory; 1 where there is none.
bool read_scale(const void* address, float& value) {
  value = 1;
  return address == nullptr || read(address, &value, sizeof(value));
}

}  // namespace

extern "C" {

FakeCublasLt* fake_cublaslt() {
  return &fake();
}
void ptxgen_emulated_memory(const EmulatedMemory* given) {
  memory = given;
}

std::size_t cublasLtGetVersion() {
  const std::lock_guard lock(fake().mutex);
  return fake().version;
}
const char* cublasLtGetStatusName(LtStatus status) {
  switch (status) {
    case LtStatus::kSuccess: return "CUBLAS_STATUS_SUCCESS";
    case LtStatus::kNotInitialized: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case LtStatus::kAllocFailed: return "CUBLAS_STATUS_ALLOC_FAILED";
    case LtStatus::kInvalidValue: return "CUBLAS_STATUS_INVALID_VALUE";
    case LtStatus::kArchMismatch: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case LtStatus::kNotSupported: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "CUBLAS_STATUS_INTERNAL_ERROR";
}
LtStatus cublasLtCreate(LtHandle* handle) {
  return fake().make(__func__, handle);
}
LtStatus cublasLtDestroy(LtHandle handle) {
  return fake().destroy(__func__, handle);
}
LtStatus cublasLtMatmulDescCreate(LtMatmulDesc* desc, LtCompute compute, LtType scale) {
  if (compute != LtCompute::kF32 || scale != LtType::kF32) return fake().broke(__func__, "it is not f32");
  return fake().make(__func__, desc);
}
LtStatus cublasLtMatmulDescDestroy(LtMatmulDesc desc) {
  return fake().destroy(__func__, desc);
}
LtStatus cublasLtMatmulDescSetAttribute(LtMatmulDesc desc, LtAttribute attribute, const void* value,
                                        std::size_t bytes) {
  if (const LtStatus s = fake().enter(__func__); s != LtStatus::kSuccess) return s;
  const bool pointer = attribute == LtAttribute::kAScale || attribute == LtAttribute::kBScale;
  if (bytes != (pointer ? 8 : 4)) return fake().broke(__func__, "the attribute has another size");
  if (pointer) {
    std::memcpy(&desc->scale[attribute == LtAttribute::kBScale], value, bytes);
  } else {
    std::int32_t number = 0;
    std::memcpy(&number, value, bytes);
    (attribute == LtAttribute::kTransA ? desc->transposed : desc->pointers_on_device) = number == 1;
  }
  return LtStatus::kSuccess;
}
LtStatus cublasLtMatrixLayoutCreate(LtLayout* layout, LtType type, std::uint64_t rows, std::uint64_t columns,
                                    std::int64_t leading) {
  if (rows == 0 || columns == 0 || leading < static_cast<std::int64_t>(rows))
    return fake().broke(__func__, "there is no such matrix");
  return fake().make(__func__, layout, type, rows, columns, leading);
}
LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout) {
  return fake().destroy(__func__, layout);
}
LtStatus cublasLtMatmulPreferenceCreate(LtPreference* preference) {
  return fake().make(__func__, preference);
}
LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  return fake().destroy(__func__, preference);
}
LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference preference, LtPreferenceAttribute attribute,
                                              const void* value, std::size_t bytes) {
  if (const LtStatus s = fake().enter(__func__); s != LtStatus::kSuccess) return s;
  const bool workspace = attribute == LtPreferenceAttribute::kMaxWorkspaceBytes;
  if (bytes != (workspace ? 8 : 4)) return fake().broke(__func__, "the attribute has another size");
  if (workspace) {
    std::memcpy(&preference->workspace, value, bytes);
  } else {
    const int operand = static_cast<int>(attribute) - static_cast<int>(LtPreferenceAttribute::kAlignmentA);
    std::memcpy(&preference->alignment[operand], value, bytes);
  }
  return LtStatus::kSuccess;
}
LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtMatmulDesc desc, LtLayout a, LtLayout b, LtLayout c,
                                        LtLayout, LtPreference preference, int requested,
                                        LtHeuristicResult* result, int* returned) {
  if (const LtStatus s = fake().enter(__func__); s != LtStatus::kSuccess) return s;
  if (requested < 1) return fake().broke(__func__, "no result is asked for");
  *returned = 0;
  if (!has_kernel(*desc, *a, *c, preference->alignment)) return LtStatus::kNotSupported;
  *result = {};
  const auto algorithm = algorithm_of(*a, *b, *c);
  std::copy(algorithm.begin(), algorithm.end(), result->algo.data);
  // As much alignment as was promised is relied on.
  result->algo.data[7] = preference->alignment[0] | preference->alignment[1] << 10 |
                         static_cast<std::uint64_t>(preference->alignment[3]) << 20;
  result->workspace_bytes = preference->workspace;
  *returned = 1;
  return LtStatus::kSuccess;
}

LtStatus cublasLtMatmul(LtHandle, LtMatmulDesc desc, const void* alpha, const void* a, LtLayout a_layout,
                        const void* b, LtLayout b_layout, const void* beta, const void* c, LtLayout, void* d,
                        LtLayout d_layout, const LtAlgo* algo, void* workspace, std::size_t, void*) {
  if (const LtStatus s = fake().enter(__func__); s != LtStatus::kSuccess) return s;
  const auto algorithm = algorithm_of(*a_layout, *b_layout, *d_layout);
  if (!std::equal(algorithm.begin(), algorithm.begin() + 7, algo->data))
    return fake().broke(__func__, "the algorithm is of another product");
  const std::uint64_t relied = algo->data[7];
  if (!aligned(a, relied & 1023) || !aligned(b, relied >> 10 & 1023) || !aligned(d, relied >> 20 & 1023))
    return fake().broke(__func__, "an operand is less aligned than was promised");
  if (!aligned(workspace, 256) || workspace == nullptr || c != d)
    return fake().broke(__func__, "workspace or c is not as documented");

  float factor = 1, sum_factor = 0, a_scale, b_scale;
  if (desc->pointers_on_device) {
    if (!read(alpha, &factor, 4) || !read(beta, &sum_factor, 4)) return LtStatus::kInvalidValue;
  } else {
    factor = *static_cast<const float*>(alpha);
    sum_factor = *static_cast<const float*>(beta);
  }
  std::vector<float> w, x;
  if (!read_scale(desc->scale[0], a_scale) || !read_scale(desc->scale[1], b_scale) ||
      !read_matrix(a, *a_layout, w) || !read_matrix(b, *b_layout, x)) {
    return fake().broke(__func__, "there is no such memory");
  }
  if (sum_factor != 0) return fake().broke(__func__, "beta is not 0");
  const std::uint64_t k = a_layout->rows, n = a_layout->columns, m = b_layout->columns;
  std::vector<float> product(n * m);
  for (std::uint64_t row = 0; row < m; ++row) {
    for (std::uint64_t i = 0; i < n; ++i)
      product[row * n + i] = dot(&w[i * k], &x[row * k], k) * a_scale * b_scale * factor;
  }
  return write_matrix(d, *d_layout, product) ? LtStatus::kSuccess
                                             : fake().broke(__func__, "there is no such memory");
}

LtStatus cublasLtMatrixTransformDescCreate(LtTransformDesc* desc, LtType) {
  return fake().make(__func__, desc);
}
LtStatus cublasLtMatrixTransformDescDestroy(LtTransformDesc desc) {
  return fake().destroy(__func__, desc);
}
LtStatus cublasLtMatrixTransform(LtHandle, LtTransformDesc, const void*, const void* a, LtLayout a_layout,
                                 const void*, const void*, LtLayout, void* c, LtLayout c_layout, void*) {
  if (const LtStatus s = fake().enter(__func__); s != LtStatus::kSuccess) return s;
  std::vector<float> values;
  if (!read_matrix(a, *a_layout, values) || !write_matrix(c, *c_layout, values))
    return fake().broke(__func__, "there is no such memory");
  return LtStatus::kSuccess;
}

}  // extern "C"
