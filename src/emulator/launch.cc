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
  std::uint64_t fault_cta = ~std::uint64_t{0};
  absl::Status fault;
  std::vector<OpCount> counts;
  Traffic traffic;
  Observations observations;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
};

// The order in which CTAs start: that of their numbers, or with a seed another one: i to a * i + b modulo the
// grid.
class Order {
 public:
  Order(std::uint64_t ctas, std::uint64_t seed) : ctas_(ctas) {
    if (seed == 0) return;
    std::mt19937_64 random(seed);
    do factor_ = random() % ctas;
    while (std::gcd(factor_, ctas) != 1);
    begin_ = random() % ctas;
  }
  std::uint64_t operator[](std::uint64_t i) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{i} * factor_ + begin_) % ctas_);
  }

 private:
  std::uint64_t ctas_, factor_ = 1, begin_ = 0;
};

// One host thread's CTAs. It runs one to its end before it takes the next, unless that one only waits: then
// others begin beside it, so that a CTA may wait for any other of the grid.
class Worker {
 public:
  Worker(const Launch& launch, Outcome& outcome)
      : launch_(launch), outcome_(outcome), order_(launch.config.grid.count(), launch.options.seed) {}

  void work() {
    while (!outcome_.stop.load(std::memory_order_relaxed) && (!running_.empty() || begin())) {
      Resident& r = *running_[at_];
      switch (r.cta.round()) {
        case Cta::State::kRunning: wait(r); break;
        case Cta::State::kDone: end(); break;
        case Cta::State::kFault: report(r); break;
      }
    }
    const std::lock_guard lock(outcome_.mutex);
    for (auto& r : running_) add_statistics(r->cta);
    for (auto& r : idle_) add_statistics(r->cta);
  }

 private:
  static constexpr std::uint32_t kPatience = 16;     // rounds without a change before others get a turn
  static constexpr std::size_t kMostResident = 256;  // a worker; each keeps registers and shared memory

  struct Resident {
    explicit Resident(const Launch& launch) : cta(launch) {}
    Cta cta;
    std::uint64_t number = 0, changes = 0;
    std::uint32_t quiet = 0;
  };

  // Another CTA becomes the current one; false when all have begun.
  bool begin() {
    const std::uint64_t next = outcome_.next.fetch_add(1, std::memory_order_relaxed);
    if (next >= launch_.config.grid.count()) return false;
    if (idle_.empty()) idle_.push_back(std::make_unique<Resident>(launch_));
    running_.push_back(std::move(idle_.back()));
    idle_.pop_back();
    at_ = running_.size() - 1;
    Resident& r = *running_.back();
    r.number = order_[next];
    r.quiet = 0;
    r.cta.start(r.number);
    r.changes = r.cta.changes();
    return true;
  }

  void wait(Resident& r) {
    const std::uint64_t changes = r.cta.changes();
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
    if (r.number >= outcome_.fault_cta) return;
    outcome_.fault_cta = r.number;
    outcome_.fault = std::move(r.cta.fault);
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
  absl::StatusOr<std::uint64_t> globals = memory.module_globals(program);
  if (!globals.ok()) return globals.status();

  Launch l;
  l.module = code.module.get();
  l.code = &executable;
  l.config = config;
  l.options = options;
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
  workers = std::min(workers, config.grid.count());
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
