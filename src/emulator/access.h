// One lane's access to memory, with every check: the space a generic address lies in, alignment, bounds,
// bytes that nothing wrote, writes to read-only spaces, shared-memory races.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "src/emulator/decode.h"
#include "src/emulator/machine.h"

namespace ptxgen::emulator {

// Op::flags of operations on memory.
enum MemoryFlags : std::uint32_t { kStrong = 1, kAcquire = 2, kRelease = 4 };

// Whether an element of local memory has a value.
inline bool has_value(const std::byte* written, std::size_t bytes) {
  return std::any_of(written, written + bytes, [](std::byte b) { return b != std::byte{0}; });
}

struct Located {
  std::byte* data = nullptr;  // null: the warp has faulted
  // Of local memory, for each byte whether it was written. Compilers copy structures with the padding in
  // them: what nobody wrote may be loaded and stored there, but a register that holds it counts as not
  // written.
  std::byte* written = nullptr;
  // A write to shared memory that races. The caller knows whether the other lane wrote the same value in the
  // same instruction, which is allowed.
  std::optional<AccessConflict> conflict;
};

Located locate(Warp& warp, const Op& op, unsigned lane, std::uint64_t address, unsigned bytes,
               AccessKind kind);

// The address operand of a lane, offset added.
inline std::uint64_t lane_address(const Warp& warp, const Op& op, unsigned lane) {
  return (op.wide_address ? warp.lanes<std::uint64_t>(op.src[0])[lane]
                          : warp.lanes<std::uint32_t>(op.src[0])[lane]) +
         op.immediate;
}

// Where the address lies: the operation's space, or for a generic address the one whose window it is in.
// Shared memory is kShared, whosever it is.
Space space_of(const Op& op, std::uint64_t address);

// The place in SharedMemory of `bytes` at an address of `space`, kShared or kCluster. Faults where it is
// outside the CTA's memory, or in that of a CTA that the thread cannot reach.
std::optional<std::uint64_t> shared_offset(Warp& warp, const Op& op, unsigned lane, std::string_view verb,
                                           Space space, std::uint64_t address, std::uint64_t bytes);
// Notes an access to that place: in another CTA, it must happen before that one's end.
void note_visit(Warp& warp, const Op& op, unsigned lane, std::uint64_t offset);

// Ends the CTA with "<verb> N bytes at shared address 0x10<what>: where that is".
void fault_access(Warp& warp, const Op& op, unsigned lane, std::string_view verb, Space space,
                  std::uint64_t offset, std::uint64_t bytes, std::string_view what);
// The same for a place in SharedMemory.
void fault_shared(Warp& warp, const Op& op, unsigned lane, std::string_view verb, std::uint64_t offset,
                  std::uint64_t bytes, std::string_view what);

// Ends the CTA with the message for a race, at a place in SharedMemory.
void fault_race(Warp& warp, const Op& op, unsigned lane, std::uint64_t offset, std::uint64_t bytes,
                bool writes, const AccessConflict& conflict);

// "12 bytes past the end of allocation 'out' ..." for any space; `offset` is within the space.
std::string describe(const Cta& cta, Space space, std::uint64_t offset);

// What ld, st, atom and red share in decoding: .weak, .volatile, .relaxed, ... and a scope; cache hints.
std::uint32_t decode_semantics(Decoder& d);
// Eviction priorities, prefetch sizes and cache operators, which change no result. True when .L2::cache_hint
// asks for a further operand.
bool decode_cache_hints(Decoder& d);
// Fills what the operation needs of an address operand.
void set_address(Op& op, const AddressOperand& address, Space space);
// The same, and what a profile counts: each lane accesses so many bytes there.
void set_access(Op& op, const AddressOperand& address, Space space, AccessKind kind, unsigned bytes);
// Tells the decoder of a possible access to shared memory.
void note_access(Decoder& d, Space space, unsigned bytes);

}  // namespace ptxgen::emulator
