// What matrix-vector products and the quantising of their activations compute.
#pragma once

#include <memory>

#include "ptxgen/gemv.h"
#include "src/reference/operation.h"

namespace ptxgen::reference {

std::unique_ptr<Operation> quantize_operation(ArgInfos arguments);
std::unique_ptr<Operation> gemv_operation(const Gemv& kernel, ArgInfos arguments);
std::unique_ptr<Operation> gemv_operation(const BatchedGemv& kernel, ArgInfos arguments);
std::unique_ptr<Operation> gemv_operation(const FusedGemv& kernel, ArgInfos arguments, float epsilon);

}  // namespace ptxgen::reference
