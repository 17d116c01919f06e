// wmma.load, wmma.mma, wmma.store on f16 (PTX ISA, "Matrix multiply-accumulate operation using wmma
// instructions").
//
// Which lane holds which element PTX leaves open. Here a lane holds `per` elements of the tile in a line,
// lanes in their order: of a and b in the order of their memory, so that a fragment used in another layout
// than it was loaded in gives a wrong product, as on a GPU; of accumulators in rows. Where 32 lanes hold more
// than the tile has, it is repeated.
#include <algorithm>
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/decode.h"
#include "src/emulator/matrix.h"
#include "src/emulator/mma_numerics.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kDepth = 16, kMostElements = 512, kChunkBytes = 16;

struct Shape {
  unsigned m, n;
};
constexpr Shape kShapes[] = {{16, 16}, {32, 8}, {8, 32}};  // k is 16
enum Matrix : unsigned { kA, kB, kC };

// Op::mode: shape, matrix, layout of the memory (of a), layout of b, whether elements have 32 bits.
struct Mode {
  unsigned shape, matrix;
  bool column, column_b, wide;

  std::uint32_t pack() const {
    return shape | matrix << 2 | unsigned{column} << 4 | unsigned{column_b} << 5 | unsigned{wide} << 6;
  }
  static Mode of(const Op& op) {
    return {op.mode & 3, op.mode >> 2 & 3, (op.mode >> 4 & 1) != 0, (op.mode >> 5 & 1) != 0,
            (op.mode >> 6 & 1) != 0};
  }
  unsigned rows() const { return matrix == kB ? kDepth : kShapes[shape].m; }
  unsigned columns() const { return matrix == kA ? kDepth : kShapes[shape].n; }
  unsigned elements() const { return rows() * columns(); }
  unsigned element_bytes() const { return wide ? 4 : 2; }
  unsigned registers() const { return matrix == kC && !wide ? 4 : 8; }
  unsigned per_lane() const { return registers() * 4 / element_bytes(); }
};

// The tile's elements in the order of the lanes.
using Line = std::uint32_t[kMostElements];

void gather(const Warp& warp, const Slot* slots, const Mode& mode, Line& line) {
  const unsigned per_register = 4 / mode.element_bytes();
  for (unsigned i = 0; i < mode.elements(); ++i) {
    const unsigned lane = i / mode.per_lane(), e = i % mode.per_lane();
    const std::uint32_t word = warp.lanes<const std::uint32_t>(slots[e / per_register])[lane];
    line[i] = mode.wide ? word : word >> (16 * (e % 2)) & 0xffff;
  }
}

void scatter(Warp& warp, const Slot* slots, const Mode& mode, const Line& line) {
  const unsigned per_register = 4 / mode.element_bytes();
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    for (unsigned r = 0; r < mode.registers(); ++r) {
      const unsigned i = (lane * mode.per_lane() + r * per_register) % mode.elements();
      warp.lanes<std::uint32_t>(slots[r])[lane] = mode.wide ? line[i] : line[i] | line[i + 1] << 16;
    }
  }
}

// Where the element that stands at `i` in memory order stands in the lanes' order.
unsigned lane_order(const Mode& mode, unsigned i) {
  if (mode.matrix != kC || !mode.column) return i;
  return i % mode.rows() * mode.columns() + i / mode.rows();
}

// Address and stride, the same in all lanes and aligned; false after a fault.
bool uniform_tile(Warp& warp, const Op& op, const Mode& mode, std::uint64_t& address, std::uint64_t& stride) {
  const Slot stride_slot = op.src[op.src_count - 1];
  address = lane_address(warp, op, 0);
  stride = warp.lanes<const std::uint32_t>(stride_slot)[0];
  for (unsigned lane = 1; lane < kWarpSize; ++lane) {
    if (lane_address(warp, op, lane) == address &&
        warp.lanes<const std::uint32_t>(stride_slot)[lane] == stride)
      continue;
    warp.fault(op, lane, "the lanes of a warp give different addresses or strides of one tile");
    return false;
  }
  stride *= mode.element_bytes();
  // PTX ISA, "Matrix Storage for WMMA": the tile begins at a multiple of a lane's share of it. CUDA C++
  // Programming Guide, "Warp Matrix Functions": lines are 16 bytes apart or a multiple.
  const unsigned alignment = mode.registers() * 4;
  if (address % alignment != 0 || stride % kChunkBytes != 0) {
    warp.fault(op, 0,
               str_cat("the tile at address ", hex(address), " has lines ", stride,
                       " bytes apart; it must begin at a multiple of ", alignment,
                       " bytes and lines be multiples of ", kChunkBytes, " bytes apart"));
    return false;
  }
  return true;
}

