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

// A variable in a state space. `offset` is its place in the space's image (for an extern shared array: the
// place of the dynamic shared memory, known after all sized ones).
struct Variable {
  std::string_view name;
  Space space = Space::kGlobal;
  std::uint64_t alignment = 1, bytes = 0, offset = 0;
  bool external = false;              // `.extern .shared` without a size: dynamic shared memory
  std::vector<std::uint8_t> initial;  // leading bytes; the rest is zero
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
    kLabel,     // index into Function::labels
    kInteger,   // bits
    kFloat32,
    kFloat64,
    kVector,   // elements: {a, b}
    kAddress,  // elements[0] is the base; offset is added: [a+4]. More elements: [tensor, {c0, c1}]
    kPair,     // elements: p|q
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

struct Function {
  EntryInfo info;
  std::vector<RegisterName> registers;
  std::vector<Label> labels;
  std::vector<Instruction> instructions;
  std::uint64_t local_bytes = 0;
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

}  // namespace ptxgen::emulator
