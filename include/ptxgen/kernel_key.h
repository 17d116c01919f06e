// What machine code was made from and for.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ptxgen/device.h"
#include "ptxgen/export.h"

namespace ptxgen {

// Everything besides the PTX itself. Kernels with one key may still differ in their PTX, as they do while
// they are developed; what keeps machine code (CubinStore, Pack) therefore compares the text too, in full.
struct PTXGEN_API KernelKey {
  std::string descriptor;  // Descriptor::text()
  std::string codegen;     // describe(Codegen): "direct", "llvm 19.1.7"
  std::string target;      // that the PTX was generated for: "sm_90a"
  std::string capability;  // of the device that the code runs on: "9.0"
  std::string isa;         // the highest PTX ISA that the compiler accepts: "8.4"
  std::string compiler;    // "driver 12.4", "ptxas 13.0.88"; "emulator" compiles nothing
  std::string library;     // ptxgen's version: "0.1.0"

  // The key of no kernel yet: what a device and this library decide.
  static KernelKey of_device(const DeviceProperties& device, std::string_view codegen);

  bool operator==(const KernelKey&) const = default;

  // "scale n=1024; codegen direct, sm_89, PTX ISA 8.4, driver 12.4, ptxgen 0.1.0"
  std::string to_string() const;

  struct Field {
    std::string_view name;
    std::string KernelKey::*member;
  };
  static const std::array<Field, 7> kFields;
};

// A kernel's machine code with what it was made from; or, of the code generator llvm, its PTX with the IR.
struct StoredKernel {
  KernelKey key;
  std::string ptx;  // or the IR
  Image image;
};

}  // namespace ptxgen
