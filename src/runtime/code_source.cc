#include "src/runtime/code_source.h"

#include <utility>

#include "ptxgen/strings.h"
#include "src/runtime/isolate.h"
#include "src/runtime/whole_program.h"

namespace ptxgen::internal {

CodeSource::CodeSource(const Device& device, const KernelCacheOptions& options)
    : device_(device),
      environment_(KernelKey::of_device(device.properties(), describe(options.codegen))),
      packs_(options.packs),
      helper_(isolation_helper(options.isolate, options.isolate_helper)) {
  if (device.kind() == DeviceKind::kCuda) store_.emplace(options.store);
}

absl::Status CodeSource::status() const {
  if (store_.has_value()) return store_->status();
  return absl::FailedPreconditionError("an emulated device has no machine code to keep on disk");
}

std::optional<Pack::Generated> CodeSource::find_generated(const KernelKey& key,
                                                          const std::string& llvm_ir) const {
  for (const Pack& pack : packs_) {
    if (auto found = pack.find_generated(key, llvm_ir)) return found;
  }
  return std::nullopt;
}

absl::StatusOr<Function> CodeSource::load(const Wanted& wanted, const Image& image) const {
  const absl::StatusOr<Module> module = device_.load(image);
  if (!module.ok()) return module.status();
  return module->function(wanted.kernel.entry, wanted.arguments);
}

absl::StatusOr<std::optional<CodeSource::Code>> CodeSource::try_load(const Wanted& wanted,
                                                                     const std::optional<Image>& image,
                                                                     KernelOrigin origin) const {
  if (!image.has_value()) return std::nullopt;
  absl::StatusOr<Function> function = load(wanted, *image);
  if (function.ok()) return Code{*std::move(function), origin};
  if (!device_.health().ok()) return function.status();
  return std::nullopt;
}

absl::StatusOr<std::optional<CodeSource::Code>> CodeSource::load_packed(const Wanted& wanted) const {
  for (const Pack& pack : packs_) {
    auto code = try_load(wanted, pack.find(wanted.key, wanted.kernel.ptx), KernelOrigin::kPack);
    if (!code.ok() || code->has_value()) return code;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<CodeSource::Code>> CodeSource::load_kept(const Wanted& wanted) const {
  return try_load(wanted, store_->find(wanted.key, wanted.kernel.ptx), KernelOrigin::kDisk);
}

absl::StatusOr<Image> CodeSource::compile(const Wanted& wanted) const {
  if (!store_.has_value()) return device_.compile(wanted.kernel.ptx);  // emulated: nothing is compiled
  if (!helper_.ok()) return helper_.status();
  if (!helper_->has_value()) return device_.compile(wanted.kernel.ptx);
  return compile_isolated(**helper_, device_.properties(), wanted.kernel);
}

absl::StatusOr<CodeSource::Code> CodeSource::load(const KernelKey& key, const GeneratedKernel& kernel,
                                                  std::size_t arguments) {
  const Wanted wanted = {key, kernel, arguments};
  const bool keeps = store_.has_value() && !needs_whole_program(kernel.ptx);  // else the driver alone does
  CubinStore::Lock lock;
  if (store_.has_value()) {
    auto found = load_packed(wanted);
    if (keeps && found.ok() && !found->has_value()) found = load_kept(wanted);
    if (keeps && found.ok() && !found->has_value()) {
      lock = store_->lock(key, kernel.ptx);
      found = load_kept(wanted);  // another process may have been compiling it
    }
    if (!found.ok()) return found.status();
    if (found->has_value()) return **std::move(found);
  }
  const absl::StatusOr<Image> image = compile(wanted);
  if (!image.ok()) return image.status();
  absl::StatusOr<Function> function = load(wanted, *image);
  if (!function.ok()) return function.status();
  if (keeps) (void)store_->keep(key, kernel.ptx, *image);  // status() says what went wrong
  return Code{*std::move(function), KernelOrigin::kCompiled};
}

}  // namespace ptxgen::internal
