// Q5_0: 32 values (q - 16) * d, five bits. Source: ggml-quants.c, dequantize_row_q5_0.
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q5_0 : Nibbles<Format::kQ5_0, NibbleLayout{.bias = 16, .fifth_bit = true}> {};

}  // namespace ptxgen::formats
