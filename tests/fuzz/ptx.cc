// Any text: the emulator refuses it and names a line, or every entry of it can be looked up and laid out.
#include <cstdlib>

#include "ptxgen/emulator.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxgen::emulator;
  const auto program = Program::parse({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) {
    require(!program.status().message().empty());
    return 0;
  }
  for (const EntryInfo& entry : (*program)->entries()) {
    require((*program)->find_entry(entry.name) != nullptr);
    std::size_t end = 0;
    for (const ParamInfo& param : entry.params) {
      require(param.alignment != 0 && param.offset % param.alignment == 0 && param.offset >= end);
      end = param.offset + param.size;
    }
    require(end <= entry.param_bytes);
  }
  return 0;
}
