// Which LLVM is opened, what is said where there is none to use, and what its presence changes: nothing else.
#include <filesystem>

#include "absl/strings/match.h"
#include "ptxgen/environment.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"
#include "src/codegen/llvm/library.h"
#include "tests/builder/building.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace ptxgen::testing {
namespace {

Kernel small_kernel(std::string_view shared_arrays = "") {
  return take(build([&](KernelBuilder& k) {
    if (shared_arrays == "unused") k.shared<u32>(12);
    const auto i = k.tid_x();
    st_global(k.param(&Args::out) + i, i * 3);
  }));
}

std::string refusal(const char* library, Target target = {75, false}, PtxIsa isa = {6, 3}) {
  const ScopedVariable variable(env::kLlvmLibrary.name, library);
  const Kernel kernel = small_kernel();
  return std::string(compile_with_llvm(absl::MakeConstSpan(&kernel, 1), target, isa).status().message());
}

const std::string kInstall =
    "install LLVM's runtime library (Debian: apt-get install libllvm19) or name one in PTXGEN_LLVM_LIBRARY";

}  // namespace

TEST_CASE("a library that is no LLVM to use is refused with what it lacks", "[llvm]") {
  CHECK(absl::StrContains(refusal("/nonexistent/libLLVM.so"),
                          "LLVM could not be opened (/nonexistent/libLLVM.so: "));
  CHECK(absl::EndsWith(refusal("/nonexistent/libLLVM.so"), "; " + kInstall));
  CHECK(refusal("libm.so.6") == "libm.so.6 is no LLVM; " + kInstall);
  CHECK(refusal(PTXGEN_FAKE_LLVM_ANCIENT) ==
        str_cat(PTXGEN_FAKE_LLVM_ANCIENT, " is an LLVM before 16, which ptxgen needs; ", kInstall));
  CHECK(refusal(PTXGEN_FAKE_LLVM_OLD) ==
        str_cat(PTXGEN_FAKE_LLVM_OLD, " is LLVM 15.1.7, and ptxgen needs 16 or later; ", kInstall));
  CHECK(refusal(PTXGEN_FAKE_LLVM_BARE) ==
        str_cat(PTXGEN_FAKE_LLVM_BARE, " (LLVM 19.1.7) was built without the NVPTX back-end; ", kInstall));
  CHECK(refusal(PTXGEN_FAKE_LLVM_TORN) ==
        str_cat(PTXGEN_FAKE_LLVM_TORN, " (LLVM 19.1.7) lacks LLVMInitializeNVPTXAsmPrinter of the C API; ",
                kInstall));
}

TEST_CASE("an LLVM that is older than the target says which one knows it", "[llvm]") {
  llvm::Library library;
  library.path = "libLLVM.so";
  const auto says = [&](unsigned major, Target target, PtxIsa isa) {
    library.major = major;
    library.version = str_cat(major, ".1.0");
    return std::string(library.check(target, isa).message());
  };
  CHECK(says(19, {100, true}, {8, 6}) ==
        "libLLVM.so is LLVM 19.1.0, which does not know sm_100a with PTX ISA 8.6; the first that does is "
        "LLVM 20: "
        "install it or name one in PTXGEN_LLVM_LIBRARY, choose an older target, or use the direct code "
        "generator");
  CHECK(says(19, {90, true}, {8, 0}).empty());
  CHECK(absl::StrContains(says(16, {90, true}, {8, 0}), "the first that does is LLVM 18: "));
  CHECK(absl::StrContains(says(17, {90, true}, {8, 0}), "the first that does is LLVM 18: "));
  CHECK(says(16, {90, false}, {7, 8}).empty());
  CHECK(absl::StrContains(says(16, {90, false}, {8, 0}),
                          "sm_90 with PTX ISA 8.0; the first that does is LLVM 17: "));
  CHECK(absl::StrContains(says(20, {103, false}, {8, 8}), "LLVM 21: "));
  CHECK(absl::StrContains(says(21, {110, false}, {9, 0}), "LLVM 22: "));
  CHECK(says(22, {121, false}, {9, 0}).empty());
}

TEST_CASE("LLVM keeps shared arrays that nothing uses, and names what it compiled", "[llvm]") {
  const Kernel kernel = small_kernel("unused");
  const std::string ptx = take(compile_with_llvm(absl::MakeConstSpan(&kernel, 1), {80, false}, {7, 0}));
  CHECK(absl::StrContains(ptx, ".version 7.0\n.target sm_80\n"));
  CHECK(absl::StrContains(ptx, ".shared .align 4 .b8 _test_shared_0[48];"));
  CHECK(describe(Codegen::kDirect) == "direct");
  CHECK(absl::StartsWith(describe(Codegen::kLlvm), "llvm "));
  const ScopedVariable none(env::kLlvmLibrary.name, "/nonexistent/libLLVM.so");
  CHECK(describe(Codegen::kLlvm) == "llvm");
}

TEST_CASE("IR that LLVM refuses is a status, and prints nothing", "[llvm]") {
  Kernel kernel = small_kernel();
  kernel.parameters[0].name = "not a name";
  const absl::Status refused =
      compile_with_llvm(absl::MakeConstSpan(&kernel, 1), {80, false}, {7, 0}).status();
  CHECK(refused.code() == absl::StatusCode::kInternal);
  CHECK(absl::StrContains(refused.message(), "reading IR: "));
}

