// An index as the sum of a value and a constant, kept apart: the constant becomes an offset of an address,
// and indices that differ by it share the rest. An assembler cannot take a sum of 32 bits apart, since it may
// wrap around.
#pragma once

#include <optional>

#include "ptxgen/kernel_builder.h"

namespace ptxgen::formats {

class Index {
 public:
  Index(const Reg<u32>& varying, u32 constant = 0)  // NOLINT: implicit by design
      : kernel_(varying.kernel()), varying_(varying), constant_(constant) {}
  Index(KernelBuilder& k, u32 constant) : kernel_(&k), constant_(constant) {}

  const std::optional<Reg<u32>>& varying() const { return varying_; }
  u32 constant() const { return constant_; }
  Reg<u32> value() const {
    if (!varying_) return kernel_->constant<u32>(constant_);
    return constant_ ? *varying_ + constant_ : *varying_;
  }

  Index operator*(u32 factor) const {
    return map([&](const auto& term) { return term * factor; });
  }
  // By what the constant is a multiple of.
  Index operator/(u32 divisor) const {
    return map([&](const auto& term) { return term / divisor; });
  }
  Index operator+(u32 more) const { return {kernel_, varying_, constant_ + more}; }
  Index operator+(const Reg<u32>& more) const { return {varying_ ? *varying_ + more : more, constant_}; }

  template <Space S, class T, std::size_t Align>
  friend auto operator+(const Ptr<S, T, Align>& p, const Index& index) {
    using Element = typename Ptr<S, T, Align>::Element;
    return (index.varying_ ? Element(p + *index.varying_) : Element(p)) + index.constant_;
  }

 private:
  Index(KernelBuilder* k, const std::optional<Reg<u32>>& varying, u32 constant)
      : kernel_(k), varying_(varying), constant_(constant) {}

  template <class Function>
  Index map(Function&& f) const {
    return varying_ ? Index(f(*varying_), f(constant_)) : Index(*kernel_, f(constant_));
  }

  KernelBuilder* kernel_;
  std::optional<Reg<u32>> varying_;
  u32 constant_;
};

// Which value of a block: `in_block` is less than 32. Blocks of int8 activations have 32, so that tells where
// in which of them.
struct Base {
  Index block;
  Reg<u32> in_block;

  Index index() const { return block * 32 + in_block; }
};

// Where a part of a block of 256 values lies, of which every 32 bytes of quantised values, a chunk, hold
// kRuns runs: the part's number, its chunk, and its first byte in that.
struct ChunkPart {
  Index part, chunk;
  Reg<u32> in_chunk;
};
template <u32 W>
ChunkPart chunk_part(const Reg<u32>& part) {
  const Reg<u32> byte = part * W;
  return {part, byte >> 5, byte & 31u};
}
// Part `part` of chunk `chunk`.
template <u32 W>
ChunkPart chunk_part(const Reg<u32>& part, u32 chunk) {
  return {{part, chunk * (32 / W)}, {*part.kernel(), chunk}, part * W};
}

}  // namespace ptxgen::formats
