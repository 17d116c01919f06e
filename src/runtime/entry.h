// One kernel's machine code as bytes, the same in the cache directory and in a pack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ptxgen/kernel_key.h"

namespace ptxgen::internal {

// Views into the bytes.
struct EntryView {
  std::string_view key;  // as encode_key() writes it
  std::string_view log, ptx, image;
  ImageKind kind;
};

// One line a field. Equal keys are equal texts.
std::string encode_key(const KernelKey& key);
absl::StatusOr<KernelKey> decode_key(std::string_view text);

std::string encode_entry(const KernelKey& key, std::string_view ptx, const Image& image);

// Everything about the bytes is checked: magic, version, lengths against each other and the whole, checksum.
// A status says what is wrong with them.
absl::StatusOr<EntryView> view_entry(std::string_view bytes);
absl::StatusOr<StoredKernel> decode_entry(std::string_view bytes);

Image image_of(const EntryView& view);

}  // namespace ptxgen::internal
