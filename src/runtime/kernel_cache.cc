#include "ptxgen/kernel_cache.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/codegen/generate.h"
#include "src/runtime/code_source.h"
#include "src/runtime/device_state.h"
#include "src/runtime/kernel_dump.h"

namespace ptxgen {
namespace internal {

// One key. Written by the thread that compiles it until `done`, and only read afterwards.
struct CachedKernel {
  CachedKernel(const Device& on, const Descriptor& d, std::size_t h, KernelKey k)
      : device(on), descriptor(d.clone()), hash(h), stored_key(std::move(k)), key(stored_key.to_string()) {}

  const Device device;
  const std::shared_ptr<const Descriptor> descriptor;
  const std::size_t hash;
  KernelKey stored_key;
  std::string key;

  std::atomic<bool> done = false;  // waited for, so that a hit costs one load
  absl::Status status;
  GeneratedKernel generated;
  std::optional<Function> function;  // there when the status is ok
  KernelOrigin origin = KernelOrigin::kCompiled;

  void finish() {
    done.store(true, std::memory_order_release);
    done.notify_all();
  }

  mutable std::atomic<std::uint32_t> dumped = 0;  // the dump_wanted_ it was last written for
};

namespace {

using KernelPtr = std::shared_ptr<CachedKernel>;

// A descriptor that is looked for, with its hash.
struct Probe {
  const Descriptor& descriptor;
  std::size_t hash;
};

struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(const Probe& probe) const { return probe.hash; }
  std::size_t operator()(const KernelPtr& kernel) const { return kernel->hash; }
};

struct KeyEqual {
  using is_transparent = void;
  bool operator()(const KernelPtr& kernel, const Probe& probe) const {
    return kernel->hash == probe.hash && kernel->descriptor->equals(probe.descriptor);
  }
  bool operator()(const Probe& probe, const KernelPtr& kernel) const { return (*this)(kernel, probe); }
  bool operator()(const KernelPtr& a, const KernelPtr& b) const {
    return (*this)(a, Probe{*b->descriptor, b->hash});
  }
};

// Kernels that are ready, found without a lock, while one thread at a time adds some. They stay; a table that
// has become too small stays too, for who still looks in it.
class ReadyKernels {
 public:
  const KernelPtr* find(const Probe& probe) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    for (std::size_t i = probe.hash;; ++i) {
      const Slot& slot = table->slots[i & table->mask];
      const std::uint64_t tag = slot.tag.load(std::memory_order_acquire);
      if (tag == 0) return nullptr;
      if (tag == tag_of(probe.hash) && slot.kernel->descriptor->equals(probe.descriptor)) return &slot.kernel;
    }
  }

  void add(const KernelPtr& kernel) {
    if (tables_.empty() || 2 * (count_ + 1) > tables_.back()->slots.size()) grow();
    put(*tables_.back(), kernel);
    ++count_;
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> tag = 0;  // of the hash, written after `kernel`; 0: nothing here, or beyond
    KernelPtr kernel;
  };
  struct Table {
    explicit Table(std::size_t size) : mask(size - 1), slots(size) {}
    const std::size_t mask;
    std::vector<Slot> slots;
  };

  static std::uint64_t tag_of(std::size_t hash) { return hash | 1; }

  static void put(Table& table, const KernelPtr& kernel) {
    std::size_t i = kernel->hash;
    while (table.slots[i & table.mask].kernel != nullptr) ++i;
    Slot& slot = table.slots[i & table.mask];
    slot.kernel = kernel;
    slot.tag.store(tag_of(kernel->hash), std::memory_order_release);
  }

  void grow() {
    constexpr std::size_t kFirst = 16;
    auto larger = std::make_unique<Table>(tables_.empty() ? kFirst : 2 * tables_.back()->slots.size());
    if (!tables_.empty()) {
      for (const Slot& slot : tables_.back()->slots) {
        if (slot.kernel != nullptr) put(*larger, slot.kernel);
      }
    }
    tables_.push_back(std::move(larger));
    table_.store(tables_.back().get(), std::memory_order_release);
  }

  std::atomic<const Table*> table_ = nullptr;  // the last of
  std::vector<std::unique_ptr<Table>> tables_;
  std::size_t count_ = 0;
};

constexpr std::size_t kShards = 16;

struct alignas(64) Shard {
  ReadyKernels ready;
  std::atomic<std::uint64_t> hits = 0;
  std::mutex mutex;  // for who adds to `ready`, and for
  absl::flat_hash_set<KernelPtr, KeyHash, KeyEqual> compiling;
};

}  // namespace

class KernelStore {
 public:
  KernelStore(const Device& device, const KernelCacheOptions& options);

  // A kernel that is ready, or nullptr.
  const KernelPtr* find(const Probe& probe);
  absl::StatusOr<KernelPtr> get(const Probe& probe, const DeviceState& state);
  const Device& device() const { return device_; }
  KernelCacheStats stats() const;
  void set_dump(std::string folder);
  absl::Status dump_status() const { return dump_.status(); }
  absl::Status store_status() const { return source_.status(); }

