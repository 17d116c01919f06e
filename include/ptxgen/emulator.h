// A CUDA device in software: parses PTX text and executes it on the CPU, warp by warp, with the checks that a
// real device does not make. It judges text, wherever it came from; it knows nothing of ptxgen's builder.
//
//   Memory memory;
//   auto program = Program::parse(ptx);                         // syntax, types, every instruction known
//   auto out = memory.allocate(4096, "out");                    // a device address
//   auto stats = launch(**program, "kernel", {.grid = {8}, .block = {128}, .params = bytes}, memory);
//
// docs/emulator.md says what is exact, what is approximated and which faults are found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/export.h"
#include "ptxgen/launch_shape.h"
#include "ptxgen/target.h"
#include "ptxgen/tensor_map.h"

namespace ptxgen::emulator {

struct Code;           // a module decoded for execution; internal
struct Allocation;     // one piece of emulated global memory; internal
class MemorySnapshot;  // what a running launch sees of a Memory; internal

struct ParamInfo {
  std::string name;
  std::size_t size;       // bytes
  std::size_t alignment;  // bytes; a power of two
  std::size_t offset;     // from the start of LaunchConfig::params
};

// What a module says about one of its `.entry` functions.
struct EntryInfo {
  std::string name;
  std::vector<ParamInfo> params;
  std::size_t param_bytes = 0;           // the least size of LaunchConfig::params
  std::optional<Dim3> max_threads;       // .maxntid
  std::optional<Dim3> required_threads;  // .reqntid
  std::uint32_t min_ctas_per_sm = 0;     // .minnctapersm; 0 when absent
  std::uint32_t max_registers = 0;       // .maxnreg; 0 when absent
  std::optional<Dim3> required_cluster;  // .reqnctapercluster
  std::uint32_t max_cluster_ctas = 0;    // .maxclusterrank; 0 when absent
  bool explicit_cluster = false;         // .explicitcluster: the launch or .reqnctapercluster gives a cluster
  std::size_t static_shared_bytes = 0;   // all .shared variables with a size that the entry uses or declares
};

// The parameters of one launch, given by position: bytes for LaunchConfig::params, in which nothing is
// missing.
//
//   Arguments arguments(*(*program)->find_entry("kernel"));
//   arguments.set(0, address);                                  // a .u64
//   arguments.set(1, 2.5f);                                     // a .f32
//   auto params = arguments.bytes();
class PTXGEN_API Arguments {
 public:
  explicit Arguments(EntryInfo entry);

  // kInvalidArgument where the entry has no such parameter, where it has another size, or where it has its
  // value already.
  absl::Status set_bytes(std::size_t index, absl::Span<const std::byte> value);
  template <class T>
  absl::Status set(std::size_t index, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "a parameter is plain bytes");
    return set_bytes(index, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&value), sizeof(T)));
  }

  const EntryInfo& entry() const { return entry_; }
  // kInvalidArgument while a parameter has no value; names the first.
  absl::StatusOr<absl::Span<const std::byte>> bytes() const;

 private:
  EntryInfo entry_;
  std::vector<std::byte> bytes_;
  std::vector<bool> set_;
};

// A parsed and decoded PTX module. Immutable, so any number of threads may launch from it.
class PTXGEN_API Program {
 public:
  // Reads a whole module. The error (kInvalidArgument) names the line, shows its text and says what is
  // expected; an instruction, modifier or operand type that the emulator does not execute is an error here,
  // never ignored.
  static absl::StatusOr<std::shared_ptr<const Program>> parse(std::string_view ptx);

  explicit Program(std::unique_ptr<const Code> code);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  PtxIsa version() const;  // of `.version`
  Target target() const;   // of `.target`
  absl::Span<const EntryInfo> entries() const;
  const EntryInfo* find_entry(std::string_view name) const;  // null when there is none

  const Code& code() const { return *code_; }

 private:
  std::unique_ptr<const Code> code_;
};

// The global memory of one emulated device. Thread-safe: several launches and host copies may run at once,
// under the same rule as on a device that nobody frees what a running launch still uses.
//
// Addresses are 64-bit numbers that are never given out twice and lie at least 64 KiB apart from each other,
// so an overrun or a use after free hits no other allocation. Storage is committed by the host when it is
// first touched. Every byte remembers whether anything was written to it; a kernel that reads one that was
// not is stopped.
class PTXGEN_API Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // `bytes` of device memory, aligned to 256 as cuMemAlloc does; `name` appears in messages.
  absl::StatusOr<std::uint64_t> allocate(std::size_t bytes, std::string_view name);
  absl::Status free(std::uint64_t address);  // the exact address that allocate() returned

  absl::Status write(std::uint64_t address, absl::Span<const std::byte> data);
  absl::Status fill(std::uint64_t address, std::byte value, std::size_t bytes);
  // Copies out whatever is there; `require_written` makes bytes that nothing wrote an error.
  absl::Status read(std::uint64_t address, absl::Span<std::byte> out, bool require_written = false) const;

  // "12 bytes past the end of allocation 'out' (4096 bytes at 0x100000000000)"
  std::string describe(std::uint64_t address) const;

  // For the runtime: the allocations as they are now, and where a module's `.global` variables live in this
  // memory.
  MemorySnapshot snapshot() const;
  absl::StatusOr<std::uint64_t> module_globals(const Program& program);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  std::uint64_t dynamic_shared_bytes = 0;
  absl::Span<const std::byte> params;  // every parameter at its ParamInfo::offset
  Dim3 cluster = {};                   // CTAs of a cluster; {1, 1, 1}: what .reqnctapercluster says
  bool non_portable_cluster = false;   // more than 8 of them
};

