#include "ptxgen/matrix_descriptor.h"

#include "ptxgen/kernel_builder.h"
#include "ptxgen/strings.h"

namespace ptxgen::detail {
namespace {

// PTX ISA, "Matrix Descriptor Format": addresses and offsets stand as bits 4 to 17 of their value.
constexpr u32 kLowestBit = 4, kBits = 14;
constexpr u32 kGranule = 1u << kLowestBit, kLimit = 1u << (kLowestBit + kBits);
constexpr u32 kLeadingAt = 16, kStrideAt = 32, kBaseOffsetAt = 49, kSwizzleAt = 62;
constexpr u32 kBaseOffsets = 8;

u64 field(KernelBuilder& k, u32 bytes, u32 at, std::string_view what, SourceLocation where) {
  if (bytes % kGranule != 0 || bytes >= kLimit) {
    k.mistake(where, str_cat("the ", what, " byte offset of a matrix descriptor is ", bytes,
                             "; it is a multiple of ", kGranule, " below ", kLimit));
  }
  return u64{bytes / kGranule} << at;
}

}  // namespace

ValueId matrix_descriptor(KernelBuilder& k, const Input& start, const MatrixLayout& layout,
                          SourceLocation where) {
  if (layout.base_offset >= kBaseOffsets) {
    k.mistake(where, str_cat("the base offset of a matrix descriptor is ", layout.base_offset,
                             "; it is bits 7 to 9 of an address, 0 to ", kBaseOffsets - 1));
  }
  const u64 constant = field(k, layout.leading_bytes, kLeadingAt, "leading dimension", where) |
                       field(k, layout.stride_bytes, kStrideAt, "stride dimension", where) |
                       u64{layout.base_offset} << kBaseOffsetAt |
                       static_cast<u64>(layout.swizzle) << kSwizzleAt;
  Reg<u32> address(start.kernel, start.operand.value);
  if (start.operand.bits != 0) address = address + static_cast<u32>(start.operand.bits);
  return (cvt<u64>(bfe(address, kLowestBit, kBits)) | constant).id();
}

ValueId advance_descriptor(KernelBuilder& k, ValueId descriptor, const In<u32>& bytes) {
  const Reg<u64> bits(&k, descriptor);
  if (bytes.kernel()) return (bits + cvt<u64>(Reg<u32>(&k, bytes.input().operand.value) >> kLowestBit)).id();
  const u64 literal = static_cast<u64>(bytes.input().operand.bits);
  if (literal % kGranule != 0) {
    k.mistake(bytes.where(), str_cat("a matrix descriptor advances by ", literal,
                                     " bytes; it advances by a multiple of ", kGranule));
  }
  if (literal == 0) return descriptor;
  return (bits + literal / kGranule).id();
}

}  // namespace ptxgen::detail
