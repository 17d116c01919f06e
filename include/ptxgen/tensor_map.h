// A tensor in global memory as tensor copies see it: Device::encode_tensor_map makes a TensorMap of it, which
// a kernel takes as a parameter (arguments.h, tensor_map()) and names in cp_async_bulk_tensor_*.
//
//   const TiledTensor a = {.type = Type::kBf16, .address = buffer.address(), .rank = 2, .extents = {k, m},
//                          .strides = {2 * k}, .box = {64, 128}, .swizzle = Swizzle::k128B};
//   absl::StatusOr<TensorMap> map = device.encode_tensor_map(a);
#pragma once

#include <array>

#include "absl/status/status.h"
#include "ptxgen/export.h"
#include "ptxgen/swizzle.h"
#include "ptxgen/types.h"

namespace ptxgen {

// What is in the box outside the tensor.
enum class OutOfBounds : u8 { kZero, kNaN };

// Extents, strides, coordinates: innermost first.
struct TiledTensor {
  static constexpr u32 kMaxRank = 5;

  Type type = Type::kNone;                 // u8 u16 u32 s32 u64 s64 f16 bf16 f32 f64
  u64 address = 0;                         // in global memory: a multiple of 16
  u32 rank = 0;                            // 1 to 5
  std::array<u64, kMaxRank> extents = {};  // elements: 1 to 2^32
  std::array<u64, kMaxRank - 1> strides =
      {};  // of the dimensions but the first, in bytes: a multiple of 16 below 2^40
  std::array<u32, kMaxRank> box = {};  // elements: 1 to 256; the first dimension fills a multiple of 16 bytes
  std::array<u32, kMaxRank> element_strides = {
      1, 1, 1, 1, 1};                // 1 to 8: of a box dimension every n-th element; the first stays 1
  Swizzle swizzle = Swizzle::kNone;  // at least as wide as the first dimension of the box
  u32 l2_promotion = 0;              // bytes that L2 reads at once: 0 (no promotion), 64, 128 or 256
  OutOfBounds out_of_bounds = OutOfBounds::kZero;  // kNaN: for floating types

  // Elements of dimension `d` that a copy moves: box / element_strides, rounded up.
  constexpr u32 moved(u32 d) const { return (box[d] + element_strides[d] - 1) / element_strides[d]; }
  // Bytes that a copy puts into shared memory, and that its mbarrier counts.
  constexpr u64 box_bytes() const {
    u64 bytes = info(type).bytes;
    for (u32 d = 0; d < rank; ++d) bytes *= moved(d);
    return bytes;
  }

  // The limits above (CUDA Driver API, cuTensorMapEncodeTiled): the field, what it is, what it may be.
  PTXGEN_API absl::Status validate() const;
};

}  // namespace ptxgen
