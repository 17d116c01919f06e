#include "tests/kernels/mutants.h"

#include <bit>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "ptxgen/types.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

// One line of PTX, "ld.global.nc.v4.u32 {%r9, %r10, %r11, %r12}, [%rd3];", where it lies in the module's
// text.
struct Instruction {
  std::size_t begin, end;
  std::string opcode;
};

struct Constant {
  std::size_t instruction;
  std::size_t begin, end;  // in the module's text; begin == end where an address has no offset
  enum { kInteger, kFloat, kOffset } kind;
  u32 value;
};

bool is_word(char c) {
  return c == '_' || c == '$' || c == '%' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// Where the word or the single character at `at` ends.
std::size_t token_end(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return end == at ? at + 1 : end;
}

std::vector<Instruction> instructions_of(const std::string& ptx) {
  std::vector<Instruction> all;
  for (std::size_t at = ptx.find("{\n") + 2; at < ptx.size();) {
    const std::size_t end = ptx.find('\n', at);
    const std::size_t begin = ptx.find_first_not_of(' ', at);
    at = end + 1;
    if (begin >= end || ptx[begin] == '.' || ptx[begin] == '$' || ptx[begin] == '}') continue;
    all.push_back({begin, end, ptx.substr(begin, ptx.find(' ', begin) - begin)});
  }
  return all;
}

void add_constants(const std::string& ptx, const Instruction& instruction, std::size_t index,
                   std::vector<Constant>& all) {
  bool has_offset = false;
  for (std::size_t at = instruction.begin + instruction.opcode.size(); at < instruction.end;) {
    const std::size_t end = token_end(ptx, at);
    const std::string token = ptx.substr(at, end - at);
    u32 value = 0;
    if (token == "]" && !has_offset && !absl::StartsWith(instruction.opcode, "ld.param")) {
      all.push_back({index, at, at, Constant::kOffset, 0});
    } else if (absl::StartsWith(token, "0f") && absl::SimpleHexAtoi(token.substr(2), &value)) {
      all.push_back({index, at, end, Constant::kFloat, value});
    } else if (absl::StartsWith(token, "0x") ? absl::SimpleHexAtoi(token, &value)
                                             : absl::SimpleAtoi(token, &value)) {
      has_offset = ptx[at - 1] == '+';
      all.push_back({index, at, end, has_offset ? Constant::kOffset : Constant::kInteger, value});
    }
    at = end;
  }
}

// Bytes that a load or store moves: "st.global.v4.f32" moves 16.
u32 access_bytes(const std::string& opcode) {
  const u32 vector = absl::StrContains(opcode, ".v4.") ? 4 : absl::StrContains(opcode, ".v2.") ? 2 : 1;
  u32 bits = 0;
  const std::string type = opcode.substr(opcode.rfind('.') + 2);
  REQUIRE(absl::SimpleAtoi(type, &bits));
  return vector * bits / 8;
}

struct Change {
  std::string text;  // what stands in the constant's place
  std::string name;
};

std::vector<Change> changes_of(const Constant& constant, const std::string& opcode) {
  const u32 v = constant.value;
  std::vector<Change> changes;
  if (constant.kind == Constant::kOffset) {
    const auto step = static_cast<s32>(access_bytes(opcode));
    for (const s32 offset : {static_cast<s32>(v) + step, static_cast<s32>(v) - step}) {
      const std::string text = absl::StrFormat("%d", offset);
      const bool bare = constant.begin == constant.end;
      changes.push_back({bare ? "+" + text : text, absl::StrFormat("+%u -> +%s", v, text)});
    }
  } else if (constant.kind == Constant::kFloat) {
    for (const u32 bits : {v + 1, v - 1}) {
      const std::string text = absl::StrFormat("0f%08X", bits);
      changes.push_back({text, absl::StrFormat("0f%08X -> %s", v, text)});
    }
  } else if (absl::StartsWith(opcode, "and.b")) {
    for (u32 bit = 0; bit < 32; ++bit) {
      const bool set = v >> bit & 1, above = bit > 0 && (v >> (bit - 1) & 1);
      if (!set && !above) continue;
      changes.push_back({absl::StrFormat("%u", v ^ 1u << bit), absl::StrFormat("bit %u", bit)});
    }
  } else {
    std::vector<u32> values = {v + 1};
    if (v > 0) values.push_back(v - 1);
    if (v > 2) values.push_back(v - std::bit_floor(v));
    for (const u32 value : values) {
      changes.push_back({absl::StrFormat("%u", value), absl::StrFormat("%u -> %u", v, value)});
    }
  }
  return changes;
}

// "and.b32 _, _, 31" for "and.b32 %r10, %r7, 31;". Special registers keep their names.
std::string without_registers(std::string_view instruction) {
  std::string text;
  for (std::size_t at = 0; at < instruction.size() && instruction[at] != ';';) {
    const std::size_t end = token_end(instruction, at);
    const std::string_view token = instruction.substr(at, end - at);
    const bool is_register = token[0] == '%' && token.find_first_of("0123456789") != token.npos;
    text += is_register ? "_" : std::string(token);
    at = end;
  }
  return text;
}

// The second register that the instruction names.
std::string_view first_source(std::string_view instruction) {
  const std::size_t source = instruction.find('%', instruction.find('%') + 1);
  if (source >= instruction.size()) return "";
  return instruction.substr(source, token_end(instruction, source) - source);
}

std::string place_of(const std::string& ptx, const std::vector<Instruction>& instructions,
                     std::size_t index) {
  const auto text = [&](std::size_t i) {
    return std::string_view(ptx).substr(instructions[i].begin, instructions[i].end - instructions[i].begin);
  };
  const std::string place = without_registers(text(index));
  const std::string_view source = first_source(text(index));
  for (std::size_t i = 0; i < index && !source.empty(); ++i) {
    const std::string_view operands = text(i).substr(instructions[i].opcode.size() + 1);
    const bool makes_it = operands.substr(0, token_end(operands, 0)) == source;
    if (makes_it) return without_registers(text(i)) + "; " + place;
  }
  return place;
}

}  // namespace

std::vector<Mutant> mutants_of(const std::string& ptx) {
  const std::vector<Instruction> instructions = instructions_of(ptx);
  std::vector<Constant> constants;
  for (std::size_t i = 0; i < instructions.size(); ++i) add_constants(ptx, instructions[i], i, constants);

  std::vector<Mutant> mutants;
  for (std::size_t c = 0; c < constants.size(); ++c) {
    const Constant& constant = constants[c];
    const std::string place = place_of(ptx, instructions, constant.instruction);
    for (const Change& change : changes_of(constant, instructions[constant.instruction].opcode)) {
      Mutant mutant = {ptx, c, place, change.name};
      mutant.ptx.replace(constant.begin, constant.end - constant.begin, change.text);
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

}  // namespace ptxgen::testing
