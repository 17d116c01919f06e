// The element types of GGUF tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptxgen::gguf {

struct TensorType {
  std::uint32_t ggml_type;  // enum ggml_type of ggml/include/ggml.h
  std::string_view name;    // as ggml prints it
  std::uint32_t block_values;
  std::uint32_t block_bytes;
};

// Nothing when ggml had no such type when this was written.
std::optional<TensorType> find_tensor_type(std::uint32_t ggml_type);

}  // namespace ptxgen::gguf
