#include "ptxgen/executor.h"
#include "ptxgen/strings.h"

namespace ptxgen {
namespace {

absl::Status refuse(Format format, u32 n, u32 k, std::string message) {
  return absl::InvalidArgumentError(
      str_cat("a matrix of ", info(format).name, ", n ", n, ", k ", k, ": ", message));
}

}  // namespace

WeightMatrix::WeightMatrix(Format format, u32 n, u32 k, u64 address)
    : format_(format), n_(n), k_(k), address_(address), identity_(std::make_shared<const char>()) {}

u64 WeightMatrix::bytes() const {
  return Gemv{.format = format_, .k = k_, .n = n_}.weight_bytes({});
}

absl::StatusOr<WeightMatrix> WeightMatrix::borrow(Format format, u32 n, u32 k, u64 address, u64 bytes) {
  if (absl::Status s = GemvShape{.format = format, .n = n, .k = k}.validate(); !s.ok())
    return refuse(format, n, k, std::string(s.message()));
  WeightMatrix matrix(format, n, k, address);
  const std::size_t alignment = info(format).alignment;
  if (address == 0) return refuse(format, n, k, "its address is null");
  if (address % alignment != 0) {
    return refuse(
        format, n, k,
        str_cat("it is at 0x", absl::Hex(address), "; its address must be a multiple of ", alignment));
  }
  if (bytes < matrix.bytes()) {
    return refuse(format, n, k, str_cat(bytes, " bytes are given; it takes ", matrix.bytes()));
  }
  return matrix;
}

absl::StatusOr<WeightMatrix> WeightMatrix::own(Format format, u32 n, u32 k,
                                               std::shared_ptr<const Buffer> buffer, u64 offset) {
  if (buffer == nullptr || offset > buffer->bytes()) {
    return refuse(format, n, k,
                  buffer == nullptr
                      ? std::string("there is no buffer")
                      : str_cat("it begins at byte ", offset, " of a buffer of ", buffer->bytes()));
  }
  absl::StatusOr<WeightMatrix> matrix =
      borrow(format, n, k, buffer->address() + offset, buffer->bytes() - offset);
  if (matrix.ok()) matrix->owner_ = std::move(buffer);
  return matrix;
}

}  // namespace ptxgen
