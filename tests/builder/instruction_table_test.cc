// The instruction table against text written by hand and against ptxas: every row has a line, prints what the
// line says, is accepted at its lowest PTX ISA and target, and one below ptxas refuses it and names exactly
// that floor.
#include "src/builder/instruction_table.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "ptxgen/strings.h"
#include "tests/builder/rows.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

// Every version of the PTX ISA from the first that ptxas 13 takes for 64-bit code (PTX ISA, "Release Notes").
constexpr PtxIsa kIsas[] = {{3, 2}, {4, 0}, {4, 1}, {4, 2}, {4, 3}, {5, 0}, {6, 0}, {6, 1},
                            {6, 2}, {6, 3}, {6, 4}, {6, 5}, {7, 0}, {7, 1}, {7, 2}, {7, 3},
                            {7, 4}, {7, 5}, {7, 6}, {7, 7}, {7, 8}, {8, 0}, {8, 1}, {8, 2},
                            {8, 3}, {8, 4}, {8, 5}, {8, 6}, {8, 7}, {8, 8}, {9, 0}};
// Every target from that version on, with the version that introduced it; of one generation in order.
struct AnyTarget {
  Target target;
  PtxIsa since;
};
constexpr AnyTarget kAllTargets[] = {
    {{20, false}, {2, 0}}, {{30, false}, {3, 1}}, {{32, false}, {4, 0}}, {{35, false}, {3, 1}},
    {{37, false}, {4, 1}}, {{50, false}, {4, 0}}, {{52, false}, {4, 1}}, {{53, false}, {4, 2}},
    {{60, false}, {5, 0}}, {{61, false}, {5, 0}}, {{62, false}, {5, 0}}, {{70, false}, {6, 0}},
    {{72, false}, {6, 1}}, {{75, false}, {6, 3}}, {{80, false}, {7, 0}}, {{86, false}, {7, 1}},
    {{87, false}, {7, 4}}, {{89, false}, {7, 8}}, {{90, false}, {7, 8}}, {{90, true}, {8, 0}}};

PtxIsa introduced(Target target) {
  return std::find_if(std::begin(kAllTargets), std::end(kAllTargets),
                      [&](const AnyTarget& info) { return info.target >= target; })
      ->since;
}
std::optional<PtxIsa> below(PtxIsa isa) {
  const auto* at = std::lower_bound(std::begin(kIsas), std::end(kIsas), isa);
  return at == std::begin(kIsas) ? std::nullopt : std::optional(at[-1]);
}
std::optional<Target> below(Target target) {
  const auto* at = std::lower_bound(std::begin(kAllTargets), std::end(kAllTargets), target,
                                    [](const AnyTarget& info, Target t) { return info.target < t; });
  return at == std::begin(kAllTargets) ? std::nullopt : std::optional(at[-1].target);
}

const std::vector<RowCase>& all_cases() {
  static const RowSuite& suite = *[] {
    auto* rows = new RowSuite;
    for (const auto add :
         {add_integer_rows, add_float_rows, add_half_rows, add_comparison_rows, add_logic_rows,
          add_conversion_rows, add_memory_rows, add_warp_rows, add_matrix_rows, add_wgmma_rows,
          add_atomic_rows, add_cta_rows, add_async_rows, add_internal_rows}) {
      add(*rows);
    }
    return rows;
  }();
  return suite.cases();
}

// Many kernels in one text for one `.version` and `.target`, so that few runs of ptxas judge them all.
struct Module {
  PtxIsa isa;
  Target target;
  std::vector<const RowCase*> cases;

  std::string text() const {
    std::string ptx =
        str_cat(".version ", isa.to_string(), "\n.target ", target.to_string(), "\n.address_size 64\n");
    for (const RowCase* row_case : cases) ptx += row_case->entry;
    return ptx;
  }

  // What ptxas says about each case: the messages for its lines.
  std::vector<std::string> messages(std::string_view log) const {
    std::map<std::size_t, std::size_t> case_of_line;  // last line of an entry: its case
    std::size_t line = 3;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      line += static_cast<std::size_t>(std::count(cases[i]->entry.begin(), cases[i]->entry.end(), '\n'));
      case_of_line[line] = i;
    }
    std::vector<std::string> found(cases.size());
    std::istringstream in{std::string(log)};
    for (std::string message; std::getline(in, message);) {
      constexpr std::string_view kLine = "line ";
      const std::size_t at = message.find(kLine);
      if (at == std::string::npos || message.find("ptxas info") == 0) continue;  // advice refuses nothing
      if (message.find("warning : Advisory") != std::string::npos) continue;
      const auto owner = case_of_line.lower_bound(std::stoul(message.substr(at + kLine.size())));
      if (owner != case_of_line.end() && owner->first != 0) found[owner->second] += message + "\n";
    }
    return found;
  }
};

// The cases in modules of equal (isa, target), as `place` says; nothing leaves a case out.
template <class Place>
std::vector<Module> modules(Place&& place) {
  std::map<std::pair<PtxIsa, Target>, Module> by_floor;
  for (const RowCase& row_case : all_cases()) {
    const std::optional<std::pair<PtxIsa, Target>> where = place(row_case);
    if (!where || !row_case.problem.empty()) continue;
    Module& module = by_floor[*where];
    module.isa = where->first;
    module.target = where->second;
    module.cases.push_back(&row_case);
  }
  std::vector<Module> all;
  for (auto& [floor, module] : by_floor) all.push_back(std::move(module));
  return all;
}