// f(lane, data, first element of the chunk in memory order, located) for each 16 bytes of the tile, taken by
// the lanes in turn; false when there is nothing more to do.
template <class F>
bool for_each_chunk(Warp& warp, const Op& op, const Mode& mode, AccessKind kind, F&& f) {
  std::uint64_t address, stride;
  if (!uniform_tile(warp, op, mode, address, stride)) return false;
  const unsigned length = mode.column ? mode.rows() : mode.columns();  // elements of a line
  const unsigned per_chunk = kChunkBytes / mode.element_bytes();
  for (unsigned first = 0; first < mode.elements(); first += per_chunk) {
    const unsigned lane = first / per_chunk % kWarpSize;
    const std::uint64_t at = address + first / length * stride + first % length * mode.element_bytes();
    const Space space = space_of(op, at);
    if (space != Space::kShared && space != Space::kGlobal) {
      warp.fault(op, lane, str_cat("the address ", hex(at), " is neither in global nor in shared memory"));
      return false;
    }
    const Located located = locate(warp, op, lane, at, kChunkBytes, kind);
    if (!located.data) return false;
    if (located.conflict) {
      fault_race(warp, op, lane, warp.cta->shared.offset_of(located.data), kChunkBytes, true,
                 *located.conflict);
      return false;
    }
    for (unsigned i = 0; i < per_chunk; ++i) f(first + i, located.data + i * mode.element_bytes());
  }
  return true;
}

void wmma_load(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  const Mode mode = Mode::of(op);
  Line line = {};
  if (for_each_chunk(warp, op, mode, AccessKind::kRead, [&](unsigned i, const std::byte* data) {
        std::memcpy(&line[lane_order(mode, i)], data, mode.element_bytes());
      })) {
    scatter(warp, op.dst, mode, line);
  }
}

void wmma_store(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  const Mode mode = Mode::of(op);
  Line line;
  gather(warp, op.src + 1, mode, line);
  for_each_chunk(warp, op, mode, AccessKind::kWrite, [&](unsigned i, std::byte* data) {
    std::memcpy(data, &line[lane_order(mode, i)], mode.element_bytes());
  });
}

void wmma_mma(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  Mode a_mode = Mode::of(op), b_mode = a_mode, c_mode = a_mode;
  a_mode.matrix = kA, b_mode.matrix = kB, c_mode.matrix = kC;
  a_mode.wide = b_mode.wide = false;
  Line a, b, c, d;
  gather(warp, op.src, a_mode, a);
  gather(warp, op.src + a_mode.registers(), b_mode, b);
  gather(warp, op.src + a_mode.registers() + b_mode.registers(), c_mode, c);
  const unsigned m = c_mode.rows(), n = c_mode.columns();
  Factor rows[kMostElements], columns[kMostElements];  // [m][k], [n][k]
  for (unsigned k = 0; k < kDepth; ++k) {
    for (unsigned i = 0; i < m; ++i)
      rows[i * kDepth + k] = factor(a[a_mode.column ? k * m + i : i * kDepth + k], kF16);
    for (unsigned i = 0; i < n; ++i)
      columns[i * kDepth + k] = factor(b[b_mode.column_b ? i * kDepth + k : k * n + i], kF16);
  }
  const MmaFormats formats{kF16, kF16, c_mode.wide ? kF32 : kF16};
  for (unsigned i = 0; i < m * n; ++i) {
    d[i] = fused_dot(&rows[i / n * kDepth], &columns[i % n * kDepth], kDepth, c[i], formats);
  }
  scatter(warp, op.dst, c_mode, d);
}