 private:
  Shard& shard_of(std::size_t hash) { return shards_[hash >> (8 * sizeof(hash) - 4)]; }
  absl::StatusOr<KernelPtr> found(Shard& shard, KernelPtr kernel);
  absl::StatusOr<KernelPtr> compile(Shard& shard, KernelPtr kernel);
  absl::Status compile(CachedKernel& kernel);
  // Where the kernel is to be written; empty when nothing is.
  std::string dump_folder(const CachedKernel& kernel);
  void dump(const CachedKernel& kernel);
  void dump_if_wanted(const CachedKernel& kernel) {
    if (dump_wanted_.load(std::memory_order_relaxed) != kernel.dumped.load(std::memory_order_relaxed))
      dump(kernel);
  }

  const Device device_;
  const CodegenOptions codegen_;
  CodeSource source_;
  std::array<Shard, kShards> shards_;
  std::array<std::atomic<std::uint64_t>, kEnumNames<KernelOrigin>.size()> made_ = {};  // by origin
  std::atomic<std::uint64_t> failures_ = 0;

  KernelDump dump_;
  std::atomic<std::uint32_t> dump_wanted_ =
      0;                   // counts the set_dump() that name a folder; 0 while none is named
  std::mutex dump_mutex_;  // guards the two below
  std::uint32_t dumps_named_ = 0;
  std::string dump_folder_;
};

KernelStore::KernelStore(const Device& device, const KernelCacheOptions& options)
    : device_(device),
      codegen_{.build = {.target = device.target(), .max_isa = device.highest_isa()},
               .codegen = options.codegen},
      source_(device, options),
      dump_(device.target()) {
  set_dump(options.dump.has_value() ? *options.dump : env::text(env::kDump));
}

void KernelStore::set_dump(std::string folder) {
  const std::lock_guard lock(dump_mutex_);
  dump_folder_ = std::move(folder);
  dump_wanted_ = dump_folder_.empty() ? 0 : ++dumps_named_;
}

inline const KernelPtr* KernelStore::find(const Probe& probe) {
  Shard& shard = shard_of(probe.hash);
  const KernelPtr* kernel = shard.ready.find(probe);
  if (kernel == nullptr) return nullptr;
  shard.hits.fetch_add(1, std::memory_order_relaxed);
  dump_if_wanted(**kernel);
  return kernel;
}

absl::StatusOr<KernelPtr> KernelStore::get(const Probe& probe, const DeviceState& state) {
  Shard& shard = shard_of(probe.hash);
  // Refused before others can come to wait for this thread's failure.
  if (absl::Status s = state.refuse_while_recording("compiling a kernel"); !s.ok()) return s;
  KernelKey key = source_.environment();
  key.descriptor = probe.descriptor.text();
  auto candidate = std::make_shared<CachedKernel>(device(), probe.descriptor, probe.hash, std::move(key));
  KernelPtr kernel;
  {
    const std::lock_guard lock(shard.mutex);
    const KernelPtr* ready = shard.ready.find(probe);  // by now
    kernel = ready ? *ready : *shard.compiling.insert(candidate).first;
  }
  return kernel == candidate ? compile(shard, std::move(kernel)) : found(shard, std::move(kernel));
}

absl::StatusOr<KernelPtr> KernelStore::found(Shard& shard, KernelPtr kernel) {
  shard.hits.fetch_add(1, std::memory_order_relaxed);
  kernel->done.wait(false, std::memory_order_acquire);
  if (!kernel->status.ok()) return kernel->status;
  dump_if_wanted(*kernel);
  return kernel;
}

absl::StatusOr<KernelPtr> KernelStore::compile(Shard& shard, KernelPtr kernel) {
  const absl::Status status = compile(*kernel);
  ++made_[static_cast<std::size_t>(kernel->origin)];
  if (status.ok()) {
    {
      const std::lock_guard lock(shard.mutex);
      shard.ready.add(kernel);
      shard.compiling.erase(kernel);
    }
    kernel->finish();  // who waits for it finds it from now on, even while recording
    return kernel;
  }
  ++failures_;
  kernel->status = absl::Status(status.code(), str_cat(kernel->key, ": ", status.message()));
  if (const std::string folder = dump_folder(*kernel); !folder.empty()) {
    dump_.write_error(folder, kernel->key, kernel->status);
  }
  {
    const std::lock_guard lock(shard.mutex);
    shard.compiling.erase(kernel);  // the next to ask tries again
  }
  kernel->finish();
  return kernel->status;
}

