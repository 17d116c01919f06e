// Names and operands: what an instruction's operands refer to, in the scopes of `{ }`.
#pragma once

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "src/emulator/token_stream.h"

namespace ptxgen::emulator {

inline constexpr int kMaxNesting = 4;  // of { } and [ ] in an operand or initialiser

// Registers and labels of one function, with the module's variables and functions in scope 0.
class OperandParser : public TokenStream {
 public:
  OperandParser(Module& module, std::vector<Token> tokens)
      : TokenStream(module, std::move(tokens)), scopes_(1) {}

 protected:
  // What a name stands for: an operand's kind and index.
  struct Binding {
    Operand::Kind kind;
    std::uint32_t index;
  };

  // The next operand. Labels are no operands here; they need not be declared before their use.
  absl::Status operand(Operand& o, int depth = 0);

  // `(a, b)` of a call.
  absl::Status list(Operand& o) { return elements(o, Operand::Kind::kList, ')', 0); }

  absl::Status offset(Operand& o);
  std::optional<Binding> lookup(std::uint32_t scope, std::string_view name);

  // Forgets the scopes of the function before and opens that of `function`.
  void begin_function(Function& function);
  void end_function() { scope_ = 0; }
  void open_scope(std::uint32_t parent);
  std::uint32_t parent(std::uint32_t scope) const { return scopes_[scope].parent; }
  absl::Status bind(std::string_view name, Binding binding) { return bind_in(scope_, name, binding); }
  absl::Status bind_in_module(std::string_view name, Binding binding) { return bind_in(0, name, binding); }
  Binding add_register(std::string_view name, Type type);
  // `.reg .b32 %r<10>;` declares %r0 to %r9; those that are used become registers.
  void add_registers(std::string_view prefix, std::uint64_t count, Type type) {
    scopes_[scope_].ranges.push_back({prefix, count, type});
  }

  std::uint32_t scope_ = 0;  // the innermost open one
  Function* function_ = nullptr;

 private:
  struct RegisterRange {
    std::string_view prefix;
    std::uint64_t count;
    Type type;
  };
  struct Scope {
    std::uint32_t parent = 0;
    absl::flat_hash_map<std::string_view, Binding> names;
    std::vector<RegisterRange> ranges;
  };

  absl::Status elements(Operand& o, Operand::Kind kind, char close, int depth);
  absl::Status constant(Operand& o);
  absl::Status named(Operand& o);
  absl::Status bind_in(std::uint32_t scope, std::string_view name, Binding binding);

  std::vector<Scope> scopes_;  // 0 is the module's
};

}  // namespace ptxgen::emulator
