// Every kernel of the registry through LLVM: assembled for the targets that LLVM knows, and executed.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "ptxgen/gemm.h"
#include "ptxgen/pack.h"
#include "src/builder/instruction_table.h"
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

KernelType parsed(const std::string& descriptor) {
  const std::vector<std::string> words = absl::StrSplit(descriptor, ' ');
  FieldValues values;
  for (std::size_t i = 1; i < words.size(); ++i) values.push_back(absl::StrSplit(words[i], '='));
  return take(take(find_kernel(words[0]))->make(values));
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
  // Without .rn ptxas may contract them.
  for (const char* arithmetic : {"add.f32", "sub.f32", "mul.f32", "add.f64", "sub.f64", "mul.f64"})
    CHECK_FALSE(absl::StrContains(text.ptx, arithmetic));
}

// The line of `ptx` that starts with `directive`, or "".
std::string line_of(const std::string& ptx, const std::string& directive) {
  const std::size_t begin = ptx.find("\n" + directive);
  return begin == ptx.npos ? "" : ptx.substr(begin + 1, ptx.find('\n', begin + 1) - begin - 1);
}

// What is to be compiled, and for which target.
struct Work {
  KernelType kernel;
  Target target;
};

bool has_wgmma(const KernelType& kernel, Target target) {
  const auto built = build_kernel(*kernel, {.target = target});
  return built.ok() && std::any_of(built->instructions.begin(), built->instructions.end(), [](const auto& i) {
           return i.op < Op::kVarRead && row(i.op).kind == Kind::Warpgroup;
         });
}

// Every target that the kernel is for and that LLVM knows, but for wgmma; tests/kernels/targets_test.cc says
// which kernels there are for which targets.
std::vector<Work> for_every_target(const KernelType& kernel) {
  std::vector<Work> all;
  for (const TargetInfo& info : kTargets) {
    const auto direct = generated(kernel, info.target, Codegen::kDirect);
    if (!direct.ok() || has_wgmma(kernel, info.target)) continue;
    if (library().check(info.target, std::max(direct->isa, info.since)).ok())
      all.push_back({kernel, info.target});
  }
  return all;
}

std::vector<Work> everything() {
  std::vector<Work> all;
  for (const KernelType& kernel : all_kernels()) {
    for (Work& work : for_every_target(kernel)) all.push_back(std::move(work));
  }
  return all;
}

// Every kernel once, and every target with some kernels.
std::vector<Work> sample() {
  std::vector<Work> some;
  for (const KernelType& kernel : all_kernels()) {
    const std::vector<Work> all = for_every_target(kernel);
    CAPTURE(kernel->text());
    CHECK((!all.empty() || library().major < 19));
    if (!all.empty()) some.push_back(all[some.size() % all.size()]);
  }
  return some;
}

void check_assembly(const std::vector<Work>& all) {
  std::vector<PtxasJob> jobs;
  for (const auto& [kernel, target] : all) {
    const auto direct = generated(kernel, target, Codegen::kDirect);
    const auto text = generated(kernel, target, Codegen::kLlvm);
    CAPTURE(kernel->text(), target.to_string(), text.status().ToString());
    REQUIRE(text.ok());
    check_text(kernel, target, *text);
    for (const char* bound : {".maxntid ", ".minnctapersm ", ".maxnreg "})
      CHECK(line_of(text->ptx, bound) == line_of(direct->ptx, bound));
    CHECK(text->static_shared_bytes == direct->static_shared_bytes);
    CHECK(text->waits_for_predecessor == direct->waits_for_predecessor);
    jobs.push_back({text->ptx, target});
  }
  const std::vector<PtxasReport> reports = assemble_all(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CAPTURE(all[i].kernel->text(), all[i].target.to_string(), reports[i].log);
    CHECK(reports[i].ok);
    // Of a product of matrices LLVM may hoist more out of the loops than there are registers for.
    if (!all[i].kernel.get_if<Gemm>()) CHECK_FALSE(reports[i].spills());
  }
}

void check_results(const std::vector<Work>& all) {
  for (const auto& [kernel, target] : all) {
    // From there on LLVM 22 packs registers that nothing has written, which the emulator refuses.
    if (target.sm >= 100) continue;
    const LaunchShape shape = kernel->launch_shape(kernel->default_arguments());
    if (shape.dynamic_shared_bytes > limits(target).shared_bytes_per_cta()) continue;  // for larger GPUs
    const Device device = take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = target}));
    KernelCache direct(device), through_llvm(device, {.codegen = Codegen::kLlvm});
    CAPTURE(kernel->text(), target.to_string());
    const LaunchData launch = random_launch(kernel, kernel->default_arguments(), 7);
    const auto expected = run(launch, direct), actual = run(launch, through_llvm);
    REQUIRE(expected.size() == actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(expected[i] == actual[i]);
  }
}

}  // namespace

