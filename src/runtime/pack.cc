#include "ptxgen/pack.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "ptxgen/strings.h"
#include "src/gguf/mapping.h"
#include "src/runtime/entry.h"
#include "src/runtime/xxh64.h"

namespace ptxgen {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's integers are little-endian");

// The head; behind it the index, and then the entries (src/runtime/entry.h), without gaps and with nothing
// behind.
struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t count;
  std::uint64_t file_bytes;
  std::uint64_t checksum;  // XXH64 of the index, seeded with XXH64 of what stands above
};
static_assert(sizeof(Head) == 32);

// One an entry, by rising hash.
struct Slot {
  std::uint64_t hash;  // pack_hash()
  std::uint64_t offset, bytes;
};
static_assert(sizeof(Slot) == 24);

constexpr std::string_view kMagic = "PTXGPAK\n";
constexpr std::uint32_t kVersion = 2;

// What does not matter is left out.
KernelKey in_pack(KernelKey key) {
  key.compiler.clear();
  key.isa.clear();
  return key;
}

// Without the code generator, which does not matter to find_generated().
std::uint64_t pack_hash(const KernelKey& key, std::string_view text) {
  KernelKey hashed = in_pack(key);
  hashed.codegen.clear();
  return internal::xxh64(text, internal::xxh64(internal::encode_key(hashed)));
}

std::uint64_t checksum(std::string_view head_and_index) {
  return internal::xxh64(head_and_index.substr(sizeof(Head)),
                         internal::xxh64(head_and_index.substr(0, offsetof(Head, checksum))));
}

}  // namespace

struct Pack::State {
  std::string path;
  gguf::Mapping mapping;
  std::vector<Slot> slots;

  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()};
  }
  std::string_view bytes_of(const Slot& slot) const { return bytes().substr(slot.offset, slot.bytes); }
  absl::Status read();

  struct Found {
    KernelKey key;
    internal::EntryView view;
  };
  // The first entry in order with this text, for a key that is equal but for the code generator, which may be
  // any where `any_codegen`.
  std::optional<Found> find(const KernelKey& key, std::string_view text, ImageKind kind,
                            bool any_codegen) const;
};

absl::Status Pack::State::read() {
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(str_cat("pack: '", path, "' ", what, "; make it anew"));
  };
  const std::string_view all = bytes();
  Head head;
  if (all.size() < sizeof(head)) return refuse(str_cat("has only ", all.size(), " bytes and is no pack"));
  std::memcpy(&head, all.data(), sizeof(head));
  if (std::string_view(head.magic, sizeof(head.magic)) != kMagic) return refuse("is no pack");
  if (head.version != kVersion) return refuse(str_cat("has version ", head.version, "; known is ", kVersion));
  if (head.file_bytes != all.size())
    return refuse(str_cat("has ", all.size(), " bytes of ", head.file_bytes));
  const std::uint64_t index_bytes = std::uint64_t{head.count} * sizeof(Slot);
  if (index_bytes > all.size() - sizeof(head)) return refuse("is too short for its index");
  if (checksum(all.substr(0, sizeof(head) + index_bytes)) != head.checksum)
    return refuse("is damaged: the index has another checksum");
  slots.resize(head.count);
  if (head.count > 0) std::memcpy(slots.data(), all.data() + sizeof(head), index_bytes);
  for (const Slot& slot : slots) {
    if (slot.offset > all.size() || slot.bytes > all.size() - slot.offset)
      return refuse("has an entry beyond its end");
  }
  return absl::OkStatus();
}

absl::StatusOr<Pack> Pack::open(const std::string& path) {
  auto state = std::make_shared<State>();
  state->path = path;
  absl::StatusOr<gguf::Mapping> mapping = gguf::Mapping::open(path, "pack");
  if (!mapping.ok()) return mapping.status();
  state->mapping = *std::move(mapping);
  if (absl::Status s = state->read(); !s.ok()) return s;
  return Pack(std::move(state));
}

const std::string& Pack::path() const {
  return state_->path;
}

std::size_t Pack::size() const {
  return state_->slots.size();
}

absl::StatusOr<StoredKernel> Pack::entry(std::size_t i) const {
  const Slot& slot = state_->slots.at(i);
  absl::StatusOr<StoredKernel> kernel = internal::decode_entry(state_->bytes_of(slot));
  if (kernel.ok() && pack_hash(kernel->key, kernel->ptx) != slot.hash)
    return absl::DataLossError("it is another kernel's, which no lookup finds in this place");
  return kernel;
}

std::optional<Pack::State::Found> Pack::State::find(const KernelKey& key, std::string_view text,
                                                    ImageKind kind, bool any_codegen) const {
  const std::uint64_t hash = pack_hash(key, text);
  const auto by_hash = [](const Slot& slot, std::uint64_t value) { return slot.hash < value; };
  auto slot = std::lower_bound(slots.begin(), slots.end(), hash, by_hash);
  for (; slot != slots.end() && slot->hash == hash; ++slot) {
    const absl::StatusOr<internal::EntryView> view = internal::view_entry(bytes_of(*slot));
    if (!view.ok() || view->ptx != text || view->kind != kind) continue;
    absl::StatusOr<KernelKey> stored = internal::decode_key(view->key);
    if (!stored.ok()) continue;
    KernelKey wanted = in_pack(key);
    if (any_codegen) wanted.codegen = stored->codegen;
    if (in_pack(*stored) == wanted) return Found{*std::move(stored), *view};
  }
  return std::nullopt;
}

std::optional<Image> Pack::find(const KernelKey& key, std::string_view ptx) const {
  const auto found = state_->find(key, ptx, ImageKind::kCubin, false);
  if (!found) return std::nullopt;
  return internal::image_of(found->view);
}

std::optional<Pack::Generated> Pack::find_generated(const KernelKey& key, std::string_view llvm_ir) const {
  auto found = state_->find(key, llvm_ir, ImageKind::kPtx, true);
  if (!found) return std::nullopt;
  return Generated{std::move(found->key.codegen), std::string(found->view.image)};
}

std::string make_pack(absl::Span<const StoredKernel> kernels) {
  std::vector<Slot> slots;
  std::string entries;
  const std::uint64_t begin = sizeof(Head) + kernels.size() * sizeof(Slot);
  for (const StoredKernel& kernel : kernels) {
    const std::string bytes = internal::encode_entry(kernel.key, kernel.ptx, kernel.image);
    slots.push_back({pack_hash(kernel.key, kernel.ptx), begin + entries.size(), bytes.size()});
    entries += bytes;
  }
  std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.hash < b.hash; });

  Head head = {};
  kMagic.copy(head.magic, sizeof(head.magic));
  head.version = kVersion;
  head.count = static_cast<std::uint32_t>(slots.size());
  head.file_bytes = begin + entries.size();
  std::string bytes(begin, '\0');
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!slots.empty()) std::memcpy(bytes.data() + sizeof(head), slots.data(), slots.size() * sizeof(Slot));
  head.checksum = checksum(bytes);
  std::memcpy(bytes.data(), &head, sizeof(head));
  return bytes + entries;
}

}  // namespace ptxgen
