// What a profile counts and a trace shows, beside the execution: a CTA has an Observer only when one of them
// is wanted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/emulator/machine.h"

namespace ptxgen::emulator {

// Of one operation.
struct Observed {
  SharedAccesses shared;
  GlobalAccesses global;
  Branches branches;
  std::uint64_t active_lanes = 0;
};

struct Observations {
  std::vector<Observed> ops;  // by operation
  // By state space, of those that LaunchStats does not count.
  SpaceTraffic local, constant, param;

  void add(const Observations& other);
};

class Observer {
 public:
  static bool wanted(const Options& options) { return options.profile || options.trace.sink; }

  explicit Observer(const Launch& launch);

  // Around the operation at `pc`; `lanes` are those whose guard holds.
  void before(const Warp& warp, std::uint32_t pc, LaneMask lanes);
  void after(const Warp& warp, std::uint32_t pc, LaneMask lanes);

  const Observations& observations() const { return observations_; }

 private:
  void count_access(const Warp& warp, const Op& op, LaneMask lanes, Observed& observed);
  void count_other(Space space, AccessKind kind, std::uint64_t bytes);

  // Whether the thread that is traced is among the warp's current lanes.
  bool traces(const Warp& warp) const;
  void trace_before(const Warp& warp, std::uint32_t pc);
  void trace_after(const Warp& warp, std::uint32_t pc, LaneMask lanes);
  void read_values(const Warp& warp, const Slot* slots, unsigned count,
                   std::vector<TraceValue>& values) const;
  // Whether the operation is the first or the last of its instruction.
  bool begins(std::uint32_t pc) const;
  bool ends(std::uint32_t pc) const;

  const Launch& launch_;
  Observations observations_;
  std::size_t splits_ = 0;    // before the operation
  std::uint64_t active_ = 0;  // lanes at the operation

  std::uint32_t warp_ = 0;  // which thread is traced
  unsigned lane_ = 0;
  bool traced_ = false;   // in this operation
  bool written_ = false;  // the instruction stands in the text
  std::string text_;
  TraceStep step_;
};

Profile profile_of(const Executable& code, const std::vector<OpCount>& counts, const Traffic& traffic,
                   const Observations& observations);

}  // namespace ptxgen::emulator
