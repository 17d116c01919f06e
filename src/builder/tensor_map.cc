#include "ptxgen/tensor_map.h"

#include "ptxgen/strings.h"

namespace ptxgen {
namespace {

using namespace type_sets;
constexpr TypeSet kTensorTypes = kU8 | kU16 | kI32 | kI64 | kF16 | kBf16 | kFloat;
constexpr TypeSet kFloatTypes = kF16 | kBf16 | kFloat;

// The bounds of CUDA Driver API, cuTensorMapEncodeTiled, without interleaving.
constexpr u64 kMaxExtent = u64{1} << 32, kStrideBound = u64{1} << 40;
constexpr u32 kMaxBox = 256, kMaxElementStride = 8, kAlignment = 16;

template <class... What>
absl::Status refuse(What... what) {
  return absl::InvalidArgumentError(str_cat("TiledTensor::", what...));
}

absl::Status check_dimension(const TiledTensor& t, u32 d) {
  if (t.extents[d] == 0 || t.extents[d] > kMaxExtent) {
    return refuse("extents[", d, "] is ", t.extents[d], "; allowed is 1 to ", kMaxExtent);
  }
  if (t.box[d] == 0 || t.box[d] > kMaxBox) {
    return refuse("box[", d, "] is ", t.box[d], "; allowed is 1 to ", kMaxBox);
  }
  if (t.element_strides[d] == 0 || t.element_strides[d] > kMaxElementStride) {
    return refuse("element_strides[", d, "] is ", t.element_strides[d], "; allowed is 1 to ",
                  kMaxElementStride);
  }
  if (d + 1 < t.rank && (t.strides[d] % kAlignment != 0 || t.strides[d] >= kStrideBound)) {
    return refuse("strides[", d, "] is ", t.strides[d], " bytes; it is a multiple of ", kAlignment, " below ",
                  kStrideBound);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TiledTensor::validate() const {
  if (!kTensorTypes.contains(type)) {
    return refuse("type is ", info(type).name,
                  "; allowed are u8, u16, u32, s32, u64, s64, f16, bf16, f32 and f64");
  }
  if (rank == 0 || rank > kMaxRank) return refuse("rank is ", rank, "; allowed is 1 to ", kMaxRank);
  if (address % kAlignment != 0 || address == 0) {
    return refuse("address is ", address, "; it is a multiple of ", kAlignment, " in global memory");
  }
  for (u32 d = 0; d < rank; ++d) {
    if (absl::Status s = check_dimension(*this, d); !s.ok()) return s;
  }
  if (element_strides[0] != 1) {
    return refuse("element_strides[0] is ", element_strides[0],
                  "; the first dimension is copied without gaps: 1");
  }
  const u32 inner = box[0] * info(type).bytes;
  if (inner % kAlignment != 0) {
    return refuse("box[0] is ", box[0], " elements, ", inner, " bytes; they are a multiple of ", kAlignment);
  }
  if (swizzle != Swizzle::kNone && inner > bytes(swizzle)) {
    return refuse("box[0] is ", box[0], " elements, ", inner, " bytes; a swizzle of ", bytes(swizzle),
                  " bytes allows no more than these");
  }
  if (l2_promotion != 0 && l2_promotion != 64 && l2_promotion != 128 && l2_promotion != 256) {
    return refuse("l2_promotion is ", l2_promotion, "; allowed are 0, 64, 128 and 256");
  }
  if (out_of_bounds == OutOfBounds::kNaN && !kFloatTypes.contains(type)) {
    return refuse("out_of_bounds is kNaN; ", info(type).name, " has no NaN, use kZero");
  }
  return absl::OkStatus();
}

}  // namespace ptxgen
