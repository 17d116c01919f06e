#include <algorithm>

#include "ptxgen/kernel_type.h"

namespace ptxgen {
namespace {

absl::Status in_context(const Descriptor& descriptor, const absl::Status& status) {
  return absl::Status(
      status.code(),
      str_cat(descriptor.text(), ": ", std::string_view(status.message().data(), status.message().size())));
}

}  // namespace

absl::StatusOr<Kernel> build_kernel(const Descriptor& descriptor, const BuildOptions& options) {
  if (absl::Status status = descriptor.validate(); !status.ok()) return in_context(descriptor, status);
  KernelBuilder k(descriptor.name(), options);
  descriptor.build(k);
  absl::StatusOr<Kernel> kernel = k.finish();
  if (!kernel.ok()) return in_context(descriptor, kernel.status());
  return kernel;
}

absl::StatusOr<GeneratedKernel> generate(const Descriptor& descriptor, const CodegenOptions& options) {
  absl::StatusOr<Kernel> kernel = build_kernel(descriptor, options.build);
  if (!kernel.ok()) return kernel.status();
  GeneratedKernel generated;
  switch (options.codegen) {
    case Codegen::kDirect: generated.ptx = print_ptx(*kernel); break;
  }
  generated.entry = kernel->name;
  generated.isa = kernel->isa;
  generated.target = kernel->target;
  generated.static_shared_bytes = kernel->static_shared_bytes();
  generated.waits_for_predecessor =
      std::any_of(kernel->instructions.begin(), kernel->instructions.end(),
                  [](const Instruction& i) { return i.op == Op::griddepcontrol_wait; });
  return generated;
}

}  // namespace ptxgen
