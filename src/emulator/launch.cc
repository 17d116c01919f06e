// Program and launch(): what a device refuses, and CTAs over worker threads.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>

#include "src/emulator/decode.h"
#include "src/emulator/machine.h"
#include "src/emulator/observer.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kMaxLocal = 512 * 1024;
constexpr std::uint64_t kMaxConstant = 64 * 1024;  // PTX ISA, "Constant State Space"

bool fits(const Dim3& value, const Dim3& bound) {
  return !value.empty() && value.x <= bound.x && value.y <= bound.y && value.z <= bound.z;
}

std::string by(const Dim3& extent) {
  return str_cat(extent.x, " by ", extent.y, " by ", extent.z);
}

absl::Status check_geometry(const EntryInfo& info, const LaunchConfig& config) {
  const auto refuse = [&](auto... what) {
    return absl::InvalidArgumentError(str_cat("launch of kernel '", info.name, "': ", what...));
  };
  const Dim3 grid = config.grid, block = config.block;
  if (!fits(grid, kMaxGrid)) {
    return refuse("grid ", to_string(grid), "; allowed are 1 to ", by(kMaxGrid), " CTAs");
  }
  if (!fits(block, kMaxBlock) || block.count() > kMaxThreadsPerCta) {
    return refuse("block ", to_string(block), "; allowed are 1 to ", by(kMaxBlock), " threads and ",
                  kMaxThreadsPerCta, " in all");
  }
  if (info.max_threads && block.count() > info.max_threads->count()) {
    return refuse("block ", to_string(block), " has ", block.count(), " threads; its .maxntid allows ",
                  info.max_threads->count());
  }
  if (info.required_threads && !(block == *info.required_threads)) {
    return refuse("block ", to_string(block), "; its .reqntid requires ", to_string(*info.required_threads));
  }
  if (config.params.size() < info.param_bytes) {
    return refuse(config.params.size(), " bytes of parameters; it reads ", info.param_bytes);
  }
  return absl::OkStatus();
}

// The cluster that the launch or the kernel asks for.
absl::StatusOr<Dim3> check_cluster(const EntryInfo& info, const LaunchConfig& config, Target device) {
  const auto refuse = [&](auto... what) {
    return absl::InvalidArgumentError(str_cat("launch of kernel '", info.name, "': ", what...));
  };
  const Dim3 none, cluster = config.cluster == none ? info.required_cluster.value_or(none) : config.cluster;
  if (info.required_cluster && !(cluster == *info.required_cluster)) {
    return refuse("cluster ", to_string(cluster), "; its .reqnctapercluster requires ",
                  to_string(*info.required_cluster));
  }
  if (info.explicit_cluster && cluster == none && !info.required_cluster) {
    return refuse("its .explicitcluster requires a cluster; give LaunchConfig::cluster");
  }
  if (cluster == none) return cluster;
  if (!device.supports(kHopper)) {
    return refuse("cluster ", to_string(cluster), "; clusters need sm_90, the device is ",
                  device.to_string());
  }
  const std::uint64_t most = info.max_cluster_ctas         ? info.max_cluster_ctas
                             : config.non_portable_cluster ? kMaxClusterCtas
                                                           : kMaxPortableClusterCtas;
  if (!fits(cluster, {most, most, most}) || cluster.count() > most) {
    return refuse("cluster ", to_string(cluster), "; allowed are 1 to ", most, " CTAs",
                  info.max_cluster_ctas ? ", its .maxclusterrank"
                  : config.non_portable_cluster
                      ? ""
                      : str_cat(", up to ", kMaxClusterCtas, " with non_portable_cluster"));
  }
  const Dim3 grid = config.grid;
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return refuse("grid ", to_string(grid), "; each extent must be a multiple of the cluster's, ",
                  to_string(cluster));
  }
  return cluster;
}

absl::Status check_memory(const EntryInfo& info, const Executable& code, std::uint64_t constant_bytes,
                          const LaunchConfig& config, Target device) {
  if (code.static_shared_bytes > kMaxStaticSharedBytes) {
    return absl::InvalidArgumentError(str_cat("kernel '", info.name, "' declares ", code.static_shared_bytes,
                                              " bytes of shared memory; ", kMaxStaticSharedBytes,
                                              " is the most, more must be dynamic (.extern .shared)"));
  }
  const std::uint64_t most = limits(device).shared_bytes_per_cta();  // never below the static limit
  if (config.dynamic_shared_bytes > most - code.static_shared_bytes) {
    return absl::InvalidArgumentError(str_cat("launch of kernel '", info.name,
                                              "': ", code.static_shared_bytes, " bytes of static and ",
                                              config.dynamic_shared_bytes, " of dynamic shared memory; ",
                                              device.to_string(), " allows ", most, " a CTA"));
  }
  if (code.local_bytes > kMaxLocal) {
    return absl::InvalidArgumentError(str_cat("kernel '", info.name, "' needs ", code.local_bytes,
                                              " bytes of local memory a thread; ", kMaxLocal,
                                              " is the most"));
  }
  if (constant_bytes > kMaxConstant) {
    return absl::InvalidArgumentError(str_cat("the module of kernel '", info.name, "' declares ",
                                              constant_bytes, " bytes of .const variables; ", kMaxConstant,
                                              " is the most"));
  }
  return absl::OkStatus();
}

