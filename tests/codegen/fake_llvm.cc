// Libraries that export what LLVM's C API exports, or a part of it.
#include <cstdlib>

#define PTXGEN_FAKE(name)  \
  extern "C" void name() { \
    std::abort();          \
  }

#if defined(PTXGEN_FAKE_HOSTILE)
PTXGEN_FAKE(LLVMGetVersion)
#elif !defined(PTXGEN_FAKE_ANCIENT)
extern "C" void LLVMGetVersion(unsigned* major, unsigned* minor, unsigned* patch) {
#if defined(PTXGEN_FAKE_OLD)
  *major = 15;
#else
  *major = 19;
#endif
  *minor = 1;
  *patch = 7;
}
#endif

#if defined(PTXGEN_FAKE_ANCIENT) || defined(PTXGEN_FAKE_BARE) || defined(PTXGEN_FAKE_HOSTILE)
PTXGEN_FAKE(LLVMContextCreate)
#endif
#if defined(PTXGEN_FAKE_BARE) || defined(PTXGEN_FAKE_HOSTILE)
PTXGEN_FAKE(LLVMParseIRInContext)
PTXGEN_FAKE(LLVMRunPasses)
#endif
#if defined(PTXGEN_FAKE_TORN) || defined(PTXGEN_FAKE_HOSTILE)
PTXGEN_FAKE(LLVMInitializeNVPTXTargetInfo)
PTXGEN_FAKE(LLVMInitializeNVPTXTarget)
PTXGEN_FAKE(LLVMInitializeNVPTXTargetMC)
#endif
#if defined(PTXGEN_FAKE_HOSTILE)
PTXGEN_FAKE(LLVMInitializeNVPTXAsmPrinter)
PTXGEN_FAKE(LLVMContextDispose)
PTXGEN_FAKE(LLVMDisposeModule)
PTXGEN_FAKE(LLVMCreateTargetMachine)
PTXGEN_FAKE(LLVMTargetMachineEmitToMemoryBuffer)
PTXGEN_FAKE(LLVMDisposeMessage)
#endif
