// What products over quantised weights and the preparation of their activations compute.
#pragma once

#include <memory>

#include "ptxgen/gemm.h"
#include "src/reference/operation.h"

namespace ptxgen::reference {

std::unique_ptr<Operation> quantize_operation(ArgInfos arguments);
std::unique_ptr<Operation> gemv_operation(const Gemv& kernel, ArgInfos arguments);
std::unique_ptr<Operation> gemv_operation(const BatchedGemv& kernel, ArgInfos arguments);
std::unique_ptr<Operation> gemv_operation(const FusedGemv& kernel, ArgInfos arguments, float epsilon);
std::unique_ptr<Operation> stage_operation(const StageF16& kernel, ArgInfos arguments, u64 m);
std::unique_ptr<Operation> gemm_operation(const Gemm& kernel, ArgInfos arguments, u64 m);

}  // namespace ptxgen::reference
