// LLVM's C API, opened at run time: nothing of LLVM is needed to build, and a process that never asks for it
// never loads it.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "ptxgen/target.h"

namespace ptxgen::llvm {

// LLVM's handles, as its headers (llvm-c/Types.h) name them.
struct Context;
struct Module;
struct MemoryBuffer;
struct Error;
struct Target;
struct TargetMachine;
struct TargetData;
struct PassBuilderOptions;
struct DiagnosticInfo;
using DiagnosticHandler = void (*)(DiagnosticInfo*, void*);

// Every function used, with its type as the C API of LLVM 16 to 22 declares it.
#define PTXGEN_LLVM_ENTRIES(X)                                                                            \
  X(LLVMGetVersion, void(unsigned* major, unsigned* minor, unsigned* patch))                              \
  X(LLVMInitializeNVPTXTargetInfo, void())                                                                \
  X(LLVMInitializeNVPTXTarget, void())                                                                    \
  X(LLVMInitializeNVPTXTargetMC, void())                                                                  \
  X(LLVMInitializeNVPTXAsmPrinter, void())                                                                \
  X(LLVMContextCreate, Context*())                                                                        \
  X(LLVMContextDispose, void(Context*))                                                                   \
  X(LLVMContextSetDiagnosticHandler, void(Context*, DiagnosticHandler, void*))                            \
  X(LLVMGetDiagInfoSeverity, int(DiagnosticInfo*))                                                        \
  X(LLVMGetDiagInfoDescription, char*(DiagnosticInfo*))                                                   \
  X(LLVMCreateMemoryBufferWithMemoryRangeCopy, MemoryBuffer*(const char*, std::size_t, const char* name)) \
  X(LLVMParseIRInContext, int(Context*, MemoryBuffer*, Module**, char** message))                         \
  X(LLVMDisposeModule, void(Module*))                                                                     \
  X(LLVMGetTargetFromTriple, int(const char* triple, Target**, char** message))                           \
  X(LLVMCreateTargetMachine,                                                                              \
    TargetMachine*(Target*, const char* triple, const char* cpu, const char* features, int optimisation,  \
                   int relocation, int code_model))                                                       \
  X(LLVMDisposeTargetMachine, void(TargetMachine*))                                                       \
  X(LLVMCreateTargetDataLayout, TargetData*(TargetMachine*))                                              \
  X(LLVMDisposeTargetData, void(TargetData*))                                                             \
  X(LLVMSetModuleDataLayout, void(Module*, TargetData*))                                                  \
  X(LLVMCreatePassBuilderOptions, PassBuilderOptions*())                                                  \
  X(LLVMDisposePassBuilderOptions, void(PassBuilderOptions*))                                             \
  X(LLVMRunPasses, Error*(Module*, const char* passes, TargetMachine*, PassBuilderOptions*))              \
  X(LLVMGetErrorMessage, char*(Error*))                                                                   \
  X(LLVMDisposeErrorMessage, void(char*))                                                                 \
  X(LLVMTargetMachineEmitToMemoryBuffer,                                                                  \
    int(TargetMachine*, Module*, int file_type, char** message, MemoryBuffer**))                          \
  X(LLVMGetBufferStart, const char*(MemoryBuffer*))                                                       \
  X(LLVMGetBufferSize, std::size_t(MemoryBuffer*))                                                        \
  X(LLVMDisposeMemoryBuffer, void(MemoryBuffer*))                                                         \
  X(LLVMDisposeMessage, void(char*))

struct Library {
  std::string path;
  unsigned major = 0;
  std::string version;  // "19.1.7"
#define PTXGEN_LLVM_MEMBER(name, ...) \
  using name##_type = __VA_ARGS__;    \
  name##_type* name = nullptr;
  PTXGEN_LLVM_ENTRIES(PTXGEN_LLVM_MEMBER)
#undef PTXGEN_LLVM_MEMBER

  // Ok when this LLVM has the target and writes the PTX ISA.
  absl::Status check(ptxgen::Target target, PtxIsa isa) const;
};

// The library that PTXGEN_LLVM_LIBRARY names, else the first that is found. It is opened once and stays
// open; a failure is tried again by the next call.
absl::StatusOr<const Library*> open_library();

}  // namespace ptxgen::llvm
