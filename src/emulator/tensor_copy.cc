// cp.async.bulk.tensor in tile mode (PTX ISA, "Data Movement and Conversion Instructions: Tensor copy"), and
// the emulator's own 128 bytes of a TensorMap: a GPU's are nobody's business but its driver's.
#include <algorithm>
#include <bit>

#include "src/emulator/access.h"
#include "src/emulator/copying.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kMagic = 0x70616d726f736e65;
constexpr std::size_t kSumAt = 15;

// Told apart from bytes that encode_tensor_map did not make.
std::uint64_t checksum(const TensorMap& map) {
  std::uint64_t sum = kMagic;
  for (std::size_t i = 0; i < kSumAt; ++i) sum = (sum ^ map.opaque[i]) * 0x9e3779b97f4a7c15 + (sum >> 29);
  return sum;
}

// Words: magic; type, rank, swizzle, l2_promotion; address; extents; strides; box and element strides by
// bytes.
constexpr std::size_t kAddressAt = 2, kExtentsAt = 3, kStridesAt = 8, kBoxAt = 12, kElementsAt = 13;

TensorMap encode(const TiledTensor& t) {
  TensorMap map = {};
  map.opaque[0] = kMagic;
  map.opaque[1] = static_cast<std::uint64_t>(t.type) | std::uint64_t{t.rank} << 8 |
                  static_cast<std::uint64_t>(t.swizzle) << 16 | std::uint64_t{t.l2_promotion} << 32;
  map.opaque[kAddressAt] = t.address;
  for (std::uint32_t d = 0; d < t.rank; ++d) {
    map.opaque[kExtentsAt + d] = t.extents[d];
    if (d + 1 < t.rank) map.opaque[kStridesAt + d] = t.strides[d];
    map.opaque[kBoxAt] |= std::uint64_t{t.box[d] - 1} << 8 * d;
    map.opaque[kElementsAt] |= std::uint64_t{t.element_strides[d]} << 8 * d;
  }
  map.opaque[kSumAt] = checksum(map);
  return map;
}

std::optional<TiledTensor> decode(const TensorMap& map) {
  if (map.opaque[0] != kMagic || map.opaque[kSumAt] != checksum(map)) return std::nullopt;
  TiledTensor t;
  t.type = static_cast<ptxgen::Type>(map.opaque[1] & 0xff);
  t.rank = map.opaque[1] >> 8 & 0xff;
  t.swizzle = static_cast<Swizzle>(map.opaque[1] >> 16 & 0xff);
  t.l2_promotion = static_cast<std::uint32_t>(map.opaque[1] >> 32);
  t.address = map.opaque[kAddressAt];
  for (std::uint32_t d = 0; d < t.rank; ++d) {
    t.extents[d] = map.opaque[kExtentsAt + d];
    if (d + 1 < t.rank) t.strides[d] = map.opaque[kStridesAt + d];
    t.box[d] = (map.opaque[kBoxAt] >> 8 * d & 0xff) + 1;
    t.element_strides[d] = map.opaque[kElementsAt] >> 8 * d & 0xff;
  }
  return t;
}

// Where the swizzle puts the 16-byte piece at this address of shared memory. The bits of the 128-byte line (7
// and up) are combined with those of the piece in it (4 and up).
std::uint64_t swizzled(Swizzle swizzle, std::uint64_t address) {
  const std::uint64_t pieces = bytes(swizzle) / 16;
  return pieces == 0 ? address : address ^ (address >> 7 & (pieces - 1)) << 4;
}

// The box at some coordinates, piece by piece.
class Box {
 public:
  using Coordinates = std::array<std::int32_t, TiledTensor::kMaxRank>;

  Box(const TiledTensor& tensor, const Coordinates& at, std::uint64_t shared)
      : tensor_(tensor), at_(at), shared_(shared), element_(info(tensor.type).bytes) {}

  // f(piece, global address): every row of the first dimension, in and out of the tensor; false when f was.
  template <class F>
  bool for_each_piece(F&& f) const {
    std::array<std::uint32_t, TiledTensor::kMaxRank> index = {};
    const std::uint32_t row_bytes = tensor_.box[0] * element_;
    for (std::uint64_t row = 0; row * row_bytes < tensor_.box_bytes(); ++row) {
      std::uint64_t rest = row;
      bool inside = true;
      std::uint64_t address = tensor_.address;
      for (std::uint32_t d = 1; d < tensor_.rank; ++d) {
        index[d] = static_cast<std::uint32_t>(rest % tensor_.moved(d));
        rest /= tensor_.moved(d);
        const std::int64_t c = std::int64_t{at_[d]} + std::int64_t{index[d]} * tensor_.element_strides[d];
        inside &= c >= 0 && static_cast<std::uint64_t>(c) < tensor_.extents[d];
        address += static_cast<std::uint64_t>(c) * tensor_.strides[d - 1];
      }
      if (!for_each_piece_of_row(row * row_bytes, address, inside, f)) return false;
    }
    return true;
  }

