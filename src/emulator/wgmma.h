// wgmma: multiplications of matrices that go on beside the warps (PTX ISA, "Asynchronous Warpgroup Level
// Matrix Multiply-Accumulate Instructions").
//
// Each warp of a warpgroup multiplies its own 16 rows. A multiplication is adversarial: it reads its
// registers and its shared memory, and writes the accumulators, when its warp waits for its group, or, with
// Options::seed, at random between its issue and that moment; those of a warp in their order. Until then its
// registers may not be used, nor its shared memory be written.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "src/emulator/machine.h"

namespace ptxgen::emulator {

inline constexpr unsigned kWarpgroup = 4;    // warps
inline constexpr unsigned kWgmmaRows = 16;   // of a warp
inline constexpr unsigned kWgmmaBytes = 32;  // of an operand along k

// What a wgmma.mma_async is, besides its operands. Op::dst are the accumulators; Op::src is a's registers or
// descriptor, b's descriptor, scale-d.
struct WgmmaForm {
  unsigned n = 0;
  Type a = Type::kF16, b = Type::kF16, d = Type::kF32;
  bool a_in_shared = false, satfinite = false;
  bool negate_a = false, negate_b = false;
  bool a_m_major = false, b_n_major = false;

  void pack(Op& op) const;
  static WgmmaForm of(const Op& op);
  unsigned depth() const { return kWgmmaBytes * 8 / bits(a); }  // elements along k
};

struct WgmmaInFlight {
  const Op* op = nullptr;
  std::uint64_t a = 0, b = 0;  // descriptors
  bool accumulate = false;     // scale-d
  bool done = false;
  std::uint32_t group = 0;                 // of its warp
  std::vector<std::uint32_t> pieces = {};  // of 16 bytes of shared memory that it reads
};

// Computes what `multiplication` of the warp's rows gives, into the accumulators.
void multiply(Warp& warp, const WgmmaInFlight& multiplication);

class Wgmma {
 public:
  explicit Wgmma(Cta& cta);

  void reset();
  // Before an operation that is no wgmma.mma_async; false after a fault, where it uses a register of one in
  // flight.
  bool use_registers(Warp& warp, const Op& op);

  // The four instructions, executed by a whole warp.
  void fence(Warp& warp, const Op& op);
  void issue(Warp& warp, WgmmaInFlight multiplication);
  void commit(Warp& warp, const Op& op);
  void wait(Warp& warp, const Op& op, std::uint64_t pending);

  // The oldest of a warp has its moment.
  void advance(std::uint32_t warp);
  // When all threads have exited.
  void finish();

  void mark_sources();
  // ", which the wgmma at PTX line 12 `...` of warp 0 may still read; ...", or nothing.
  std::string describe_source(std::uint64_t offset, unsigned bytes) const;

 private:
  // What has happened to a register. Accesses carry the number of fences that the warp had executed, plus 1.
  struct Register {
    std::uint32_t read = 0, written = 0;  // by ordinary operations
    std::uint32_t multiplied = 0;         // as accumulator; then of which shape
    std::uint32_t shape = 0;
    std::uint16_t accumulating = 0, factor_of = 0;  // in flight
  };
  struct WarpState {
    std::vector<Register> registers;  // by Slot::id
    std::deque<WgmmaInFlight> in_flight;
    std::uint32_t groups = 0;  // committed
    std::uint32_t fences = 0;
    std::uint64_t executed = 0;  // instructions of the warpgroup
  };
  // An instruction as the first warp of its warpgroup executed it: all four execute the same ones.
  struct Executed {
    std::uint32_t instruction = 0;
    std::uint64_t a = 0, b = 0;
    bool accumulate = false;
    bool operator==(const Executed&) const = default;
  };
  struct GroupState {
    std::deque<Executed> executed;
    std::uint64_t first = 0;  // number of the front
  };

  bool in_step(Warp& warp, const Op& op, const Executed& executed);
  bool check_registers(Warp& warp, const WgmmaInFlight& multiplication);
  bool check_accumulator(Warp& warp, const WgmmaInFlight& multiplication, Slot slot);
  bool check_factor(Warp& warp, const WgmmaInFlight& multiplication, Slot slot);
  bool read_shared(Warp& warp, const WgmmaInFlight& multiplication);
  void complete(Warp& warp, WgmmaInFlight& multiplication);
  void fault_register(Warp& warp, const Op& op, Slot slot, std::string_view verb, bool factor);
  std::string_view name_of(Slot slot) const;
  std::string place_of(const WgmmaInFlight& multiplication, std::uint32_t warp) const;
  std::string how_to_wait(const WgmmaInFlight& multiplication, std::uint32_t warp) const;

  Cta& cta_;
  std::vector<WarpState> warps_;
  std::vector<GroupState> groups_;
};

}  // namespace ptxgen::emulator
