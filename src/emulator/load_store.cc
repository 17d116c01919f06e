// ld, st, ldu, prefetch (PTX ISA, "Data Movement and Conversion Instructions").
#include <algorithm>

#include "src/emulator/access.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

constexpr TypeSet kStored =
    types(Type::kB8, Type::kB16, Type::kB32, Type::kB64, Type::kB128, Type::kU8, Type::kU16, Type::kU32,
          Type::kU64, Type::kS8, Type::kS16, Type::kS32, Type::kS64, Type::kF32, Type::kF64);
constexpr unsigned kMaxAccess = 32;  // bytes: .v8.b32 or .v4.b64

// An element of type M, sign- or zero-extended to the register's R.
template <class M, class R>
void load(Warp& warp, const Op& op, LaneMask mask) {
  const unsigned bytes = static_cast<unsigned>(sizeof(M)) * op.dst_count;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    const Located at = locate(warp, op, lane, lane_address(warp, op, lane), bytes, AccessKind::kRead);
    const std::byte* data = at.data;
    if (!data) return;
    for (unsigned e = 0; at.written && e < op.dst_count; ++e) {
      if (!has_value(at.written + e * sizeof(M), sizeof(M)))
        warp.unwritten.push_back({op.dst[e].id, LaneMask{1} << lane});
    }
    for (unsigned e = 0; e < op.dst_count; ++e, data += sizeof(M)) {
      M value;
      std::memcpy(&value, data, sizeof(M));
      if constexpr (sizeof(M) <= 8) {
        if (op.flags & kStrong) value = __atomic_load_n(reinterpret_cast<const M*>(data), __ATOMIC_ACQUIRE);
      }
      warp.lanes<R>(op.dst[e])[lane] = static_cast<R>(value);
    }
  }
}

// The two lanes of one store overlap in bytes that differ.
template <class M, class R>
bool values_differ(const Warp& warp, const Op& op, unsigned a, unsigned b, unsigned bytes) {
  const auto gather = [&](unsigned lane, std::byte* out) {
    for (unsigned e = 0; e + 1u < op.src_count; ++e) {
      const M value = static_cast<M>(warp.lanes<R>(op.src[e + 1])[lane]);
      std::memcpy(out + e * sizeof(M), &value, sizeof(M));
    }
  };
  std::byte in_a[kMaxAccess], in_b[kMaxAccess];
  gather(a, in_a);
  gather(b, in_b);
  const std::uint64_t at_a = lane_address(warp, op, a), at_b = lane_address(warp, op, b);
  for (std::uint64_t at = std::max(at_a, at_b); at < std::min(at_a, at_b) + bytes; ++at) {
    if (in_a[at - at_a] != in_b[at - at_b]) return true;
  }
  return false;
}

// Whether the conflicting access is this very instruction's, by a lower lane that stores the same bytes.
template <class M, class R>
bool harmless(const Warp& warp, const Op& op, LaneMask mask, unsigned lane, unsigned bytes,
              const AccessConflict& c) {
  const unsigned other = c.earlier.thread % kWarpSize;
  if (!c.earlier_writes || c.earlier.thread / kWarpSize != warp.slot ||
      c.earlier.instruction != op.instruction || other >= lane || !(mask >> other & 1)) {
    return false;
  }
  const std::uint64_t a = lane_address(warp, op, lane), b = lane_address(warp, op, other);
  return std::max(a, b) - std::min(a, b) < bytes && !values_differ<M, R>(warp, op, other, lane, bytes);
}

// R: the register's storage, M: what is stored of it.
template <class M, class R>
void store(Warp& warp, const Op& op, LaneMask mask) {
  const unsigned bytes = static_cast<unsigned>(sizeof(M)) * (op.src_count - 1u);
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = lane_address(warp, op, lane);
    const Located at = locate(warp, op, lane, address, bytes, AccessKind::kWrite);
    if (!at.data) return;
    if (at.conflict && !harmless<M, R>(warp, op, mask, lane, bytes, *at.conflict)) {
      return fault_race(warp, op, lane, warp.cta->shared.offset_of(at.data), bytes, true, *at.conflict);
    }
    for (unsigned e = 0; e + 1u < op.src_count; ++e) {
      const M value = static_cast<M>(warp.lanes<R>(op.src[e + 1])[lane]);
      std::byte* out = at.data + e * sizeof(M);
      if (!(warp.written[op.src[e + 1].id] >> lane & 1)) {
        if (!at.written) return warp.fault_unwritten(op, op.src[e + 1], LaneMask{1} << lane);
        std::memset(at.written + e * sizeof(M), 0, sizeof(M));
      }
      if constexpr (sizeof(M) <= 8) {
        if (op.flags & kStrong) {
          __atomic_store_n(reinterpret_cast<M*>(out), value, __ATOMIC_RELEASE);
          continue;
        }
      }
      std::memcpy(out, &value, sizeof(M));
    }
  }
}

