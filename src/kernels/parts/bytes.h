// Moving and widening small integers packed in 32-bit words.
#pragma once

#include <array>
#include <vector>

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

// A stretch of memory of N bytes whose address is a multiple of Align: the element type of pointers to
// blocks.
template <std::size_t N>
struct Bytes {
  std::byte bytes[N];
};

// One element, or two or four, by the load of the pointer's state space. What these read nobody writes during
// the launch, so global memory is read through the read-only path.
template <class T, std::size_t Align>
Reg<T> load(const GlobalPtr<const T, Align>& p) {
  return ld_global_nc(p);
}
template <class T, std::size_t Align>
Reg<std::remove_const_t<T>> load(const SharedPtr<T, Align>& p) {
  return ld_shared(p);
}
template <class T, std::size_t Align>
auto load_v2(const GlobalPtr<const T, Align>& p) {
  return ld_global_nc_v2(p);
}
template <class T, std::size_t Align>
auto load_v2(const SharedPtr<T, Align>& p) {
  return ld_shared_v2(p);
}
template <class T, std::size_t Align>
auto load_v4(const GlobalPtr<const T, Align>& p) {
  return ld_global_nc_v4(p);
}
template <class T, std::size_t Align>
auto load_v4(const SharedPtr<T, Align>& p) {
  return ld_shared_v4(p);
}

// Bytes at a 2-byte alignment in shared memory, as the words around them, which overlap, and a byte
// permutation that the address chooses. At odd halves these are one word more than there are of the bytes;
// else the last one is read twice, so that no word is read that has none of them.
struct Realigned {
  SharedPtr<const u32> first, last;  // the words in which one word of the bytes begins and ends
  Reg<u32> select;

  // `index` times `Stride` bytes further on.
  template <std::size_t Stride, class Index>
  Realigned at_index(const Index& index) const {
    static_assert(Stride % 4 == 0, "at the same place in a word");
    const auto moved = [&](const SharedPtr<const u32>& p) {
      return assume_aligned<4>(at<u32>(at<Bytes<Stride>>(p) + index));
    };
    return {moved(first), moved(last), select};
  }
};
// Offsets that differ by whole words share all but the loads.
template <class T>
Realigned realign(const SharedPtr<T, 2>& p) {
  KernelBuilder& k = *p.kernel();
  const s64 in_word = p.offset() & 3;
  const Reg<u32> base(&k, p.base());
  const Reg<u32> address = in_word ? base + static_cast<u32>(in_word) : base;
  const auto word_of = [&](const Reg<u32>& byte) {
    const Reg<u32> word = byte & ~3u;
    return SharedPtr<const u32>(&k, word.id(), p.offset() - in_word);
  };
  return {word_of(address), word_of(address + 2u),
          selp(k.constant<u32>(0x5432), k.constant<u32>(0x3210), (address & 2u) != 0u)};
}
template <u32 Words>
std::array<Reg<u32>, Words> load_realigned(const Realigned& bytes) {
  std::vector<Reg<u32>> raw;
  for (u32 i = 0; i < Words; ++i) raw.push_back(ld_shared(bytes.first + i));
  raw.push_back(ld_shared(bytes.last + (Words - 1)));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Reg<u32>, Words>{prmt(raw[I], raw[I + 1], bytes.select)...};
  }
  (std::make_index_sequence<Words>{});
}

// `Words` 32-bit words at p, in the widest loads that its alignment allows.
template <u32 Words, Space S, class T, std::size_t Align>
std::array<Reg<u32>, Words> load_words(const Ptr<S, T, Align>& p) {
  static_assert(Align >= 2, "ggml blocks are at least 2-byte aligned");
  if constexpr (S == Space::kShared && Align == 2 && Words > 1) return load_realigned<Words>(realign(p));
  constexpr u32 kWords = Align >= 16 && Words % 4 == 0 ? 4 : Align >= 8 && Words % 2 == 0 ? 2 : 1;
  std::vector<Reg<u32>> words;
  const auto vector = [&]<u32 I>(std::integral_constant<u32, I>) {
    if constexpr (kWords == 4) {
      const auto loaded = load_v4(at<u32, 16 * I>(p));
      words.insert(words.end(), loaded.begin(), loaded.end());
    } else if constexpr (kWords == 2) {
      const auto loaded = load_v2(at<u32, 8 * I>(p));
      words.insert(words.end(), loaded.begin(), loaded.end());
    } else if constexpr (Align >= 4) {
      words.push_back(load(at<u32, 4 * I>(p)));
    } else {
      const Reg<u16> low = load(at<u16, 4 * I>(p));
      const Reg<u16> high = load(at<u16, 4 * I + 2>(p));
      words.push_back(pack<u32>(low, high));
    }
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    (vector(std::integral_constant<u32, I>{}), ...);
    return [&]<std::size_t... J>(std::index_sequence<J...>) {
      return std::array<Reg<u32>, Words>{words[J]...};
    }
    (std::make_index_sequence<Words>{});
  }
  (std::make_index_sequence<Words / kWords>{});
}

// 2^23 as bits and as a value. Its last mantissa bit counts ones: a byte put into the pattern makes 2^23 +
// byte, exactly. One permutation, at full rate, where a conversion runs at a quarter of it.
inline constexpr u32 kTwoTo23Bits = 0x4b000000;
inline constexpr f32 kTwoTo23 = 8388608.f;
inline Reg<f32> byte_plus_two_to_23(const Reg<u32>& bytes, u32 i) {
  return bitcast<f32>(prmt(bytes, kTwoTo23Bits, 0x7440u | i));  // from the top: 0x4b, 0, 0, byte i
}

// Byte i of `bytes`, signed or not, minus `bias` as a float, exactly. Flipping the sign bit of a signed byte
// adds 128.
inline Reg<f32> integer_to_f32(const Reg<u32>& bytes, u32 i, u32 bias, bool is_signed) {
  const Reg<u32> unsigned_bytes = is_signed ? bytes ^ 0x80808080u : bytes;
  return byte_plus_two_to_23(unsigned_bytes, i) - (kTwoTo23 + static_cast<f32>(bias + (is_signed ? 128 : 0)));
}

// Bits 0 to 3 of a word, each in bit `to` of its byte.
inline Reg<u32> spread_bits(const Reg<u32>& word, u32 to) {
  constexpr u32 kSevenApart = 0x00204081;  // copies shifted by 0, 7, 14, 21: bit i lands on bit 8 i
  return ((word & 0xfu) * (kSevenApart << to)) & (0x01010101u << to);
}

}  // namespace ptxgen::parts
