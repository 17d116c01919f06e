// Kernels of one instruction each: the rows of the instruction table, for every T and D.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptxgen/kernel_builder.h"
#include "src/builder/instruction_table.h"

namespace ptxgen::testing {

struct RowKernel {
  std::string name;  // "add_s32"
  Op op = Op::ret;
  Type type = Type::kNone;   // T
  Kernel kernel;             // entry (in, out, n), as the kernels of tests/builder/building.h
  std::vector<Type> inputs;  // 8 bytes of `in` a thread for each operand that is no address or literal
  u32 results = 0;           // 8 bytes of `out` a thread for each
  absl::Status status;       // why there is no kernel
};

// Every row that a kernel can be built of, with operands from memory; and, where T is a number, again with
// literals for all operands but the first.
std::vector<RowKernel> row_kernels(const BuildOptions& options);

}  // namespace ptxgen::testing
