#include "src/gguf/value.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_format.h"

namespace ptxgen::gguf {
namespace {

struct Layout {
  std::size_t smallest;  // size of the encoding, for strings and arrays of an empty one
  bool fixed;            // whether all encodings have that size
};

// Strings are a 64-bit length and the characters; arrays a 32-bit element type, a 64-bit count and the
// elements.
Layout layout_of(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool: return {1, true};
    case ValueType::kUint16:
    case ValueType::kInt16: return {2, true};
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32: return {4, true};
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64: return {8, true};
    case ValueType::kString: return {8, false};
    case ValueType::kArray: return {12, false};
  }
  return {1, true};
}

void check_bools(Cursor& cursor, absl::Span<const std::byte> bools) {
  for (std::size_t i = 0; i < bools.size(); ++i) {
    if (bools[i] <= std::byte{1}) continue;
    cursor.fail("bool", cursor.position() - bools.size() + i,
                absl::StrFormat("is %d, but a bool is 0 or 1", std::to_integer<int>(bools[i])));
    return;
  }
}

void skip_array(Cursor& cursor, int depth) {
  const std::uint64_t start = cursor.position();
  if (depth >= Array::kMaxDepth) {
    cursor.fail("array", start, absl::StrFormat("is nested more than %d deep", Array::kMaxDepth));
    return;
  }
  const ValueType element = read_value_type(cursor, "array element type");
  const std::uint64_t count = cursor.u64("array length");
  if (!cursor.ok()) return;
  const Layout layout = layout_of(element);
  if (count > cursor.remaining() / layout.smallest) {
    cursor.fail(
        "array length", start + 4,
        absl::StrFormat("is %d, but the %d bytes that follow hold at most %d elements of %d bytes", count,
                        cursor.remaining(), cursor.remaining() / layout.smallest, layout.smallest));
    return;
  }
  if (layout.fixed) {
    const auto elements = cursor.take("array", count * layout.smallest);
    if (element == ValueType::kBool) check_bools(cursor, elements);
    return;
  }
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) skip_value(cursor, element, depth + 1);
}

}  // namespace

ValueType read_value_type(Cursor& cursor, Field field) {
  const std::uint64_t start = cursor.position();
  const std::uint32_t type = cursor.u32(field);
  constexpr auto kLast = static_cast<std::uint32_t>(ValueType::kFloat64);
  if (type > kLast) {
    cursor.fail(field, start, absl::StrFormat("is %d, but value types are numbered 0 to %d", type, kLast));
    return ValueType::kUint8;
  }
  return static_cast<ValueType>(type);
}

void skip_value(Cursor& cursor, ValueType type, int depth) {
  if (type == ValueType::kArray) return skip_array(cursor, depth);
  if (type == ValueType::kString) {
    cursor.string("string");
    return;
  }
  const auto encoding = cursor.take("value", layout_of(type).smallest);
  if (type == ValueType::kBool) check_bools(cursor, encoding);
}

std::optional<std::uint64_t> Value::as_unsigned() const {
  switch (type_) {
    case ValueType::kUint8:
    case ValueType::kUint16:
    case ValueType::kUint32:
    case ValueType::kUint64: return little_endian(encoding_);
    default: break;
  }
  const std::optional<std::int64_t> value = as_signed();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<std::int64_t> Value::as_signed() const {
  const std::uint64_t bits = little_endian(encoding_.first(std::min<std::size_t>(encoding_.size(), 8)));
  switch (type_) {
    case ValueType::kInt8: return static_cast<std::int8_t>(bits);
    case ValueType::kInt16: return static_cast<std::int16_t>(bits);
    case ValueType::kInt32: return static_cast<std::int32_t>(bits);
    case ValueType::kInt64: return static_cast<std::int64_t>(bits);
    case ValueType::kUint8:
    case ValueType::kUint16:
    case ValueType::kUint32:
    case ValueType::kUint64:
      if (bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(bits);
    default: return std::nullopt;
  }
}

std::optional<double> Value::as_float() const {
  if (type_ == ValueType::kFloat64) return std::bit_cast<double>(little_endian(encoding_));
  if (type_ != ValueType::kFloat32) return std::nullopt;
  return std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(encoding_)));
}

std::optional<bool> Value::as_bool() const {
  if (type_ != ValueType::kBool) return std::nullopt;
  return encoding_[0] != std::byte{0};
}

std::optional<std::string_view> Value::as_string() const {
  if (type_ != ValueType::kString) return std::nullopt;
  const auto characters = encoding_.subspan(8);
  return std::string_view(reinterpret_cast<const char*>(characters.data()), characters.size());
}

Array Value::elements() const {
  if (type_ != ValueType::kArray) return Array(ValueType::kUint8, 0, {});
  return Array(static_cast<ValueType>(little_endian(encoding_.first(4))),
               little_endian(encoding_.subspan(4, 8)), encoding_.subspan(12));
}

Array::Iterator::Iterator(ValueType type, std::uint64_t count, absl::Span<const std::byte> encodings)
    : type_(type), count_(count), encodings_(encodings) {
  measure();
}

Array::Iterator& Array::Iterator::operator++() {
  encodings_.remove_prefix(current_);
  --count_;
  measure();
  return *this;
}

// parse() has checked these bytes. They are measured with the same checks again because a mapped file may
// change under the reader: elements that no longer fit end the array.
void Array::Iterator::measure() {
  if (count_ == 0) return;
  Cursor cursor(encodings_);
  skip_value(cursor, type_, 1);
  current_ = cursor.position();
  if (!cursor.ok()) count_ = 0;
}

}  // namespace ptxgen::gguf
