// Products as libraries compute them: of values rounded to a narrower type, with scales.
#pragma once

#include <memory>

#include "ptxgen/format.h"
#include "src/reference/narrow.h"
#include "src/reference/operation.h"

namespace ptxgen::reference {

// The product whose arguments, weights, a in f32 and c, `plain` has, and whose random inputs are its. Weights
// are dequantised and rounded to `type`, f16 or e4m3; so are activations, with the scale that Convert has by
// ConvertScale::kDevice for the largest of all, and of e4m3 the weights likewise.
//
// Products are exact, their sums within of_matrix_product(rounding_bound()). Tensor cores add products of
// e4m3 with fewer bits than f32 has before they add these sums in f32: there the bound has 2^-10 of the sum
// of |product| more.
std::unique_ptr<Operation> scaled_operation(Format format, u32 n, u32 k, FloatType type,
                                            std::unique_ptr<Operation> plain);

}  // namespace ptxgen::reference