 private:
  // A row's elements before, in and after the tensor; 16 bytes at a time where they are swizzled.
  template <class F>
  bool for_each_piece_of_row(std::uint64_t at, std::uint64_t address, bool inside, F&& f) const {
    const std::int64_t first = at_[0], last = first + tensor_.box[0];
    const std::int64_t end = static_cast<std::int64_t>(tensor_.extents[0]);
    const std::int64_t step = tensor_.swizzle == Swizzle::kNone ? tensor_.box[0] : 16 / element_;
    for (std::int64_t chunk = first; chunk < last; chunk += step) {
      const std::int64_t until = chunk + step;
      const std::int64_t low = inside ? std::clamp<std::int64_t>(0, chunk, until) : until;
      const std::int64_t high = inside ? std::clamp<std::int64_t>(end, low, until) : until;
      const std::uint64_t line = shared_ + at + static_cast<std::uint64_t>(chunk - first) * element_;
      const std::uint64_t place = swizzled(tensor_.swizzle, line) - shared_;
      const auto piece = [&](std::int64_t from, std::int64_t to, bool in) {
        if (from == to) return true;
        CopyPiece p;
        p.at = static_cast<std::uint32_t>(place + static_cast<std::uint64_t>(from - chunk) * element_);
        p.bytes = static_cast<std::uint32_t>((to - from) * element_);
        return f(p, in ? address + static_cast<std::uint64_t>(from) * element_ : 0);
      };
      if (!piece(chunk, low, false) || !piece(low, high, true) || !piece(high, until, false)) return false;
    }
    return true;
  }

  const TiledTensor& tensor_;
  const Coordinates& at_;
  const std::uint64_t shared_;
  const std::uint32_t element_;
};

// ---- execution ----

// Op::mode: the rank, and whether the mask of a multicast is there.
constexpr std::uint32_t kRankMask = 7, kMulticast = 8;

// The tensor that the lane's descriptor, at src[0], is of.
std::optional<TiledTensor> read_map(Warp& warp, const Op& op, unsigned lane) {
  constexpr unsigned kHalf = sizeof(TensorMap) / 2;
  const std::uint64_t address = lane_address(warp, op, lane);
  const Space space = space_of(op, address);
  if (space == Space::kShared || space == Space::kLocal) {
    warp.fault(op, lane,
               str_cat("the tensor map at ", hex(address), " lies in .", name(space),
                       " memory; it is a parameter, a constant or in global memory"));
    return std::nullopt;
  }
  TensorMap map;
  for (unsigned half = 0; half < 2; ++half) {
    const Located at = locate(warp, op, lane, address + half * kHalf, kHalf, AccessKind::kRead);
    if (!at.data) return std::nullopt;
    std::memcpy(reinterpret_cast<std::byte*>(&map) + half * kHalf, at.data, kHalf);
  }
  const std::optional<TiledTensor> tensor = decode(map);
  const std::uint32_t rank = op.mode & kRankMask;
  if (!tensor) {
    warp.fault(op, lane,
               str_cat("the 128 bytes at ", hex(address),
                       " are no tensor map that encode_tensor_map of the emulated device has made"));
  } else if (tensor->rank != rank) {
    warp.fault(op, lane, str_cat("copies a box of ", rank, " dimensions; the tensor map has ", tensor->rank));
    return std::nullopt;
  }
  return tensor;
}

// Where a box begins between two pieces of 16 bytes of a row, an H200 stops with an illegal instruction.
std::optional<Box::Coordinates> coordinates(Warp& warp, const Op& op, unsigned lane,
                                            const TiledTensor& tensor, std::size_t first) {
  Box::Coordinates at = {};
  for (std::uint32_t d = 0; d < (op.mode & kRankMask); ++d)
    at[d] = warp.lanes<std::int32_t>(op.src[first + d])[lane];
  const std::int64_t begin = std::int64_t{at[0]} * info(tensor.type).bytes;
  if (begin % 16 == 0) return at;
  warp.fault(op, lane, str_cat("the box begins at byte ", begin, " of a row, which is not a multiple of 16"));
  return std::nullopt;
}

// The pieces of the copy, those of the tensor found in global memory.
bool find_pieces(Copying& c, const TiledTensor& tensor, const Box::Coordinates& at, std::uint64_t stride,
                 bool reads) {
  const Box box(tensor, at, c.copy.shared % stride);
  return box.for_each_piece([&](CopyPiece& piece, std::uint64_t address) {
    if (address != 0) {
      if (!c.global(address, piece.bytes, info(tensor.type).bytes, reads)) return false;
      piece.allocation = c.copy.allocation;
      piece.global = c.copy.global;
    }
    c.copy.pieces.push_back(piece);
    return true;
  });
}

