// Variables, their initialisers, and the results and parameters of functions.
#pragma once

#include <optional>
#include <string_view>

#include "src/emulator/operand_parser.h"

namespace ptxgen::emulator {

class DeclarationParser : public OperandParser {
 public:
  using OperandParser::OperandParser;

 protected:
  static bool is_space(const Token& t) {
    return t.is(".global") || t.is(".const") || t.is(".shared") || t.is(".local") || t.is(".param");
  }

  // `.global .align 4 .b32 a[3] = {1, 2, 3}, b;` at a space; `function` is null outside of one.
  absl::Status variables(bool external, Function* function);
  // `.param .u64 name` of an entry.
  absl::Status entry_parameter();
  // `(.param .b32 a, .reg .f32 b)` of a .func, or of a prototype, which has no function.
  absl::Status formals(std::vector<Formal>& all, Function* function);

 private:
  // The dotted parts of a declaration: `.global .align 16 .v4 .f32`.
  struct Declaration {
    std::string_view space;
    std::uint64_t alignment = 0, vector = 1;
    std::optional<Type> type;

    std::uint64_t bytes() const { return bits(*type) / 8 * vector; }
  };

  absl::Status declaration(Declaration& d);
  absl::Status attributes();
  // Dimensions after a name. `unsized` is set for `[]`.
  absl::Status dimensions(std::uint64_t& bytes, bool& unsized);
  absl::Status variable(const Declaration& d, bool external, Function* function);
  // Gives the variable its place, and makes its name known.
  absl::Status place(Variable v, Function* function);
  absl::Status initialiser(Variable& v, Type type, int depth);
  absl::Status number(Variable& v, Type type);
  absl::Status address(Variable& v, Type type);
  absl::Status formal(Formal& formal, Function* function);
};

}  // namespace ptxgen::emulator
