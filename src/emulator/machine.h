// What executes: decoded operations, warps of 32 lanes, CTAs, and a launch.
//
// Registers are stored lane-contiguous: a 32-bit register is 32 adjacent 32-bit words in its warp's frame, a
// predicate one 32-bit mask (bit i is lane i). Constants and special registers are registers too, filled
// before a CTA starts, so an operation sees nothing but slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "src/emulator/memory.h"
#include "src/emulator/module.h"
#include "src/emulator/shared_memory.h"

namespace ptxgen::emulator {

using LaneMask = std::uint32_t;
inline constexpr unsigned kWarpSize = 32;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

struct Warp;
struct Cta;
struct Cluster;
class Async;
class Wgmma;
class CallStacks;
class Observer;
struct Op;
using Execute = void (*)(Warp& warp, const Op& op, LaneMask lanes);

// Where a register lives: byte offset in the warp's frame, and its index in Warp::written.
struct Slot {
  std::uint32_t offset = 0, id = 0;
};

inline constexpr std::uint32_t kNoTarget = ~0u;

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

// One decoded operation. An instruction whose operands are wider or narrower than its type becomes several:
// the extra ones resize registers and have the same guard.
struct Op {
  Execute run = nullptr;
  const Slot* dst = nullptr;
  const Slot* src = nullptr;
  std::uint16_t dst_count = 0, src_count = 0;
  bool guarded = false, guard_negated = false;
  bool counted = false;          // the one operation of its instruction that statistics count
  bool in_flight = false;        // goes on after its instruction: Wgmma watches its registers
  bool wide_address = true;      // memory: src[0] holds 64-bit addresses, not 32-bit ones
  bool takes_unwritten = false;  // looks itself whether the registers after src[0] were written
  bool branches = false;         // may send lanes to different places
  Space space = Space::kGeneric;
  AccessKind access = AccessKind::kRead;
  std::uint8_t access_bytes = 0;  // of each lane at the address in src[0]; 0: what a profile does not count
  LaneMask access_lanes = kAllLanes;  // whose addresses count
  Slot guard;
  std::uint32_t instruction = 0;     // index into Executable::instructions
  std::uint32_t target = kNoTarget;  // of a branch: index of an Op
  std::uint32_t mode = 0;            // rounding, comparison, barrier, prmt mode ...: the family's own
  std::uint32_t flags = 0;           // the family's own
  std::uint64_t immediate = 0;       // of memory operations the address offset; otherwise the family's own
};

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kSmid,
  kNsmid,
  kDynamicSmemSize,
  kTotalSmemSize,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
};

// A special register an entry reads; 32 bits.
struct SpecialSlot {
  Special special;
  Slot slot;
};

// A constant's bits, the same in every lane. `relocated` adds where the module's .global variables are.
struct ConstantSlot {
  Slot slot;
  unsigned bytes;  // a lane; 0 for a predicate
  std::uint64_t value;
  bool relocated = false;
};

// Where a value that a call passes is: in a register of `bytes` a lane, or in the frame of the caller or the
// callee in local memory.
struct Passed {
  bool in_register = false;
  Slot slot;
  std::uint64_t offset = 0, bytes = 0;
};

// What a `call` passes and to whom.
struct CallSite {
  std::uint32_t function = ~0u;  // index into Executable::functions; ~0: the register in src[0] says which
  std::string_view undefined;    // the function that the module only declares
  std::vector<std::uint32_t> targets;  // of a call through a register: those that it may have; all when empty
  std::vector<Passed> results, arguments;
};

// A function within an Executable.
struct FunctionCode {
  const Function* function = nullptr;
  std::uint32_t begin = 0;              // its first operation
  std::uint32_t first_instruction = 0;  // index into Executable::instructions
  Slot base;                            // where its frame in local memory begins; of a .func only
  std::vector<Passed> registers;        // what another activation of it would overwrite
  std::vector<Passed> results, parameters;
};

struct PlacedVariable {
  std::uint32_t variable;  // index into Module::variables
  std::uint64_t offset;
};

