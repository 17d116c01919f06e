#include "ptxgen/device.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/backend.h"
#include "src/runtime/device_state.h"
#include "src/runtime/driver_version.h"

namespace ptxgen {
namespace {

using internal::Backend;
using internal::DeviceState;

std::string libcuda_of(const DeviceOptions& options) {
  return options.libcuda.empty() ? env::libcuda() : options.libcuda;
}

std::string describe(const DeviceProperties& p) {
  const std::string code = str_cat(p.target.to_string(), ", PTX ISA up to ", p.highest_isa.to_string());
  if (p.kind == DeviceKind::kEmulator) return str_cat("emulated device: ", code);
  return str_cat("CUDA device ", p.index, ": ", p.name, ", ", code, ", driver for CUDA ",
                 internal::driver_version_text(p.driver_version));
}

absl::StatusOr<std::unique_ptr<Backend>> open_emulator(const DeviceOptions& options) {
  absl::StatusOr<Target> target =
      options.emulator_target.has_value() ? *options.emulator_target : env::emulator_target();
  if (!target.ok()) return target.status();
  absl::StatusOr<std::uint32_t> threads =
      options.emulator_threads != 0 ? options.emulator_threads : env::emulator_threads();
  if (!threads.ok()) return threads.status();
  return internal::open_emulator(*target, *threads);
}

// Says how to go on without the CUDA device that could not be opened.
absl::Status with_advice(const absl::Status& status, absl::string_view asked) {
  return absl::Status(status.code(), str_cat("opening the device \"", asked, "\": ", status.message(),
                                             "; to run without a GPU, ask for \"emulator\""));
}

}  // namespace

absl::StatusOr<DeviceOptions> DeviceOptions::parse(std::string_view text) {
  DeviceOptions options;
  absl::string_view rest(text.data(), text.size());
  if (rest == "auto") return options;
  if (rest == "emulator") {
    options.choice = DeviceChoice::kEmulator;
    return options;
  }
  options.choice = DeviceChoice::kCuda;
  if (rest == "cuda") return options;
  if (absl::ConsumePrefix(&rest, "cuda:") && !rest.empty() && rest.size() <= 4 &&
      rest.find_first_not_of("0123456789") == absl::string_view::npos &&
      absl::SimpleAtoi(rest, &options.index)) {
    return options;
  }
  return absl::InvalidArgumentError(str_cat("device \"", text, "\": allowed are ", env::kDevice.values));
}

absl::StatusOr<DeviceOptions> DeviceOptions::from_environment() {
  const std::string text = env::text(env::kDevice);
  absl::StatusOr<DeviceOptions> options =
      parse(text.empty() ? env::kDevice.default_value : std::string_view(text));
  if (options.ok()) return options;
  return absl::Status(options.status().code(), str_cat(env::kDevice.name, ": ", options.status().message()));
}

absl::StatusOr<Device> Device::open() {
  absl::StatusOr<DeviceOptions> options = DeviceOptions::from_environment();
  if (!options.ok()) return options.status();
  return open(*options);
}

absl::StatusOr<Device> Device::open(const DeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<Backend>> backend;
  std::string reason;
  switch (options.choice) {
    case DeviceChoice::kEmulator: {
      backend = open_emulator(options);
      reason = "the emulated device was asked for";
      break;
    }
    case DeviceChoice::kCuda: {
      backend = internal::open_cuda(libcuda_of(options), options.index);
      if (!backend.ok()) return with_advice(backend.status(), str_cat("cuda:", options.index));
      reason = str_cat("CUDA device ", options.index, " was asked for");
      break;
    }
    case DeviceChoice::kAuto: {
      backend = internal::open_cuda(libcuda_of(options), 0);
      reason = "no device was named, and CUDA device 0 is there";
      if (backend.ok()) break;
      // A driver or device that is absent is no fault; one that does not work is.
      if (!absl::IsNotFound(backend.status())) return with_advice(backend.status(), "auto");
      reason = str_cat("no device was named, and no CUDA device can be had: ", backend.status().message());
      backend = open_emulator(options);
      break;
    }
  }
  if (!backend.ok()) return backend.status();
  std::string description = describe((*backend)->properties());
  return Device(
      std::make_shared<DeviceState>(*std::move(backend), std::move(description), std::move(reason)));
}

absl::StatusOr<int> Device::cuda_device_count(const DeviceOptions& options) {
  return internal::count_cuda_devices(libcuda_of(options));
}

DeviceProperties DeviceProperties::of(Target target, DeviceKind kind, std::uint32_t sm_count) {
  DeviceProperties properties;
  properties.kind = kind;
  properties.compute_major = target.sm / 10;
  properties.compute_minor = target.sm % 10;
  properties.target = target;
  properties.highest_isa = kNewestIsa;
  properties.sm_count = sm_count;
  properties.shared_bytes_per_block = kMaxStaticSharedBytes;
  properties.shared_bytes_per_block_optin = limits(target).shared_bytes_per_cta();
  properties.max_threads_per_block = kMaxThreadsPerCta;
  properties.max_block = kMaxBlock;
  properties.max_grid = kMaxGrid;
  return properties;
}

const DeviceProperties& Device::properties() const {
  return state_->backend().properties();
}
const std::string& Device::description() const {
  return state_->description();
}
const std::string& Device::reason() const {
  return state_->reason();
}
absl::Status Device::health() const {
  return state_->backend().health();
}

absl::StatusOr<TensorMap> Device::encode_tensor_map(const TiledTensor& tensor) const {
  if (!target().supports(kHopper)) {
    return absl::FailedPreconditionError(
        str_cat("a tensor map needs sm_90, and the device is ", target().to_string()));
  }
  if (absl::Status s = tensor.validate(); !s.ok()) return s;
  return state_->backend().encode_tensor_map(tensor);
}

absl::Status Device::synchronize() const {
  if (absl::Status s = state_->refuse_while_recording("waiting for the device"); !s.ok()) return s;
  return state_->backend().synchronize_device();
}

absl::StatusOr<Buffer> Device::allocate(std::uint64_t bytes, std::string_view name) const {
  if (absl::Status s = state_->refuse_while_recording("allocating memory"); !s.ok()) return s;
  if (bytes == 0) return Buffer(state_, 0, 0);
  absl::StatusOr<std::uint64_t> address = state_->backend().allocate(bytes, name);
  if (!address.ok()) return address.status();
  return Buffer(state_, *address, bytes);
}

absl::StatusOr<PinnedBuffer> Device::allocate_pinned(std::uint64_t bytes) const {
  if (absl::Status s = state_->refuse_while_recording("allocating pinned memory"); !s.ok()) return s;
  if (bytes == 0) return PinnedBuffer(state_, nullptr, 0);
  absl::StatusOr<void*> data = state_->backend().allocate_pinned(bytes);
  if (!data.ok()) return data.status();
  return PinnedBuffer(state_, *data, bytes);
}

absl::StatusOr<Stream> Device::create_stream() const {
  absl::StatusOr<void*> handle = state_->backend().create_stream();
  if (!handle.ok()) return handle.status();
  return Stream(state_, *handle, true);
}

Stream Device::default_stream() const {
  return Stream(state_, nullptr, false);
}
Stream Device::borrow_stream(void* cu_stream) const {
  return Stream(state_, cu_stream, false);
}

absl::StatusOr<Event> Device::create_event() const {
  absl::StatusOr<void*> handle = state_->backend().create_event();
  if (!handle.ok()) return handle.status();
  return Event(state_, *handle);
}

}  // namespace ptxgen
