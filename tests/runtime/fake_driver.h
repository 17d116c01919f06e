// The fake libcuda in a test: reset when the test begins, and its books in order when the test ends.
#pragma once

#include <dlfcn.h>

#include "ptxgen/device.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {

class FakeDriver {
 public:
  explicit FakeDriver(const char* path = PTXGEN_FAKE_CUDA) : path_(path) {
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);  // as a driver, it stays once loaded
    REQUIRE(library_ != nullptr);
    books_ = reinterpret_cast<FakeCuda* (*)()>(dlsym(library_, "fake_cuda"))();
    books_->reset();
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  ~FakeDriver() {
    CHECK(books_->alive() == 0);
    CHECK(books_->violations() == std::vector<std::string>());
    CHECK(books_->current() == nullptr);
    books_->reset();
    dlclose(library_);
  }

  FakeCuda* operator->() const { return books_; }
  DeviceOptions options(int index = 0, DeviceChoice choice = DeviceChoice::kCuda) const {
    return {.choice = choice, .index = index, .libcuda = path_};
  }
  absl::StatusOr<Device> open(int index = 0) const { return Device::open(options(index)); }

 private:
  std::string path_;
  void* library_;
  FakeCuda* books_;
};

}  // namespace ptxgen::testing
