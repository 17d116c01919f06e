// Every kernel of the registry for every target.

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

// The values given, with every combination of the family's enumerations.
std::vector<KernelType> kernels_of(const KernelFamily& family, const FieldValues& given) {
  std::vector<FieldValues> choices = {{}};
  for (const FieldInfo& field : family.fields) {
    std::vector<FieldValues> longer;
    for (const FieldValues& choice : choices) {
      for (const std::string_view value : field.allowed_values) {
        longer.push_back(choice);
        longer.back().emplace_back(field.name, value);
      }
    }
    if (!longer.empty()) choices = std::move(longer);
  }
  std::vector<KernelType> kernels;
  for (FieldValues& choice : choices) {
    for (const auto& [name, value] : given) {
      const auto called = [&, n = std::string_view(name)](const FieldInfo& f) { return f.name == n; };
      if (std::any_of(family.fields.begin(), family.fields.end(), called)) choice.emplace_back(name, value);
    }
    absl::StatusOr<KernelType> kernel = family.make(choice);
    INFO(kernel.status().ToString());
    REQUIRE(kernel.ok());
    kernels.push_back(*kernel);
  }
  return kernels;
}

// What stands behind `directive` on its line.
std::string directive(const std::string& ptx, const std::string& name) {
  const std::size_t at = ptx.find(name + " ");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + name.size() + 1;
  return ptx.substr(begin, ptx.find('\n', at) - begin);
}

PtxIsa version_of(const std::string& ptx) {
  const std::string text = directive(ptx, ".version");
  int major = 0, minor = 0;
  REQUIRE(absl::SimpleAtoi(text.substr(0, text.find('.')), &major));
  REQUIRE(absl::SimpleAtoi(text.substr(text.find('.') + 1), &minor));
  return {static_cast<std::uint8_t>(major), static_cast<std::uint8_t>(minor)};
}

bool is_text(char c) {
  return c == '\n' || (c >= ' ' && c <= '~');
}

void check_text(const KernelType& kernel, const TargetInfo& info, const GeneratedKernel& text) {
  CHECK(std::all_of(text.ptx.begin(), text.ptx.end(), is_text));
  CHECK(absl::StrContains(text.ptx, str_cat(".visible .entry ", kernel->name(), "(")));
  CHECK(text.entry == kernel->name());
  CHECK(version_of(text.ptx) == text.isa);
  CHECK(version_of(text.ptx) <= info.since);
  CHECK(directive(text.ptx, ".target") == text.target.to_string());
  CHECK(info.target.supports(text.target));
  CHECK(generated_for(kernel, info.target).ptx == text.ptx);
}

// Uneven extents bring in every tail of a kernel; the defaults divide evenly.
const FieldValues kUneven = {{"k", "768"}, {"n", "5"}, {"vectors", "1500"}};

void check_all(const FieldValues& given, absl::Span<const TargetInfo> targets) {
  std::vector<PtxasJob> jobs;
  std::vector<std::string> names, entries;
  for (const KernelFamily& family : kernel_families()) {
    for (const KernelType& kernel : kernels_of(family, given)) {
      for (const TargetInfo& info : targets) {
        names.push_back(str_cat(kernel->text(), " for ", info.target.to_string()));
        CAPTURE(names.back());
        const GeneratedKernel text = generated_for(kernel, info.target);
        check_text(kernel, info, text);
        jobs.push_back({text.ptx, info.target});
        entries.push_back(text.entry);
      }
    }
  }
  const std::vector<PtxasReport> reports = assemble_all(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CAPTURE(names[i], reports[i].log);
    CHECK(reports[i].ok);
    CHECK_FALSE(reports[i].spills());
    const PtxasEntry* entry = reports[i].find(entries[i]);
    CHECK((entry != nullptr && entry->stack_bytes == 0));
  }
}

TEST_CASE("every kernel assembles for every target without spills", "[kernels][ptxas]") {
  check_all(kUneven, kTargets);
}

TEST_CASE("kernels whose extents divide evenly assemble for the oldest and a new target",
          "[kernels][ptxas]") {
  const std::array<TargetInfo, 2> ends = {kTargets[0], kTargets[6]};
  check_all({}, ends);
}

}  // namespace
}  // namespace ptxgen::testing