Execute load_of(Type memory, unsigned register_bits) {
  return by_type<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                 std::uint64_t, Bits128>(memory, [&](auto tag) -> Execute {
    using M = typename decltype(tag)::type;
    if constexpr (sizeof(M) <= 2) {
      if (register_bits == 16) return &load<M, std::uint16_t>;
    }
    if constexpr (sizeof(M) <= 4) {
      if (register_bits == 32) return &load<M, std::uint32_t>;
    }
    if constexpr (sizeof(M) == 16) {
      return &load<M, M>;
    } else {
      return &load<M, std::uint64_t>;
    }
  });
}

// The type that moves the same bits: only the width and, for loads, the sign matter.
Type moved_as(Type t) {
  switch (t) {
    case Type::kF32: return Type::kB32;
    case Type::kF64:
    case Type::kS64: return Type::kB64;
    default: return t;
  }
}

unsigned decode_vector(Decoder& d) {
  constexpr unsigned kCounts[] = {1, 2, 4, 8};
  return kCounts[d.accept_one({"v2", "v4", "v8"}) + 1];
}

void check_vector(Decoder& d, unsigned count, std::size_t elements, Type t) {
  if (elements != count) {
    d.fail(count == 1 ? "a vector operand needs .v2, .v4 or .v8"
                      : "the vector operand has another number of elements");
  }
  if (count * bits(t) / 8 > (count == 8 || bits(t) == 64 ? kMaxAccess : 16))
    d.fail("a vector access this wide does not exist");
}

void decode_ld(Decoder& d) {
  const std::uint32_t flags = decode_semantics(d);
  const Space space = d.accessed_space(d.operand(1));
  const bool hint = decode_cache_hints(d);
  if (d.accept("nc") && space != Space::kGlobal) d.fail(".nc loads are from .global");
  d.accept("unified");
  const unsigned count = decode_vector(d);
  const Type t = d.type(kStored), m = moved_as(t);
  d.expect_operands(hint ? 3 : 2);
  const auto results = d.elements(0);
  check_vector(d, count, results.size(), t);
  if (d.failed()) return;
  const AddressOperand address = d.address(d.operand(1), space);
  std::vector<Slot> src = {address.slot};
  if (hint) src.push_back(d.src(2, Type::kB64));
  // Registers may be wider than the element, and the load extends to what they are.
  std::vector<Slot> dst;
  unsigned width = 0;
  for (const Operand& o : results) {
    const unsigned own =
        o.kind == Operand::Kind::kRegister ? std::max(16u, bits(d.declared(o))) : std::max(16u, bits(t));
    if (width != 0 && own != width) d.fail("the registers of a vector load must have one width");
    width = own;
    const Type as = width <= std::max(16u, bits(t)) || is_float(d.declared(o)) ? t
                    : width == 32                                              ? Type::kB32
                                                                               : Type::kB64;
    dst.push_back(d.dst(o, as));
  }
  note_access(d, space, std::min(16u, count * bits(t) / 8));
  Op& op = d.emit(load_of(m, width), std::move(dst), std::move(src));
  set_access(op, address, space, AccessKind::kRead, count * bits(t) / 8);
  op.flags = flags;
}

void decode_st(Decoder& d) {
  const std::uint32_t flags = decode_semantics(d);
  const Space space = d.accessed_space(d.operand(0));
  const bool hint = decode_cache_hints(d);
  const unsigned count = decode_vector(d);
  const Type t = d.type(kStored), m = moved_as(t);
  d.expect_operands(hint ? 3 : 2);
  if (space == Space::kConst || space == Space::kParam) d.fail("the .const and .param spaces are read-only");
  const auto values = d.elements(1);
  check_vector(d, count, values.size(), t);
  if (d.failed()) return;
  const AddressOperand address = d.address(d.operand(0), space);
  std::vector<Slot> src = {address.slot};
  for (const Operand& o : values) src.push_back(d.src(o, t, Fit::kWider));
  note_access(d, space, std::min(16u, count * bits(t) / 8));
  const Execute run = bits(m) == 8    ? &store<std::uint8_t, std::uint16_t>
                      : bits(m) == 16 ? &store<std::uint16_t, std::uint16_t>
                      : bits(m) == 32 ? &store<std::uint32_t, std::uint32_t>
                      : bits(m) == 64 ? &store<std::uint64_t, std::uint64_t>
                                      : &store<Bits128, Bits128>;
  Op& op = d.emit(run, {}, std::move(src));
  set_access(op, address, space, AccessKind::kWrite, count * bits(t) / 8);
  op.takes_unwritten = true;
  op.flags = flags;
}

void nothing(Warp&, const Op&, LaneMask) {}

// A prefetch of any address has no effect, and none is a fault.
void decode_prefetch(Decoder& d) {
  d.space();
  d.expect_one({"L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"},
               "a cache level or .tensormap");
  d.expect_operands(1);
  const AddressOperand address = d.address(d.operand(0), Space::kGeneric);
  d.emit(&nothing, {}, {address.slot});
}

constexpr Mnemonic kMnemonics[] = {
    {"ld", decode_ld},
    {"ldu", decode_ld},
    {"st", decode_st},
    {"prefetch", decode_prefetch},
    {"prefetchu", decode_prefetch},
};

}  // namespace

absl::Span<const Mnemonic> memory_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
