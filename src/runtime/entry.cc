#include "src/runtime/entry.h"

#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "ptxgen/strings.h"
#include "src/runtime/xxh64.h"

namespace ptxgen::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's integers are little-endian");

// The head; behind it key, log, PTX and image, without gaps and with nothing behind.
struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t kind;  // ImageKind
  std::uint32_t key_bytes;
  std::uint32_t log_bytes;
  std::uint64_t ptx_bytes;
  std::uint64_t image_bytes;
  std::uint64_t checksum;  // XXH64 of all that follows the head, seeded with XXH64 of what stands above
};
static_assert(sizeof(Head) == 48);

constexpr std::string_view kMagic = "PTXGCBN\n";
constexpr std::uint32_t kVersion = 1;

std::uint64_t checksum(std::string_view bytes) {
  return xxh64(bytes.substr(sizeof(Head)), xxh64(bytes.substr(0, offsetof(Head, checksum))));
}

absl::Status bad(absl::string_view what) {
  return absl::DataLossError(what);
}

}  // namespace

std::string encode_key(const KernelKey& key) {
  std::string text;
  for (const KernelKey::Field& field : KernelKey::kFields)
    str_append(&text, field.name, ": ", absl::CEscape(key.*field.member), "\n");
  return text;
}

absl::StatusOr<KernelKey> decode_key(std::string_view text) {
  KernelKey key;
  for (const KernelKey::Field& field : KernelKey::kFields) {
    const std::string head = str_cat(field.name, ": ");
    const std::size_t end = text.find('\n');
    if (!text.starts_with(head) || end == text.npos ||
        !absl::CUnescape({text.data() + head.size(), end - head.size()}, &(key.*field.member))) {
      return bad(str_cat("the key has no ", field.name));
    }
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) return bad("the key has more fields than are known");
  return key;
}

std::string encode_entry(const KernelKey& key, std::string_view ptx, const Image& image) {
  const std::string key_text = encode_key(key);
  Head head = {};
  kMagic.copy(head.magic, sizeof(head.magic));
  head.version = kVersion;
  head.kind = static_cast<std::uint32_t>(image.kind);
  head.key_bytes = static_cast<std::uint32_t>(key_text.size());
  head.log_bytes = static_cast<std::uint32_t>(image.log.size());
  head.ptx_bytes = ptx.size();
  head.image_bytes = image.bytes.size();

  std::string bytes(sizeof(Head), '\0');
  bytes.reserve(sizeof(Head) + key_text.size() + image.log.size() + ptx.size() + image.bytes.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  bytes.append(key_text).append(image.log).append(ptx).append(image.bytes);
  head.checksum = checksum(bytes);
  std::memcpy(bytes.data(), &head, sizeof(head));
  return bytes;
}

absl::StatusOr<EntryView> view_entry(std::string_view bytes) {
  Head head;
  if (bytes.size() < sizeof(head)) return bad(str_cat("only ", bytes.size(), " bytes are there"));
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (std::string_view(head.magic, sizeof(head.magic)) != kMagic) return bad("it is no kernel of ptxgen's");
  if (head.version != kVersion) return bad(str_cat("version ", head.version, " of the format is not known"));
  if (head.kind > static_cast<std::uint32_t>(ImageKind::kCubin))
    return bad(str_cat("kind ", head.kind, " of image is not known"));
  const std::uint64_t room = bytes.size() - sizeof(head);
  const std::uint64_t small = std::uint64_t{head.key_bytes} + head.log_bytes;
  if (head.ptx_bytes > room || head.image_bytes > room || small + head.ptx_bytes + head.image_bytes != room) {
    return bad(str_cat(room, " bytes follow the head, which does not speak of as many"));
  }
  if (checksum(bytes) != head.checksum) return bad("the checksum differs");
  EntryView view = {.key = {}, .log = {}, .ptx = {}, .image = {}, .kind = static_cast<ImageKind>(head.kind)};
  std::string_view rest = bytes.substr(sizeof(head));
  const auto take = [&](std::uint64_t size) {
    const std::string_view part = rest.substr(0, size);
    rest.remove_prefix(size);
    return part;
  };
  view.key = take(head.key_bytes);
  view.log = take(head.log_bytes);
  view.ptx = take(head.ptx_bytes);
  view.image = take(head.image_bytes);
  return view;
}

absl::StatusOr<StoredKernel> decode_entry(std::string_view bytes) {
  const absl::StatusOr<EntryView> view = view_entry(bytes);
  if (!view.ok()) return view.status();
  absl::StatusOr<KernelKey> key = decode_key(view->key);
  if (!key.ok()) return key.status();
  return StoredKernel{*std::move(key), std::string(view->ptx), image_of(*view)};
}

Image image_of(const EntryView& view) {
  return {view.kind, std::string(view.image), std::string(view.log)};
}

}  // namespace ptxgen::internal