// A register at one moment: "%r1", "b32". Of 128 bits, `high` holds the upper half.
struct TraceValue {
  std::string_view name, type;
  std::uint64_t bits = 0, high = 0;
};

// One instruction of the traced thread. Views are valid during the call.
struct TraceStep {
  std::string_view function;  // the entry, or the .func that it called
  std::uint32_t line = 0;
  std::string_view text;
  bool executed = true;  // false: its guard was false
  // The registers that it reads, as they were, and those that it writes, as they are now. An instruction that
  // faults is the last step and writes nothing.
  std::vector<TraceValue> reads, writes;
};

// Follows one thread. `sink` is called from the host thread that executes it, in order.
struct Trace {
  Dim3 cta = {0, 0, 0};
  Dim3 thread = {0, 0, 0};
  std::function<void(const TraceStep&)> sink;  // none: nothing is traced
};

struct Options {
  unsigned workers = 0;          // host threads that execute CTAs; 0: one a core
  std::optional<Target> device;  // whose limits hold; the module's own target when absent
  std::uint64_t max_warp_instructions = std::uint64_t{1}
                                        << 28;  // by one CTA; more is reported as an endless kernel
  bool check_races = true;                      // shared-memory accesses without a barrier between them
  // 0: an asynchronous copy lands at the last legal moment, when whoever waits for it is all that is left to
  // do. Otherwise copies land, warps take turns and CTAs begin in a random order that depends on this number
  // alone.
  std::uint64_t seed = 0;
  bool profile = false;  // LaunchStats::profile is wanted
  Trace trace = {};
};

// Accesses of .shared memory by ld, st, atom, red, ldmatrix, stmatrix and cp.async. A wavefront is what 32
// banks of 4 bytes deliver at once: of each bank one word. Accesses of 8 bytes are made by half a warp at a
// time, those of 16 by a quarter.
struct SharedAccesses {
  std::uint64_t requests = 0;    // warp instructions with a lane in .shared
  std::uint64_t wavefronts = 0;  // that they take
  std::uint64_t conflicts = 0;   // of those, the ones that bank conflicts cost
};

// Accesses of .global memory by the same instructions. A sector is 32 aligned bytes.
struct GlobalAccesses {
  std::uint64_t requests = 0;  // warp instructions with a lane in .global
  std::uint64_t sectors = 0;   // different ones in each request, summed
  std::uint64_t bytes = 0;     // that the lanes asked for

  double sectors_per_request() const {
    return requests ? static_cast<double>(sectors) / static_cast<double>(requests) : 0;
  }
};

struct Branches {
  std::uint64_t executed = 0;   // by warps: bra, brx.idx, call, ret of a .func
  std::uint64_t divergent = 0;  // those after which lanes went on at different places
};

// What one instruction that accesses shared or global memory, or branches, adds to a Profile.
struct InstructionProfile {
  std::string function;
  std::uint32_t line = 0;
  std::string text;
  SharedAccesses shared;
  GlobalAccesses global;
  Branches branches;
};

struct SpaceTraffic {
  std::uint64_t read = 0, written = 0;  // bytes
};

// Figures that profilers of GPUs give, as far as they follow from the addresses and the control flow alone.
struct Profile {
  std::map<std::string, std::uint64_t> by_kind;        // "integer arithmetic": thread instructions
  std::map<std::string, SpaceTraffic> bytes_by_space;  // "shared"; of ld, st, atom, red and copies
  SharedAccesses shared;
  GlobalAccesses loads, stores;  // an atomic is a store
  Branches branches;
  std::uint64_t active_lanes = 0;  // over all warp instructions, those whose guard is false included
  std::vector<InstructionProfile> instructions;  // in the order of the text
};

struct LaunchStats {
  std::uint64_t thread_instructions = 0;  // counted once for each thread that executes it
  std::uint64_t warp_instructions = 0;
  std::map<std::string, std::uint64_t> by_opcode;  // "ld.global.nc.v4.u32": thread instructions
  std::uint64_t global_bytes_read = 0, global_bytes_written = 0;
  std::uint64_t shared_bytes_read = 0, shared_bytes_written = 0;
  std::optional<Profile> profile;  // with Options::profile
};

// What tensor copies of the emulator read: the 128 bytes that a kernel gets as its parameter. A tensor of
// which it is not known how a GPU lays it out in shared memory is refused.
PTXGEN_API absl::StatusOr<TensorMap> encode_tensor_map(const TiledTensor& tensor);

// Runs `entry` over the whole grid and returns when it has finished. A launch that no device would accept is
// refused with kInvalidArgument (kNotFound for the entry); a fault of the kernel is kAborted, and its message
// names kernel, line, instruction, CTA and thread. What a kernel wrote before its fault stays written.
PTXGEN_API absl::StatusOr<LaunchStats> launch(const Program& program, std::string_view entry,
                                              const LaunchConfig& config, Memory& memory,
                                              const Options& options = {});

}  // namespace ptxgen::emulator
