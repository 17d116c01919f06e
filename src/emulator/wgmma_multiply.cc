// The arithmetic of wgmma.mma_async and the decoding of its four instructions (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Multiply-Accumulate Instructions").
#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <memory>

#include "src/emulator/decode.h"
#include "src/emulator/matrix.h"
#include "src/emulator/matrix_descriptor.h"
#include "src/emulator/mma_numerics.h"
#include "src/emulator/text.h"
#include "src/emulator/wgmma.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kMostDepth = 32, kMostColumns = 256;

// log2 of the bytes of an element in shared memory.
unsigned shift_of(Type type) {
  return static_cast<unsigned>(std::countr_zero(bits(type) / 8));
}

// A line of a matrix along k.
template <class Element>
using Line = std::array<Element, kMostDepth>;

template <class Element>
void read_matrix(const Warp& warp, std::uint64_t descriptor, bool mn_major, unsigned first, unsigned count,
                 unsigned depth, Type type, Line<Element>* lines, Element (*make)(std::uint32_t, Type)) {
  const SharedMatrix matrix(descriptor, mn_major);
  const unsigned shift = shift_of(type);
  const std::byte* const shared = warp.cta->shared.data() + warp.cta->shared_at();
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned k = 0; k < depth; ++k) {
      std::uint32_t value = 0;
      std::memcpy(&value, shared + matrix.address(first + i, k, shift), 1u << shift);
      lines[i][k] = make(value, type);
    }
  }
}

// PTX ISA, "Register Fragments for wgmma.mma_async": as a of an mma.m16n8 with as many bytes along k.
template <class Element>
void read_registers(const Warp& warp, const Slot* slots, Type type, Line<Element>* lines,
                    Element (*make)(std::uint32_t, Type)) {
  const unsigned width = bits(type), per = 32 / width;
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
  for (unsigned r = 0; r < 4; ++r) {
    const std::uint32_t* values = warp.lanes<const std::uint32_t>(slots[r]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      for (unsigned e = 0; e < per; ++e) {
        lines[lane / 4 + 8 * (r % 2)][(r / 2 * 4 + lane % 4) * per + e] =
            make(values[lane] >> (e * width) & mask, type);
      }
    }
  }
}

// What both operands hold.
template <class Element>
struct Factors {
  Line<Element> a[kWgmmaRows];
  Line<Element> b[kMostColumns];

  Factors(const Warp& warp, const WgmmaInFlight& m, const WgmmaForm& form,
          Element (*make)(std::uint32_t, Type)) {
    const unsigned depth = form.depth();
    if (form.a_in_shared) {
      read_matrix(warp, m.a, form.a_m_major, warp.index % kWarpgroup * kWgmmaRows, kWgmmaRows, depth, form.a,
                  a, make);
    } else {
      read_registers(warp, m.op->src, form.a, a, make);
    }
    read_matrix(warp, m.b, form.b_n_major, 0, form.n, depth, form.b, b, make);
  }
};

// d = f(row, column, c) for every element of the warp's accumulators.
template <class F>
void accumulate(Warp& warp, const WgmmaInFlight& m, Type type, F&& f) {
  const unsigned width = bits(type), per = 32 / width;
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
  for (unsigned r = 0; r < m.op->dst_count; ++r) {
    std::uint32_t* values = warp.lanes<std::uint32_t>(m.op->dst[r]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      std::uint32_t result = 0;
      for (unsigned e = 0; e < per; ++e) {
        const unsigned i = r * per + e, row = lane / 4 + 8 * (i / 2 % 2),
                       column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const std::uint32_t c = m.accumulate ? values[lane] >> (e * width) & mask : 0;
        result |= f(row, column, c) << (e * width);
      }
      values[lane] = result;
    }
  }
}

