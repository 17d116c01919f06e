// The cuBLASLt of a test: on the emulated device the stand-in, reset when the test begins and its books in
// order when it ends; on a CUDA device the machine's own.
#pragma once

#include <dlfcn.h>

#include <string>

#include "ptxgen/executor.h"
#include "tests/kernels/harness.h"
#include "tests/runtime/fake_cublaslt.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {

class FakeLibrary {
 public:
  FakeLibrary() {
    if (test_device().kind() == DeviceKind::kEmulator) open();
  }
  FakeLibrary(const FakeLibrary&) = delete;
  FakeLibrary& operator=(const FakeLibrary&) = delete;
  ~FakeLibrary() {
    if (books_ == nullptr) return;
    CHECK(books_->alive() == 0);
    CHECK(books_->violations() == std::vector<std::string>());
  }

  // The stand-in, whatever the device.
  void open() {
    void* library = dlopen(PTXGEN_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    REQUIRE(library != nullptr);
    books_ = reinterpret_cast<FakeCublasLt* (*)()>(dlsym(library, "fake_cublaslt"))();
    books_->reset();
  }
  FakeCublasLt* operator->() const { return books_; }
  std::string path() const { return books_ == nullptr ? "" : PTXGEN_FAKE_CUBLASLT; }
  ExecutorOptions with(ExecutorOptions options) const {
    options.cublaslt = path();
    return options;
  }

 private:
  FakeCublasLt* books_ = nullptr;
};

}  // namespace ptxgen::testing
