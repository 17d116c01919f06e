// One lane's asynchronous copy, from its operands to its start, with the checks that all kinds share.
#pragma once

#include "src/emulator/async.h"
#include "src/emulator/decode.h"

namespace ptxgen::emulator {

// The functions return false after a fault.
class Copying {
 public:
  Copying(Warp& warp, const Op& op, unsigned lane);

  AsyncCopy copy;

  // The piece of global memory, of which `bytes` are read or written.
  bool global(std::uint64_t address, std::uint32_t bytes, unsigned alignment, bool reads);
  // The piece of shared memory, which the copy writes (or reads, out to global memory).
  bool shared(Space space, std::uint64_t address, std::uint32_t bytes, unsigned alignment,
              std::string_view verb);
  // The piece of the CTA's shared memory that goes to another CTA.
  bool shared_source(std::uint64_t address, std::uint32_t bytes);
  // The mbarrier, whose initialisation the async proxy must see.
  bool mbarrier(std::uint64_t address);
  // Whether the mbarrier lies in the CTA whose memory the copy writes.
  bool same_cta();

  // From now on the bytes of shared memory are to be written; these are to be read.
  bool begin_write(bool async_proxy);
  bool begin_read(std::uint64_t from);
  // Starts the copy into the shared memory of all CTAs of a mask, at the same place in each, as its mbarriers
  // are.
  bool multicast(std::uint32_t ranks, unsigned alignment);
  // Starts the copy out of shared memory, in the thread's bulk group.
  void start_store();

 private:
  bool place(Space space, std::uint64_t address, std::uint32_t bytes, unsigned alignment,
             std::string_view verb, std::uint64_t& at);
  AccessRecord record() const { return warp_.access(op_, lane_, false); }
  std::string writer(const AccessRecord& by) const;
  bool fault(std::string_view verb, Space space, std::uint64_t offset, std::uint32_t bytes,
             std::string_view what);
  bool fault(std::string_view verb, std::uint64_t place, std::string_view what);
  bool race(bool writes, std::uint64_t place, const AccessConflict& conflict);
  bool fenced(std::string_view verb, std::uint64_t place);

  Warp& warp_;
  const Op& op_;
  unsigned lane_;
};

// The address operand as a 64-bit register: instructions of copies have several.
// A profile counts accesses of `bytes` there, by each lane.
Slot address_slot(Decoder& d, const Operand& operand, Space space, AccessKind kind = AccessKind::kRead,
                  unsigned bytes = 0);

// cp.async.bulk.tensor, whose opcode is that of the other copies.
void decode_tensor_copy(Decoder& d);

}  // namespace ptxgen::emulator
