// Stands in for cuda_backend.cc in a build without the CUDA headers.
#include "src/runtime/backend.h"

namespace ptxgen::internal {
namespace {

absl::Status left_out() {
  return absl::NotFoundError(
      "this build of ptxgen has no CUDA device; build it where CMake finds the CUDA headers, with "
      "PTXGEN_CUDA=ON");
}

}  // namespace

absl::StatusOr<int> count_cuda_devices(const std::string&) {
  return left_out();
}

absl::StatusOr<std::unique_ptr<Backend>> open_cuda(const std::string&, int) {
  return left_out();
}

}  // namespace ptxgen::internal
