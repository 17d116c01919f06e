// Calls. Every function has its registers in the frame of a warp once; a lane that calls a function which it
// is in already puts the registers' values aside until the call returns. So lanes at different depths of a
// recursion execute together, and meet again like those of a loop.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/emulator/machine.h"

namespace ptxgen::emulator {

// Local memory of each thread beside the frames, where a function calls itself.
inline constexpr std::uint64_t kRecursionBytes = 64 * 1024;

// What one activation takes of local memory.
inline std::uint64_t frame_of(const Function& function) {
  return (std::max<std::uint64_t>(function.local_bytes, 1) + 15) & ~std::uint64_t{15};
}

// A call that has not returned.
struct Activation {
  std::uint32_t call = 0;      // the operation that called
  std::uint32_t function = 0;  // index into Executable::functions
  std::uint64_t base = 0;      // of its frame in local memory
  bool recursive = false;      // CallStacks::Lane::saved has its registers' values
};

// The calls that the lanes of one warp are in.
class CallStacks {
 public:
  struct Lane {
    std::vector<Activation> activations;
    std::vector<std::byte> saved;
  };

  explicit CallStacks(const Executable& code) : active(code.functions.size()) {}

  void reset();
  // The function that the lane is in, and where its frame begins.
  std::uint32_t function(const Executable& code, unsigned lane) const;
  std::uint64_t base(unsigned lane) const;

  std::array<Lane, kWarpSize> lanes;
  std::vector<LaneMask> active;   // by function: lanes that are in it
  std::vector<std::byte> passed;  // scratch: bytes on their way, each with a flag that it was written
};

}  // namespace ptxgen::emulator