// An entry and the functions that it may call, ready to run. Callees stand before their callers: lanes at
// lower operations go first, so those in a call return before the others go on without them.
struct Executable {
  const Function* function = nullptr;      // the entry
  std::vector<FunctionCode> functions;     // the entry is the last
  std::vector<std::uint32_t> function_of;  // by index into Module::functions: index into `functions`, or ~0
  std::vector<const Instruction*> instructions;  // of all of them
  std::vector<CallSite> calls;
  std::vector<std::vector<std::uint32_t>> branch_tables;  // of brx.idx: operations
  std::vector<Op> ops;
  std::vector<Slot> operands;  // what Op::dst and Op::src point into
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  std::vector<std::string_view> kinds;  // by instruction: "integer arithmetic"
  std::vector<RegisterName> registers;  // by Slot::id; without a name for other slots
  std::size_t frame_bytes = 0;          // registers of one warp
  std::uint64_t local_bytes = 0;        // of one thread, for the frames of the entry and its callees
  std::vector<PlacedVariable> shared;   // the .shared variables it uses
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t dynamic_shared_offset = 0;
  bool has_async = false;  // mbarriers, asynchronous copies or wgmma
  bool has_wgmma = false;
  bool has_fence = false;        // strong accesses may then order weak ones
  unsigned shared_granule = 16;  // largest unit that no shared-memory access splits

  // Whose instruction it is, an index into `functions`.
  std::uint32_t function_at(std::uint32_t instruction) const;
};

struct Code {
  std::uint64_t id =
      0;  // no two modules of a process share one, so what is kept for a module never meets another
  std::unique_ptr<const Module> module;
  std::vector<Executable> entries;
  std::vector<EntryInfo> infos;  // of the entries
};

// What an operation asks of the scheduler.
enum class Event : std::uint8_t {
  kNone,   // go on with the next operation
  kJump,   // Warp::current or Warp::splits changed: look again where to go on
  kYield,  // the operation is done and would be done the same way again soon: other lanes and warps first
  kWait,   // the same, because lanes wait; the operation is not done
  kFault,  // Cta::fault says why
};

// Lanes of a warp that are at the same place.
struct Split {
  enum class State : std::uint8_t {
    kReady,
    kConverging,  // waits for other lanes of its warp to arrive at the same operation
    kBarrier,     // has arrived at CTA barrier `barrier`
    kReleased,    // that barrier completed; the operation runs once more to collect the result
    kCluster,     // waits at barrier.cluster
    kRegisters,   // waits in setmaxnreg.inc
    kSuspended,   // sleeps in mbarrier.try_wait on the one at shared address `barrier`
  };
  std::uint32_t pc = 0;
  LaneMask lanes = 0;
  State state = State::kReady;
  std::uint32_t barrier = 0;
};

// A test of an mbarrier that has said no: while the phase lasts, the same test may sleep.
struct Refusal {
  std::uint32_t pc = ~0u;
  LaneMask lanes = 0;
  std::uint64_t mbarrier = 0;
  std::uint32_t phase = 0;
  std::uint64_t changes = 0;  // Cluster::changes() then
};

// Lanes that diverged are scheduled lowest pc first and merge when they meet, which reconverges loops, nested
// and unstructured branches and early exits alike. No lane depends on another's progress for longer than a
// bounded number of backward branches.
struct Warp {
  Cta* cta = nullptr;
  std::uint32_t index = 0;  // in the CTA: tid / 32
  std::uint32_t slot = 0;   // in the cluster; the warp's number in clocks (shared_memory.h)
  LaneMask live = 0;        // lanes that exist and have not exited
  LaneMask existing = 0;
  std::byte* frame = nullptr;
  std::vector<LaneMask> written;  // by Slot::id: lanes whose register holds a value
  // Results of the operation that were loaded from local memory which nothing has written.
  std::vector<std::pair<std::uint32_t, LaneMask>> unwritten;
  std::vector<Split> splits;     // all live lanes, but for those of `current`
  std::uint32_t boundary = ~0u;  // the next higher pc at which other lanes are
  Split current;
  Event event = Event::kNone;
  std::uint32_t backward_branches = 0;  // since lanes diverged; bounds how long the others starve
  bool prefer_high = false;
  std::vector<Refusal> refusals;  // one a place
  bool idle = false;              // nothing has changed since it was last refused
  MemorySnapshot::Cursor cursor;  // the global allocation last used
  LaneMask arrived = 0;           // at barrier.cluster, without having waited
  LaneMask passable = 0;          // of those, who may pass: the barrier is complete
  std::uint32_t registers = 0;    // of each thread, as setmaxnreg left them; 0: not known
  std::uint32_t adjustments = 0;  // setmaxnreg executed, the last as `adjusted` says
  AccessRecord adjusted;
  std::uint64_t cluster_barriers = 0;  // that its lanes know to be complete
  std::unique_ptr<CallStacks> calls;   // where the entry calls functions

