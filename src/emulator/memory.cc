#include "src/emulator/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "src/emulator/machine.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr std::uint64_t kAlignment = 256;    // what cuMemAlloc guarantees
constexpr std::uint64_t kGuard = 64 * 1024;  // between allocations
constexpr std::uint64_t kAddressEnd = std::uint64_t{1} << 62;

auto first_after(const std::vector<std::shared_ptr<Allocation>>& all, std::uint64_t address) {
  return std::upper_bound(
      all.begin(), all.end(), address,
      [](std::uint64_t a, const std::shared_ptr<Allocation>& b) { return a < b->address; });
}

}  // namespace

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data != MAP_FAILED) data_ = static_cast<std::byte*>(data);
}

Pages::~Pages() {
  if (data_) ::munmap(data_, bytes_);
}

Allocation* MemorySnapshot::search(std::uint64_t address, std::uint64_t bytes, Cursor& cursor) const {
  auto after = first_after(allocations, address);
  if (after == allocations.begin()) return nullptr;
  Allocation* a = std::prev(after)->get();
  if (a->freed || address - a->address >= a->bytes || bytes > a->end() - address) return nullptr;
  cursor.allocation = a;
  return a;
}

std::string MemorySnapshot::describe(std::uint64_t address) const {
  if (allocations.empty()) return "no global memory is allocated";
  auto after = first_after(allocations, address);
  const Allocation* below = after == allocations.begin() ? nullptr : std::prev(after)->get();
  const Allocation* above = after == allocations.end() ? nullptr : after->get();
  const bool use_above =
      !below || (above && address >= below->end() && above->address - address < address - below->end());
  const Allocation& a = use_above ? *above : *below;
  const std::string where = str_cat("allocation '", a.name, "' (", a.bytes, " bytes at ", hex(a.address),
                                    a.freed ? ", already freed)" : ")");
  if (use_above) return str_cat(a.address - address, " bytes before ", where);
  if (address >= a.end()) return str_cat(address - a.end(), " bytes past the end of ", where);
  return str_cat(address - a.address, " bytes into ", where);
}

struct Memory::State {
  mutable std::mutex mutex;  // guards all of it; a std::mutex, which ThreadSanitizer sees through
  MemorySnapshot all;
  std::uint64_t next = kGlobalBase;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> modules;

  absl::StatusOr<std::shared_ptr<Allocation>> locate(std::uint64_t address, std::uint64_t bytes,
                                                     std::string_view what) const {
    const std::lock_guard lock(mutex);
    auto after = first_after(all.allocations, address);
    if (after != all.allocations.begin()) {
      const std::shared_ptr<Allocation>& a = *std::prev(after);
      if (!a->freed && address - a->address <= a->bytes && bytes <= a->end() - address) return a;
    }
    return absl::OutOfRangeError(
        str_cat(what, " ", bytes, " bytes at ", hex(address), ": ", all.describe(address)));
  }
};

Memory::Memory() : state_(std::make_unique<State>()) {}
Memory::~Memory() = default;

absl::StatusOr<std::uint64_t> Memory::allocate(std::size_t bytes, std::string_view name) {
  if (bytes == 0)
    return absl::InvalidArgumentError(str_cat("allocation '", name, "' of 0 bytes; the least is 1"));
  auto a = std::make_shared<Allocation>();
  a->bytes = bytes;
  a->name = std::string(name);
  a->data = Pages(bytes);
  a->shadow = Pages(bytes);
  const std::lock_guard lock(state_->mutex);
  const std::uint64_t address = state_->next;
  if (!a->data.get() || !a->shadow.get() || bytes > kAddressEnd - address) {
    return absl::ResourceExhaustedError(
        str_cat("no host memory for allocation '", name, "' of ", bytes, " bytes and its record of writes"));
  }
  a->address = address;
  state_->next = (a->end() + kGuard + kAlignment - 1) & ~(kAlignment - 1);
  state_->all.allocations.push_back(std::move(a));
  return address;
}

