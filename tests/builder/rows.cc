#include "tests/builder/rows.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "ptxgen/codegen.h"
#include "src/builder/instruction_table.h"

namespace ptxgen::testing {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The register that starts at `at`: "%rd12"; special registers (%tid.x) are none.
std::string_view register_at(std::string_view line, std::size_t at) {
  for (const std::string_view prefix : {"%rs", "%rd", "%r", "%p"}) {
    if (line.substr(at, prefix.size()) != prefix) continue;
    std::size_t end = at + prefix.size();
    while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end]))) ++end;
    if (end > at + prefix.size()) return line.substr(at, end - at);
  }
  return {};
}

std::vector<std::string> registers_of(std::string_view line) {
  std::vector<std::string> found;
  for (std::size_t at = line.find('%'); at != std::string_view::npos; at = line.find('%', at + 1)) {
    const std::string_view name = register_at(line, at);
    if (!name.empty() && std::find(found.begin(), found.end(), name) == found.end()) found.emplace_back(name);
  }
  return found;
}

std::string rename(std::string_view line, const std::map<std::string, std::string>& names) {
  std::string renamed;
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view name = line[at] == '%' ? register_at(line, at) : std::string_view();
    renamed += name.empty() ? std::string(1, line[at]) : names.at(std::string(name));
    at += std::max<std::size_t>(name.size(), 1);
  }
  return renamed;
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

std::vector<std::string> expand_alternatives(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return {std::string(text)};
  const std::size_t close = text.find(')', open);
  std::vector<std::string> texts;
  std::string_view choices = text.substr(open + 1, close - open - 1);
  for (;;) {
    const std::size_t bar = choices.find('|');
    for (const std::string& rest : expand_alternatives(text.substr(close + 1))) {
      texts.push_back(std::string(text.substr(0, open)) + std::string(choices.substr(0, bar)) + rest);
    }
    if (bar == std::string_view::npos) return texts;
    choices.remove_prefix(bar + 1);
  }
}

std::vector<std::string> named_instructions(std::string_view entry) {
  std::map<std::string, std::string> origin;
  std::vector<std::string> instructions;
  for (std::string_view line : lines_of(entry)) {
    if (!starts_with(line, "  ") || starts_with(line, "  .")) continue;
    line = line.substr(2, line.size() - 3);  // without indentation and semicolon
    std::map<std::string, std::string> names = origin;
    const std::vector<std::string> registers = registers_of(line);
    std::vector<std::string> unnamed;
    for (const std::string& name : registers) {
      if (!names.contains(name)) unnamed.push_back(name);
    }
    for (std::size_t i = 0; i < unnamed.size(); ++i) {
      names[unnamed[i]] = unnamed.size() == 1 ? "d" : "d" + std::to_string(i);
    }
    instructions.push_back(rename(line, names));
    const bool is_load = starts_with(line, "ld.param");
    const bool is_test = starts_with(line, "setp.ne.u32") && line.substr(line.size() - 3) == ", 0";
    if (is_load) origin[registers[0]] = line.substr(line.find('[') + 1, 1);
    if (is_test) origin[registers[0]] = origin[registers[1]];
    if (line.find(", m") == line.size() - 3) origin[registers[0]] = "m";  // a tensor map's address, of the
    if (starts_with(line, "cvta.param")) origin[registers[0]] = "m";      // parameter and generic
    if (starts_with(line, "mov.u32") && line.find("shared") != std::string_view::npos)
      origin[registers[0]] = "s";
  }
  return instructions;
}

Target RowSuite::newest_target(Op op) {
  const Target target = row(op).target;
  return target.arch_specific ? target : Target{121, false};
}

void RowSuite::finish(Op op, KernelBuilder& k) {
  RowCase& row_case = cases_.emplace_back();
  row_case.op = op;
  const Row& r = row(op);
  row_case.isa = r.isa;
  row_case.target = r.target;
  const absl::StatusOr<Kernel> kernel = k.finish();
  if (!kernel.ok()) {
    row_case.problem = std::string(kernel.status().message());
    return;
  }
  const std::string ptx = print_ptx(*kernel);
  row_case.entry = ptx.substr(ptx.find("\n.visible"));
  for (const Instruction& instruction : kernel->instructions) {
    if (instruction.op != op) continue;
    const MemoryHints& hints = instruction.modifiers.hints;
    const bool cluster = instruction.modifiers.scope == Scope::kCluster ||
                         instruction.modifiers.space == Space::kSharedCluster;
    for (const ModifierRow* modifier : {&row(hints.op), &row(hints.l1), &row(hints.l2),
                                        &row(cluster ? Space::kSharedCluster : Space::kGlobal)}) {
      row_case.isa = std::max(row_case.isa, modifier->isa);
      row_case.target = std::max(row_case.target, modifier->target);
    }
  }
}

void RowSuite::expect(std::size_t first, std::string_view expected) {
  std::vector<std::string> texts = expand_alternatives(expected);
  if (texts.size() == 1) texts.resize(cases_.size() - first, texts[0]);
  for (std::size_t i = first; i < cases_.size(); ++i) {
    RowCase& row_case = cases_[i];
    if (texts.size() != cases_.size() - first) {
      row_case.problem = std::string(expected) + ": lists " + std::to_string(texts.size()) +
                         " instructions; the row has " + std::to_string(cases_.size() - first) + " types";
    } else {
      row_case.expected = texts[i - first];
    }
  }
}

}  // namespace ptxgen::testing
