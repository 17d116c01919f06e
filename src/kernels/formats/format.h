// How a block format is read. Each format is a struct with
//
//   kFormat      which one
//   kRuns        how many runs of consecutive values a part of a block holds
//   kRunStride   how far apart in the block they begin
//   kFieldBits   the bits of the first run's integers, where those of the next lie above them in the same
//   byte;
//                0 where an integer is put together from several places
//   kBias        what is subtracted from the stored integers
//   kSigned      whether these are signed bytes
//   kMostScale   the largest |scale| that its bits can hold
//   kMostMin     the same of min; both are 1 where there is none
//   kHeader      the ranges of bytes that hold scales, for schedules that share their loads
//   kFixed       the range in them that every part reads
//   place<W>     what a thread that reads one part knows before it loads anything; with blocks of 256 values
//                the part may be given as one of a chunk (index.h)
//   load<W>      the part's bytes, from global or shared memory or with a shared header
//   decode<W>    the integers and scales in them; no effects
//
// A part is what belongs to W bytes of quantised values, W = 1, 4, 8, 16 or 32. Their nibbles or bit pairs
// belong to kRuns runs of W consecutive values each; a block has block_values / (W * kRuns) parts. A value is
//
//   (q - kBias) * (d * scale) + m * min
//
// with d and m of the block, scale and min of the run, where a missing factor is 1 and a missing m is 0. With
// each operation rounded to f32 that is ggml's dequantize_row_*: x - dmin * min and x + (-dmin) * min are the
// same.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ptxgen/format.h"
#include "src/kernels/formats/index.h"
#include "src/kernels/parts/bytes.h"

namespace ptxgen::formats {

// A pointer to a block of format F, as aligned as every block of it.
template <Format F, Space S = Space::kGlobal>
using BlockPtr = Ptr<S, const parts::Bytes<info(F).block_bytes>, info(F).alignment>;

// The words that W bytes fill; a single byte lies in the lowest of one.
constexpr u32 words_of(u32 bytes) {
  return bytes < 4 ? 1 : bytes / 4;
}
template <u32 W>
using Words = std::array<Reg<u32>, words_of(W)>;

// Byte `index` of `bytes`, minus `bias`.
struct BiasedByte {
  Reg<u32> bytes;
  u32 index, bias;
};

// A small integer as a float that still has a bias: often one instruction less, and what multiplies it may
// take the bias away for free. Where it is a byte, that is there too.
struct Small {
  Reg<f32> biased;
  f32 bias = 0;
  std::optional<BiasedByte> byte = {};

  Reg<f32> value() const { return bias == 0 ? biased : biased - bias; }
};
inline Small small_byte(const Reg<u32>& bytes, u32 i, u32 bias = 0) {
  return {parts::byte_plus_two_to_23(bytes, i), parts::kTwoTo23 + static_cast<f32>(bias),
          BiasedByte{bytes, i, bias}};
}

// W consecutive values. Scales that are bytes are so in all runs, those of runs 2 i and 2 i + 1 in one word,
// and all mins are bytes, likewise. Those of run r begin at index Place::base + r * kRunStride of the block.
template <u32 W>
struct Run {
  Words<W> q;  // bytes, the first value in the lowest
  std::optional<Small> scale = {};
  std::optional<Small> min = {};
};

template <u32 W>
struct Part {
  Reg<f32> d;
  std::optional<Reg<f32>> m;
  std::vector<Run<W>> runs;
};

// Whether bits may stay where they lie in their byte, and whether those of other runs may stay beside them
// (field_mask()). That saves a shift or more, and multiplies the integers of run r by unit_of(r).
enum class Packing : u8 { kExact, kInPlace, kUnmasked };
template <class F>
constexpr u32 unit_of(u32 run, Packing packing) {
  return packing == Packing::kExact ? 1u : 1u << (F::kFieldBits * run);
}
// The bits of a byte that are run `run`'s where they stay in place.
template <class F>
constexpr u32 field_mask(u32 run) {
  return F::kFieldBits == 0 ? 0xffu : ((1u << F::kFieldBits) - 1) << (F::kFieldBits * run);
}

struct ByteRange {
  u32 offset, bytes;
};

// How many parts a block has.
template <class F>
constexpr u32 parts_per_block(u32 width) {
  return info(F::kFormat).block_values / (width * F::kRuns);
}

// Applies f to each word.
template <std::size_t N, class F>
std::array<Reg<u32>, N> map(const std::array<Reg<u32>, N>& words, F&& f) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, N>{f(words[I], static_cast<u32>(I))...};
  }
  (std::make_index_sequence<N>{});
}