TEST_CASE("every kernel through LLVM assembles for a target that it knows", "[llvm][ptxas]") {
  const std::vector<Work> all = sample();
  const auto is_for = [](Target target) {
    return [target](const Work& work) { return work.target == target; };
  };
  for (const Work& work : for_every_target(Copy{.vectors = 8})) {
    CAPTURE(work.target.to_string());
    CHECK(std::any_of(all.begin(), all.end(), is_for(work.target)));
  }
  check_assembly(all);
}

TEST_CASE("every kernel computes through LLVM, bit for bit, what the direct generator's text computes",
          "[llvm]") {
  check_results(sample());
}

TEST_CASE("every kernel assembles and computes the same through LLVM for every target that it knows",
          "[.exhaustive][llvm][ptxas]") {
  check_assembly(everything());
  check_results(everything());
}

// PTXGEN_TEST_LLVM_PACK=all.ptxpack, of `ptxgen pack --codegen llvm`: a GPU's machine needs no LLVM.
TEST_CASE("a GPU computes from LLVM's PTX in a pack, bit for bit, what it computes from the direct generator's",
          "[.pack][llvm]") {
  const Device device = take(Device::open({.choice = DeviceChoice::kCuda}));
  const char* path = std::getenv("PTXGEN_TEST_LLVM_PACK");
  REQUIRE(path != nullptr);
  const Pack pack = take(Pack::open(path));
  KernelCache direct(device), through_llvm(device, {.codegen = Codegen::kLlvm, .packs = {pack}});
  std::size_t kernels = 0, bytes = 0;
  for (std::size_t i = 0; i < pack.size(); ++i) {
    const StoredKernel stored = take(pack.entry(i));
    if (stored.image.kind != ImageKind::kPtx || stored.key.target != device.target().to_string()) continue;
    CAPTURE(stored.key.descriptor);
    const KernelType kernel = parsed(stored.key.descriptor);
    const LaunchData launch = random_launch(kernel, kernel->default_arguments(), 7);
    const auto expected = run(launch, direct), actual = run(launch, through_llvm);
    REQUIRE(expected.size() == actual.size());
    for (std::size_t j = 0; j < expected.size(); ++j) {
      CHECK(expected[j] == actual[j]);
      bytes += expected[j].size();
    }
    CHECK(take(through_llvm.get(kernel)).generated().ptx == stored.image.bytes);
    ++kernels;
  }
  WARN(kernels << " kernels, " << bytes << " bytes of results");
  CHECK(kernels > 0);
}

TEST_CASE("LLVM refuses targets that it does not know, and kernels that it could break", "[llvm]") {
  const KernelType copy = Copy{.vectors = 8};
  for (const TargetInfo& info : kTargets) {
    const absl::Status status = generated(copy, info.target, Codegen::kLlvm).status();
    CAPTURE(info.target.to_string(), status.ToString());
    CHECK(status.ok() == library().check(info.target, info.since).ok());
    if (!status.ok()) CHECK(status.code() == absl::StatusCode::kUnimplemented);
  }
  const Target hopper = {90, true};
  const KernelType wgmma =
      Gemm{.k = 768, .n = 64, .schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16};
  CHECK(has_wgmma(wgmma, hopper));
  const absl::Status refused = generated(wgmma, hopper, Codegen::kLlvm).status();
  CHECK(refused.code() == absl::StatusCode::kUnimplemented);
  CHECK(absl::StrContains(refused.message(), "is not for the code generator llvm"));
}

TEST_CASE("the text of LLVM is the same at every time, also from several threads", "[llvm]") {
  const KernelType kernel = Dequant{.format = Format::kQ6_K, .k = 768, .n = 5};
  const std::string once = take(generated(kernel, {80, false}, Codegen::kLlvm)).ptx;
  std::array<std::string, 4> texts;
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      const auto again = generated(kernel, {80, false}, Codegen::kLlvm);
      if (again.ok()) text = again->ptx;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) CHECK(text == once);
}

}  // namespace ptxgen::testing
