#include "src/gguf/parse.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/gguf/cursor.h"
#include "src/gguf/tensor_type.h"
#include "src/gguf/value.h"

namespace ptxgen::gguf {
namespace {

constexpr std::string_view kAlignmentKey = "general.alignment";

// Sizes of the shortest encodings: what bounds a count before anything is read.
constexpr std::uint64_t kSmallestEntry = 8 + 4 + 1;  // empty key, value type, one byte
constexpr std::uint64_t kSmallestTensor =
    8 + 4 + 8 + 4 + 8;  // empty name, n_dims, one dimension, type, offset
constexpr std::uint64_t kMostValues =
    std::numeric_limits<std::int64_t>::max();  // ggml counts them in int64_t

class Parser {
 public:
  explicit Parser(absl::Span<const std::byte> bytes) : bytes_(bytes), cursor_(bytes) {}

  absl::StatusOr<Parsed> run() {
    read_magic();
    read_version();
    const std::uint64_t tensors = read_count("tensor count", kSmallestTensor);
    const std::uint64_t entries = read_count("metadata count", kSmallestEntry);
    for (std::uint64_t i = 0; i < entries && cursor_.ok(); ++i) read_entry(i);
    for (std::uint64_t i = 0; i < tensors && cursor_.ok(); ++i) read_tensor(i);
    if (cursor_.ok() && tensors > 0) place_tensors();
    if (!cursor_.ok()) return cursor_.status();
    return std::move(parsed_);
  }

 private:
  // A tensor whose data has not been looked up yet.
  struct Placement {
    std::uint64_t position;  // of the offset field
    std::uint64_t offset;    // from the start of the data section
    std::uint64_t size;      // in bytes; for an unknown type 1, which is the least it can have
  };

  void read_magic() {
    const auto magic = cursor_.take("magic", 4);
    constexpr std::string_view kMagic = "GGUF";
    if (cursor_.ok() && little_endian(magic) != 0x46554747) {
      cursor_.fail("magic", 0, absl::StrFormat("is not '%s': this is no GGUF file", kMagic));
    }
  }

  void read_version() {
    parsed_.version = cursor_.u32("version");
    if (!cursor_.ok() || parsed_.version == 2 || parsed_.version == 3) return;
    const bool big_endian = parsed_.version != 0 && (parsed_.version & 0xffff) == 0;
    cursor_.fail("version", 4,
                 big_endian
                     ? absl::StrFormat("is 0x%08x: a big-endian file, but only little-endian ones are read",
                                       parsed_.version)
                     : absl::StrFormat("is %d, but only versions 2 and 3 are read; convert the model again",
                                       parsed_.version),
                 absl::StatusCode::kUnimplemented);
  }

  std::uint64_t read_count(Field field, std::uint64_t smallest) {
    const std::uint64_t start = cursor_.position();
    const std::uint64_t count = cursor_.u64(field);
    const std::uint64_t most = cursor_.remaining() / smallest;
    if (count <= most) return count;
    cursor_.fail(field, start,
                 absl::StrFormat("is %d, but the %d bytes that follow hold at most %d of %d bytes", count,
                                 cursor_.remaining(), most, smallest));
    return 0;
  }

  void read_entry(std::uint64_t index) {
    cursor_.enter("metadata entry", index);
    const std::uint64_t key_position = cursor_.position();
    const std::string_view key = cursor_.string("key");
    cursor_.enter("metadata entry", index, key);
    const std::uint64_t type_position = cursor_.position();
    const ValueType type = read_value_type(cursor_, "value type");
    const std::uint64_t start = cursor_.position();
    skip_value(cursor_, type);
    if (!cursor_.ok()) return;

    const Value value(type, cursor_.since(start));
    const auto [earlier, is_new] = parsed_.metadata_by_key.try_emplace(key, parsed_.metadata.size());
    if (!is_new) {
      cursor_.fail("key", key_position, absl::StrFormat("is that of entry %d too", earlier->second));
      return;
    }
    parsed_.metadata.push_back({key, value});
    if (key == kAlignmentKey) set_alignment(value, type_position, start);
  }

  void set_alignment(const Value& value, std::uint64_t type_position, std::uint64_t position) {
    if (value.type() != ValueType::kUint32) {
      cursor_.fail("value type", type_position,
                   absl::StrFormat("is %d, but the alignment is a uint32 (%d)",
                                   static_cast<int>(value.type()), static_cast<int>(ValueType::kUint32)));
      return;
    }
    parsed_.alignment = static_cast<std::uint32_t>(*value.as_unsigned());
    if (!std::has_single_bit(parsed_.alignment)) {
      cursor_.fail("value", position,
                   absl::StrFormat("is %d, but the alignment is a power of two", parsed_.alignment));
    }
  }

  void read_tensor(std::uint64_t index) {
    cursor_.enter("tensor", index);
    const std::uint64_t name_position = cursor_.position();
    Tensor tensor = {};
    tensor.name = cursor_.string("name");
    cursor_.enter("tensor", index, tensor.name);
    read_dims(tensor);
    tensor.ggml_type = cursor_.u32("type");
    const std::uint64_t offset_position = cursor_.position();
    const std::uint64_t offset = cursor_.u64("offset");
    if (!cursor_.ok()) return;

    const auto [earlier, is_new] = parsed_.tensors_by_name.try_emplace(tensor.name, parsed_.tensors.size());
    if (!is_new) {
      cursor_.fail("name", name_position, absl::StrFormat("is that of tensor %d too", earlier->second));
      return;
    }
    placements_.push_back({offset_position, offset, size_of(tensor, offset_position - 4)});
    parsed_.tensors.push_back(tensor);
  }

