// The types a kernel computes with. Each is also the host type that holds one such value in memory, so a
// struct of arguments or a buffer is declared with the same names as the kernel that reads it.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ptxgen {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;
using pred = bool;

// Floating types without arithmetic on the host: bit patterns.
struct f16 {
  u16 bits;
  bool operator==(const f16&) const = default;
};
struct bf16 {
  u16 bits;
  bool operator==(const bf16&) const = default;
};
// Packed pairs; the element at the lower address is in the lower half.
struct alignas(4) f16x2 {
  f16 low, high;
  bool operator==(const f16x2&) const = default;
};
struct alignas(4) bf16x2 {
  bf16 low, high;
  bool operator==(const bf16x2&) const = default;
};
struct e4m3x2 {
  u16 bits;
  bool operator==(const e4m3x2&) const = default;
};
struct e5m2x2 {
  u16 bits;
  bool operator==(const e5m2x2&) const = default;
};
// Elements of matrices: the tensor cores compute with them, no other instruction does. tf32 is an f32 whose low
// 13 bits do not count.
struct tf32 {
  u32 bits;
  bool operator==(const tf32&) const = default;
};
struct e4m3 {
  u8 bits;
  bool operator==(const e4m3&) const = default;
};
struct e5m2 {
  u8 bits;
  bool operator==(const e5m2&) const = default;
};

// A barrier object in shared memory (PTX ISA 9.7.13, "mbarrier"); its bits mean nothing to a kernel, which
// names it by SharedPtr<MBarrier> alone.
struct alignas(8) MBarrier {
  u64 opaque;
};

// What tensor copies know of a tensor in global memory (PTX ISA 5.5.8, "Tensor-map"; CUDA's CUtensorMap): made
// by Device::encode_tensor_map for that device alone, passed to a kernel by value, opaque to both.
struct alignas(64) TensorMap {
  std::array<u64, 16> opaque;
};

// The same types as values, for the instruction table, the verifier and the printer.
enum class Type : u8 {
  kPred,
  kU8,
  kS8,
  kU16,
  kS16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kBf16,
  kF16x2,
  kBf16x2,
  kF32,
  kF64,
  kE4m3x2,
  kE5m2x2,
  kTf32,
  kE4m3,
  kE5m2,
  kNone,
};

struct TypeInfo {
  std::string_view name;    // in an arithmetic instruction: "f16x2"
  std::string_view memory;  // in ld and st, which know no packed or 16-bit floating types: "b32"
  std::string_view bits;    // in untyped instructions: "b32"; bytes live in 16-bit registers
  u8 bytes;
};

inline constexpr std::array<TypeInfo, 21> kTypeInfo = {{
    {"pred", "pred", "pred", 1},
    {"u8", "u8", "b16", 1},
    {"s8", "s8", "b16", 1},
    {"u16", "u16", "b16", 2},
    {"s16", "s16", "b16", 2},
    {"u32", "u32", "b32", 4},
    {"s32", "s32", "b32", 4},
    {"u64", "u64", "b64", 8},
    {"s64", "s64", "b64", 8},
    {"f16", "b16", "b16", 2},
    {"bf16", "b16", "b16", 2},
    {"f16x2", "b32", "b32", 4},
    {"bf16x2", "b32", "b32", 4},
    {"f32", "f32", "b32", 4},
    {"f64", "f64", "b64", 8},
    {"e4m3x2", "b16", "b16", 2},
    {"e5m2x2", "b16", "b16", 2},
    {"tf32", "b32", "b32", 4},
    {"e4m3", "b8", "b16", 1},
    {"e5m2", "b8", "b16", 1},
    {"none", "none", "none", 0},
}};

constexpr const TypeInfo& info(Type type) {
  return kTypeInfo[static_cast<std::size_t>(type)];
}

// Sets of types, as the instruction table writes them: kU32 | kS32.
struct TypeSet {
  u32 bits = 0;
  constexpr bool contains(Type type) const { return (bits >> static_cast<u32>(type)) & 1; }
  constexpr TypeSet operator|(TypeSet other) const { return {bits | other.bits}; }
};

