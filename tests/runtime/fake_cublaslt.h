// A libcublasLt without a GPU: multiplies on the host, over an emulated device's memory or, where none was
// given, over host memory, as the fake libcuda has it. It keeps books and says afterwards who broke which
// rule.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/runtime/cublaslt.h"

namespace ptxgen::testing {

class FakeCublasLt {
 public:
  // Version 13.1.0, nothing counted, nothing injected.
  virtual void reset() = 0;
  virtual void set_version(std::size_t version) = 0;
  // The calls of `entry` fail with `result`: `times` of them, after `skip` good ones.
  virtual void fail(std::string entry, internal::LtStatus result, int times = 1, int skip = 0) = 0;
  virtual int calls(std::string_view entry) = 0;
  // Handles, descriptions, layouts and preferences that nobody has ended.
  virtual int alive() = 0;
  // "cublasLtMatmul: the algorithm is of another product"; empty when all went by the rules.
  virtual std::vector<std::string> violations() = 0;

 protected:
  ~FakeCublasLt() = default;
};

}  // namespace ptxgen::testing

extern "C" ptxgen::testing::FakeCublasLt* fake_cublaslt();
