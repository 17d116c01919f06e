// mma.sync (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
#include <algorithm>
#include <bit>

#include "src/emulator/decode.h"
#include "src/emulator/matrix.h"
#include "src/emulator/mma_numerics.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kMostRows = 16, kMostDepth = 32, kColumns = 8;

struct Shape {
  unsigned m, k;  // n is 8
};

// Op::mode: m | k << 8. Op::flags: types of a, b and the accumulator, a byte each, and .satfinite.
constexpr std::uint32_t kSatfinite = 1u << 31;
Shape shape_of(const Op& op) {
  return {op.mode & 0xff, op.mode >> 8};
}
Type type_at(const Op& op, unsigned position) {
  return static_cast<Type>(op.flags >> (8 * position) & 0x3f);
}

// Bits of an element of a or b. Accumulators have 32, but f16 has 16.
unsigned width(Type type) {
  return bits(type);
}
unsigned registers(unsigned elements, Type type) {
  return elements * width(type) / (32 * kWarpSize);
}

// An element of a fragment as the register that holds it in each lane, and where in it.
template <class F>
void for_each_element(const Warp& warp, const Slot* slots, unsigned count, Type type, F&& f) {
  const unsigned w = width(type), per = 32 / w;
  const std::uint32_t mask = static_cast<std::uint32_t>((std::uint64_t{1} << w) - 1);
  for (unsigned r = 0; r < count; ++r) {
    const std::uint32_t* values = warp.lanes<const std::uint32_t>(slots[r]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      for (unsigned e = 0; e < per; ++e) f(lane, r, e, values[lane] >> (e * w) & mask);
    }
  }
}

// PTX ISA, "Matrix Fragments for mma.m8n8k16" to "mma.m16n8k32", all of one pattern: with g = lane / 4, t =
// lane % 4 and E elements to a register, registers of a go down the rows in steps of 8 and then along k in
// steps of 4E; those of b along k in steps of 4E.
template <class Element, class Make>
void gather_a(const Warp& warp, const Slot* slots, Shape shape, Type type,
              Element (&a)[kMostRows][kMostDepth], Make make) {
  const unsigned per = 32 / width(type), down = shape.m / 8;
  for_each_element(warp, slots, registers(shape.m * shape.k, type), type,
                   [&](unsigned lane, unsigned r, unsigned e, std::uint32_t bits) {
                     a[lane / 4 + 8 * (r % down)][r / down * 4 * per + lane % 4 * per + e] = make(bits, type);
                   });
}
// b[column][k]
template <class Element, class Make>
void gather_b(const Warp& warp, const Slot* slots, Shape shape, Type type, Element (&b)[kColumns][kMostDepth],
              Make make) {
  const unsigned per = 32 / width(type);
  for_each_element(warp, slots, registers(kColumns * shape.k, type), type,
                   [&](unsigned lane, unsigned r, unsigned e, std::uint32_t bits) {
                     b[lane / 4][r * 4 * per + lane % 4 * per + e] = make(bits, type);
                   });
}

// d = f(row, column, c) for every element of the accumulators: rows g and g + 8, columns 2t and 2t + 1.
template <class F>
void accumulate(Warp& warp, const Op& op, const Slot* slots, Type type, F&& f) {
  const unsigned w = width(type), per = 32 / w;
  std::uint32_t results[4][kWarpSize] = {};
  for_each_element(warp, slots, op.dst_count, type,
                   [&](unsigned lane, unsigned r, unsigned e, std::uint32_t c) {
                     const unsigned i = r * per + e;
                     results[r][lane] |= f(lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2, c) << (e * w);
                   });
  for (unsigned r = 0; r < op.dst_count; ++r) {
    std::copy_n(results[r], kWarpSize, warp.lanes<std::uint32_t>(op.dst[r]));
  }
}

void mma_on_integers(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  const Shape shape = shape_of(op);
  const Type a_type = type_at(op, 0), b_type = type_at(op, 1);
  std::int32_t a[kMostRows][kMostDepth], b[kColumns][kMostDepth];
  const Slot* b_slots = op.src + registers(shape.m * shape.k, a_type);
  const Slot* c_slots = b_slots + registers(kColumns * shape.k, b_type);
  gather_a(warp, op.src, shape, a_type, a, mma_integer);
  gather_b(warp, b_slots, shape, b_type, b, mma_integer);
  accumulate(warp, op, c_slots, Type::kS32, [&](unsigned row, unsigned column, std::uint32_t c) {
    std::int32_t sum = 0;  // at most 32 * 255 * 255
    for (unsigned k = 0; k < shape.k; ++k) sum += a[row][k] * b[column][k];
    return add_integer(c, sum, (op.flags & kSatfinite) != 0);
  });
}

void mma_on_floats(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  const Shape shape = shape_of(op);
  const Type a_type = type_at(op, 0), b_type = type_at(op, 1), c_type = type_at(op, 2);
  Factor a[kMostRows][kMostDepth], b[kColumns][kMostDepth];
  const Slot* b_slots = op.src + registers(shape.m * shape.k, a_type);
  const Slot* c_slots = b_slots + registers(kColumns * shape.k, b_type);
  gather_a(warp, op.src, shape, a_type, a, mma_factor);
  gather_b(warp, b_slots, shape, b_type, b, mma_factor);
  const MmaFormats formats{mma_format(a_type), mma_format(b_type), mma_format(c_type)};
  accumulate(warp, op, c_slots, c_type, [&](unsigned row, unsigned column, std::uint32_t c) {
    return fused_dot(a[row], b[column], shape.k, c, formats);
  });
}