// src: tensor map, destination, mbarrier, coordinates, mask.
void tensor_load(Warp& warp, const Op& op, LaneMask mask) {
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::optional<TiledTensor> tensor = read_map(warp, op, lane);
    if (!tensor) return;
    Copying c(warp, op, lane);
    const auto bytes = static_cast<std::uint32_t>(tensor->box_bytes());
    if (!c.mbarrier(warp.lanes<std::uint64_t>(op.src[2])[lane])) return;
    if (!c.shared(Space::kCluster, warp.lanes<std::uint64_t>(op.src[1])[lane], bytes, 128, "writes")) return;
    if (!c.same_cta()) return;
    const std::uint32_t rank = op.mode & kRankMask;
    const auto at = coordinates(warp, op, lane, *tensor, 3);
    if (!at || !find_pieces(c, *tensor, *at, warp.cta->shared.stride(), true)) return;
    if (op.mode & kMulticast) {
      if (!c.multicast(warp.lanes<std::uint16_t>(op.src[3 + rank])[lane], 128)) return;
      continue;
    }
    if (!c.begin_write(true)) return;
    warp.cta->async->load(c.copy);
  }
}

// src: tensor map, source, coordinates.
void tensor_store(Warp& warp, const Op& op, LaneMask mask) {
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::optional<TiledTensor> tensor = read_map(warp, op, lane);
    if (!tensor) return;
    Copying c(warp, op, lane);
    const auto bytes = static_cast<std::uint32_t>(tensor->box_bytes());
    if (!c.shared(Space::kShared, warp.lanes<std::uint64_t>(op.src[1])[lane], bytes, 128, "reads")) return;
    const auto at = coordinates(warp, op, lane, *tensor, 2);
    if (!at || !find_pieces(c, *tensor, *at, warp.cta->shared.stride(), false)) return;
    if (!c.begin_read(c.copy.shared)) return;
    c.start_store();
  }
}

// ---- decoding ----

// [map, {c0, c1}]: the map as the operation's address, the coordinates after `src`.
void emit_copy(Decoder& d, Execute run, std::size_t tensor, std::vector<Slot> src, std::uint32_t mode) {
  constexpr std::string_view kForm = "a tensor is written [map, {coordinates}], one coordinate a dimension";
  Operand map = d.operand(tensor);
  if (map.kind != Operand::Kind::kAddress || map.elements.size() != 2) return d.fail(kForm);
  const Operand at = map.elements[1];
  if (at.kind != Operand::Kind::kVector || at.elements.size() != (mode & kRankMask)) return d.fail(kForm);
  map.elements.pop_back();
  const AddressOperand address = d.address(map, Space::kGeneric);
  src.insert(src.begin(), address.slot);
  const std::size_t first = mode & kMulticast ? src.size() - 1 : src.size();
  std::vector<Slot> slots;
  for (const Operand& c : at.elements) slots.push_back(d.src(c, Type::kB32));
  src.insert(src.begin() + static_cast<std::ptrdiff_t>(first), slots.begin(), slots.end());
  Op& op = d.emit(run, {}, std::move(src));
  set_address(op, address, Space::kGeneric);
  op.mode = mode;
}

}  // namespace

void decode_tensor_copy(Decoder& d) {
  std::uint32_t mode = 1 + static_cast<std::uint32_t>(d.expect_one({"1d", "2d", "3d", "4d", "5d"}, "a rank"));
  const bool store = d.accept("shared::cta") && d.accept("global");
  const bool load = !store && d.accept("shared::cluster") && d.accept("global");
  if (!store && !load) return d.fail("a tensor copy is .shared::cluster.global or .global.shared::cta");
  d.accept("tile");
  d.expect_one({store ? "bulk_group" : "mbarrier::complete_tx::bytes"}, "a completion mechanism");
  if (load && d.accept("multicast::cluster")) mode |= kMulticast;
  const bool hint = d.accept("L2::cache_hint");
  const std::size_t operands = store ? 2 : mode & kMulticast ? 4 : 3;
  d.expect_operands(operands + hint);
  if (d.failed()) return;
  if (hint) d.src(operands, Type::kB64);
  if (store) return emit_copy(d, &tensor_store, 0, {address_slot(d, d.operand(1), Space::kShared)}, mode);
  std::vector<Slot> src = {address_slot(d, d.operand(0), Space::kCluster),
                           address_slot(d, d.operand(2), Space::kCluster)};
  if (mode & kMulticast) src.push_back(d.src(3, Type::kB16));
  emit_copy(d, &tensor_load, 1, std::move(src), mode);
}

absl::StatusOr<TensorMap> encode_tensor_map(const TiledTensor& tensor) {
  if (absl::Status s = tensor.validate(); !s.ok()) return s;
  if (tensor.out_of_bounds == OutOfBounds::kNaN) {
    return absl::UnimplementedError(
        "TiledTensor::out_of_bounds is kNaN; the bits of that NaN are the GPU's own, the emulated device "
        "fills with kZero");
  }
  const std::uint32_t inner = tensor.box[0] * info(tensor.type).bytes, span = bytes(tensor.swizzle);
  if (span != 0 && inner != span) {
    return absl::UnimplementedError(
        str_cat("TiledTensor::box[0] has ", inner, " bytes, the swizzle ", span,
                "; the emulated device knows the layout of boxes as wide as their swizzle alone"));
  }
  return encode(tensor);
}

}  // namespace ptxgen::emulator
