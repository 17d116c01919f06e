// ldmatrix, stmatrix (PTX ISA, "Warp-level matrix load instruction", "Warp-level matrix store instruction").
//
// A tile is 8 rows of 8 16-bit elements; lane 8i + r gives the address of row r of tile i. Register i of a
// lane holds two elements of tile i: 2t and 2t + 1 of row g, with g = lane / 4 and t = lane % 4, or with
// .trans of column g.
#include <algorithm>
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/decode.h"
#include "src/emulator/matrix.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr unsigned kRows = 8, kRowBytes = 16;
using Element = std::uint16_t;
using Tile = Element[kRows][kRows];

// Op::mode of both.
enum Mode : std::uint32_t { kPlain, kTransposed };

// The element that is half `half` of the lane's register.
Element& element(Tile& tile, unsigned lane, unsigned half, std::uint32_t mode) {
  const unsigned along = lane % 4 * 2 + half, group = lane / 4;
  return mode == kTransposed ? tile[along][group] : tile[group][along];
}

// The row whose address `lane` gives; null after a fault. `address` is set for messages.
Located locate_row(Warp& warp, const Op& op, unsigned lane, AccessKind kind, std::uint64_t& address) {
  address = lane_address(warp, op, lane);
  if (space_of(op, address) != Space::kShared) {
    warp.fault(op, lane, str_cat("the row's address ", hex(address), " is not in shared memory"));
    return {};
  }
  const std::uint64_t offset = op.space == Space::kGeneric ? address - kSharedWindow : address;
  if (shared_place(*warp.cta, offset).rank != warp.cta->rank) {
    warp.fault(op, lane,
               str_cat("the row's address ", hex(address), " is not in the CTA's own shared memory"));
    return {};
  }
  return locate(warp, op, lane, address, kRowBytes, kind);
}

void ldmatrix(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  std::uint32_t results[4][kWarpSize];
  for (unsigned i = 0; i < op.dst_count; ++i) {
    Tile tile;
    for (unsigned row = 0; row < kRows; ++row) {
      std::uint64_t address;
      const Located at = locate_row(warp, op, kRows * i + row, AccessKind::kRead, address);
      if (!at.data) return;
      std::memcpy(tile[row], at.data, kRowBytes);
    }
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      results[i][lane] = element(tile, lane, 0, op.mode) | std::uint32_t{element(tile, lane, 1, op.mode)}
                                                               << 16;
    }
  }
  for (unsigned i = 0; i < op.dst_count; ++i) {
    std::copy_n(results[i], kWarpSize, warp.lanes<std::uint32_t>(op.dst[i]));
  }
}

void stmatrix(Warp& warp, const Op& op, LaneMask mask) {
  if (!whole_warp(warp, op, mask)) return;
  for (unsigned i = 0; i + 1u < op.src_count; ++i) {
    const std::uint32_t* values = warp.lanes<const std::uint32_t>(op.src[i + 1]);
    Tile tile;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      element(tile, lane, 0, op.mode) = static_cast<Element>(values[lane]);
      element(tile, lane, 1, op.mode) = static_cast<Element>(values[lane] >> 16);
    }
    for (unsigned row = 0; row < kRows; ++row) {
      const unsigned lane = kRows * i + row;
      std::uint64_t address;
      const Located at = locate_row(warp, op, lane, AccessKind::kWrite, address);
      if (!at.data) return;
      // Two rows of one instruction may fall together when they are equal, as lanes of a store may.
      const bool same_instruction = at.conflict && at.conflict->earlier_writes &&
                                    at.conflict->earlier.instruction == op.instruction &&
                                    at.conflict->earlier.thread / kWarpSize == warp.slot;
      if (at.conflict && !(same_instruction && std::memcmp(at.data, tile[row], kRowBytes) == 0)) {
        return fault_race(warp, op, lane, warp.cta->shared.offset_of(at.data), kRowBytes, true, *at.conflict);
      }
      std::memcpy(at.data, tile[row], kRowBytes);
    }
  }
}

// The modifiers of both; the number of tiles.
unsigned decode_tiles(Decoder& d, Space& space, std::uint32_t& mode) {
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("it needs .sync.aligned");
  if (!d.accept("m8n8")) d.fail("the emulator knows the shape .m8n8 only");
  const unsigned tiles = 1u << d.expect_one({"x1", "x2", "x4"}, "a number of tiles");
  mode = d.accept("trans") ? kTransposed : kPlain;
  space = d.space().value_or(Space::kGeneric);
  if (space != Space::kShared && space != Space::kGeneric) d.fail("tiles lie in shared memory");
  d.type(only(Type::kB16));
  d.expect_operands(2);
  note_access(d, space, kRowBytes);
  return tiles;
}

absl::Span<const Operand> tile_registers(Decoder& d, std::size_t i, unsigned tiles) {
  if (d.operand(i).kind != Operand::Kind::kVector || d.elements(i).size() != tiles) {
    d.fail(str_cat("operand ", i + 1, " of ", d.spelling(), " is a vector of ", tiles, " registers"));
  }
  return d.elements(i);
}

// Each tile's eight rows are at the addresses of eight lanes.
LaneMask row_lanes(unsigned tiles) {
  return tiles == 4 ? kAllLanes : (LaneMask{1} << (8 * tiles)) - 1;
}

void decode_ldmatrix(Decoder& d) {
  Space space;
  std::uint32_t mode;
  const unsigned tiles = decode_tiles(d, space, mode);
  const absl::Span<const Operand> registers = tile_registers(d, 0, tiles);
  if (d.failed()) return;
  std::vector<Slot> dst;
  for (const Operand& r : registers) dst.push_back(d.dst(r, Type::kB32));
  const AddressOperand address = d.address(d.operand(1), space);
  Op& op = d.emit(&ldmatrix, std::move(dst), {address.slot});
  set_access(op, address, space, AccessKind::kRead, kRowBytes);
  op.access_lanes = row_lanes(tiles);
  op.mode = mode;
}

void decode_stmatrix(Decoder& d) {
  Space space;
  std::uint32_t mode;
  const unsigned tiles = decode_tiles(d, space, mode);
  const absl::Span<const Operand> registers = tile_registers(d, 1, tiles);
  if (d.failed()) return;
  const AddressOperand address = d.address(d.operand(0), space);
  std::vector<Slot> src = {address.slot};
  for (const Operand& r : registers) src.push_back(d.src(r, Type::kB32));
  Op& op = d.emit(&stmatrix, {}, std::move(src));
  set_access(op, address, space, AccessKind::kWrite, kRowBytes);
  op.access_lanes = row_lanes(tiles);
  op.mode = mode;
}

constexpr Mnemonic kMnemonics[] = {{"ldmatrix", decode_ldmatrix}, {"stmatrix", decode_stmatrix}};

}  // namespace

absl::Span<const Mnemonic> matrix_load_mnemonics() {
  return kMnemonics;
}

}  // namespace ptxgen::emulator