// What the workers hand in.
struct Outcome {
  std::mutex mutex;  // guards all but the atomics; a std::mutex, which ThreadSanitizer sees through
  std::uint64_t fault_cluster = ~std::uint64_t{0};
  absl::Status fault;
  std::vector<OpCount> counts;
  Traffic traffic;
  Observations observations;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
};

// The order in which clusters start: that of their numbers, or with a seed another one: i to a * i + b modulo
// their number.
class Order {
 public:
  Order(std::uint64_t count, std::uint64_t seed) : count_(count) {
    if (seed == 0) return;
    std::mt19937_64 random(seed);
    do factor_ = random() % count;
    while (std::gcd(factor_, count) != 1);
    begin_ = random() % count;
  }
  std::uint64_t operator[](std::uint64_t i) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{i} * factor_ + begin_) % count_);
  }

 private:
  std::uint64_t count_, factor_ = 1, begin_ = 0;
};

std::uint64_t clusters(const Launch& launch) {
  return launch.config.grid.count() / launch.cluster.count();
}

// One host thread's clusters (of one CTA mostly). It runs one to its end before it takes the next, unless
// that one only waits: then others begin beside it, so that a CTA may wait for any other of the grid.
class Worker {
 public:
  Worker(const Launch& launch, Outcome& outcome)
      : launch_(launch), outcome_(outcome), order_(clusters(launch), launch.options.seed) {}

  void work() {
    while (!outcome_.stop.load(std::memory_order_relaxed) && (!running_.empty() || begin())) {
      Resident& r = *running_[at_];
      switch (r.cluster.round()) {
        case Cluster::State::kRunning: wait(r); break;
        case Cluster::State::kDone: end(); break;
        case Cluster::State::kFault: report(r); break;
      }
    }
    const std::lock_guard lock(outcome_.mutex);
    for (auto& r : running_) add_statistics(r->cluster);
    for (auto& r : idle_) add_statistics(r->cluster);
  }

 private:
  static constexpr std::uint32_t kPatience = 16;     // rounds without a change before others get a turn
  static constexpr std::size_t kMostResident = 256;  // a worker; each keeps registers and shared memory

  struct Resident {
    explicit Resident(const Launch& launch) : cluster(launch) {}
    Cluster cluster;
    std::uint64_t number = 0, changes = 0;
    std::uint32_t quiet = 0;
  };

  // Another cluster becomes the current one; false when all have begun.
  bool begin() {
    const std::uint64_t next = outcome_.next.fetch_add(1, std::memory_order_relaxed);
    if (next >= clusters(launch_)) return false;
    if (idle_.empty()) idle_.push_back(std::make_unique<Resident>(launch_));
    running_.push_back(std::move(idle_.back()));
    idle_.pop_back();
    at_ = running_.size() - 1;
    Resident& r = *running_.back();
    r.number = order_[next];
    r.quiet = 0;
    r.cluster.start(r.number);
    r.changes = r.cluster.changes();
    return true;
  }

  void wait(Resident& r) {
    const std::uint64_t changes = r.cluster.changes();
    r.quiet = changes == r.changes ? r.quiet + 1 : 0;
    r.changes = changes;
    if (r.quiet < kPatience) return;
    r.quiet = 0;
    if (at_ + 1 == running_.size() && running_.size() < kMostResident && begin()) return;
    at_ = (at_ + 1) % running_.size();
  }

  void end() {
    idle_.push_back(std::move(running_[at_]));
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }

  void report(Resident& r) {
    outcome_.stop = true;
    const std::lock_guard lock(outcome_.mutex);
    if (r.number >= outcome_.fault_cluster) return;
    outcome_.fault_cluster = r.number;
    outcome_.fault = std::move(r.cluster.fault);
  }

  void add_statistics(const Cluster& cluster) {
    for (const Cta& cta : cluster.ctas) add_statistics(cta);
  }

  void add_statistics(const Cta& cta) {
    outcome_.counts.resize(cta.counts.size());
    for (std::size_t i = 0; i < cta.counts.size(); ++i) {
      outcome_.counts[i].warps += cta.counts[i].warps;
      outcome_.counts[i].threads += cta.counts[i].threads;
    }
    outcome_.traffic.global_read += cta.traffic.global_read;
    outcome_.traffic.global_written += cta.traffic.global_written;
    outcome_.traffic.shared_read += cta.traffic.shared_read;
    outcome_.traffic.shared_written += cta.traffic.shared_written;
    if (cta.observer) outcome_.observations.add(cta.observer->observations());
  }

