// Any bytes: the reader refuses them, or everything that it hands out lies within them and can be read.
#include <cstdlib>

#include "ptxgen/gguf.h"

namespace {

using namespace ptxgen::gguf;

void require(bool holds) {
  if (!holds) std::abort();
}

// Reads every byte, in a way that the optimiser must keep, so that AddressSanitizer sees it.
template <typename Range>
void touch(const Range& range) {
  for (const auto byte : range) [[maybe_unused]] const volatile auto seen = byte;
}

void touch(const Value& value) {
  value.as_unsigned();
  value.as_signed();
  value.as_float();
  value.as_bool();
  if (const auto characters = value.as_string()) touch(*characters);
  const Array elements = value.elements();
  std::uint64_t count = 0;
  for (const Value element : elements) {
    touch(element);
    ++count;
  }
  require(count == elements.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = File::parse(bytes);
  if (!file.ok()) {
    require(file.status().message().substr(0, 6) == "gguf: ");
    return 0;
  }
  for (const Entry& entry : file->metadata()) {
    touch(entry.key);
    touch(entry.value);
    require(file->find_value(entry.key) == &entry.value);
  }
  std::uint64_t total = 0;
  for (const Tensor& tensor : file->tensors()) {
    touch(tensor.name);
    touch(tensor.data);
    require(file->find_tensor(tensor.name) == &tensor);
    require(tensor.n_dims >= 1 && tensor.n_dims <= 4 && tensor.k() > 0 && tensor.n() > 0);
    require(tensor.offset < size);
    if (tensor.type_name.empty()) continue;
    require(tensor.data.data() == bytes.data() + tensor.offset && !tensor.data.empty());
    total += tensor.data.size();
    if (const auto format = tensor.format()) {
      const ptxgen::FormatInfo& layout = ptxgen::info(*format);
      require(tensor.k() % layout.block_values == 0);
      require(tensor.data.size() == tensor.values() / layout.block_values * layout.block_bytes);
    }
  }
  require(total <= size);  // no byte belongs to two tensors
  return 0;
}
