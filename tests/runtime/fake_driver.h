// The fake libcuda in a test, with a cache directory of the test's: reset when the test begins, and its books in
// order when the test ends.
#pragma once

#include <dlfcn.h>

#include "ptxgen/device.h"
#include "ptxgen/environment.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

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
  const std::filesystem::path& cache() const { return cache_.path(); }

 private:
  ScratchFolder cache_;
  ScopedVariable directory_{env::kCacheDir.name, cache_.path().c_str()},
      isolate_{env::kIsolate.name, nullptr};
  std::string path_;
  void* library_;
  FakeCuda* books_;
};

}  // namespace ptxgen::testing