  Warp();
  Warp(Warp&&) noexcept;
  ~Warp();

  template <class T>
  T* lanes(Slot slot) const {
    return reinterpret_cast<T*>(frame + slot.offset);
  }
  LaneMask& predicate(Slot slot) const { return *lanes<LaneMask>(slot); }

  std::uint32_t thread(unsigned lane) const { return index * kWarpSize + lane; }
  // The lane's number in the cluster, as clocks, records and copies have it.
  std::uint32_t cluster_thread(unsigned lane) const { return slot * kWarpSize + lane; }
  // What the lane does now, for the record.
  AccessRecord access(const Op& op, unsigned lane, bool strong) const;

  // Ends the CTA with a message that says where: kernel, line, instruction, CTA, thread.
  void fault(const Op& op, unsigned lane, std::string_view what);
  void fault_unwritten(const Op& op, Slot slot, LaneMask lanes);

  // Takes `lanes` out of the current split, to run this operation again once `state` allows; the others go on
  // after it.
  void wait(LaneMask lanes, Split::State state, std::uint32_t barrier = 0);

  // Of a jump that `lanes` make: the other lanes of the current split go on after it, and send() says where
  // each of these goes. Lanes that are not sent execute it again.
  void jump(LaneMask lanes);
  void send(LaneMask lanes, std::uint32_t pc);

  // True when all of `wanted` that still live are in `lanes`, so that a warp-wide operation can go on.
  // Otherwise the lanes wait for the others.
  bool converge(LaneMask lanes, LaneMask wanted);

  // For a warp-wide operation: memory accesses before it happen before those after it.
  void synchronise();
};

// One of the 16 barriers of a CTA.
struct Barrier {
  std::uint32_t arrived = 0;   // threads, whole warps counted as 32
  std::uint32_t expected = 0;  // 0: all threads of the CTA that have not exited
  bool in_use = false;
  std::uint32_t instruction = 0;  // the first arrival's
  std::uint32_t true_count = 0;   // barrier.red: threads whose predicate holds
  std::uint32_t thread_count = 0;
  std::uint32_t result_true = 0, result_count = 0;  // of the generation that completed last
  HappensBefore clock;
};

struct OpCount {
  std::uint64_t warps = 0, threads = 0;
};

struct Traffic {
  std::uint64_t global_read = 0, global_written = 0, shared_read = 0, shared_written = 0;
};

// What all CTAs of a launch share.
struct Launch {
  const Module* module = nullptr;
  const Executable* code = nullptr;
  LaunchConfig config;
  Options options;
  MemorySnapshot memory;
  std::uint64_t globals = 0;  // address of the module's .global variables
  std::vector<std::byte> constants;
  std::uint64_t shared_bytes = 0;
  Dim3 cluster;                 // CTAs of a cluster
  std::uint32_t registers = 0;  // that each thread begins with; 0: not known

  std::uint32_t cluster_ctas() const { return static_cast<std::uint32_t>(cluster.count()); }
};

// One CTA of a cluster in execution. What the cluster has once for all is at hand here too.
struct Cta {
  Cta(Cluster& cluster, std::uint32_t rank);
  ~Cta();

  void start(Dim3 at);
  // Every warp's turn; true when one of them got anywhere.
  bool turns();
  bool done() const;
  // Where the CTA's own shared memory begins in `shared`.
  std::uint64_t shared_at() const { return rank * shared.stride(); }

  // Called when lanes arrive, exit, or leave a barrier.
  void release_barriers();

  Cluster& cluster;
  const Launch* launch;
  SharedMemory& shared;
  Async* async;  // null where the entry has no such instructions
  absl::Status& fault;

  std::uint32_t rank;  // in the cluster
  Dim3 ctaid;
  std::vector<Warp> warps;
  std::unique_ptr<Wgmma> wgmma;
  std::unique_ptr<Observer> observer;  // where a profile or a trace is wanted
  Pages local, local_written;  // Executable::local_bytes for each thread, and which bytes were written
  std::array<Barrier, 16> barriers;
  std::uint64_t free_registers = 0;  // what setmaxnreg.dec gave back
  std::uint64_t steps = 0;           // warp operations executed
  std::uint64_t arrivals = 0;        // at barriers, and exits
  std::vector<OpCount> counts;       // by operation; summed over the CTAs of this worker
  Traffic traffic;
  // The last access of each thread of other CTAs to this one's shared memory; by AccessRecord::thread.
  absl::flat_hash_map<std::uint16_t, AccessRecord> visits;

