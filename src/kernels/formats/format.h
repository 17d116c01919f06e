// How a block format is decoded. Each format is a struct with
//
//   kFormat      which one
//   kRuns        how many runs of consecutive values a part of a block holds
//   kBias        what is subtracted from the stored unsigned integers
//   decode<W>    the integers and scales of one part
//
// A part is what the bytes hold that one thread loads: W bytes of quantised values, W = 4 or 8. Their nibbles
// or bit pairs belong to kRuns runs of W consecutive values each; a block has block_values / (W * kRuns)
// parts. A value is
//
//   (q - kBias) * scale + shift
//
// with each operation rounded to f32, which is ggml's dequantize_row_*: x - min and x + (-min) are the same.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ptxgen/format.h"
#include "src/kernels/parts/bytes.h"

namespace ptxgen::formats {

// A pointer to a block of format F, as aligned as every block of it.
template <Format F>
using BlockPtr = GlobalPtr<const parts::Bytes<info(F).block_bytes>, info(F).alignment>;

// W consecutive values, the first at index Part::base + offset of the block.
template <u32 W>
struct Run {
  u32 offset;
  std::array<Reg<u32>, W / 4> q;  // unsigned bytes, the first value in the lowest
  Reg<f32> scale;
  std::optional<Reg<f32>> shift;
};

template <u32 W>
struct Part {
  Reg<u32> base;  // a multiple of W
  std::vector<Run<W>> runs;
};

// Applies f to each word.
template <std::size_t N, class F>
std::array<Reg<u32>, N> map(const std::array<Reg<u32>, N>& words, F&& f) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, N>{f(words[I], static_cast<u32>(I))...};
  }
  (std::make_index_sequence<N>{});
}

// `count` bits of every byte, from bit `first` up: first + count <= 8.
inline Reg<u32> bits_of_bytes(const Reg<u32>& word, u32 first, u32 count) {
  return (first ? word >> first : word) & (0x01010101u * ((1u << count) - 1));
}
inline Reg<u32> bits_of_bytes(const Reg<u32>& word, const Reg<u32>& first, u32 count) {
  return (word >> first) & (0x01010101u * ((1u << count) - 1));
}

// W bytes of a block's field at byte `Offset`, from byte index * Stride on.
template <u32 W, std::size_t Offset, std::size_t Stride = W, class Ptr>
std::array<Reg<u32>, W / 4> load_bytes(const Ptr& block, const Reg<u32>& index) {
  return parts::load_words<W / 4>(at<std::byte>(at<parts::Bytes<Stride>, Offset>(block) + index));
}

// An f16 field, and two that lie side by side, as f32.
template <std::size_t Offset, class Ptr>
Reg<f32> load_f16(const Ptr& block) {
  return cvt<f32>(ld_global_nc(at<f16, Offset>(block)));
}
template <std::size_t Offset, class Ptr>
std::array<Reg<f32>, 2> load_two_f16(const Ptr& block) {
  const auto [first, second] = unpack(ld_global_nc(at<f16x2, Offset>(block)));
  return {cvt<f32>(first), cvt<f32>(second)};
}

}  // namespace ptxgen::formats