  const Launch& launch_;
  Outcome& outcome_;
  Order order_;
  std::vector<std::unique_ptr<Resident>> running_, idle_;
  std::size_t at_ = 0;  // the current one of running_
};

LaunchStats statistics(const Executable& code, const std::vector<OpCount>& counts, const Traffic& traffic) {
  LaunchStats stats;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Op& op = code.ops[i];
    if (!op.counted || counts[i].warps == 0) continue;
    const Instruction& in = *code.instructions[op.instruction];
    std::string name(in.opcode);
    for (std::string_view m : in.modifiers) str_append(&name, ".", m);
    stats.by_opcode[name] += counts[i].threads;
    stats.thread_instructions += counts[i].threads;
    stats.warp_instructions += counts[i].warps;
  }
  stats.global_bytes_read = traffic.global_read;
  stats.global_bytes_written = traffic.global_written;
  stats.shared_bytes_read = traffic.shared_read;
  stats.shared_bytes_written = traffic.shared_written;
  return stats;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Program>> Program::parse(std::string_view ptx) {
  absl::StatusOr<std::unique_ptr<Module>> module = parse_module(ptx);
  if (!module.ok()) return module.status();
  absl::StatusOr<std::unique_ptr<Code>> code = decode_module(*std::move(module));
  if (!code.ok()) return code.status();
  return std::make_shared<const Program>(*std::move(code));
}

Program::Program(std::unique_ptr<const Code> code) : code_(std::move(code)) {}
Program::~Program() = default;

PtxIsa Program::version() const {
  return code_->module->version;
}
Target Program::target() const {
  return code_->module->target;
}
absl::Span<const EntryInfo> Program::entries() const {
  return code_->infos;
}

const EntryInfo* Program::find_entry(std::string_view name) const {
  for (const EntryInfo& info : code_->infos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

absl::StatusOr<LaunchStats> launch(const Program& program, std::string_view entry, const LaunchConfig& config,
                                   Memory& memory, const Options& options) {
  const Code& code = program.code();
  const EntryInfo* info = program.find_entry(entry);
  if (!info) {
    std::string names;
    for (const EntryInfo& e : code.infos) str_append(&names, names.empty() ? "" : ", ", e.name);
    return absl::NotFoundError(str_cat("no entry '", entry, "' in the module; it has: ", names));
  }
  const Executable& executable = code.entries[static_cast<std::size_t>(info - code.infos.data())];
  const Target device = options.device.value_or(program.target());
  if (!device.supports(program.target())) {
    return absl::InvalidArgumentError(
        str_cat("code for ", program.target().to_string(), " does not run on ", device.to_string()));
  }
  if (absl::Status s = check_geometry(*info, config); !s.ok()) return s;
  if (absl::Status s = check_memory(*info, executable, code.module->const_bytes, config, device); !s.ok())
    return s;
  absl::StatusOr<Dim3> cluster = check_cluster(*info, config, device);
  if (!cluster.ok()) return cluster.status();
  absl::StatusOr<std::uint64_t> globals = memory.module_globals(program);
  if (!globals.ok()) return globals.status();

  Launch l;
  l.module = code.module.get();
  l.code = &executable;
  l.config = config;
  l.options = options;
  l.cluster = *cluster;
  l.registers = first_registers(*info);
  l.memory = memory.snapshot();
  l.globals = *globals;
  l.constants.resize(code.module->const_bytes);
  initialise(*code.module, Space::kConst, *globals, reinterpret_cast<std::uint8_t*>(l.constants.data()));
  l.shared_bytes = config.dynamic_shared_bytes
                       ? executable.dynamic_shared_offset + config.dynamic_shared_bytes
                       : executable.static_shared_bytes;

  Outcome outcome;
  std::uint64_t workers =
      options.workers ? options.workers : std::max(1u, std::thread::hardware_concurrency());
  workers = std::min(workers, clusters(l));
  std::vector<std::thread> others;
  try {
    for (std::uint64_t i = 1; i < workers; ++i) others.emplace_back([&] { Worker(l, outcome).work(); });
  } catch (const std::system_error&) {
    // The host has no more threads to give; those that there are do the work.
  }
  Worker(l, outcome).work();
  for (std::thread& t : others) t.join();
  const std::lock_guard lock(outcome.mutex);
  if (!outcome.fault.ok()) return outcome.fault;
  LaunchStats stats = statistics(executable, outcome.counts, outcome.traffic);
  if (options.profile)
    stats.profile = profile_of(executable, outcome.counts, outcome.traffic, outcome.observations);
  return stats;
}

}  // namespace ptxgen::emulator
