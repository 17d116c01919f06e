#include "src/reference/dequantize.h"

#include "absl/strings/str_format.h"
#include "src/reference/unpack.h"

namespace ptxgen::reference {
namespace {

float value(const Unpacked& block, int i) {
  const int j = i / block.sub_block;
  const float scale = block.d * static_cast<float>(block.scale[j]);
  const float scaled = static_cast<float>(block.q[i]) * scale;
  return block.has_min ? scaled + block.m * static_cast<float>(block.min[j]) : scaled;
}

}  // namespace

absl::Status dequantize(Format format, absl::Span<const std::byte> blocks, absl::Span<float> out) {
  const FormatInfo& layout = info(format);
  if (blocks.size() % layout.block_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("dequantize: %d bytes are no whole number of %s blocks of %d bytes", blocks.size(),
                        layout.ggml_name, layout.block_bytes));
  }
  const std::size_t values = blocks.size() / layout.block_bytes * layout.block_values;
  if (out.size() != values) {
    return absl::InvalidArgumentError(
        absl::StrFormat("dequantize: %d bytes of %s hold %d values, but out has room for %d", blocks.size(),
                        layout.ggml_name, values, out.size()));
  }
  float* next = out.data();
  for_each_block(format, blocks, [&](const Unpacked& block) {
    for (int i = 0; i < block.values; ++i) *next++ = value(block, i);
  });
  return absl::OkStatus();
}

}  // namespace ptxgen::reference
