// atom and red (PTX ISA, "Parallel Synchronization and Communication Instructions").
//
// The lanes of a warp execute one after the other, lowest first. Global memory is updated with the host's
// atomics, so CTAs on different workers never lose an update; each CTA's shared memory belongs to one worker.
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/combine.h"
#include "src/emulator/lanes.h"

namespace ptxgen::emulator {
namespace {

// PTX ISA, "atom" and "red": .add.f32 flushes subnormal inputs and results to sign-preserving zero on global
// memory and does not on shared memory. What atom returns is the value as it was. An f64 NaN stays as it is
// on global memory, the operand's before the cell's; on shared memory the cell's counts first.
struct AddGlobal {
  static float apply(float old, float b) { return flush(Add::apply(flush(old), flush(b))); }
  static double apply(double old, double b) { return is_nan(b) ? b : is_nan(old) ? old : Add::apply(old, b); }
};
struct AddShared {
  template <class T>
  static T apply(T old, T b) {
    return Add::apply(b, old);
  }
};
struct Exch {
  template <class T>
  static T apply(T, T b) {
    return b;
  }
};
// PTX ISA: inc wraps to 0 at b; dec wraps to b at 0 and above b.
struct Inc {
  template <class T>
  static T apply(T old, T b) {
    return old >= b ? T{0} : static_cast<T>(old + 1);
  }
};
struct Dec {
  template <class T>
  static T apply(T old, T b) {
    return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
};
struct Cas {
  template <class T>
  static T apply(T old, T compare, T value) {
    return old == compare ? value : old;
  }
};
// Both halves of a pair; PTX guarantees atomicity of each half only.
template <class H>
struct AddPair {
  template <class T>
  static T apply(T old, T b) {
    const auto half = [&](unsigned shift) {
      return std::uint32_t{
          Add::apply(H{static_cast<std::uint16_t>(old >> shift)}, H{static_cast<std::uint16_t>(b >> shift)})
              .bits};
    };
    return half(0) | half(16) << 16;
  }
};

template <class F, class T, class... Operands>
T update(std::byte* at, Operands... operands) {
  auto* word = reinterpret_cast<BitsOf<T>*>(at);
  BitsOf<T> seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const T result = F::apply(std::bit_cast<T>(seen), operands...);
    if (__atomic_compare_exchange_n(word, &seen, to_bits(result), false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      return std::bit_cast<T>(seen);
    }
  }
}

template <class F, class T>
void atomic(Warp& warp, const Op& op, LaneMask mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    const std::uint64_t address = lane_address(warp, op, lane);
    std::byte* at = locate(warp, op, lane, address, sizeof(T), AccessKind::kAtomic).data;
    if (!at) return;
    const T b = warp.lanes<T>(op.src[1])[lane];
    T old;
    if constexpr (std::is_same_v<F, Cas>) {
      old = update<F, T>(at, b, warp.lanes<T>(op.src[2])[lane]);
    } else if constexpr (std::is_same_v<F, Add> && std::is_floating_point_v<T>) {
      old =
          space_of(op, address) == Space::kGlobal ? update<AddGlobal, T>(at, b) : update<AddShared, T>(at, b);
    } else {
      old = update<F, T>(at, b);
    }
    if (op.dst_count != 0) warp.lanes<T>(op.dst[0])[lane] = old;
  }
}

template <class F, class... Ts>
Execute atomic_of(Type t) {
  return by_type<Ts...>(t, [](auto tag) -> Execute { return &atomic<F, typename decltype(tag)::type>; });
}

struct Operation {
  std::string_view name;
  Execute (*select)(Type);
  bool extra_operand = false;  // cas has two
};

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

Execute select_add(Type t) {
  if (t == Type::kF16x2) return &atomic<AddPair<f16>, u32>;
  if (t == Type::kBf16x2) return &atomic<AddPair<bf16>, u32>;
  return atomic_of<Add, u32, s32, u64, s64, float, double, f16, bf16>(t);
}

constexpr Operation kOperations[] = {
    {"add", select_add},
    {"min", atomic_of<Min, u32, s32, u64, s64>},
    {"max", atomic_of<Max, u32, s32, u64, s64>},
    {"and", atomic_of<And, u32, u64>},
    {"or", atomic_of<Or, u32, u64>},
    {"xor", atomic_of<Xor, u32, u64>},
    {"exch", atomic_of<Exch, u32, u64>},
    {"inc", atomic_of<Inc, u32>},
    {"dec", atomic_of<Dec, u32>},
    {"cas", atomic_of<Cas, std::uint16_t, u32, u64>, true},
};

constexpr TypeSet kAtomicTypes =
    types(Type::kB16, Type::kB32, Type::kB64, Type::kU32, Type::kU64, Type::kS32, Type::kS64, Type::kF32,
          Type::kF64, Type::kF16, Type::kBf16, Type::kF16x2, Type::kBf16x2);

void decode(Decoder& d, bool returns) {
  const std::uint32_t flags = decode_semantics(d) | kStrong;
  const Space space = d.space().value_or(Space::kGeneric);
  if (space != Space::kGeneric && space != Space::kGlobal && space != Space::kShared &&
      space != Space::kCluster)
    d.fail("atomics are on .global and .shared memory");
  const int which =
      d.expect_one({"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"}, "an operation");
  const bool noftz = d.accept("noftz");
  const bool hint = d.accept("L2::cache_hint");
  const Type t = d.type(kAtomicTypes);
  if (d.failed()) return;
  if (noftz != (is_float(t) && bits(t) <= 32 && t != Type::kF32)) {
    return d.fail(noftz ? ".noftz is for the half types" : "this atomic needs .noftz");
  }
  const Operation& operation = kOperations[which];
  if (!returns && (operation.extra_operand || operation.name == "exch"))
    return d.fail("red has no exch and no cas");
  const std::size_t values = operation.extra_operand ? 2 : 1, first = returns ? 1 : 0;
  d.expect_operands(first + 1 + values + hint);
  if (d.failed()) return;
  const AddressOperand address = d.address(d.operand(first), space);
  std::vector<Slot> dst, src = {address.slot};
  for (std::size_t i = 0; i < values; ++i) src.push_back(d.src(first + 1 + i, t));
  if (hint) src.push_back(d.src(first + 1 + values, Type::kB64));
  if (returns) dst.push_back(d.dst(0, t));
  note_access(d, space, bits(t) / 8);
  Op& op = d.emit(operation.select(t), std::move(dst), std::move(src));
  set_access(op, address, space, AccessKind::kAtomic, bits(t) / 8);
  op.flags = flags;
}

void decode_atom(Decoder& d) {
  decode(d, true);
}
void decode_red(Decoder& d) {
  d.accept("async");  // unsupported forms fail on what follows
  decode(d, false);
}

constexpr Mnemonic kMnemonics[] = {{"atom", decode_atom}, {"red", decode_red}};

}  // namespace

absl::Span<const Mnemonic> atomic_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