TEST_CASE("the code generator is part of a kernel's key", "[llvm]") {
  const Device device =
      take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = Target{80, false}}));
  KernelCache direct(device), llvm(device, {.codegen = Codegen::kLlvm});
  const CompiledKernel a = take(direct.get(KernelType(Copy{.vectors = 8}))),
                       b = take(llvm.get(KernelType(Copy{.vectors = 8})));
  CHECK(absl::StrContains(a.key(), "; codegen direct, sm_80"));
  CHECK(absl::StrContains(b.key(), str_cat("; codegen ", describe(Codegen::kLlvm), ", sm_80")));
  CHECK(b.generated().ptx != a.generated().ptx);
}

TEST_CASE("only the code generator llvm opens an LLVM", "[llvm][cli]") {
  Command command;
  command.environment["PTXGEN_LLVM_LIBRARY"] = "/nonexistent/libLLVM.so";
  const Command::Arguments dump = {"dump", "--kernel", "copy", "--target", "sm_80"};
  const auto with = [&](std::initializer_list<std::string> more) {
    Command::Arguments arguments = dump;
    arguments.insert(arguments.end(), more);
    return command.run(arguments);
  };
  CHECK(with({}).exit_status == 0);
  const Finished ir = with({"--emit", "llvm-ir"});
  CHECK(ir.exit_status == 0);
  CHECK(absl::StrContains(ir.out, "define ptx_kernel void @copy("));
  const Finished refused = with({"--codegen", "llvm"});
  CHECK(refused.exit_status == 2);
  CHECK(absl::StrContains(refused.err, "LLVM could not be opened"));
  CHECK(absl::StrContains(with({"--codegen", "gcc"}).err, "--codegen is 'gcc'; choose one of direct, llvm"));
}

TEST_CASE("another LLVM in the process does not get into the way", "[llvm][cli]") {
  Command command;
  const Command::Arguments arguments = {"dump",  "--kernel",  "q4k_dequant", "--target",
                                        "sm_80", "--codegen", "llvm"};
  const Finished alone = command.run(arguments);
  REQUIRE(alone.exit_status == 0);
  command.environment["LD_PRELOAD"] = PTXGEN_FAKE_LLVM_HOSTILE;
  const Finished beside = command.run(arguments);
  CHECK(beside.exit_status == 0);
  CHECK(beside.out == alone.out);
  CHECK(beside.err.empty());
}

TEST_CASE("the commands take the code generator", "[llvm][cli]") {
  const Command command;
  const auto verified =
      command.run_json({"verify", "--kernel", "q5k_dequant", "--k", "768", "--n", "3", "--codegen", "llvm"});
  CHECK(verified["verified"] == true);
  const auto explained = command.run_json({"explain", "--kernel", "q4k_gemv", "--codegen", "llvm"});
  const auto direct = command.run_json({"explain", "--kernel", "q4k_gemv"});
  CHECK(explained["needs_target"] == "sm_90");
  CHECK(explained["ptx_instructions"] != direct["ptx_instructions"]);
  CHECK(explained["compiled"]["known"][0]["registers"].get<u32>() > 8);
  for (const char* name : {"run", "verify", "bench", "explain", "dump"}) {
    Command::Arguments arguments = {name, "--kernel", "copy", "--codegen", "x"};
    if (name == std::string("run")) arguments.insert(arguments.end(), {"--in", "src=x", "--out", "dst=x"});
    const Finished refused = command.run(arguments);
    CAPTURE(name, refused.err);
    CHECK(refused.exit_status == 2);
    CHECK(absl::StrContains(refused.err, "--codegen is 'x'; choose one of direct, llvm"));
  }
}

TEST_CASE("bench takes a list of code generators, the others one", "[llvm][cli]") {
  const Command command;
  const auto says = [&](const std::string& name, const std::string& codegen) {
    const Finished refused = command.run({name, "--kernel", "copy", "--codegen", codegen});
    CHECK(refused.exit_status == 2);
    return refused.err;
  };
  CHECK(absl::StrContains(says("bench", "direct,direct"), "--codegen gives direct twice"));
  CHECK(absl::StrContains(says("bench", "direct,"), "a part of it is empty"));
  CHECK(absl::StrContains(says("bench", "llvm,x"), "--codegen is 'x'; choose one of direct, llvm"));
  CHECK(absl::StrContains(says("verify", "direct,llvm"), "--codegen is 'direct,llvm'; choose one of"));
}

// What it runs is LLVM's text: PTXGEN_DUMP shows it.
TEST_CASE("run runs what LLVM wrote, and keeps it under a key of its own", "[llvm][cli]") {
  Command command;
  command.environment["PTXGEN_DUMP"] = "dump";
  const std::string content(48 * 16, 'x');
  REQUIRE(write_file(command.folder() / "src", content));
  for (const char* codegen : {"direct", "llvm"}) {
    const Finished ran = command.run({"run", "--kernel", "copy", "--vectors", "48", "--in", "src=src",
                                      "--out", "dst=dst", "--codegen", codegen});
    CAPTURE(codegen, ran.err);
    CHECK(ran.exit_status == 0);
    CHECK(read_file(command.folder() / "dst") == content);
  }
  std::size_t by_llvm = 0, all = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(command.folder() / "dump")) {
    if (entry.path().extension() != ".ptx") continue;
    ++all;
    by_llvm += absl::StrContains(read_file(entry.path()).value(), "// Generated by LLVM NVPTX Back-End");
  }
  CHECK(all == 2);
  CHECK(by_llvm == 1);
}

}  // namespace ptxgen::testing