// `count` bits of each of W bytes, from bit `first` up, at bit `to`: first + count and to + count <= 8. One
// shift and one mask, which an assembler merges with what is put beside it.
template <u32 W>
Reg<u32> bits_of_bytes(const Reg<u32>& word, u32 first, u32 count, u32 to = 0) {
  const Reg<u32> moved = first > to ? word >> (first - to) : first < to ? word << (to - first) : word;
  if (W == 1 && first + count == 8 && to == 0) return moved;  // there is nothing above them
  return moved & (0x01010101u * (((1u << count) - 1) << to));
}
// The same where `first` is known at run time: by rotating, so that no byte loses any of them.
inline Reg<u32> bits_of_bytes(const Reg<u32>& word, const Reg<u32>& first, u32 count, u32 to = 0) {
  const Reg<u32> moved = to ? shf_r_wrap(word, word, first - to) : word >> first;
  return moved & (0x01010101u * (((1u << count) - 1) << to));
}
// Every byte's low nibble from `low`, its high one from `high`. Of and, and, or ptxas makes two instructions.
inline Reg<u32> nibbles_of(const Reg<u32>& low, const Reg<u32>& high) {
  constexpr u32 kChoose = 0xca;  // a ? b : c
  return lop3(low.kernel()->constant<u32>(0x0f0f0f0f), low, high, kChoose);
}
// The integers of run `run`, of a format whose runs lie in the bits of the same bytes.
template <class F, u32 W>
Words<W> fields_of_bytes(const Words<W>& words, u32 run, Packing packing) {
  constexpr u32 kBits = F::kFieldBits;
  return map(words, [&](const Reg<u32>& word, u32) {
    switch (packing) {
      case Packing::kUnmasked: return word;
      case Packing::kInPlace: return word & (0x01010101u * field_mask<F>(run));
      case Packing::kExact: break;
    }
    return bits_of_bytes<W>(word, kBits * run, kBits);
  });
}

// W bytes of a block's field at byte `Offset`, from byte index * Stride on.
template <u32 W, std::size_t Offset, std::size_t Stride = W>
Words<W> load_bytes(const parts::Realigned& block, const Index& index) {
  static_assert(Offset % 4 == 0, "at the same place in a word");
  return parts::load_realigned<W / 4>(block.at_index<4>(Offset / 4).template at_index<Stride>(index));
}
template <u32 W, std::size_t Offset, std::size_t Stride = W, Space S, class T, std::size_t Align>
Words<W> load_bytes(const Ptr<S, T, Align>& block, const Index& index) {
  const auto bytes = at<parts::Bytes<Stride>, Offset>(block) + index;
  if constexpr (W == 1) {
    return {cvt<u32>(parts::load(at<u8>(bytes)))};
  } else {
    return parts::load_words<W / 4>(at<std::byte>(bytes));
  }
}

// What the header of a block holds: `Words` words at byte Offset, W bytes from index * W on, an f16, and the
// first or second (0 or 1) s8 of a pair.
template <u32 Count, std::size_t Offset, Space S, class T, std::size_t Align>
std::array<Reg<u32>, Count> header_words(const Ptr<S, T, Align>& block) {
  return parts::load_words<Count>(at<std::byte, Offset>(block));
}
template <u32 W, std::size_t Offset, Space S, class T, std::size_t Align>
Words<W> header_bytes(const Ptr<S, T, Align>& block, const Index& index) {
  return load_bytes<W, Offset>(block, index);
}
template <std::size_t Offset, Space S, class T, std::size_t Align>
Reg<f16> header_f16(const Ptr<S, T, Align>& block) {
  return parts::load(at<f16, Offset>(block));
}
template <std::size_t Offset, Space S, class T, std::size_t Align>
Reg<s8> header_s8(const Ptr<S, T, Align>& block, const Index& pair, const Reg<u32>& second) {
  return parts::load(at<s8, Offset>(block) + (pair * 2 + second));
}
// A block of which several fields of bytes are read that all begin at the same place in a word: what realigns
// one realigns all.
template <Space S, class T, std::size_t Align>
auto realigned(const Ptr<S, T, Align>& block) {
  if constexpr (S == Space::kShared && Align == 2) {
    return parts::realign(block);
  } else {
    return block;
  }
}
inline const parts::Realigned& realigned(const parts::Realigned& block) {
  return block;
}
// The pointer to the quantised values.
template <Space S, class T, std::size_t Align>
const Ptr<S, T, Align>& quants_of(const Ptr<S, T, Align>& block) {
  return block;
}

// A block's d and dmin in one word, as d and m.
inline std::array<Reg<f32>, 2> d_and_m(const Reg<u32>& word) {
  const auto [d, dmin] = unpack(bitcast<f16x2>(word));
  return {cvt<f32>(d), -cvt<f32>(dmin)};
}

}  // namespace ptxgen::formats
