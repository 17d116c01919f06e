// Q4_0: 32 values (q - 8) * d. Source: ggml-quants.c, dequantize_row_q4_0.
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q4_0 : Nibbles<Format::kQ4_0, NibbleLayout{.bias = 8}> {};

}  // namespace ptxgen::formats
