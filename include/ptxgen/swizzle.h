// How tiles lie in shared memory that tensor copies write and wgmma reads.
#pragma once

#include "ptxgen/types.h"

namespace ptxgen {

// The 16-byte pieces of a line of so many bytes change places with the number of the line: the low bits of a
// piece's number are combined (xor) with the bits of the address from bit 7 on, so that a column of them lies
// in different banks (CUDA C++ Programming Guide, "Tensor Memory Access: Swizzle Modes"). The values are
// those of a matrix descriptor.
enum class Swizzle : u8 { kNone = 0, k128B = 1, k64B = 2, k32B = 3 };

constexpr u32 bytes(Swizzle swizzle) {
  return swizzle == Swizzle::kNone ? 0 : 256u >> static_cast<u32>(swizzle);
}

}  // namespace ptxgen
