// A PTX module as written: declarations and instructions with names resolved to declarations, not yet
// decoded. Every string_view points into Module::source.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/emulator.h"
#include "src/emulator/types.h"

namespace ptxgen::emulator {

struct Function;

// An address in an initialiser, which is known only when the module is loaded.
struct Relocation {
  std::uint64_t at = 0;    // in the variable
  std::uint8_t bytes = 0;  // stored there
  std::uint8_t shift = 0;  // of the address: 0xff00(x) is its second byte
  bool generic = false;    // generic(x)
  bool function = false;   // `index` is into Module::functions, not Module::variables
  std::uint32_t index = 0;
  std::uint64_t addend = 0;
};

// A variable in a state space. `offset` is its place in the space's image (for an extern shared array: the
// place of the dynamic shared memory, known after all sized ones; for a `.local` variable or a `.param` one
// of a function, which live in the same memory of each thread: its place in the function's frame).
struct Variable {
  std::string_view name;
  Space space = Space::kGlobal;
  std::uint64_t alignment = 1, bytes = 0, offset = 0;
  // `.extern`: of .shared without a size the dynamic shared memory, of others a variable of another module.
  bool external = false;
  std::vector<std::uint8_t> initial;  // leading bytes; the rest is zero
  std::vector<Relocation> relocations;
  const Function* owner = nullptr;  // of .local and .param variables
  std::uint32_t line = 0;
};

struct RegisterName {
  std::string_view name;
  Type type;
};

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,  // index into Function::registers
    kSpecial,   // name: "%tid.x"
    kVariable,  // index into Module::variables, plus offset
    kParam,     // index into EntryInfo::params, plus offset
    kFunction,  // index into Module::functions
    kTable,     // index into Function::tables
    kLabel,     // index into Function::labels
    kInteger,   // bits
    kFloat32,
    kFloat64,
    kVector,   // elements: {a, b}
    kAddress,  // elements[0] is the base; offset is added: [a+4]. More elements: [tensor, {c0, c1}]
    kPair,     // elements: p|q
    kList,     // elements: (a, b), the results or arguments of a call
    kDiscard,  // _
  };
  Kind kind = Kind::kDiscard;
  bool negated = false;  // !p
  std::uint32_t index = 0;
  std::int64_t offset = 0;
  std::uint64_t bits = 0;
  std::string_view name;  // as written; for messages
  std::vector<Operand> elements;
};

struct Instruction {
  std::uint32_t line = 0;
  std::string_view text;  // from the guard to before the semicolon
  std::optional<Operand> guard;
  std::string_view opcode;                  // "ld"
  std::vector<std::string_view> modifiers;  // "global", "L1::no_allocate"; without dots
  std::vector<Operand> operands;
};

struct Label {
  std::string_view name;
  std::uint32_t scope = 0;
  std::optional<std::uint32_t> target;  // index of the instruction that follows
  std::uint32_t line = 0;               // of the first use or the definition
};

// A result or parameter of a `.func` or a `.callprototype`.
struct Formal {
  Operand place;  // kRegister, or kVariable for .param; kDiscard in a prototype
  std::uint64_t bytes = 0;
};

struct Signature {
  std::vector<Formal> results, parameters;
};

// What stands behind a label: the targets that brx.idx or a call through a register may have, or the
// signature of what it calls.
struct Table {
  enum class Kind : std::uint8_t { kBranchTargets, kCallTargets, kPrototype };
  Kind kind = Kind::kBranchTargets;
  std::vector<std::uint32_t> targets;  // into Function::labels, or into Module::functions
  Signature prototype;
};

// An `.entry` or a `.func`.
struct Function {
  EntryInfo info;  // of a .func the name alone
  bool is_entry = false;
  bool defined = false;                // has a body; else it is only declared
  std::optional<std::uint32_t> alias;  // of the function that `.alias` makes it
  Signature signature;                 // of a .func
  std::vector<RegisterName> registers;
  std::vector<Label> labels;
  std::vector<Table> tables;
  std::vector<Instruction> instructions;
  std::uint64_t local_bytes =
      0;  // of a thread: its .local variables, and the .param ones of a .func or a body
};

struct Module {
  std::string source;
  PtxIsa version;
  Target target;
  std::vector<Variable> variables;
  std::vector<std::unique_ptr<Function>> functions;
  std::uint64_t global_bytes = 0, const_bytes = 0;  // images of the .global and .const variables
};

// `Module::source` is set to a copy of `ptx`.
absl::StatusOr<std::unique_ptr<Module>> parse_module(std::string_view ptx);

// kInvalidArgument: "PTX line 12: <what>: '<text of the line>'".
absl::Status parse_error(const Module& module, std::uint32_t line, std::string_view what);

// What a register holds that names the function: a number in no state space.
inline constexpr std::uint64_t kCodeWindow = std::uint64_t{15} << kWindowShift;
inline constexpr std::uint64_t kCodeStride = 16;
constexpr std::uint64_t code_address(std::uint32_t function) {
  return kCodeWindow + kCodeStride * (std::uint64_t{function} + 1);
}

// The initial content of the .global or .const variables. `image` has the space's size and is zero; `globals`
// is where the .global variables are.
void initialise(const Module& module, Space space, std::uint64_t globals, std::uint8_t* image);

}  // namespace ptxgen::emulator
