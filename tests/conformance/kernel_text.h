// The text of a conformance case's kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/strings.h"
#include "tests/conformance/cases.h"

namespace ptxgen::testing {

inline unsigned bytes_of(Type type) {
  return info(type).bytes;
}

// Writes the kernel, and into the case what a thread's input and output are. %in and %out are the thread's,
// %t its number in the CTA.
class KernelText {
 public:
  explicit KernelText(ConformanceCase& c) : case_(c) {}

  // The name of a register not yet used.
  std::string fresh(Type type);
  void line(std::string_view text) { str_append(&body_, "  ", text, ";\n"); }

  // A register of the thread's input.
  std::string loaded(Type type, Type element, unsigned per);
  // The register's bits go into the thread's output.
  void stored(Type type, std::string_view name);
  // 16 bytes from `from` to `to`, addresses with their spaces.
  void copy16(std::string_view from_space, std::string_view from, std::string_view to_space,
              std::string_view to);

  // 16 bytes of shared memory for each thread, at %s; so many times, kPieceBytes from each other.
  static constexpr unsigned kPieceBytes = 16 * ConformanceCase::kCta;
  void use_shared(unsigned pieces = 1);

  // The whole text; completes the case: sizes rounded up to what their alignment asks for.
  std::string entry();

 private:
  ConformanceCase& case_;
  std::string body_;
  unsigned input_alignment_ = 8, output_alignment_ = 1;
  unsigned predicates_ = 0, halves_ = 0, words_ = 0, longs_ = 0;
  unsigned shared_ = 0;  // pieces
};

// An instruction of the table with registers for its results and operands, "[address]" where an operand is
// one.
struct Call {
  const Row& row;
  Type type = Type::kNone, to = Type::kNone;
  Modifiers modifiers = {};
  std::vector<std::string> results = {}, operands = {};
};

std::string text_of(const Call& call);

}  // namespace ptxgen::testing
