// Q5_1: 32 values q * d + m, five bits. Source: ggml-quants.c, dequantize_row_q5_1.
#pragma once

#include "src/kernels/formats/nibbles.h"

namespace ptxgen::formats {

struct Q5_1 : Nibbles<Format::kQ5_1, NibbleLayout{.m = true, .fifth_bit = true}> {};

}  // namespace ptxgen::formats