void multiply_integers(Warp& warp, const WgmmaInFlight& m, const WgmmaForm& form) {
  const auto factors = std::make_unique<Factors<std::int32_t>>(warp, m, form, &mma_integer);
  accumulate(warp, m, Type::kS32, [&](unsigned row, unsigned column, std::uint32_t c) {
    std::int32_t sum = 0;  // at most 32 * 255 * 255
    for (unsigned k = 0; k < form.depth(); ++k) sum += factors->a[row][k] * factors->b[column][k];
    return add_integer(c, sum, form.satfinite);
  });
}

void negate(Line<Factor>* lines, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    for (Factor& f : lines[i]) {
      f.significand = -f.significand;
      f.special = -f.special;
    }
  }
}

void multiply_floats(Warp& warp, const WgmmaInFlight& m, const WgmmaForm& form) {
  const auto factors = std::make_unique<Factors<Factor>>(warp, m, form, &mma_factor);
  if (form.negate_a) negate(factors->a, kWgmmaRows);
  if (form.negate_b) negate(factors->b, form.n);
  MmaFormats formats{mma_format(form.a), mma_format(form.b), mma_format(form.d)};
  if (form.depth() > formats.block) formats.block = 32, formats.fraction_bits = 13;  // 8-bit floats
  accumulate(warp, m, form.d, [&](unsigned row, unsigned column, std::uint32_t c) {
    return fused_dot(factors->a[row].data(), factors->b[column].data(), form.depth(), c, formats);
  });
}

// ---- the instructions ----

// The value of a register that all lanes must share.
template <class T>
bool uniform(Warp& warp, const Op& op, Slot slot, std::string_view what, T& value) {
  const T* values = warp.lanes<const T>(slot);
  value = values[0];
  for (unsigned lane = 1; lane < kWarpSize; ++lane) {
    if (values[lane] == value) continue;
    warp.fault(
        op, lane,
        str_cat("the lanes of a warp give different ", what, ": ", hex(value), " and ", hex(values[lane])));
    return false;
  }
  return true;
}

bool descriptor(Warp& warp, const Op& op, Slot slot, std::string_view matrix, std::uint64_t& value) {
  if (!uniform(warp, op, slot, str_cat("descriptors of ", matrix), value)) return false;
  if (const std::uint64_t unknown = value & ~kDescriptorBits) {
    warp.fault(op, 0,
               str_cat("the descriptor ", hex(value), " of ", matrix, " sets bits that mean nothing: ",
                       hex(unknown), "; those that do are ", hex(kDescriptorBits)));
    return false;
  }
  return true;
}

// The pieces of 16 bytes of lines `first` to `first + count`.
void add_pieces(std::uint64_t descriptor, bool mn_major, unsigned first, unsigned count, Type type,
                std::vector<std::uint32_t>& pieces) {
  const SharedMatrix matrix(descriptor, mn_major);
  const unsigned shift = shift_of(type), along = 16u >> shift, depth = kWgmmaBytes >> shift;
  for (unsigned i = 0; i < count; i += mn_major ? along : 1) {
    for (unsigned k = 0; k < depth; k += mn_major ? 1 : along) {
      pieces.push_back(static_cast<std::uint32_t>(matrix.address(first + i, k, shift)));
    }
  }
}

void mma_async(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  const WgmmaForm form = WgmmaForm::of(op);
  WgmmaInFlight m{.op = &op};
  const Slot* scale = &op.src[op.src_count - 1];
  if (form.a_in_shared && !descriptor(warp, op, op.src[0], "a", m.a)) return;
  if (!descriptor(warp, op, scale[-1], "b", m.b)) return;
  const LaneMask scale_d = warp.predicate(*scale);
  if (scale_d != 0 && scale_d != kAllLanes) {
    return warp.fault(
        op, 0, str_cat("the lanes of a warp give different scale-d: it is true in ", lane_list(scale_d)));
  }
  m.accumulate = scale_d != 0;
  if (form.a_in_shared) {
    add_pieces(m.a, form.a_m_major, warp.index % kWarpgroup * kWgmmaRows, kWgmmaRows, form.a, m.pieces);
  }
  add_pieces(m.b, form.b_n_major, 0, form.n, form.b, m.pieces);
  warp.cta->wgmma->issue(warp, std::move(m));
}

