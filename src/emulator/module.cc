// What the variables of a module hold when it is loaded.
#include "src/emulator/module.h"

#include <cstring>

namespace ptxgen::emulator {
namespace {

std::uint64_t value_of(const Module& module, const Relocation& r, std::uint64_t globals) {
  if (r.function) return code_address(r.index) + r.addend;
  const Variable& v = module.variables[r.index];
  const std::uint64_t base = v.space == Space::kGlobal ? globals : r.generic ? window(v.space) : 0;
  return (base + v.offset + r.addend) >> r.shift;
}

}  // namespace

void initialise(const Module& module, Space space, std::uint64_t globals, std::uint8_t* image) {
  for (const Variable& v : module.variables) {
    if (v.space != space) continue;
    if (!v.initial.empty()) std::memcpy(image + v.offset, v.initial.data(), v.initial.size());
    for (const Relocation& r : v.relocations) {
      const std::uint64_t value = value_of(module, r, globals);
      std::memcpy(image + v.offset + r.at, &value, r.bytes);
    }
  }
}

}  // namespace ptxgen::emulator
