#include "ptxgen/kernel_key.h"

#include "ptxgen/strings.h"
#include "src/runtime/driver_version.h"

namespace ptxgen {

const std::array<KernelKey::Field, 7> KernelKey::kFields = {{
    {"descriptor", &KernelKey::descriptor},
    {"codegen", &KernelKey::codegen},
    {"target", &KernelKey::target},
    {"capability", &KernelKey::capability},
    {"isa", &KernelKey::isa},
    {"compiler", &KernelKey::compiler},
    {"library", &KernelKey::library},
}};

KernelKey KernelKey::of_device(const DeviceProperties& device, std::string_view codegen) {
  KernelKey key;
  key.codegen = std::string(codegen);
  key.target = device.target.to_string();
  key.capability = str_cat(device.compute_major, ".", device.compute_minor);
  key.isa = device.highest_isa.to_string();
  key.compiler = device.kind == DeviceKind::kEmulator
                     ? std::string("emulator")
                     : str_cat("driver ", internal::driver_version_text(device.driver_version));
  key.library = PTXGEN_VERSION;
  return key;
}

std::string KernelKey::to_string() const {
  std::string text = str_cat(descriptor, "; codegen ", codegen, ", ", target);
  // They differ where the driver does not know the device yet: sm_120 code on 12.1.
  const absl::StatusOr<Target> known = Target::parse(target);
  if (known.ok() && str_cat(known->sm / 10, ".", known->sm % 10) != capability)
    str_append(&text, " on ", capability);
  str_append(&text, ", PTX ISA ", isa, ", ", compiler, ", ptxgen ", library);
  return text;
}

}  // namespace ptxgen
