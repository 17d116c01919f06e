#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ptxgen/device.h"
#include "src/runtime/device_state.h"
#include "src/runtime/launch_check.h"

namespace ptxgen {
namespace internal {

struct ModuleState {
  ModuleState(std::shared_ptr<DeviceState> device_, std::string ptx_, Handle handle_, std::string log_)
      : device(std::move(device_)), ptx(std::move(ptx_)), handle(handle_), log(std::move(log_)) {}
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;
  ~ModuleState() {
    device->release([handle = handle](Backend& backend) { backend.unload_module(handle); });
  }

  const std::shared_ptr<DeviceState> device;
  const std::string ptx;  // empty where the module was loaded from a cubin of which no text is known
  const Handle handle;
  const std::string log;
};

// How many parameters `ptx` declares for an entry; where a comment between its parentheses speaks of .param,
// more.
std::size_t count_parameters(std::string_view ptx, std::string_view entry) {
  constexpr std::string_view kEntry = ".entry", kParam = ".param", kSpace = " \t\r\n";
  for (std::size_t at = ptx.find(kEntry); at != std::string_view::npos; at = ptx.find(kEntry, at)) {
    at = std::min(ptx.find_first_not_of(kSpace, at + kEntry.size()), ptx.size());
    if (ptx.substr(at, entry.size()) != entry) continue;
    const std::size_t open = ptx.find_first_not_of(kSpace, at + entry.size());
    if (open == std::string_view::npos || ptx[open] != '(') continue;
    const std::size_t close = std::min(ptx.find(')', open), ptx.size());
    std::size_t count = 0;
    for (std::size_t p = ptx.find(kParam, open); p < close; p = ptx.find(kParam, p + 1)) ++count;
    return count;
  }
  return 0;
}

struct FunctionState {
  std::shared_ptr<const ModuleState> module;
  std::string name;
  Handle handle;
  FunctionInfo info;
  mutable std::atomic<bool> dynamic_shared_raised = false;

  Backend& backend() const { return module->device->backend(); }
  absl::Status allow_dynamic_shared(std::uint64_t bytes) const;
  absl::Status named(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrCat("kernel ", name, ": ", status.message()));
  }
};

// The attribute allows, it reserves nothing; so it is set once, to the most that fits. Two threads may both
// set it.
absl::Status FunctionState::allow_dynamic_shared(std::uint64_t bytes) const {
  const DeviceProperties& device = backend().properties();
  if (info.static_shared_bytes + bytes <= device.shared_bytes_per_block) return absl::OkStatus();
  if (dynamic_shared_raised.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::uint64_t most = device.shared_bytes_per_block_optin - info.static_shared_bytes;
  if (absl::Status s = backend().raise_dynamic_shared(handle, most); !s.ok()) return s;
  dynamic_shared_raised.store(true, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace internal

using internal::check_args;
using internal::check_launch;

absl::StatusOr<Image> Device::compile(std::string_view ptx) const {
  if (absl::Status s = state_->refuse_while_recording("compiling PTX"); !s.ok()) return s;
  // The driver reads up to a zero, and its compiler ends at anything beyond ASCII, comments included.
  for (std::size_t i = 0; i < ptx.size(); ++i) {
    const auto byte = static_cast<unsigned char>(ptx[i]);
    if (byte != 0 && byte < 0x80) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("compiling PTX: byte ", i, " of the text is ", int{byte}, "; PTX is ASCII text"));
  }
  return state_->backend().compile(std::string(ptx));
}

absl::StatusOr<Module> Device::load(const Image& image) const {
  return load(image, image.kind == ImageKind::kPtx ? image.bytes : std::string());
}

absl::StatusOr<Module> Device::load(const Image& image, std::string ptx) const {
  if (absl::Status s = state_->refuse_while_recording("loading a module"); !s.ok()) return s;
  std::string log = image.log;
  const absl::StatusOr<void*> handle = state_->backend().load(image, log);
  if (!handle.ok()) return handle.status();
  return Module(
      std::make_shared<const internal::ModuleState>(state_, std::move(ptx), *handle, std::move(log)));
}

absl::StatusOr<Module> Device::load_module(std::string_view ptx) const {
  const absl::StatusOr<Image> image = compile(ptx);
  if (!image.ok()) return image.status();
  return load(*image, std::string(ptx));
}

absl::StatusOr<Function> Module::function(std::string_view name,
                                          std::optional<std::size_t> parameters) const {
  if (!parameters.has_value() && !state_->ptx.empty())
    parameters = internal::count_parameters(state_->ptx, name);
  absl::StatusOr<internal::LoadedFunction> found =
      state_->device->backend().find_function(state_->handle, std::string(name), parameters);
  if (!found.ok()) return found.status();
  auto function = std::make_shared<internal::FunctionState>();
  function->module = state_;
  function->name = std::string(name);
  function->handle = found->handle;
  function->info = std::move(found->info);
  return Function(std::move(function));
}

const std::string& Module::log() const {
  return state_->log;
}

const std::string& Function::name() const {
  return state_->name;
}
const FunctionInfo& Function::info() const {
  return state_->info;
}

absl::StatusOr<std::uint32_t> Function::max_ctas_per_sm(std::uint64_t block_threads,
                                                        std::uint64_t dynamic_shared_bytes) const {
  const LaunchShape shape = {.grid = state_->info.cluster,
                             .block = {block_threads},
                             .dynamic_shared_bytes = dynamic_shared_bytes,
                             .cluster = state_->info.cluster};
  absl::Status status = check_launch(state_->backend().properties(), state_->info, shape, {});
  if (status.ok()) status = state_->allow_dynamic_shared(dynamic_shared_bytes);
  if (!status.ok()) return state_->named(status);
  return state_->backend().max_ctas_per_sm(state_->handle, block_threads, dynamic_shared_bytes);
}

absl::Status Function::launch(const Stream& stream, const LaunchShape& shape,
                              absl::Span<const KernelArg> args, const LaunchOptions& options) const {
  const internal::DeviceState& device = *state_->module->device;
  if (stream.state_.get() != &device) {
    return state_->named(absl::InvalidArgumentError(
        absl::StrCat("compiled for ", device.description(),
                     "; the stream is on another device: ", stream.state_->description())));
  }
  absl::Status status = check_launch(device.backend().properties(), state_->info, shape, options);
  if (status.ok()) status = check_args(state_->info, args);
  if (status.ok() && shape.grid.empty()) return status;
  if (status.ok()) status = state_->allow_dynamic_shared(shape.dynamic_shared_bytes);
  LaunchShape asked = shape;
  if (state_->info.cluster != Dim3()) asked.cluster = {};  // the kernel says it
  const Dim3& cluster = asked.cluster != Dim3() ? asked.cluster : state_->info.cluster;
  if (status.ok() && cluster.count() > kMaxPortableClusterCtas) {
    status = device.backend().allow_non_portable_cluster(state_->handle);
  }
  if (status.ok()) status = device.backend().launch(state_->handle, asked, args, options, stream.handle_);
  return status.ok() ? status : state_->named(status);
}

}  // namespace ptxgen