absl::Status KernelStore::compile(CachedKernel& kernel) {
  const auto known = [&](const std::string& llvm_ir) -> std::optional<std::string> {
    std::optional<Pack::Generated> found = source_.find_generated(kernel.stored_key, llvm_ir);
    if (!found) return std::nullopt;
    kernel.stored_key.codegen = std::move(found->codegen);
    kernel.key = kernel.stored_key.to_string();
    return std::move(found->ptx);
  };
  absl::StatusOr<GeneratedKernel> generated = internal::generate(*kernel.descriptor, codegen_, known);
  if (!generated.ok()) return generated.status();
  kernel.generated = *std::move(generated);
  dump(kernel);  // before the device sees it, which it may not survive
  absl::StatusOr<CodeSource::Code> code =
      source_.load(kernel.stored_key, kernel.generated, kernel.descriptor->num_parameters());
  if (!code.ok()) return code.status();
  kernel.function = std::move(code->function);
  kernel.origin = code->origin;
  return absl::OkStatus();
}

std::string KernelStore::dump_folder(const CachedKernel& kernel) {
  const std::lock_guard lock(dump_mutex_);
  if (dump_folder_.empty()) return "";
  return KernelDump::folder_of(dump_folder_, kernel.descriptor->name(), kernel.key);
}

void KernelStore::dump(const CachedKernel& kernel) {
  const std::uint32_t wanted = dump_wanted_.load(std::memory_order_relaxed);
  if (kernel.dumped.exchange(wanted, std::memory_order_relaxed) == wanted) return;
  if (const std::string folder = dump_folder(kernel); !folder.empty()) {
    dump_.write_kernel(folder, kernel.key, kernel.generated.ptx);
  }
}

KernelCacheStats KernelStore::stats() const {
  const auto made = [&](KernelOrigin origin) -> std::uint64_t {
    return made_[static_cast<std::size_t>(origin)];
  };
  KernelCacheStats stats = {.hits = 0,
                            .compiles = made(KernelOrigin::kCompiled),
                            .failures = failures_,
                            .from_disk = made(KernelOrigin::kDisk),
                            .from_pack = made(KernelOrigin::kPack)};
  for (const Shard& shard : shards_) stats.hits += shard.hits.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace internal

const Descriptor& CompiledKernel::descriptor() const {
  return *state_->descriptor;
}
const std::string& CompiledKernel::key() const {
  return state_->key;
}
const GeneratedKernel& CompiledKernel::generated() const {
  return state_->generated;
}
const Function& CompiledKernel::function() const {
  return *state_->function;
}

KernelOrigin CompiledKernel::origin() const {
  return state_->origin;
}

absl::Status CompiledKernel::launch(const Stream& stream, ArgValues values,
                                    const LaunchOptions& options) const {
  const Descriptor& type = descriptor();
  if (values.size() != type.num_arguments()) {
    return absl::InvalidArgumentError(str_cat("kernel ", type.name(), ": ", values.size(),
                                              " arguments given; the kernel has ", type.num_arguments()));
  }
  const ArgInfos infos = type.arguments(values);
  absl::InlinedVector<KernelArg, 16> args;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const ArgInfo& arg = infos[i];
    const std::uint64_t misaligned = arg.direction == Direction::kScalar ? 0 : values[i] % arg.alignment;
    const bool missing = arg.bytes != 0 && values[i] == 0;
    if (misaligned != 0 || missing) {
      return absl::InvalidArgumentError(
          missing ? str_cat("kernel ", type.text(), ": argument ", arg.name, " is null; the kernel uses ",
                            arg.bytes, " bytes of it")
                  : str_cat("kernel ", type.text(), ": argument ", arg.name, " is at 0x",
                            absl::Hex(values[i]), "; its address must be a multiple of ", arg.alignment));
    }
    args.push_back({&values[i], info(arg.type).bytes});  // little-endian: a short scalar is the first bytes
  }
  TensorMap map;
  if (const std::optional<TiledTensor> tensor = type.tensor(values)) {
    absl::StatusOr<TensorMap> encoded = state_->device.encode_tensor_map(*tensor);
    if (!encoded.ok()) return std::move(encoded).status();
    map = *encoded;
    args.push_back(KernelArg::of(map));
  }
  return function().launch(stream, type.launch_shape(values), args, options);
}

KernelCache::KernelCache(const Device& device, const KernelCacheOptions& options)
    : store_(std::make_unique<internal::KernelStore>(device, options)) {}
KernelCache::~KernelCache() = default;

absl::StatusOr<CompiledKernel> KernelCache::get(const Descriptor& descriptor) {
  const internal::Probe probe = {descriptor, descriptor.hash()};
  if (const internal::KernelPtr* ready = store_->find(probe)) return CompiledKernel(*ready);
  absl::StatusOr<internal::KernelPtr> kernel = store_->get(probe, *store_->device().state_);
  if (!kernel.ok()) return std::move(kernel).status();
  return CompiledKernel(*std::move(kernel));
}

const Device& KernelCache::device() const {
  return store_->device();
}
KernelCacheStats KernelCache::stats() const {
  return store_->stats();
}
void KernelCache::set_dump(std::string folder) {
  store_->set_dump(std::move(folder));
}
absl::Status KernelCache::store_status() const {
  return store_->store_status();
}
absl::Status KernelCache::dump_status() const {
  return store_->dump_status();
}

}  // namespace ptxgen
