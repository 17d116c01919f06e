// Operations from functions on one lane's values.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "src/emulator/machine.h"
#include "src/emulator/numerics.h"

namespace ptxgen::emulator {

// Writes `values` to the register of the lanes in `mask`.
template <class T>
inline void store_lanes(Warp& warp, Slot slot, const T (&values)[kWarpSize], LaneMask mask) {
  T* out = warp.lanes<T>(slot);
  if (mask == kAllLanes) {
    std::memcpy(out, values, sizeof(values));
    return;
  }
  for (; mask != 0; mask &= mask - 1) {
    const int lane = std::countr_zero(mask);
    out[lane] = values[lane];
  }
}

// F::apply on the values of each lane. An F that depends on the instruction takes the Op first. Lanes that
// are not active are computed too, on whatever they hold, and thrown away, so F is defined for every value.
template <class F, class Signature>
struct Map;

template <class F, class Result, class... Args>
struct Map<F, Result(Args...)> {
  static void run(Warp& warp, const Op& op, LaneMask mask) {
    run(warp, op, mask, std::index_sequence_for<Args...>{});
  }

 private:
  template <std::size_t... I>
  static void run(Warp& warp, const Op& op, LaneMask mask, std::index_sequence<I...>) {
    Result result[kWarpSize];
    const std::tuple<const Args*...> in = {warp.lanes<const Args>(op.src[I])...};
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if constexpr (requires { F::apply(op, Args{}...); }) {
        result[lane] = F::apply(op, std::get<I>(in)[lane]...);
      } else {
        result[lane] = F::apply(std::get<I>(in)[lane]...);
      }
    }
    store_lanes(warp, op.dst[0], result, mask);
  }
};

template <class F, class Signature>
inline constexpr Execute map = &Map<F, Signature>::run;

// The same for a function that yields a truth value, into a predicate.
template <class F, class... Args>
LaneMask test_lanes(const Warp& warp, const Op& op) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const std::tuple<const Args*...> in = {warp.lanes<const Args>(op.src[I])...};
    LaneMask result = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      result |= LaneMask{F::apply(op, std::get<I>(in)[lane]...)} << lane;
    }
    return result;
  }
  (std::index_sequence_for<Args...>{});
}

inline void store_predicate(Warp& warp, Slot slot, LaneMask values, LaneMask mask) {
  LaneMask& out = warp.predicate(slot);
  out = (out & ~mask) | (values & mask);
}

struct Bits128 {
  std::uint64_t low, high;
};

template <class T>
struct Tag {
  using type = T;
};

// The C++ type that represents a PTX type; untyped bits count as unsigned.
template <class T>
constexpr bool represents(Type type) {
  switch (type) {
    case Type::kB8:
    case Type::kU8: return std::is_same_v<T, std::uint8_t>;
    case Type::kS8: return std::is_same_v<T, std::int8_t>;
    case Type::kB16:
    case Type::kU16: return std::is_same_v<T, std::uint16_t>;
    case Type::kB32:
    case Type::kU32: return std::is_same_v<T, std::uint32_t>;
    case Type::kB64:
    case Type::kU64: return std::is_same_v<T, std::uint64_t>;
    case Type::kB128: return std::is_same_v<T, Bits128>;
    case Type::kS16: return std::is_same_v<T, std::int16_t>;
    case Type::kS32: return std::is_same_v<T, std::int32_t>;
    case Type::kS64: return std::is_same_v<T, std::int64_t>;
    case Type::kF16: return std::is_same_v<T, f16>;
    case Type::kBf16: return std::is_same_v<T, bf16>;
    case Type::kF32: return std::is_same_v<T, float>;
    case Type::kF64: return std::is_same_v<T, double>;
    default: return false;
  }
}

// make(Tag<T>{}) for the T among Ts that represents `type`; null when none does.
template <class... Ts, class Make>
Execute by_type(Type type, Make make) {
  Execute result = nullptr;
  ((represents<Ts>(type) && (result = make(Tag<Ts>{}), true)) || ...);
  return result;
}

}  // namespace ptxgen::emulator