void fence(Warp& warp, const Op& op, LaneMask mask) {
  if (whole_warp(warp, op, mask)) warp.cta->wgmma->fence(warp, op);
}
void commit_group(Warp& warp, const Op& op, LaneMask mask) {
  if (whole_warp(warp, op, mask)) warp.cta->wgmma->commit(warp, op);
}
// Op::immediate: how many groups may stay pending.
void wait_group(Warp& warp, const Op& op, LaneMask mask) {
  if (whole_warp(warp, op, mask)) warp.cta->wgmma->wait(warp, op, op.immediate);
}

// ---- decoding ----

struct Variant {
  unsigned k;
  TypeSet factors, accumulators;
  bool mixed, transposed;  // a and b of two types; MN-major
};
constexpr Variant kVariants[] = {
    {16, only(Type::kF16), types(Type::kF16, Type::kF32), false, true},
    {16, only(Type::kBf16), only(Type::kF32), false, true},
    {8, only(Type::kTf32), only(Type::kF32), false, false},
    {32, types(Type::kE4m3, Type::kE5m2), types(Type::kF16, Type::kF32), true, false},
    {32, types(Type::kU8, Type::kS8), only(Type::kS32), true, false},
};

// "m64n128k16"; false when it is none.
bool parse_shape(std::string_view text, unsigned& n, unsigned& k) {
  if (text.substr(0, 4) != "m64n") return false;
  const char* const end = text.data() + text.size();
  const auto columns = std::from_chars(text.data() + 4, end, n);
  if (columns.ec != std::errc() || columns.ptr == end || *columns.ptr != 'k') return false;
  const auto depth = std::from_chars(columns.ptr + 1, end, k);
  return depth.ec == std::errc() && depth.ptr == end;
}

bool has_columns(unsigned n, bool integers) {
  return n >= 8 && n <= kMostColumns && n % 8 == 0 && (!integers || n <= 32 || n % 16 == 0);
}

void decode_shape(Decoder& d, unsigned& n, unsigned& k) {
  for (const std::string_view modifier : d.modifiers()) {
    if (parse_shape(modifier, n, k)) {
      d.accept(modifier);
      return;
    }
  }
  d.fail("wgmma.mma_async needs a shape: .m64nNk8, .m64nNk16 or .m64nNk32");
}

std::vector<Slot> register_vector(Decoder& d, std::size_t at, std::size_t count, bool written) {
  std::vector<Slot> slots;
  if (d.operand(at).kind != Operand::Kind::kVector || d.elements(at).size() != count) {
    d.fail(str_cat("operand ", at + 1, " of ", d.spelling(), " is a vector of ", count, " registers"));
    return slots;
  }
  for (const Operand& element : d.elements(at)) {
    if (element.kind != Operand::Kind::kRegister)
      d.fail(str_cat("'", element.name, "' where a register is expected"));
    const Type type = d.declared(element) == Type::kF32 ? Type::kF32 : Type::kB32;
    slots.push_back(written ? d.dst(element, type) : d.src(element, type));
  }
  return slots;
}

// A literal that is one of two.
bool decode_choice(Decoder& d, std::size_t at, std::string_view what, std::int32_t no, std::int32_t yes) {
  const auto value = static_cast<std::int32_t>(d.constant(d.operand(at), what));
  if (value != no && value != yes) d.fail(str_cat(what, " is ", no, " or ", yes, ", not ", value));
  return value == yes;
}

