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

// What weights and activations of a product are multiplied in, which decides about its results.
enum class Arithmetic : u8 {
  kF32,
  kInt8,  // activations are quantised first
  kF16,   // weights and activations are rounded as gemm.h says
  kF16InRowUnits,
};
// Of a kernel that computes products of one matrix; another one has none.
absl::StatusOr<Arithmetic> arithmetic_of(const KernelType& kernel);

// c[m][n] = a[m][k] W^T with arguments weights, a in f32, and c: whatever activations are made of a.
// `matrix`: within the bound of matrix products.
std::unique_ptr<Operation> product_operation(Format format, u32 n, u32 k, u32 m, Arithmetic arithmetic,
                                             bool matrix);

}  // namespace ptxgen::reference