std::vector<PtxasReport> assemble_modules(const std::vector<Module>& all) {
  std::vector<PtxasJob> jobs;
  for (const Module& module : all) jobs.push_back({module.text(), std::max(module.target, kBaseTarget)});
  return assemble_all(jobs);
}

// Every module must be refused, and for each case with the words that `requirement` makes.
template <class Requirement>
void check_refused(const std::vector<Module>& all, Requirement&& requirement) {
  const std::vector<PtxasReport> reports = assemble_modules(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK_FALSE(reports[i].ok);
    const std::vector<std::string> messages = all[i].messages(reports[i].log);
    for (std::size_t c = 0; c < all[i].cases.size(); ++c) {
      const RowCase& row_case = *all[i].cases[c];
      const std::string words = requirement(row_case);
      INFO(row(row_case.op).id << ": " << row_case.expected << " at .version " << all[i].isa.to_string()
                               << " .target " << all[i].target.to_string() << "\n"
                               << messages[c] << "wanted: " << words);
      CHECK(messages[c].find(words) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("every row of the instruction table has a line of test", "[instructions]") {
  std::set<Op> tested;
  for (const RowCase& row_case : all_cases()) tested.insert(row_case.op);
  for (u32 i = 0; i < kNumRows; ++i) {
    INFO(row(static_cast<Op>(i)).id << " has no line; add one to tests/builder/*_rows.cc");
    CHECK(tested.contains(static_cast<Op>(i)));
  }
}

TEST_CASE("every row prints its instruction", "[instructions]") {
  for (const RowCase& row_case : all_cases()) {
    INFO(row(row_case.op).id << " " << row_case.problem << "\n"
                             << row_case.entry << "wanted: " << row_case.expected);
    CHECK(row_case.problem.empty());
    const std::vector<std::string> instructions = named_instructions(row_case.entry);
    CHECK(std::count(instructions.begin(), instructions.end(), row_case.expected) == 1);
  }
}

TEST_CASE("ptxas accepts every row at its lowest PTX ISA and target", "[instructions][ptxas]") {
  const std::vector<Module> all = modules([](const RowCase& row_case) {
    const Target target = std::max(row_case.target, kAllTargets[0].target);
    return std::optional(std::pair(std::max({row_case.isa, introduced(target), kIsas[0]}), target));
  });
  const std::vector<PtxasReport> reports = assemble_modules(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<std::string> messages = all[i].messages(reports[i].log);
    for (std::size_t c = 0; c < messages.size(); ++c) {
      INFO(row(all[i].cases[c]->op).id << ": " << all[i].cases[c]->expected << " at .version "
                                       << all[i].isa.to_string() << " .target " << all[i].target.to_string());
      CHECK(messages[c] == "");
    }
    INFO(reports[i].log);
    CHECK(reports[i].ok);
  }
}

TEST_CASE("one PTX ISA below its lowest, ptxas refuses a row and names it", "[instructions][ptxas]") {
  check_refused(modules([](const RowCase& row_case) -> std::optional<std::pair<PtxIsa, Target>> {
                  const Target target = std::max(row_case.target, kAllTargets[0].target);
                  if (row_case.isa <= kIsas[0]) return std::nullopt;
                  return std::pair(*below(row_case.isa), target);
                }),
                [](const RowCase& row_case) {
                  return str_cat("requires PTX ISA .version ", row_case.isa.to_string(), " or later");
                });
}

TEST_CASE("one target below its lowest, ptxas refuses a row and names it", "[instructions][ptxas]") {
  check_refused(modules([](const RowCase& row_case) -> std::optional<std::pair<PtxIsa, Target>> {
                  if (row_case.target <= kAllTargets[0].target) return std::nullopt;
                  return std::pair(std::max(row_case.isa, introduced(row_case.target)),
                                   *below(row_case.target));
                }),
                [](const RowCase& row_case) {
                  // No target has all that an "a" target has.
                  if (row_case.target.arch_specific)
                    return str_cat("not supported on .target '", below(row_case.target)->to_string(), "'");
                  return str_cat("requires .target ", row_case.target.to_string(), " or higher");
                });
}

TEST_CASE("the suite of rows finds what it must", "[instructions]") {
  CHECK(expand_alternatives("a.(x|y).(1|2) d") ==
        std::vector<std::string>{"a.x.1 d", "a.x.2 d", "a.y.1 d", "a.y.2 d"});
  CHECK(expand_alternatives("ret") == std::vector<std::string>{"ret"});
  CHECK(named_instructions("  .reg .b32 %r<3>;\n  ld.param.u32 %r1, [a];\n  mov.u32 %r2, %tid.x;\n"
                           "  mov.b32 {%rs1, %rs2}, %r1;\n") ==
        std::vector<std::string>{"ld.param.u32 d, [a]", "mov.u32 d, %tid.x", "mov.b32 {d0, d1}, a"});
}

}  // namespace ptxgen::testing
