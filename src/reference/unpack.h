// Blocks taken apart into integers and scales, by ggml's layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ptxgen/format.h"

namespace ptxgen::reference {

// A block. Value i, of sub-block j = i / sub_block, is
//
//   q[i] * (d * scale[j]) + m * min[j]
//
// without the second term where has_min is false; with each operation rounded to f32, dequantize_row_* of
// ggml/src/ggml-quants.c bit for bit.
struct Unpacked {
  int values = 0;     // of the block, 32 or 256
  int sub_block = 0;  // values that share a scale, 16 or 32
  float d = 0, m = 0;
  bool has_min = false;
  std::array<int, 16> scale = {}, min = {};
  std::array<int, 256> q = {};
};

// Visits whole blocks of `format`, of any alignment.
void for_each_block(Format format, absl::Span<const std::byte> blocks,
                    absl::FunctionRef<void(const Unpacked&)> visit);

}  // namespace ptxgen::reference
