// Q4_1: 32 values q * d + m. Source: ggml-quants.c, dequantize_row_q4_1.
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q4_1 : Nibbles<Format::kQ4_1, NibbleLayout{.m = true}> {};

}  // namespace ptxgen::formats
