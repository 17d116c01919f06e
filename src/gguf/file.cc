#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ptxgen/gguf.h"
#include "src/gguf/mapping.h"
#include "src/gguf/parse.h"

namespace ptxgen::gguf {

struct File::Contents {
  Mapping mapping;  // empty when the bytes are the caller's
  Parsed parsed;
};

File::File(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
File::File(File&& other) noexcept = default;
File& File::operator=(File&& other) noexcept = default;
File::~File() = default;

absl::StatusOr<File> File::open(const std::string& path) {
  absl::StatusOr<Mapping> mapping = Mapping::open(path, "gguf");
  if (!mapping.ok()) return mapping.status();
  absl::StatusOr<Parsed> parsed = gguf::parse(mapping->bytes());
  if (!parsed.ok()) {
    const absl::Status& fault = parsed.status();
    return absl::Status(fault.code(),
                        absl::StrCat("gguf: '", path, "': ", absl::StripPrefix(fault.message(), "gguf: ")));
  }
  return File(std::make_unique<Contents>(Contents{*std::move(mapping), *std::move(parsed)}));
}

absl::StatusOr<File> File::parse(absl::Span<const std::byte> bytes) {
  absl::StatusOr<Parsed> parsed = gguf::parse(bytes);
  if (!parsed.ok()) return parsed.status();
  return File(std::make_unique<Contents>(Contents{Mapping(), *std::move(parsed)}));
}

std::uint32_t File::version() const {
  return contents_->parsed.version;
}
std::uint32_t File::alignment() const {
  return contents_->parsed.alignment;
}
absl::Span<const Entry> File::metadata() const {
  return contents_->parsed.metadata;
}
absl::Span<const Tensor> File::tensors() const {
  return contents_->parsed.tensors;
}

const Value* File::find_value(std::string_view key) const {
  const auto found = contents_->parsed.metadata_by_key.find(key);
  return found == contents_->parsed.metadata_by_key.end() ? nullptr : &metadata()[found->second].value;
}

const Tensor* File::find_tensor(std::string_view name) const {
  const auto found = contents_->parsed.tensors_by_name.find(name);
  return found == contents_->parsed.tensors_by_name.end() ? nullptr : &tensors()[found->second];
}

}  // namespace ptxgen::gguf
