// Every kernel of the registry for every target.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "ptxgen/gemm.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

// Fields whose values are not combined with all others: what they do, mixed_formats() shows.
bool is_combined(const FieldInfo& field) {
  return field.name != "format_b" && field.name != "format_c";
}

// Every combination of the family's enumerations.
std::vector<FieldValues> choices_of(const KernelFamily& family) {
  std::vector<FieldValues> choices = {{}};
  for (const FieldInfo& field : family.fields) {
    if (field.allowed_values.empty() || !is_combined(field)) continue;
    std::vector<FieldValues> longer;
    for (const FieldValues& choice : choices) {
      for (const std::string_view value : field.allowed_values) {
        longer.push_back(choice);
        longer.back().emplace_back(field.name, value);
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// The values given, with every combination of the family's enumerations that it does not refuse. A value that
// it refuses in every combination could as well not be there; but a name of the Rust original may fix what
// excludes one.
std::vector<KernelType> kernels_of(const KernelFamily& family, const FieldValues& given) {
  std::vector<KernelType> kernels;
  std::map<std::pair<std::string, std::string>, std::size_t> made;
  for (const FieldValues& choice : choices_of(family)) {
    FieldValues values = choice;
    for (const auto& [name, value] : given) {
      const auto called = [&, n = std::string_view(name)](const FieldInfo& f) { return f.name == n; };
      if (std::any_of(family.fields.begin(), family.fields.end(), called)) values.emplace_back(name, value);
    }
    const absl::StatusOr<KernelType> kernel = family.make(values);
    INFO(kernel.status().ToString());
    for (const auto& value : choice) made[value] += kernel.ok();
    if (kernel.ok()) {
      kernels.push_back(*kernel);
    } else {
      REQUIRE(kernel.status().code() == absl::StatusCode::kInvalidArgument);
    }
  }
  REQUIRE_FALSE(kernels.empty());
  for (const auto& [value, times] : made) {
    CAPTURE(family.name, value.first, value.second);
    if (family.defaults->name() == family.name) CHECK(times > 0);
  }
  return kernels;
}

// Three matrices of different formats with blocks of one size, for every format as the first.
std::vector<KernelType> mixed_formats() {
  std::vector<KernelType> kernels;
  for (const FormatInfo& first : kFormats) {
    std::vector<Format> others;
    for (const FormatInfo& other : kFormats) {
      if (other.block_values == first.block_values && other.format != first.format)
        others.push_back(other.format);
    }
    REQUIRE(others.size() >= 2);
    kernels.push_back(FusedGemv{.format = first.format,
                                .k = 768,
                                .n = 5,
                                .format_b = others.front(),
                                .format_c = others.back(),
                                .n_b = 3,
                                .n_c = 9});
    REQUIRE(kernels.back()->validate().ok());
  }
  return kernels;
}

// The oldest target that the kernel can be built for.
Target lowest_target(const KernelType& kernel) {
  for (const TargetInfo& info : kTargets) {
    if (const auto built = build_kernel(*kernel, {info.target}); built.ok()) return built->target;
  }
  FAIL(kernel->text() << " can be built for no target");
  return {};
}

// Of the targets asked for those that products are built for: there are many of them.
bool is_for(const KernelType& kernel, Target target) {
  const bool product = kernel.get_if<Gemv>() || kernel.get_if<BatchedGemv>() || kernel.get_if<FusedGemv>() ||
                       kernel.get_if<Gemm>();
  return !product || target == Target{75, false} || target == Target{90, true} ||
         target == Target{120, false};
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

// A target without something that the kernel needs is told what, and what it needs.
void check_refusal(const KernelType& kernel, Target lowest, const TargetInfo& info) {
  const auto text = generate(*kernel, {.build = {.target = info.target, .max_isa = info.since}});
  CHECK(text.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(
      text.status().message(),
      str_cat(" needs ", lowest.to_string(), "; the kernel is built for ", info.target.to_string())));
}

void check_all(const std::vector<KernelType>& kernels, absl::Span<const TargetInfo> targets) {
  std::vector<PtxasJob> jobs;
  std::vector<std::string> names, entries;
  std::set<std::string> seen;
  for (const KernelType& kernel : kernels) {
    if (!seen.insert(kernel->text()).second) continue;
    const Target lowest = lowest_target(kernel);
    for (const TargetInfo& info : targets) {
      if (!is_for(kernel, info.target)) continue;
      const std::string name = str_cat(kernel->text(), " for ", info.target.to_string());
      CAPTURE(name);
      if (!info.target.supports(lowest)) {
        check_refusal(kernel, lowest, info);
        continue;
      }
      const GeneratedKernel text = generated_for(kernel, info.target);
      check_text(kernel, info, text);
      names.push_back(name);
      jobs.push_back({text.ptx, info.target});
      entries.push_back(text.entry);
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

std::vector<KernelType> all_kernels(const FieldValues& given) {
  std::vector<KernelType> all;
  for (const KernelFamily& family : kernel_families()) {
    const std::vector<KernelType> kernels = kernels_of(family, given);
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  return all;
}

// Uneven extents bring in every tail of a kernel; the defaults divide evenly. A second matrix of as many rows
// as the first lets an epilogue combine them.
const FieldValues kUneven = {{"k", "768"}, {"n", "5"}, {"n_b", "5"}, {"vectors", "1500"}};
const FieldValues kEven = {{"n_b", "4096"}};

TEST_CASE("every kernel assembles for every target without spills", "[kernels][ptxas]") {
  check_all(all_kernels(kUneven), kTargets);
}

TEST_CASE("products of mixed formats assemble without spills", "[kernels][ptxas]") {
  check_all(mixed_formats(), kTargets);
}

TEST_CASE("kernels whose extents divide evenly assemble for the oldest and a new target",
          "[kernels][ptxas]") {
  const std::array<TargetInfo, 2> ends = {kTargets[0], kTargets[6]};
  REQUIRE(ends[1].target == Target{90, true});
  check_all(all_kernels(kEven), ends);
}

}  // namespace
}  // namespace ptxgen::testing
