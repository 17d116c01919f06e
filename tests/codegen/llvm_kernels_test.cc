// Every kernel of the registry through LLVM: assembled for the targets that LLVM knows, and executed.
#include <algorithm>
#include <array>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "src/codegen/llvm/library.h"
#include "tests/kernels/products.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"
#include "tests/support/status.h"

namespace ptxgen::testing {
namespace {

// Uneven extents bring in every tail of a kernel.
const FieldValues kUneven = {{"k", "768"}, {"n", "5"}, {"n_b", "5"}, {"vectors", "1500"}};

KernelType uneven(const KernelFamily& family) {
  FieldValues values;
  for (const auto& value : kUneven) {
    const auto called = [&, name = std::string_view(value.first)](const FieldInfo& f) {
      return f.name == name;
    };
    if (std::any_of(family.fields.begin(), family.fields.end(), called)) values.push_back(value);
  }
  return take(family.make(values));
}

// One for each name in `ptxgen list`, without those that are another's name.
std::vector<KernelType> all_kernels() {
  std::vector<KernelType> kernels;
  std::set<std::string> seen;
  for (const KernelFamily& family : kernel_families()) {
    KernelType kernel = uneven(family);
    if (seen.insert(kernel->text()).second) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

absl::StatusOr<GeneratedKernel> generated(const KernelType& kernel, Target target, Codegen codegen) {
  return generate(*kernel, {.build = {.target = target}, .codegen = codegen});
}

const llvm::Library& library() {
  const auto opened = llvm::open_library();
  INFO(opened.status().ToString());
  REQUIRE(opened.ok());
  return **opened;
}

void check_text(const KernelType& kernel, Target target, const GeneratedKernel& text) {
  const auto is_ascii = [](char c) { return c == '\n' || c == '\t' || (c >= ' ' && c <= '~'); };
  CHECK(std::all_of(text.ptx.begin(), text.ptx.end(), is_ascii));
  CHECK(text.target == target);
  CHECK(absl::StrContains(
      text.ptx, str_cat(".version ", text.isa.to_string(), "\n.target ", target.to_string(), "\n")));
  CHECK(absl::StrContains(text.ptx, str_cat(".visible .entry ", kernel->name(), "(\n")));
  for (const ArgInfo& argument : kernel->arguments(kernel->default_arguments()))
    CHECK(absl::StrContains(
        text.ptx, str_cat(" ", argument.name,
                          text.ptx.find(str_cat(" ", argument.name, ",")) != text.ptx.npos ? "," : "\n")));
  CHECK_FALSE(absl::StrContains(text.ptx, ".local"));
}

// The line of `ptx` that starts with `directive`, or "".
std::string line_of(const std::string& ptx, const std::string& directive) {
  const std::size_t begin = ptx.find("\n" + directive);
  return begin == ptx.npos ? "" : ptx.substr(begin + 1, ptx.find('\n', begin + 1) - begin - 1);
}

}  // namespace

TEST_CASE("every kernel through LLVM assembles for every target that it knows, without spills",
          "[llvm][ptxas]") {
  std::vector<PtxasJob> jobs;
  std::vector<std::string> names;
  std::set<std::string> targets;
  for (const KernelType& kernel : all_kernels()) {
    for (const TargetInfo& info : kTargets) {
      const auto direct = generated(kernel, info.target, Codegen::kDirect);
      if (!direct.ok()) continue;  // tests/kernels/targets_test.cc says for which targets
      const auto text = generated(kernel, info.target, Codegen::kLlvm);
      CAPTURE(kernel->text(), info.target.to_string(), text.status().ToString());
      if (!library().check(info.target, std::max(direct->isa, info.since)).ok()) {
        CHECK(text.status().code() == absl::StatusCode::kUnimplemented);
        continue;
      }
      REQUIRE(text.ok());
      check_text(kernel, info.target, *text);
      for (const char* bound : {".maxntid ", ".minnctapersm ", ".maxnreg "})
        CHECK(line_of(text->ptx, bound) == line_of(direct->ptx, bound));
      CHECK(text->static_shared_bytes == direct->static_shared_bytes);
      CHECK(text->waits_for_predecessor == direct->waits_for_predecessor);
      targets.insert(info.target.to_string());
      names.push_back(str_cat(kernel->text(), " for ", info.target.to_string()));
      jobs.push_back({text->ptx, info.target});
    }
  }
  for (const char* target : {"sm_75", "sm_80", "sm_90"}) CHECK(targets.count(target) == 1);
  const std::vector<PtxasReport> reports = assemble_all(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CAPTURE(names[i], reports[i].log);
    CHECK(reports[i].ok);
    CHECK_FALSE(reports[i].spills());
  }
}

TEST_CASE("every kernel computes through LLVM, bit for bit, what the direct generator's text computes",
          "[llvm]") {
  std::size_t compared = 0;
  for (const Target target : {Target{75, false}, Target{80, false}, Target{90, true}}) {
    const Device device = take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = target}));
    KernelCache direct(device), through_llvm(device, {.codegen = Codegen::kLlvm});
    for (const KernelType& kernel : all_kernels()) {
      if (!generated(kernel, target, Codegen::kDirect).ok()) continue;
      CAPTURE(kernel->text(), target.to_string());
      const LaunchData launch = random_launch(kernel, kernel->default_arguments(), 7);
      const auto expected = run(launch, direct), actual = run(launch, through_llvm);
      REQUIRE(expected.size() == actual.size());
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(expected[i] == actual[i]);
      ++compared;
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("the text of LLVM is the same at every time, also from several threads", "[llvm]") {
  const KernelType kernel = Gemv{.k = 768, .n = 5};
  const std::string once = take(generated(kernel, {90, true}, Codegen::kLlvm)).ptx;
  std::array<std::string, 4> texts;
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      const auto again = generated(kernel, {90, true}, Codegen::kLlvm);
      if (again.ok()) text = again->ptx;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) CHECK(text == once);
}

}  // namespace ptxgen::testing
