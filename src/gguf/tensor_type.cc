#include "src/gguf/tensor_type.h"

#include "ptxgen/format.h"

namespace ptxgen::gguf {
namespace {

// Those that have no kernels and so are not in kFormats: type_traits of ggml/src/ggml.c with the block sizes
// of ggml/src/ggml-common.h. Numbers left out are retired ones.
constexpr TensorType kOtherTypes[] = {
    {0, "f32", 1, 4},         {1, "f16", 1, 2},        {9, "q8_1", 32, 36},      {15, "q8_K", 256, 292},
    {16, "iq2_xxs", 256, 66}, {17, "iq2_xs", 256, 74}, {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},
    {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110}, {22, "iq2_s", 256, 82},   {23, "iq4_xs", 256, 136},
    {24, "i8", 1, 1},         {25, "i16", 1, 2},       {26, "i32", 1, 4},        {27, "i64", 1, 8},
    {28, "f64", 1, 8},        {29, "iq1_m", 256, 56},  {30, "bf16", 1, 2},       {34, "tq1_0", 256, 54},
    {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},   {40, "nvfp4", 64, 36},    {41, "q1_0", 128, 18},
};

}  // namespace

std::optional<TensorType> find_tensor_type(std::uint32_t ggml_type) {
  if (const std::optional<Format> format = find_format(ggml_type)) {
    const FormatInfo& layout = info(*format);
    return TensorType{ggml_type, layout.ggml_name, layout.block_values, layout.block_bytes};
  }
  for (const TensorType& type : kOtherTypes) {
    if (type.ggml_type == ggml_type) return type;
  }
  return std::nullopt;
}

}  // namespace ptxgen::gguf