// ---- decoding ----

struct Variant {
  unsigned m, k;
  TypeSet factors, accumulators;
};
constexpr TypeSet kBytes = types(Type::kU8, Type::kS8), kFp8 = types(Type::kE4m3, Type::kE5m2);
constexpr Variant kVariants[] = {
    {8, 16, kBytes, only(Type::kS32)},
    {16, 16, kBytes, only(Type::kS32)},
    {16, 32, kBytes, only(Type::kS32)},
    {16, 8, only(Type::kF16), types(Type::kF16, Type::kF32)},
    {16, 16, only(Type::kF16), types(Type::kF16, Type::kF32)},
    {16, 8, only(Type::kBf16), only(Type::kF32)},
    {16, 16, only(Type::kBf16), only(Type::kF32)},
    {16, 4, only(Type::kTf32), only(Type::kF32)},
    {16, 8, only(Type::kTf32), only(Type::kF32)},
    {16, 32, kFp8, types(Type::kF16, Type::kF32)},
};

// The `count` registers of operand i.
void append_sources(Decoder& d, std::size_t i, unsigned count, std::vector<Slot>& slots) {
  const absl::Span<const Operand> elements = d.elements(i);
  if (elements.size() != count || d.operand(i).kind != Operand::Kind::kVector) {
    return d.fail(str_cat("operand ", i + 1, " of ", d.spelling(), " is a vector of ", count, " registers"));
  }
  for (const Operand& element : elements) slots.push_back(d.src(element, Type::kB32));
}

void decode_mma(Decoder& d) {
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("mma needs .sync.aligned");
  constexpr std::pair<unsigned, unsigned> kShapes[] = {{8, 16}, {16, 4}, {16, 8}, {16, 16}, {16, 32}};
  const std::pair<unsigned, unsigned> shape =
      kShapes[d.expect_one({"m8n8k16", "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32"}, "a shape")];
  const unsigned m = shape.first, k = shape.second;
  if (!d.accept("row") || !d.accept("col") || d.spelling().find(".row.col") == std::string::npos) {
    d.fail("mma of this shape needs .row.col");
  }
  const bool satfinite = d.accept("satfinite");
  TypeSet factors = 0, accumulators = 0;
  for (const Variant& v : kVariants) {
    if (v.m != m || v.k != k) continue;
    factors |= v.factors;
    accumulators |= v.accumulators;
  }
  const Type result = d.type(accumulators), a = d.type(factors), b = d.type(factors),
             c = d.type(accumulators);
  d.expect_operands(4);
  if (d.failed()) return;
  const auto fits = [&](const Variant& v) {
    return v.m == m && v.k == k && (v.factors & only(a)) && (v.factors & only(b)) &&
           (v.accumulators & only(c));
  };
  const bool integers = c == Type::kS32;
  if (result != c || (satfinite && !integers) ||
      std::none_of(std::begin(kVariants), std::end(kVariants), fits)) {
    return d.fail(str_cat(d.spelling(), " is not an instruction of the emulator"));
  }
  std::vector<Slot> dst, src;
  append_sources(d, 1, registers(m * k, a), src);
  append_sources(d, 2, registers(kColumns * k, b), src);
  append_sources(d, 3, registers(m * kColumns, c), src);
  const absl::Span<const Operand> results = d.elements(0);
  if (results.size() != registers(m * kColumns, c)) d.fail("d has as many registers as c");
  for (const Operand& element : results) dst.push_back(d.dst(element, Type::kB32));
  Op& op = d.emit(integers ? &mma_on_integers : &mma_on_floats, std::move(dst), std::move(src));
  op.mode = m | k << 8;
  op.flags = static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b) << 8 |
             static_cast<std::uint32_t>(c) << 16 | (satfinite ? kSatfinite : 0);
}

constexpr Mnemonic kMnemonics[] = {{"mma", decode_mma}};

}  // namespace

bool whole_warp(Warp& warp, const Op& op, LaneMask mask) {
  const auto lane = static_cast<unsigned>(std::countr_zero(mask));
  if (const LaneMask skipped = warp.current.lanes & ~mask) {
    warp.fault(op, lane,
               str_cat("all lanes of a warp execute this together, but the predicate is false in ",
                       lane_list(skipped), " of warp ", warp.index));
    return false;
  }
  if (const LaneMask absent = ~warp.live) {
    const LaneMask never = ~warp.existing;
    warp.fault(op, lane,
               str_cat("all 32 lanes of a warp execute this together, but ", lane_list(absent), " of warp ",
                       warp.index,
                       never ? " do not exist: the number of threads is no multiple of 32" : " have exited"));
    return false;
  }
  return warp.converge(mask, kAllLanes);
}

absl::Span<const Mnemonic> mma_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