void decode_mma_async(Decoder& d) {
  WgmmaForm form;
  unsigned k = 0;
  decode_shape(d, form.n, k);
  form.satfinite = d.accept("satfinite");
  TypeSet factors = 0, accumulators = 0;
  for (const Variant& v : kVariants) {
    if (v.k != k) continue;
    factors |= v.factors;
    accumulators |= v.accumulators;
  }
  if (d.failed()) return;
  form.d = d.type(accumulators);
  form.a = d.type(factors);
  form.b = d.type(factors);
  if (d.failed()) return;
  const Variant* variant = std::find_if(std::begin(kVariants), std::end(kVariants), [&](const Variant& v) {
    return v.k == k && (v.factors & only(form.a)) && (v.factors & only(form.b)) &&
           (v.accumulators & only(form.d)) && (v.mixed || form.a == form.b);
  });
  const bool integers = form.d == Type::kS32;
  if (variant == std::end(kVariants) || !has_columns(form.n, integers) || (form.satfinite && !integers)) {
    return d.fail(str_cat(d.spelling(),
                          " does not exist: n is 8 to 256 in steps of 8 (of 16 above 32 for s32), "
                          "and the types are those of one row of the PTX ISA"));
  }
  form.a_in_shared = d.count() > 1 && d.operand(1).kind != Operand::Kind::kVector;
  d.expect_operands(integers ? 4 : variant->transposed ? 7 + form.a_in_shared : 6);
  if (d.failed()) return;
  if (!integers) {
    form.negate_a = decode_choice(d, 4, "imm-scale-a", 1, -1);
    form.negate_b = decode_choice(d, 5, "imm-scale-b", 1, -1);
  }
  if (variant->transposed) {
    if (form.a_in_shared) form.a_m_major = decode_choice(d, 6, "imm-trans-a", 0, 1);
    form.b_n_major = decode_choice(d, 6 + form.a_in_shared, "imm-trans-b", 0, 1);
  }
  std::vector<Slot> dst = register_vector(d, 0, form.n * bits(form.d) / 64, true), src;
  if (form.a_in_shared) {
    src.push_back(d.src(1, Type::kB64));
  } else {
    src = register_vector(d, 1, 4, false);
  }
  src.push_back(d.src(2, Type::kB64));
  src.push_back(d.src(3, Type::kPred));
  Op& op = d.emit(&mma_async, std::move(dst), std::move(src));
  op.in_flight = true;
  form.pack(op);
}

void decode_wgmma(Decoder& d) {
  const int which = d.expect_one({"mma_async", "fence", "commit_group", "wait_group"}, "an action");
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("wgmma needs .sync.aligned");
  d.code().has_async = true;
  d.code().has_wgmma = true;
  d.shared_access(16);
  if (which == 0) return decode_mma_async(d);
  d.expect_operands(which == 3);
  if (d.failed()) return;
  if (which == 3) {
    const std::uint64_t groups = d.constant(d.operand(0), "a number of groups");
    d.emit(&wait_group, {}, {}).immediate = std::min<std::uint64_t>(groups, ~std::uint32_t{0});
  } else {
    d.emit(which == 1 ? &fence : &commit_group, {}, {});
  }
}

constexpr Mnemonic kMnemonics[] = {{"wgmma", decode_wgmma}};

}  // namespace

void WgmmaForm::pack(Op& op) const {
  op.mode = n;
  op.flags = static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b) << 8 |
             static_cast<std::uint32_t>(d) << 16;
  op.immediate =
      a_in_shared | satfinite << 1 | negate_a << 2 | negate_b << 3 | a_m_major << 4 | b_n_major << 5;
}

WgmmaForm WgmmaForm::of(const Op& op) {
  const auto type = [&](unsigned at) { return static_cast<Type>(op.flags >> at & 0xff); };
  const auto bit = [&](unsigned at) { return (op.immediate >> at & 1) != 0; };
  return {op.mode, type(0), type(8), type(16), bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)};
}

void multiply(Warp& warp, const WgmmaInFlight& m) {
  const WgmmaForm form = WgmmaForm::of(*m.op);
  warp.cta->traffic.shared_read += m.pieces.size() * 16;
  form.d == Type::kS32 ? multiply_integers(warp, m, form) : multiply_floats(warp, m, form);
}

absl::Span<const Mnemonic> wgmma_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
