// Any text: the emulator refuses it and names a line, or every entry of it can be looked up, laid out and
// launched: it comes to its end, or a status says why not, in bounded time and memory.
#include <cstdlib>
#include <cstring>

#include "ptxgen/emulator.h"

namespace {

using namespace ptxgen::emulator;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_layout(const EntryInfo& entry) {
  std::size_t end = 0;
  for (const ParamInfo& param : entry.params) {
    require(param.alignment != 0 && param.offset % param.alignment == 0 && param.offset >= end);
    end = param.offset + param.size;
  }
  require(end <= entry.param_bytes);
}

// Two warps of each entry, the second not full; parameters of 8 bytes are the address of a buffer.
void execute(const Program& program, const EntryInfo& entry) {
  Memory memory;
  const auto buffer = memory.allocate(1024, "buffer");
  require(buffer.ok() && memory.fill(*buffer, std::byte{3}, 512).ok());
  std::vector<std::byte> params(entry.param_bytes, std::byte{1});
  for (const ParamInfo& param : entry.params) {
    if (param.size == 8) std::memcpy(params.data() + param.offset, &*buffer, 8);
  }
  Options options;
  options.workers = 1;
  options.max_warp_instructions = 500;
  options.profile = true;
  std::size_t steps = 0;
  options.trace.thread = {5, 0, 0};
  options.trace.sink = [&](const TraceStep& step) {
    steps += step.text.size() + step.reads.size() + step.writes.size();
  };
  for (const std::uint64_t seed : {0, 7}) {
    options.seed = seed;
    const auto stats =
        launch(program, entry.name,
               {.grid = {2}, .block = {40}, .dynamic_shared_bytes = 256, .params = params}, memory, options);
    require(stats.ok() ? stats->profile.has_value() : !stats.status().message().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto program = Program::parse({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) {
    require(!program.status().message().empty());
    return 0;
  }
  std::size_t executed = 0;
  for (const EntryInfo& entry : (*program)->entries()) {
    require((*program)->find_entry(entry.name) != nullptr);
    check_layout(entry);
    if (++executed <= 8) execute(**program, entry);
  }
  return 0;
}
