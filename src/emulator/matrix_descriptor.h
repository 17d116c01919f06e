// Matrices in shared memory as wgmma reads them (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory
// Layout", "Matrix Descriptor Format", "Canonical Layouts").
#pragma once

#include <cstdint>

namespace ptxgen::emulator {

// The bits of a descriptor that mean something.
inline constexpr std::uint64_t kDescriptorBits = 0xc00e3fff'3fff3fff;

class SharedMatrix {
 public:
  SharedMatrix(std::uint64_t descriptor, bool mn_major);

  // The address of the element at `i` of m or n and `k`, which has 2^shift bytes. 16 bytes along k (K-major)
  // or i (MN-major) lie together, those whose first element's index is a multiple of 16 bytes.
  std::uint64_t address(unsigned i, unsigned k, unsigned shift) const;

 private:
  std::uint64_t start_, leading_, stride_;
  unsigned base_offset_;
  unsigned line_bytes_;  // the swizzle's; 16 without one
  unsigned swizzle_;     // bits 4 and up that are exchanged
  bool mn_major_;
};

}  // namespace ptxgen::emulator
