// State spaces and fundamental types of the PTX ISA.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptxgen::emulator {

// kShared is the CTA's own, .shared::cta; kCluster that of any CTA of the cluster, .shared::cluster.
enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kCluster, kConst, kParam, kLocal };

std::string_view name(Space space);

enum class Type : std::uint8_t {
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kTf32,
  kE4m3x2,
  kE5m2x2,
  kS16x2,
  kU16x2,
  kE4m3,
  kE5m2,
};

// Width in bits; 1 for a predicate.
unsigned bits(Type type);
bool is_signed(Type type);
bool is_float(Type type);  // f16, bf16, f32, f64 and their pairs
std::string_view name(Type type);
std::optional<Type> find_type(std::string_view name);  // "u32"

// A set of types, for what an instruction accepts.
using TypeSet = std::uint32_t;
constexpr TypeSet only(Type type) {
  return TypeSet{1} << static_cast<unsigned>(type);
}
template <class... Types>
constexpr TypeSet types(Types... all) {
  return (only(all) | ...);
}

// Where the windows of the other spaces lie in the generic address space; everything else is global memory. A
// window is 2^40 bytes, so an address tells its space.
inline constexpr unsigned kWindowShift = 40;
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << kWindowShift;
inline constexpr std::uint64_t kConstWindow = std::uint64_t{2} << kWindowShift;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{3} << kWindowShift;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{4} << kWindowShift;
inline constexpr std::uint64_t kGlobalBase = std::uint64_t{16} << kWindowShift;

constexpr std::uint64_t window(Space space) {
  switch (space) {
    case Space::kShared:
    case Space::kCluster: return kSharedWindow;
    case Space::kConst: return kConstWindow;
    case Space::kParam: return kParamWindow;
    case Space::kLocal: return kLocalWindow;
    default: return 0;
  }
}

}  // namespace ptxgen::emulator
