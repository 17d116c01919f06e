// LLVM IR to PTX: the standard O3 pipeline and the NVPTX back-end.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "ptxgen/codegen.h"
#include "ptxgen/strings.h"
#include "src/builder/instruction_table.h"
#include "src/codegen/llvm/library.h"
#include "src/codegen/spell.h"

namespace ptxgen {
namespace {

constexpr char kTriple[] = "nvptx64-nvidia-cuda";
// llvm-c/TargetMachine.h, llvm-c/Core.h
constexpr int kAggressive = 3, kDefaultRelocation = 0, kDefaultCodeModel = 0, kAssemblyFile = 0, kError = 0;

using llvm::Library;

// One compilation. What LLVM makes is freed in the reverse order.
class Compilation {
 public:
  explicit Compilation(const Library& library) : llvm_(library), context_(library.LLVMContextCreate()) {
    llvm_.LLVMContextSetDiagnosticHandler(context_, note, this);
  }
  ~Compilation() {
    if (output_) llvm_.LLVMDisposeMemoryBuffer(output_);
    if (module_) llvm_.LLVMDisposeModule(module_);
    if (machine_) llvm_.LLVMDisposeTargetMachine(machine_);
    llvm_.LLVMContextDispose(context_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  absl::StatusOr<std::string> run(const std::string& ir, Target target, PtxIsa isa) {
    if (absl::Status s = make_machine(target, isa); !s.ok()) return s;
    if (absl::Status s = parse(ir); !s.ok()) return s;
    if (absl::Status s = optimise(); !s.ok()) return s;
    return emit();
  }

 private:
  absl::Status make_machine(Target target, PtxIsa isa) {
    llvm::Target* found = nullptr;
    char* message = nullptr;
    if (llvm_.LLVMGetTargetFromTriple(kTriple, &found, &message))
      return failed("finding its back-end", message);
    const std::string features = str_cat("+ptx", isa.major, isa.minor);
    machine_ = llvm_.LLVMCreateTargetMachine(found, kTriple, target.to_string().c_str(), features.c_str(),
                                             kAggressive, kDefaultRelocation, kDefaultCodeModel);
    return machine_ ? absl::OkStatus() : failed(str_cat("preparing for ", target.to_string()), nullptr);
  }

  absl::Status parse(const std::string& ir) {
    char* message = nullptr;
    llvm::MemoryBuffer* text =
        llvm_.LLVMCreateMemoryBufferWithMemoryRangeCopy(ir.data(), ir.size(), "kernel");
    if (llvm_.LLVMParseIRInContext(context_, text, &module_, &message))
      return failed("reading IR", message);  // frees text
    llvm::TargetData* layout = llvm_.LLVMCreateTargetDataLayout(machine_);
    llvm_.LLVMSetModuleDataLayout(module_, layout);
    llvm_.LLVMDisposeTargetData(layout);
    return absl::OkStatus();
  }

  absl::Status optimise() {
    llvm::PassBuilderOptions* options = llvm_.LLVMCreatePassBuilderOptions();
    llvm::Error* error = llvm_.LLVMRunPasses(module_, "default<O3>", machine_, options);
    llvm_.LLVMDisposePassBuilderOptions(options);
    if (!error) return absl::OkStatus();
    char* const why = llvm_.LLVMGetErrorMessage(error);
    const absl::Status status = failure("optimising", why);
    llvm_.LLVMDisposeErrorMessage(why);
    return status;
  }

  absl::StatusOr<std::string> emit() {
    char* message = nullptr;
    if (llvm_.LLVMTargetMachineEmitToMemoryBuffer(machine_, module_, kAssemblyFile, &message, &output_))
      return failed("writing PTX", message);
    if (!errors_.empty()) return failure("writing PTX", errors_);
    return std::string(llvm_.LLVMGetBufferStart(output_), llvm_.LLVMGetBufferSize(output_));
  }

  // Takes `message`, which may be null.
  absl::Status failed(std::string_view doing, char* message) {
    const absl::Status status = failure(doing, message ? std::string_view(message) : errors_);
    if (message) llvm_.LLVMDisposeMessage(message);
    return status;
  }
  absl::Status failure(std::string_view doing, std::string_view why) const {
    return absl::InternalError(str_cat(llvm_.path, " (LLVM ", llvm_.version, "), ", doing, ": ", why));
  }

  // LLVM would print its diagnostics, and end the process at an error.
  static void note(llvm::DiagnosticInfo* info, void* self) {
    Compilation& compilation = *static_cast<Compilation*>(self);
    if (compilation.llvm_.LLVMGetDiagInfoSeverity(info) != kError) return;
    char* const text = compilation.llvm_.LLVMGetDiagInfoDescription(info);
    str_append(&compilation.errors_, compilation.errors_.empty() ? "" : "; ", text);
    compilation.llvm_.LLVMDisposeMessage(text);
  }

  const Library& llvm_;
  llvm::Context* const context_;
  llvm::TargetMachine* machine_ = nullptr;
  llvm::Module* module_ = nullptr;
  llvm::MemoryBuffer* output_ = nullptr;
  std::string errors_;
};

// Between wgmma.fence and the wait, the registers of wgmma may not be written; LLVM does not know, and puts
// what initialises them there.
absl::Status check_registers(const Kernel& kernel) {
  for (const Instruction& i : kernel.instructions) {
    if (i.op >= Op::kVarRead || row(i.op).kind != Kind::Warpgroup) continue;
    return absl::UnimplementedError(
        str_cat("kernel ", kernel.name, ": ", row(i.op).id,
                " is not for the code generator llvm, which may write its registers "
                "while it runs; use the direct code generator"));
  }
  return absl::OkStatus();
}

// "<entry>_param_2", as LLVM calls the parameters, or nothing.
std::string_view parameter_name(std::string_view word, absl::Span<const Kernel> kernels) {
  constexpr std::string_view kInfix = "_param_";
  for (const Kernel& kernel : kernels) {
    std::string_view rest = word;
    if (!rest.starts_with(kernel.name)) continue;
    rest.remove_prefix(kernel.name.size());
    if (!rest.starts_with(kInfix)) continue;
    rest.remove_prefix(kInfix.size());
    std::size_t index = 0;
    if (absl::SimpleAtoi(absl::string_view(rest.data(), rest.size()), &index) &&
        index < kernel.parameters.size())
      return kernel.parameters[index].name;
  }
  return {};
}

std::string with_parameter_names(std::string_view rest, absl::Span<const Kernel> kernels) {
  constexpr auto is_part = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
  };
  std::string named;
  named.reserve(rest.size());
  while (!rest.empty()) {
    const auto begin = std::find_if(rest.begin(), rest.end(), is_part);
    const auto end = std::find_if_not(begin, rest.end(), is_part);
    named.append(rest.begin(), begin);
    const std::string_view word(begin, end), name = parameter_name(word, kernels);
    named.append(name.empty() ? word : name);
    rest = std::string_view(end, rest.end());
  }
  return named;
}

// Between the parameters and the body.
void add_cluster(const Kernel& kernel, std::string& ptx) {
  Writer directives;
  print_cluster(directives, kernel.bounds);
  const std::size_t parameters = ptx.find(str_cat(".entry ", kernel.name, "("));
  ptx.insert(ptx.find('\n', ptx.find(')', parameters)) + 1, directives.view());
}

}  // namespace

absl::StatusOr<std::string> compile_with_llvm(absl::Span<const Kernel> kernels, Target target, PtxIsa isa) {
  for (const Kernel& kernel : kernels) {
    if (absl::Status s = check_registers(kernel); !s.ok()) return s;
  }
  const absl::StatusOr<const Library*> library = llvm::open_library();
  if (!library.ok()) return library.status();
  if (absl::Status s = (*library)->check(target, isa); !s.ok()) return s;
  absl::StatusOr<std::string> ptx = Compilation(**library).run(print_llvm_ir(kernels), target, isa);
  if (!ptx.ok()) return ptx.status();
  // It warns of what it does not know, and goes on with another target.
  const std::string head = str_cat(".version ", isa.to_string(), "\n.target ", target.to_string(), "\n");
  if (ptx->find(head) == ptx->npos) {
    return absl::InternalError(str_cat((*library)->path, " (LLVM ", (*library)->version,
                                       ") wrote PTX for something else than ", target.to_string(),
                                       " with PTX ISA ", isa.to_string()));
  }
  for (const Kernel& kernel : kernels) {
    if (kernel.bounds.cluster[0]) add_cluster(kernel, *ptx);
  }
  return with_parameter_names(*ptx, kernels);
}

std::string describe(Codegen codegen) {
  const std::string name(kEnumNames<Codegen>[static_cast<std::size_t>(codegen)]);
  if (codegen != Codegen::kLlvm) return name;
  const absl::StatusOr<const Library*> library = llvm::open_library();
  return library.ok() ? str_cat(name, " ", (*library)->version) : name;
}

}  // namespace ptxgen
