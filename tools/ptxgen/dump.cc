// ptxgen dump: a kernel's PTX or its descriptor. Needs neither a GPU nor CUDA.
#include <memory>

#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"

namespace ptxgen::tool {
namespace {

constexpr std::string_view kProducts = "ptx, descriptor, llvm-ir";

struct Options {
  Options(CLI::App& app, const NamedKernel& named) : kernel(app, named), target(app), codegen(app) {
    app.add_option("--emit", emit, str_cat("what to print: ", kProducts, "; default ptx"))->type_name("WHAT");
    output_option =
        app.add_option("-o,--output", output, "write to FILE instead of stdout")->type_name("FILE");
  }
  KernelOptions kernel;
  TargetOption target;
  CodegenOption codegen;
  std::string emit = "ptx";
  std::string output;
  CLI::Option* output_option;
};

absl::StatusOr<std::string> product(const Options& options) {
  const absl::StatusOr<KernelType> kernel = options.kernel.kernel();
  if (!kernel.ok()) return kernel.status();
  const absl::StatusOr<Target> target = options.target.target();
  if (!target.ok()) return target.status();
  const absl::StatusOr<Codegen> codegen = options.codegen.codegen();
  if (!codegen.ok()) return codegen.status();
  if (options.emit == "descriptor") return str_cat((*kernel)->text(), "\n");
  if (options.emit == "llvm-ir") {
    const absl::StatusOr<Kernel> built = build_kernel(**kernel, {.target = *target});
    if (!built.ok()) return built.status();
    return print_llvm_ir(absl::MakeConstSpan(&*built, 1));
  }
  if (options.emit != "ptx")
    return absl::InvalidArgumentError(str_cat("--emit is '", options.emit, "'; choose one of ", kProducts));
  absl::StatusOr<GeneratedKernel> generated =
      generate(**kernel, {.build = {.target = *target}, .codegen = *codegen});
  if (!generated.ok()) return generated.status();
  return std::move(generated->ptx);
}

absl::StatusOr<Outcome> dump(const Options& options) {
  absl::StatusOr<std::string> text = product(options);
  if (!text.ok()) return text.status();
  if (options.output_option->count() == 0) return Outcome{*std::move(text)};
  if (absl::Status s = write_file(options.output, *text); !s.ok()) return s;
  return Outcome{};
}

}  // namespace

Action declare_dump(CLI::App& app, const NamedKernel& named) {
  const auto options = std::make_shared<Options>(app, named);
  return [options] { return dump(*options); };
}

}  // namespace ptxgen::tool
