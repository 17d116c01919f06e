// The instruction table through LLVM: every row comes out as its instruction, and computes the same.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ptxgen/codegen.h"
#include "ptxgen/emulator.h"
#include "src/codegen/llvm/library.h"
#include "src/codegen/llvm/native.h"
#include "tests/builder/building.h"
#include "tests/codegen/row_kernel.h"
#include "tests/conformance/patterns.h"
#include "tests/support/catch.h"
#include "tests/support/ptxas.h"

namespace ptxgen::testing {
namespace {

// The newest target and PTX ISA of these that the LLVM of the process writes: what 19 does, what 16 does.
BuildOptions newest() {
  const absl::StatusOr<const llvm::Library*> library = llvm::open_library();
  INFO(library.status().ToString());
  REQUIRE(library.ok());
  const BuildOptions current = {.target = {90, true}, .max_isa = {8, 5}};
  const BuildOptions oldest = {.target = {90, false}, .max_isa = {7, 8}};
  return (*library)->check(current.target, current.max_isa).ok() ? current : oldest;
}

constexpr u32 kThreads = 128;
constexpr u32 kWords = 64;  // of input and output a thread

absl::StatusOr<std::string> compile(absl::Span<const Kernel> kernels) {
  return compile_with_llvm(kernels, newest().target, newest().max_isa);
}

std::vector<RowKernel> kernels_of_llvm() {
  std::vector<RowKernel> built;
  for (RowKernel& made : row_kernels(newest())) {
    CAPTURE(made.name);
    if (made.status.ok() && row(made.op).kind == Kind::Warpgroup) {
      const auto refused = compile(absl::MakeConstSpan(&made.kernel, 1)).status();
      CHECK(refused.code() == absl::StatusCode::kUnimplemented);
      CHECK(absl::StrContains(refused.message(),
                              str_cat(row(made.op).id, " is not for the code generator llvm")));
    } else if (made.status.ok()) {
      built.push_back(std::move(made));
    } else {  // newer than the target or the PTX ISA
      CHECK(absl::StrContains(made.status.message(), " needs "));
    }
  }
  return built;
}

std::string through_llvm(const std::vector<RowKernel>& rows) {
  std::vector<Kernel> kernels;
  for (const RowKernel& made : rows) kernels.push_back(made.kernel);
  const absl::StatusOr<std::string> ptx = compile(kernels);
  INFO(ptx.status().ToString());
  REQUIRE(ptx.ok());
  return *ptx;
}

std::string_view entry_of(std::string_view ptx, std::string_view name) {
  const std::size_t begin = ptx.find(str_cat(".entry ", name, "("));
  REQUIRE(begin != ptx.npos);
  return ptx.substr(begin, ptx.find("\n}", begin) - begin);
}

// "mad.wide.s32" of the row's line in the text of the direct generator.
std::string mnemonic_of(const RowKernel& made) {
  const std::string ptx = print_ptx(made.kernel);
  const std::string_view spelling = row(made.op).spelling;
  const std::string start(spelling.substr(0, spelling.find_first_of(" $")));
  const std::size_t begin = ptx.find("\n  " + start);
  REQUIRE(begin != ptx.npos);
  return ptx.substr(begin + 3, ptx.find_first_of(" ;", begin + 3) - begin - 3);
}

std::vector<u32> input_of(const RowKernel& made) {
  ConformanceCase c;
  c.name = made.name;
  c.threads = kThreads;
  c.input_bytes = 4 * kWords;
  for (const Type type : made.inputs) c.registers.push_back({type, 1});
  const std::vector<std::byte> bytes = conformance_input(c);
  std::vector<u32> words(kThreads * kWords);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

std::string first_difference(const std::vector<u32>& expected, const std::vector<u32>& actual) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != actual[i])
      return str_cat("word ", i, ": expected ", absl::Hex(expected[i]), ", got ", absl::Hex(actual[i]));
  }
  return {};
}

std::shared_ptr<const emulator::Program> parsed(const std::string& ptx) {
  auto program = emulator::Program::parse(ptx);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return *program;
}

std::string module_of(const std::vector<RowKernel>& rows) {
  std::vector<Kernel> kernels;
  for (const RowKernel& made : rows) kernels.push_back(made.kernel);
  return print_ptx(kernels);
}

}  // namespace

TEST_CASE("every row comes out of LLVM as its instruction, and assembles", "[llvm][ptxas]") {
  const std::vector<RowKernel> rows = kernels_of_llvm();
  REQUIRE(rows.size() > 700);
  const std::string ptx = through_llvm(rows);
  for (const RowKernel& made : rows) {
    const Operand* operands = made.kernel.operands.data();
    const auto& all = made.kernel.instructions;
    const auto i = std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.op == made.op; });
    REQUIRE(i != all.end());
    if (llvm::is_native(*i, operands + i->operands)) continue;  // its own spelling, or a better one
    CAPTURE(made.name);
    const bool memory = row(made.op).kind == Kind::Load || row(made.op).kind == Kind::Store;
    const bool converts = made.op == Op::cvt_int || made.op == Op::cvt_byte || made.op == Op::unpack_u32;
    if (memory || converts) continue;
    CHECK(absl::StrContains(std::string(entry_of(ptx, made.name)), mnemonic_of(made)));
  }
  const PtxasReport report = assemble(ptx, newest().target);
  INFO(report.log);
  CHECK(report.ok);
}

TEST_CASE("every pure row computes through LLVM what the direct generator's text computes", "[llvm]") {
  std::vector<RowKernel> rows = kernels_of_llvm();
  const auto is_other = [](const RowKernel& made) { return row(made.op).kind != Kind::Pure; };
  rows.erase(std::remove_if(rows.begin(), rows.end(), is_other), rows.end());
  REQUIRE(rows.size() > 500);
  const auto direct = parsed(module_of(rows)), llvm = parsed(through_llvm(rows));
  for (const RowKernel& made : rows) {
    CAPTURE(made.name);
    const std::vector<u32> in = input_of(made);
    const auto expected = run(*direct, made.name, kThreads, in, 0, in.size());
    const auto actual = run(*llvm, made.name, kThreads, in, 0, in.size());
    INFO(expected.status().ToString() << "\n" << actual.status().ToString());
    REQUIRE(expected.ok());
    REQUIRE(actual.ok());
    CHECK(first_difference(*expected, *actual) == "");
    if (made.results)
      CHECK(std::any_of(actual->begin(), actual->end(), [](u32 w) { return w != 0xdeadbeef; }));
  }
}

TEST_CASE("a product and a sum stay two instructions through LLVM, each rounded", "[llvm]") {
  const absl::StatusOr<Kernel> kernel = build([](KernelBuilder& k) {
    const auto in = k.param(&Args::in);
    const auto value = [&](u32 i) { return bitcast<f32>(ld_global(in + i)); };
    const Reg<f32> a = value(0), b = value(1), c = value(2);
    st_global(k.param(&Args::out), bitcast<u32>(a * b + c));
  });
  REQUIRE(kernel.ok());
  const absl::StatusOr<std::string> ptx = compile(absl::MakeConstSpan(&*kernel, 1));
  REQUIRE(ptx.ok());
  CHECK(absl::StrContains(*ptx, "mul.rn.f32"));
  CHECK(absl::StrContains(*ptx, "add.rn.f32"));
  CHECK_FALSE(absl::StrContains(*ptx, "fma"));
}

}  // namespace ptxgen::testing