absl::Status Memory::free(std::uint64_t address) {
  const std::lock_guard lock(state_->mutex);
  auto& all = state_->all.allocations;
  auto after = first_after(all, address);
  if (after == all.begin() || (*std::prev(after))->address != address || (*std::prev(after))->freed) {
    return absl::InvalidArgumentError(str_cat(
        "free of ", hex(address),
        ", which allocate() did not return or which is free already: ", state_->all.describe(address)));
  }
  auto tomb = std::make_shared<Allocation>();
  Allocation& old = **std::prev(after);
  tomb->address = old.address;
  tomb->bytes = old.bytes;
  tomb->name = old.name;
  tomb->freed = true;
  all[static_cast<std::size_t>(std::prev(after) - all.begin())] = std::move(tomb);
  return absl::OkStatus();
}

absl::Status Memory::write(std::uint64_t address, absl::Span<const std::byte> data) {
  absl::StatusOr<std::shared_ptr<Allocation>> a = state_->locate(address, data.size(), "the host writes");
  if (!a.ok()) return a.status();
  if (data.empty()) return absl::OkStatus();
  std::memcpy((*a)->data.get() + (address - (*a)->address), data.data(), data.size());
  if (data.size() == (*a)->bytes) (*a)->complete = true;
  (*a)->mark_written(address - (*a)->address, data.size());
  return absl::OkStatus();
}

absl::Status Memory::fill(std::uint64_t address, std::byte value, std::size_t bytes) {
  absl::StatusOr<std::shared_ptr<Allocation>> a = state_->locate(address, bytes, "the host fills");
  if (!a.ok()) return a.status();
  std::memset((*a)->data.get() + (address - (*a)->address), static_cast<int>(value), bytes);
  if (bytes == (*a)->bytes) (*a)->complete = true;
  (*a)->mark_written(address - (*a)->address, bytes);
  return absl::OkStatus();
}

absl::Status Memory::read(std::uint64_t address, absl::Span<std::byte> out, bool require_written) const {
  absl::StatusOr<std::shared_ptr<Allocation>> a = state_->locate(address, out.size(), "the host reads");
  if (!a.ok()) return a.status();
  const std::uint64_t offset = address - (*a)->address;
  if (require_written && !(*a)->written(offset, out.size())) {
    std::uint64_t first = offset;
    while ((*a)->written(first, 1)) ++first;
    return absl::FailedPreconditionError(str_cat(
        "the host reads ", out.size(), " bytes at ", hex(address), ", of which nothing wrote the byte at ",
        hex((*a)->address + first), ": ", describe((*a)->address + first)));
  }
  if (!out.empty()) std::memcpy(out.data(), (*a)->data.get() + offset, out.size());
  return absl::OkStatus();
}

std::string Memory::describe(std::uint64_t address) const {
  const std::lock_guard lock(state_->mutex);
  return state_->all.describe(address);
}

MemorySnapshot Memory::snapshot() const {
  const std::lock_guard lock(state_->mutex);
  return state_->all;
}

absl::StatusOr<std::uint64_t> Memory::module_globals(const Program& program) {
  const Module& module = *program.code().module;
  if (module.global_bytes == 0) return 0;
  {
    const std::lock_guard lock(state_->mutex);
    auto found = state_->modules.find(program.code().id);
    if (found != state_->modules.end()) return found->second;
  }
  absl::StatusOr<std::uint64_t> address = allocate(module.global_bytes, "module .global variables");
  if (!address.ok()) return address;
  absl::StatusOr<std::shared_ptr<Allocation>> a =
      state_->locate(*address, module.global_bytes, "the module has");
  if (!a.ok()) return a.status();
  initialise(module, Space::kGlobal, *address, reinterpret_cast<std::uint8_t*>((*a)->data.get()));
  (*a)->complete = true;
  const std::lock_guard lock(state_->mutex);
  return state_->modules.try_emplace(program.code().id, *address).first->second;
}

}  // namespace ptxgen::emulator