namespace type_sets {
constexpr TypeSet of(Type type) {
  return {1u << static_cast<u32>(type)};
}
inline constexpr TypeSet kPred = of(Type::kPred), kU8 = of(Type::kU8), kS8 = of(Type::kS8),
                         kU16 = of(Type::kU16), kS16 = of(Type::kS16), kU32 = of(Type::kU32),
                         kS32 = of(Type::kS32), kU64 = of(Type::kU64), kS64 = of(Type::kS64),
                         kF16 = of(Type::kF16), kBf16 = of(Type::kBf16), kF16x2 = of(Type::kF16x2),
                         kBf16x2 = of(Type::kBf16x2), kF32 = of(Type::kF32), kF64 = of(Type::kF64),
                         kE4m3x2 = of(Type::kE4m3x2), kE5m2x2 = of(Type::kE5m2x2),
                         kTf32 = of(Type::kTf32), kE4m3 = of(Type::kE4m3), kE5m2 = of(Type::kE5m2);
inline constexpr TypeSet kI16 = kU16 | kS16, kI32 = kU32 | kS32, kI64 = kU64 | kS64,
                         kInt = kI16 | kI32 | kI64, kSigned = kS16 | kS32 | kS64, kFloat = kF32 | kF64,
                         kHalf = kF16 | kF16x2, kBrain = kBf16 | kBf16x2, kFp8 = kE4m3x2 | kE5m2x2,
                         kMemory = kU8 | kS8 | kInt | kFloat | kHalf | kBrain | kFp8,
                         kB32 = kI32 | kF32 | kF16x2 | kBf16x2, kB64 = kI64 | kF64,
                         kB16 = kI16 | kF16 | kBf16 | kFp8, kI8 = kU8 | kS8, kF8 = kE4m3 | kE5m2,
                         kTile16 = kU16 | kF16 | kBf16,  // what a tile of 8x8 16-bit elements may hold ...
                         kTile = kTile16 | kI8 | kF8 | kU32 | kS32 | kF32 | kTf32;  // ... and 16 bytes of a row
}  // namespace type_sets

// The Type of a C++ type; only the types above have one.
template <class T>
inline constexpr Type type_of = Type::kNone;
template <>
inline constexpr Type type_of<pred> = Type::kPred;
template <>
inline constexpr Type type_of<u8> = Type::kU8;
template <>
inline constexpr Type type_of<s8> = Type::kS8;
template <>
inline constexpr Type type_of<u16> = Type::kU16;
template <>
inline constexpr Type type_of<s16> = Type::kS16;
template <>
inline constexpr Type type_of<u32> = Type::kU32;
template <>
inline constexpr Type type_of<s32> = Type::kS32;
template <>
inline constexpr Type type_of<u64> = Type::kU64;
template <>
inline constexpr Type type_of<s64> = Type::kS64;
template <>
inline constexpr Type type_of<f16> = Type::kF16;
template <>
inline constexpr Type type_of<bf16> = Type::kBf16;
template <>
inline constexpr Type type_of<f16x2> = Type::kF16x2;
template <>
inline constexpr Type type_of<bf16x2> = Type::kBf16x2;
template <>
inline constexpr Type type_of<f32> = Type::kF32;
template <>
inline constexpr Type type_of<f64> = Type::kF64;
template <>
inline constexpr Type type_of<e4m3x2> = Type::kE4m3x2;
template <>
inline constexpr Type type_of<e5m2x2> = Type::kE5m2x2;
template <>
inline constexpr Type type_of<tf32> = Type::kTf32;
template <>
inline constexpr Type type_of<e4m3> = Type::kE4m3;
template <>
inline constexpr Type type_of<e5m2> = Type::kE5m2;

template <class T>
concept DeviceType = type_of<T>
!= Type::kNone;

template <class T>
concept DeviceInt = DeviceType<T> && type_sets::kInt.contains(type_of<T>);

// Types with a host literal: everything but the bit-pattern types.
template <class T>
concept HostArithmetic = std::is_arithmetic_v<T>;

}  // namespace ptxgen
