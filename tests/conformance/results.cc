#include "tests/conformance/results.h"

#include <cstring>

#include "ptxgen/strings.h"
#include "tests/support/files.h"

namespace ptxgen::testing {
namespace {

template <class T>
void put(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Takes values off the front of a file; `failed` once it is too short.
struct Reader {
  std::string_view left;
  bool failed = false;

  std::string_view take(std::size_t bytes) {
    failed |= bytes > left.size();
    const std::string_view taken = left.substr(0, bytes);
    left.remove_prefix(taken.size());
    return taken;
  }
  template <class T>
  T value() {
    T result{};
    const std::string_view bytes = take(sizeof(T));
    std::memcpy(&result, bytes.data(), bytes.size());
    return result;
  }
};

}  // namespace

std::uint32_t hash_of(absl::Span<const std::byte> bytes) {
  std::uint64_t hash = bytes.size();
  for (const std::byte b : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return static_cast<std::uint32_t>(hash >> 16);
}

RecordedResults record(const ConformanceCase& c, absl::Span<const std::byte> input,
                       absl::Span<const std::byte> output) {
  RecordedResults result;
  result.input_hash = hash_of(input);
  result.verbatim = c.approximate || c.open;
  if (result.verbatim) {
    result.data.assign(output.begin(), output.end());
    return result;
  }
  const std::size_t block = std::size_t{kBlock} * c.output_bytes;
  for (std::size_t at = 0; at < output.size(); at += block) {
    const std::uint32_t hash = hash_of(output.subspan(at, block));
    const auto* bytes = reinterpret_cast<const std::byte*>(&hash);
    result.data.insert(result.data.end(), bytes, bytes + sizeof(hash));
  }
  return result;
}

absl::StatusOr<RecordedFile> read_results(const std::filesystem::path& path) {
  const std::optional<std::string> text = read_file(path);
  if (!text) return absl::NotFoundError(str_cat(path.string(), " cannot be read"));
  RecordedFile file;
  Reader reader{*text};
  while (!reader.left.empty() && !reader.failed) {
    const std::string name(reader.take(reader.value<std::uint16_t>()));
    RecordedResults& r = file[name];
    r.input_hash = reader.value<std::uint32_t>();
    r.verbatim = reader.value<std::uint8_t>() != 0;
    const std::string_view data = reader.take(reader.value<std::uint32_t>());
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    r.data.assign(bytes, bytes + data.size());
  }
  if (reader.failed) return absl::DataLossError(str_cat(path.string(), " is cut short"));
  return file;
}

bool write_results(const std::filesystem::path& path, const RecordedFile& file) {
  std::string text;
  for (const auto& [name, r] : file) {
    put(text, static_cast<std::uint16_t>(name.size()));
    text += name;
    put(text, r.input_hash);
    put(text, static_cast<std::uint8_t>(r.verbatim));
    put(text, static_cast<std::uint32_t>(r.data.size()));
    text.append(reinterpret_cast<const char*>(r.data.data()), r.data.size());
  }
  return write_file(path, text);
}

}  // namespace ptxgen::testing
