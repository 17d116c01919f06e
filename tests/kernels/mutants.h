// Planted faults: a kernel's PTX with one constant changed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ptxgen::testing {

struct Mutant {
  std::string ptx;
  std::size_t constant;  // which of the text's constants was changed
  // The instruction without its registers, behind the one that makes its first source:
  // "shr.u32 _, _, 4; and.b32 _, _, 0xf0f0f0f".
  std::string place;
  std::string change;  // "4 -> 5"; of a mask: "bit 28"
};

// Every constant operand of every instruction, changed in several ways: a mask (of `and`) loses each of its
// bits and gains the one above each run of them; a float becomes its neighbours; an address moves by one
// access to either side; any other number becomes one more, one less, and itself without its top bit.
// Parameters' loads have no constants; directives (.maxntid, .reg) are left alone.
std::vector<Mutant> mutants_of(const std::string& ptx);

}  // namespace ptxgen::testing