// ---- decoding ----

bool decode_layout(Decoder& d) {
  return d.expect_one({"row", "col"}, "a layout") == 1;
}
unsigned decode_shape(Decoder& d) {
  return static_cast<unsigned>(d.expect_one({"m16n16k16", "m32n8k16", "m8n32k16"}, "a shape"));
}

absl::Span<const Operand> registers_of(Decoder& d, std::size_t i, const Mode& mode) {
  if (d.operand(i).kind != Operand::Kind::kVector || d.elements(i).size() != mode.registers()) {
    d.fail(
        str_cat("operand ", i + 1, " of ", d.spelling(), " is a vector of ", mode.registers(), " registers"));
  }
  return d.elements(i);
}
void append(Decoder& d, absl::Span<const Operand> elements, std::vector<Slot>& slots) {
  for (const Operand& element : elements) slots.push_back(d.src(element, Type::kB32));
}
std::vector<Slot> results(Decoder& d, const Mode& mode) {
  std::vector<Slot> slots;
  for (const Operand& element : registers_of(d, 0, mode)) slots.push_back(d.dst(element, Type::kB32));
  return slots;
}

void decode_memory(Decoder& d, bool store) {
  Mode mode{};
  mode.matrix = store ? kC : static_cast<unsigned>(d.expect_one({"a", "b", "c"}, "a matrix"));
  if (store && !d.accept("d")) d.fail("wmma.store stores .d");
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("wmma needs .sync.aligned");
  mode.column = decode_layout(d);
  mode.shape = decode_shape(d);
  const Space space = d.space().value_or(Space::kGeneric);
  mode.wide = d.type(mode.matrix == kC ? types(Type::kF16, Type::kF32) : only(Type::kF16)) == Type::kF32;
  d.expect_operands(2, 3);
  if (d.failed()) return;
  note_access(d, space, kChunkBytes);
  const AddressOperand address = d.address(d.operand(store ? 0 : 1), space);
  std::vector<Slot> dst, src = {address.slot};
  if (store) {
    append(d, registers_of(d, 1, mode), src);
  } else {
    dst = results(d, mode);
  }
  // Without a stride the lines lie one after another.
  src.push_back(d.count() == 3 ? d.src(2, Type::kB32)
                               : d.constant_slot(Type::kB32, mode.column ? mode.rows() : mode.columns()));
  Op& op = d.emit(store ? &wmma_store : &wmma_load, std::move(dst), std::move(src));
  set_address(op, address, space);
  op.mode = mode.pack();
}

void decode_mma(Decoder& d) {
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("wmma needs .sync.aligned");
  Mode mode{};
  mode.matrix = kC;
  mode.column = d.spelling().find(".aligned.col.") != std::string::npos;  // a's layout stands first
  d.accept(mode.column ? "col" : "row");
  mode.column_b = decode_layout(d);
  mode.shape = decode_shape(d);
  const Type result = d.type(types(Type::kF16, Type::kF32)), c = d.type(types(Type::kF16, Type::kF32));
  if (result != c) d.fail("the emulator knows wmma.mma with d and c of one type");
  mode.wide = c == Type::kF32;
  d.expect_operands(4);
  if (d.failed()) return;
  Mode factors = mode;
  factors.matrix = kA;
  factors.wide = false;
  std::vector<Slot> src;
  append(d, registers_of(d, 1, factors), src);
  append(d, registers_of(d, 2, factors), src);
  append(d, registers_of(d, 3, mode), src);
  std::vector<Slot> dst = results(d, mode);
  d.emit(&wmma_mma, std::move(dst), std::move(src)).mode = mode.pack();
}

void decode_wmma(Decoder& d) {
  switch (d.expect_one({"load", "store", "mma"}, "an action")) {
    case 0: return decode_memory(d, false);
    case 1: return decode_memory(d, true);
    default: return decode_mma(d);
  }
}

constexpr Mnemonic kMnemonics[] = {{"wmma", decode_wmma}};

}  // namespace

absl::Span<const Mnemonic> wmma_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
