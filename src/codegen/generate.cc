#include <algorithm>

#include "ptxgen/kernel_type.h"
#include "src/codegen/generate.h"

namespace ptxgen {
namespace {

absl::Status in_context(const Descriptor& descriptor, const absl::Status& status) {
  return absl::Status(
      status.code(),
      str_cat(descriptor.text(), ": ", std::string_view(status.message().data(), status.message().size())));
}

// For the target asked for, not the lowest that the instructions need: LLVM uses what the target has.
absl::Status generate_with_llvm(const Kernel& kernel, const BuildOptions& options, internal::KnownPtx known,
                                GeneratedKernel& generated) {
  generated.target = options.target;
  generated.isa = std::max(kernel.isa, first_isa(options.target));
  if (generated.isa > options.max_isa) {
    return absl::InvalidArgumentError(str_cat(options.target.to_string(), " needs PTX ISA ",
                                              generated.isa.to_string(), "; the driver accepts at most ",
                                              options.max_isa.to_string(),
                                              ". Use a newer driver or the direct code generator"));
  }
  const absl::Span<const Kernel> kernels(&kernel, 1);
  if (std::optional<std::string> made = known(print_llvm_ir(kernels))) {
    generated.ptx = *std::move(made);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> ptx = compile_with_llvm(kernels, generated.target, generated.isa);
  if (!ptx.ok()) return ptx.status();
  generated.ptx = *std::move(ptx);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Kernel> build_kernel(const Descriptor& descriptor, const BuildOptions& options) {
  if (absl::Status status = descriptor.validate(); !status.ok()) return in_context(descriptor, status);
  KernelBuilder k(descriptor.name(), options);
  descriptor.build(k);
  absl::StatusOr<Kernel> kernel = k.finish();
  if (!kernel.ok()) return in_context(descriptor, kernel.status());
  if (kernel->parameters.size() != descriptor.num_parameters()) {
    return in_context(
        descriptor, absl::InternalError(str_cat(
                        "the kernel has ", kernel->parameters.size(), " parameters, and a launch gives ",
                        descriptor.num_parameters(),
                        ": build() calls tensor_map() where the descriptor has a tensor(), and only there")));
  }
  return kernel;
}

absl::StatusOr<GeneratedKernel> generate(const Descriptor& descriptor, const CodegenOptions& options) {
  return internal::generate(descriptor, options, [](const std::string&) { return std::nullopt; });
}

absl::StatusOr<GeneratedKernel> internal::generate(const Descriptor& descriptor,
                                                   const CodegenOptions& options, KnownPtx known) {
  absl::StatusOr<Kernel> kernel = build_kernel(descriptor, options.build);
  if (!kernel.ok()) return kernel.status();
  GeneratedKernel generated;
  generated.entry = kernel->name;
  generated.isa = kernel->isa;
  generated.target = kernel->target;
  switch (options.codegen) {
    case Codegen::kDirect: generated.ptx = print_ptx(*kernel); break;
    case Codegen::kLlvm:
      if (absl::Status s = generate_with_llvm(*kernel, options.build, known, generated); !s.ok())
        return in_context(descriptor, s);
      break;
  }
  generated.static_shared_bytes = kernel->static_shared_bytes();
  generated.waits_for_predecessor =
      std::any_of(kernel->instructions.begin(), kernel->instructions.end(),
                  [](const Instruction& i) { return i.op == Op::griddepcontrol_wait; });
  return generated;
}

}  // namespace ptxgen
