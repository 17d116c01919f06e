// Matrices in shared memory as wgmma takes them: by a descriptor of 64 bits that says where the matrix begins
// and how it lies.
//
// An operand of one instruction is 32 bytes along k and 64 rows (a) or n columns (b) the other way. It lies
// in pieces of 8 x 16 bytes (core matrices), each of 8 lines of 16 bytes. With T = 16 / sizeof(element)
// elements to a line, element i of m (or n) and k is at, in bytes from the start,
//
//   K-major, no swizzle    i % 8 * 16 + i / 8 * stride + k / T * leading + k % T * sizeof(element)
//   K-major, swizzle of S  i % 8 *  S + i / 8 * stride + k * sizeof(element)
//   MN-major, no swizzle   k % 8 * 16 + k / 8 * leading + i / T * stride + i % T * sizeof(element)
//   MN-major, swizzle of S k % 8 *  S + k / 8 * stride + i / L * leading + i % L * sizeof(element)
//                                                                        with L = S / sizeof(element)
//
// and a swizzle of S bytes (32, 64, 128) exchanges the 16-byte pieces of each line of S bytes: bits 4 and up
// of the address are xored with bits 7 and up, one, two or three of them. The pattern repeats every 8 S
// bytes, at whose multiples it begins; where it does not, base_offset is bits 7 to 9 of the address at which
// it does. A tensor map with the same swizzle writes such matrices (PTX ISA, "Asynchronous Warpgroup Level
// Matrix Shared Memory Layout", "Matrix Descriptor Format", "Canonical Layouts"; the formulas are also those
// of cute/atom/mma_traits_sm90_gmma.hpp in CUTLASS).
//
// K-major with 128-byte swizzle, the usual one for f16: lines of 64 values of k, 128 bytes apart, stride
// 1024; the next 16 values of k are advance(32).
#pragma once

#include "ptxgen/swizzle.h"
#include "ptxgen/value.h"

namespace ptxgen {

// Multiples of 16 below 256 KiB.
struct MatrixLayout {
  Swizzle swizzle = Swizzle::kNone;
  u32 leading_bytes = 0;  // not looked at in a K-major matrix with a swizzle
  u32 stride_bytes = 0;
  u32 base_offset = 0;  // 0 to 7
};

namespace detail {
PTXGEN_API ValueId matrix_descriptor(KernelBuilder& kernel, const Input& start, const MatrixLayout& layout,
                                     SourceLocation where);
PTXGEN_API ValueId advance_descriptor(KernelBuilder& kernel, ValueId descriptor, const In<u32>& bytes);
}  // namespace detail

// A matrix of elements T in shared memory, of which M is contiguous; MN-major where elements have 16 bits.
template <DeviceType T, Major M = Major::kK>
requires(M == Major::kK || sizeof(T) == 2) class MatrixDescriptor {
 public:
  using value_type = T;
  static constexpr Major kMajor = M;

  // All 32 lanes of a warp must give the same; where an assembler can see that they do (an address from
  // shfl_sync_idx), it need not move the value lane by lane.
  template <std::size_t Align>
  requires(Align % 16 == 0) MatrixDescriptor(const SharedPtr<T, Align>& start, const MatrixLayout& layout,
                                             SourceLocation where = SourceLocation::current())
      : bits_(start.kernel(), detail::matrix_descriptor(*start.kernel(), start.input(), layout, where)) {}
  // From the bits of one.
  explicit MatrixDescriptor(const Reg<u64>& bits) : bits_(bits) {}

  // That of the matrix so many bytes further, a multiple of 16.
  MatrixDescriptor advance(const In<u32>& bytes) const {
    return MatrixDescriptor(
        Reg<u64>(bits_.kernel(), detail::advance_descriptor(*bits_.kernel(), bits_.id(), bytes)));
  }

  const Reg<u64>& bits() const { return bits_; }
  KernelBuilder* kernel() const { return bits_.kernel(); }
  void append_to(detail::Input*& out) const {
    *out++ = {{0, bits_.id(), Operand::Form::kValue}, bits_.kernel()};
  }

 private:
  Reg<u64> bits_;
};

}  // namespace ptxgen
