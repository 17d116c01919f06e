// The instruction table as kernels that compute one instruction on many operands, for comparing the emulator
// with a GPU.
//
// A case is a row with one choice of types and modifiers. Cases come from the table alone: a new row has its
// cases, or a reason here why it has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "src/builder/instruction_table.h"

namespace ptxgen::testing {

// A register that the kernel loads for each thread: `per` elements of type `element`, the first in the low
// bits.
struct LoadedRegister {
  Type element = Type::kU32;
  unsigned per = 1;
};

// How each thread's operands are chosen.
enum class Inputs : std::uint8_t {
  kOperands,  // edges of their types against each other, then random and related values
  kMatrix,    // elements of matrices: a warp's are of one kind
};

struct ConformanceCase {
  std::string name;  // "fma_rn.f32", unique
  Op op = Op::ret;
  Type type = Type::kNone;  // T
  std::string chapter;      // "9.7.3"
  std::string entry;        // the text of `.visible .entry k<index>(.param .u64 in, .param .u64 out)`
  std::string entry_name;
  Inputs inputs = Inputs::kOperands;
  std::vector<LoadedRegister> registers;  // 8 bytes of a thread's input each
  unsigned input_bytes = 0;               // of a thread
  unsigned output_bytes = 0;              // of a thread
  unsigned threads = 0;                   // of all; kCta in a CTA
  bool approximate = false;               // equal within a bound only
  bool open = false;                      // PTX leaves the rounding open: floating-point mma

  static constexpr unsigned kCta = 128;
};

// Every case, in the order of the table.
const std::vector<ConformanceCase>& conformance_cases();

// Why the row has no case; empty when it has.
std::string_view exempt(Op op);

// A module of these cases for sm_90a.
std::string conformance_module(absl::Span<const ConformanceCase> cases);

}  // namespace ptxgen::testing