 private:
  void forget_local();
  void fill_specials(Warp& warp);
  std::uint64_t special_value(const Warp& warp, unsigned lane, Special special) const;
  // Executes at most `budget` operations of the warp; true when it executed any.
  bool run_warp(Warp& warp, std::uint64_t budget);
  // `observed`: there is an observer; without, a step does nothing for it.
  template <bool observed>
  void steps_of(Warp& warp, std::uint64_t end);
  template <bool observed>
  bool step(Warp& warp);
  bool pick(Warp& warp);

  std::vector<std::byte> frames_;
};

// The CTAs that run together: those of a cluster, which mostly is one CTA. A worker reuses it for all the
// clusters it runs.
struct Cluster {
  explicit Cluster(const Launch& launch);
  ~Cluster();

  enum class State : std::uint8_t { kRunning, kDone, kFault };

  // Begins the cluster numbered `linear` in the grid, x fastest; round() gives every warp a turn until all
  // are done, or until `fault` says why not.
  void start(std::uint64_t linear);
  State round();

  // Ends the cluster with a message that says where; `thread` as in AccessRecord.
  void fail(std::uint32_t instruction, std::uint32_t thread, std::string_view what);

  // Grows with everything that another thread could wait for.
  std::uint64_t changes() const;

  // Called when lanes arrive at barrier.cluster, or exit: lets those go on that wait at it, once it is
  // complete.
  void release_barrier();
  // Called when the last thread of a CTA exits: nobody may still use its shared memory.
  void end(Cta& cta);

  // The CTA of a thread as in AccessRecord, and "thread (0,0,0)", of another CTA where there are several.
  const Cta& cta_of(std::uint32_t thread) const { return ctas[thread / kMaxWarps / kWarpSize]; }
  std::string name_thread(std::uint32_t thread) const;
  template <class F>
  void for_each_warp(F&& f) {
    for (Cta& cta : ctas) {
      for (Warp& warp : cta.warps) f(warp);
    }
  }

  const Launch* launch;
  SharedMemory shared;
  std::unique_ptr<Async> async;
  absl::Status fault;
  std::deque<Cta> ctas;               // by rank; a deque, since they stay where they are
  std::uint64_t barriers = 0;         // barrier.cluster: how often it was complete
  HappensBefore arriving, completed;  // of its current phase, and of those before it

 private:
  absl::Status deadlock() const;
};

// Where an address in shared memory lies. mapa marks an address with the CTA's rank, in the high byte of 32
// bits; without a mark it is the thread's own CTA.
struct SharedPlace {
  std::uint64_t rank;    // kNoRank: of no CTA
  std::uint64_t offset;  // in the shared memory of that CTA
};
inline constexpr std::uint64_t kNoRank = ~std::uint64_t{0};
inline constexpr unsigned kRankShift = 24;
inline constexpr std::uint64_t kRankMark = 0x80;
constexpr std::uint64_t mapped(std::uint64_t rank, std::uint64_t offset) {
  return (kRankMark + rank) << kRankShift | offset;
}
inline SharedPlace shared_place(const Cta& cta, std::uint64_t address) {
  const std::uint64_t high = address >> kRankShift;
  const std::uint64_t offset = address & ((std::uint64_t{1} << kRankShift) - 1);
  if (high == 0) return {cta.rank, offset};
  return {high >= kRankMark && high < kRankMark + kMaxClusterCtas ? high - kRankMark : kNoRank, offset};
}

// setmaxnreg (registers.cc): a fault where a warpgroup of the CTA, at its end, has executed one with some of
// its warps only.
void check_warpgroups(Cta& cta);
// The registers that a thread begins with, as far as the entry's directives tell; else 0.
std::uint32_t first_registers(const EntryInfo& info);

// "lanes 0-15, 20"
std::string lane_list(LaneMask lanes);
// "(1,2,3)"
std::string to_string(Dim3 at);
Dim3 position(std::uint64_t linear, Dim3 extent);

// "PTX line 12 `ld.global.u32 %r1, [%rd1]`", by the instruction's number; and "kernel 'k', PTX line 12 `...`"
std::string line_of(const Launch& launch, std::uint32_t instruction);
std::string place(const Launch& launch, std::uint32_t instruction);

}  // namespace ptxgen::emulator
