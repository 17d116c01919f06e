// ggml's dequantisation, in plain C++: what every kernel's result is compared with.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ptxgen/format.h"

namespace ptxgen::reference {

// Writes the values of `blocks` to `out`, bit-equal to dequantize_row_* of ggml/src/ggml-quants.c: the same
// f32 operations in the same order, none of them fused. `blocks` holds whole blocks of `format` (any
// alignment), `out` exactly their values; anything else is an InvalidArgument and nothing is written.
absl::Status dequantize(Format format, absl::Span<const std::byte> blocks, absl::Span<float> out);

}  // namespace ptxgen::reference
