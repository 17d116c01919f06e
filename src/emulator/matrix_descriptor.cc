#include "src/emulator/matrix_descriptor.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kPiece = 16;  // bytes that no layout tears apart
constexpr unsigned kLines = 8;   // of a core matrix

std::uint64_t field(std::uint64_t descriptor, unsigned at) {
  return (descriptor >> at & 0x3fff) * kPiece;
}

}  // namespace

SharedMatrix::SharedMatrix(std::uint64_t descriptor, bool mn_major)
    : start_(field(descriptor, 0)),
      leading_(field(descriptor, 16)),
      stride_(field(descriptor, 32)),
      base_offset_(descriptor >> 49 & 7),
      mn_major_(mn_major) {
  constexpr unsigned kLineBytes[] = {kPiece, 128, 64, 32};
  line_bytes_ = kLineBytes[descriptor >> 62];
  swizzle_ = line_bytes_ / kPiece - 1;
}

std::uint64_t SharedMatrix::address(unsigned i, unsigned k, unsigned shift) const {
  std::uint64_t at = start_;
  if (mn_major_) {
    const unsigned line = line_bytes_ >> shift;  // elements
    at += k % kLines * line_bytes_ + (i % line << shift);
    at += swizzle_ ? k / kLines * stride_ + i / line * leading_ : k / kLines * leading_ + i / line * stride_;
  } else {
    const unsigned along = k << shift;
    at += i % kLines * line_bytes_ + i / kLines * stride_;
    at += swizzle_ ? along : along / kPiece * leading_ + along % kPiece;
  }
  return at ^ (((at >> 7) - base_offset_) & swizzle_) * kPiece;
}

}  // namespace ptxgen::emulator