  void read_dims(Tensor& tensor) {
    const std::uint64_t n_dims_position = cursor_.position();
    tensor.n_dims = cursor_.u32("n_dims");
    if (cursor_.ok() && (tensor.n_dims < 1 || tensor.n_dims > tensor.dims.size())) {
      cursor_.fail(
          "n_dims", n_dims_position,
          absl::StrFormat("is %d, but a tensor has 1 to %d dimensions", tensor.n_dims, tensor.dims.size()));
    }
    if (!cursor_.ok()) return;
    tensor.dims.fill(1);
    dims_position_ = cursor_.position();
    std::uint64_t values = 1;
    for (std::uint32_t i = 0; i < tensor.n_dims; ++i) {
      const std::uint64_t position = cursor_.position();
      const std::uint64_t dim = tensor.dims[i] = cursor_.u64({"dimension", i});
      if (!cursor_.ok()) return;
      if (dim == 0) {
        cursor_.fail({"dimension", i}, position, "is 0, but a tensor has at least one value");
        return;
      }
      if (dim > kMostValues / values) {
        cursor_.fail(
            {"dimension", i}, position,
            absl::StrFormat("is %d, which makes more than the 2^63 - 1 values that ggml can count", dim));
        return;
      }
      values *= dim;
    }
  }

  // The size of the tensor's data, as yet unrelated to where it is. Sets the type's name.
  std::uint64_t size_of(Tensor& tensor, std::uint64_t type_position) {
    const std::optional<TensorType> type = find_tensor_type(tensor.ggml_type);
    if (!type) return 1;
    tensor.type_name = type->name;
    if (tensor.k() % type->block_values != 0) {
      cursor_.fail({"dimension", 0}, dims_position_,
                   absl::StrFormat("is %d, but a row of %s is a multiple of %d values", tensor.k(),
                                   type->name, type->block_values));
      return 0;
    }
    const std::uint64_t blocks = tensor.values() / type->block_values;
    if (blocks > bytes_.size() / type->block_bytes) {
      cursor_.fail(
          "type", type_position,
          absl::StrFormat("is %s, of which %d values take %d blocks of %d bytes; the file has %d bytes",
                          type->name, tensor.values(), blocks, type->block_bytes, bytes_.size()));
      return 0;
    }
    return blocks * type->block_bytes;
  }

  void place_tensors() {
    const std::uint64_t end_of_tensors = cursor_.position();
    const std::uint64_t alignment = parsed_.alignment;
    const std::uint64_t data_start = (end_of_tensors + alignment - 1) / alignment * alignment;
    if (data_start > bytes_.size()) {
      cursor_.leave();
      cursor_.fail("tensor data", end_of_tensors,
                   absl::StrFormat("starts at the next multiple of %d, byte %d, but the file ends at byte %d",
                                   alignment, data_start, bytes_.size()));
      return;
    }
    for (std::size_t i = 0; i < placements_.size() && cursor_.ok(); ++i) place(i, data_start);
    if (cursor_.ok()) check_overlaps();
  }

  void place(std::size_t index, std::uint64_t data_start) {
    Tensor& tensor = parsed_.tensors[index];
    const Placement& placement = placements_[index];
    const std::uint64_t data_size = bytes_.size() - data_start;
    cursor_.enter("tensor", index, tensor.name);
    if (placement.offset % parsed_.alignment != 0) {
      cursor_.fail("offset", placement.position,
                   absl::StrFormat("is %d, which is no multiple of the alignment %d", placement.offset,
                                   parsed_.alignment));
      return;
    }
    if (placement.offset > data_size || placement.size > data_size - placement.offset) {
      cursor_.fail(
          "offset", placement.position,
          absl::StrFormat("is %d, but %d bytes of data do not fit there into a data section of %d bytes",
                          placement.offset, placement.size, data_size));
      return;
    }
    tensor.offset = data_start + placement.offset;
    if (!tensor.type_name.empty()) tensor.data = bytes_.subspan(tensor.offset, placement.size);
  }

  void check_overlaps() {
    std::vector<std::size_t> order(placements_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return placements_[a].offset < placements_[b].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Placement& before = placements_[order[i - 1]];
      const Placement& after = placements_[order[i]];
      if (after.offset - before.offset >= before.size) continue;
      cursor_.enter("tensor", order[i], parsed_.tensors[order[i]].name);
      cursor_.fail("offset", after.position,
                   absl::StrFormat("is %d, inside tensor %d, which takes %d bytes from %d", after.offset,
                                   order[i - 1], before.size, before.offset));
      return;
    }
  }

  absl::Span<const std::byte> bytes_;
  Cursor cursor_;
  Parsed parsed_;
  std::vector<Placement> placements_;  // one a tensor
  std::uint64_t dims_position_ = 0;    // of the tensor being read
};

}  // namespace

absl::StatusOr<Parsed> parse(absl::Span<const std::byte> bytes) {
  return Parser(bytes).run();
}

}  // namespace ptxgen::gguf
