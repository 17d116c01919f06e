#include "src/gguf/cursor.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace ptxgen::gguf {
namespace {

// A name from the file, fit to be printed.
std::string printable(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  const bool cut = name.size() > kLongest;
  return absl::CHexEscape({name.data(), std::min(name.size(), kLongest)}) + (cut ? "..." : "");
}

}  // namespace

std::uint64_t little_endian(absl::Span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

absl::Span<const std::byte> Cursor::since(std::uint64_t start) const {
  return bytes_.subspan(start, position_ - start);
}

absl::Span<const std::byte> Cursor::take(Field field, std::uint64_t size) {
  if (!ok()) return {};
  if (size > remaining()) {
    fail(field, position_,
         absl::StrFormat("takes %d bytes, but the file ends at byte %d", size, bytes_.size()));
    return {};
  }
  const auto taken = bytes_.subspan(position_, size);
  position_ += size;
  return taken;
}

std::uint64_t Cursor::integer(Field field, std::size_t size) {
  return little_endian(take(field, size));
}

std::string_view Cursor::string(Field field) {
  const std::uint64_t start = position_;
  const std::uint64_t length = u64(field);
  if (ok() && length > remaining()) {
    fail(field, start,
         absl::StrFormat("has a length of %d bytes, but only %d are left in the file", length, remaining()));
  }
  const auto characters = take(field, length);
  return {reinterpret_cast<const char*>(characters.data()), characters.size()};
}

void Cursor::enter(std::string_view kind, std::uint64_t index, std::string_view name) {
  kind_ = kind;
  index_ = index;
  name_ = name;
}

void Cursor::fail(Field field, std::uint64_t position, std::string_view problem, absl::StatusCode code) {
  if (!ok()) return;
  std::string subject;
  if (!kind_.empty()) subject = absl::StrFormat("%s %d", kind_, index_);
  if (!kind_.empty() && !name_.empty()) absl::StrAppendFormat(&subject, " '%s'", printable(name_));
  if (!subject.empty()) subject += ": ";
  std::string what(field.name);
  if (field.index) absl::StrAppendFormat(&what, " %d", *field.index);
  status_ = absl::Status(code, absl::StrFormat("gguf: %s%s at byte %d %s", subject, what, position, problem));
}

}  // namespace ptxgen::gguf
