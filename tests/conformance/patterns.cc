#include "tests/conformance/patterns.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ptxgen::testing {
namespace {

// splitmix64 of a position: no state, so that one case's operands do not depend on another's.
u64 mixed(u64 x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

struct Random {
  u64 state;
  u64 next() { return mixed(state++); }
  u64 below(u64 n) { return next() % n; }
};

struct FloatFields {
  unsigned exponent = 0, mantissa = 0;  // bits; no exponent: no float
  u64 bias() const { return (u64{1} << (exponent - 1)) - 1; }
  u64 top() const { return (u64{1} << exponent) - 1; }
  u64 mask() const { return (u64{1} << mantissa) - 1; }
  u64 bits(bool negative, u64 e, u64 m) const {
    return u64{negative} << (exponent + mantissa) | std::min(e, top()) << mantissa | (m & mask());
  }
};

FloatFields fields_of(Type type) {
  switch (type) {
    case Type::kF16: return {5, 10};
    case Type::kBf16: return {8, 7};
    case Type::kF32:
    case Type::kTf32: return {8, 23};
    case Type::kF64: return {11, 52};
    case Type::kE4m3: return {4, 3};
    case Type::kE5m2: return {5, 2};
    default: return {};
  }
}

u64 all_ones(Type type) {
  const unsigned bytes = info(type).bytes;
  return type == Type::kPred ? 1 : bytes == 8 ? ~u64{0} : (u64{1} << (8 * bytes)) - 1;
}

// Zeros, subnormals, both sides of 1 and of the powers of two at which integers end, the largest, infinity,
// NaN.
std::vector<u64> float_edges(const FloatFields& f) {
  const u64 b = f.bias(), half = u64{1} << (f.mantissa - 1);
  std::vector<u64> edges;
  const auto both = [&](u64 e, u64 m) {
    edges.push_back(f.bits(false, e, m));
    edges.push_back(f.bits(true, e, m));
  };
  both(0, 0), both(0, 1), both(0, f.mask()), both(1, 0), both(b - 1, 0), both(b - 1, f.mask()), both(b, 0),
      both(b, 1);
  both(b, half), both(b + 1, half), both(b + 2, half / 2), both(f.top() - 1, f.mask()), both(f.top(), 0);
  both(f.top(), half), both(f.top(), 1);
  for (const u64 power : {u64{7}, u64{8}, u64{15}, u64{16}, u64{31}, u64{32}, u64{63}, u64{64}}) {
    if (b + power < f.top()) both(b + power, 0), both(b + power - 1, f.mask());
  }
  return edges;
}

std::vector<u64> integer_edges(Type type) {
  const u64 ones = all_ones(type);
  std::vector<u64> edges = {0,
                            1,
                            2,
                            3,
                            7,
                            8,
                            15,
                            16,
                            31,
                            32,
                            33,
                            63,
                            64,
                            127,
                            128,
                            255,
                            256,
                            0x7fff,
                            ones,
                            ones >> 1,
                            (ones >> 1) + 1,
                            ones - 1,
                            ones - 2,
                            0x5555555555555555,
                            0xaaaaaaaaaaaaaaaa,
                            0x0123456789abcdef};
  for (u64& edge : edges) edge &= ones;
  return edges;
}

std::vector<u64> edges_of(Type type) {
  const FloatFields f = fields_of(type);
  return f.exponent ? float_edges(f) : integer_edges(type);
}

// A value of no great size: what most kernels compute with.
u64 moderate(Type type, Random& random) {
  const FloatFields f = fields_of(type);
  if (f.exponent) return f.bits(random.below(2), f.bias() + random.below(9) - 4, random.next());
  return (random.below(200) - 100) & all_ones(type);
}

// Operand `position` of pattern `index`. `first` is operand 0 of the same pattern, if it has the same type.
u64 operand(Type type, const std::vector<u64>& edges, u64 position, u64 index, const u64* first,
            Random& random) {
  const u64 n = edges.size();
  if (index < n * n) return edges[(position == 0 ? index : position == 1 ? index / n : random.next()) % n];
  switch (random.below(5)) {
    case 0: return edges[random.below(n)];
    case 1: return moderate(type, random);
    case 2:  // the first operand, or close to it, or its negative
      if (first) {
        const u64 sign = (all_ones(type) >> 1) + 1;
        return ((*first ^ (random.below(2) ? sign : 0)) + random.below(5) - 2) & all_ones(type);
      }
      [[fallthrough]];
    default: return random.next() & all_ones(type);
  }
}

// ---- Matrices: the elements of one warp are of one kind, or their sum would be that of the largest ----

enum Kind : u64 { kWhole, kNear, kWide, kAny, kSparse, kCancelling, kTiny, kSpecial, kKinds };

u64 float_element(const FloatFields& f, u64 kind, u64 place, Random& random) {
  const u64 b = f.bias(), half = u64{1} << (f.mantissa - 1);
  const bool negative = random.below(2);
  const u64 mantissa = random.next();
  const auto around = [&](u64 reach) {  // exponents within `reach` of 1's, as far as there are
    const u64 span = std::min(reach, b - 1);
    return b - span + random.below(2 * span + 1);
  };
  switch (kind) {
    case kWhole:
      return random.below(8) == 0 ? 0 : f.bits(negative, b + random.below(3), random.below(2) * half);
    case kNear: return f.bits(negative, around(2), mantissa);
    case kWide: return f.bits(negative, around(10), mantissa);
    case kSparse: return random.below(5) ? 0 : f.bits(negative, around(10), mantissa);
    case kCancelling: return f.bits(place % 2, b + random.below(2), random.below(4) ? half : mantissa);
    case kTiny: return f.bits(negative, random.below(4), mantissa);
    case kSpecial:
      return random.below(100) ? f.bits(negative, around(2), mantissa)
                               : f.bits(negative, f.top(), mantissa & half);
    default: return f.bits(negative, random.below(f.top()), mantissa);
  }
}

u64 matrix_element(Type type, u64 kind, u64 place, Random& random) {
  const FloatFields f = fields_of(type);
  if (f.exponent) return float_element(f, kind, place, random);
  if (type != Type::kS32) return random.next() & all_ones(type);
  // Accumulators: any, or so large that a product overflows.
  return kind % 2 ? random.next() & 0xffffffff
                  : (u64{random.below(2)} << 31) + 0x7fffffff - random.below(100000);
}

}  // namespace

std::vector<std::byte> conformance_input(const ConformanceCase& c) {
  u64 seed = 0;
  for (const char letter : c.name) seed = mixed(seed ^ static_cast<u64>(letter));
  std::vector<std::vector<u64>> edges;
  for (const LoadedRegister& r : c.registers) edges.push_back(edges_of(r.element));
  std::vector<std::byte> input(std::size_t{c.threads} * c.input_bytes);
  for (u64 thread = 0; thread < c.threads; ++thread) {
    std::vector<u64> firsts;  // the elements of operand 0
    for (u64 position = 0; position < c.registers.size(); ++position) {
      const LoadedRegister& r = c.registers[position];
      const bool same = position > 0 && r.element == c.registers[0].element && r.per == c.registers[0].per;
      u64 word = 0;
      for (u64 e = 0; e < r.per; ++e) {
        Random random{mixed(seed ^ mixed(thread << 24 ^ position << 8 ^ e))};
        const u64 value = c.inputs == Inputs::kMatrix
                              ? matrix_element(r.element, thread / 32 % kKinds, thread + position + e, random)
                              : operand(r.element, edges[position], position, thread + e * 7,
                                        same ? &firsts[e] : nullptr, random);
        if (position == 0) firsts.push_back(value);
        word |= value << (8 * info(r.element).bytes * e);
      }
      std::memcpy(&input[thread * c.input_bytes + 8 * position], &word, sizeof(word));
    }
  }
  return input;
}

}  // namespace ptxgen::testing
