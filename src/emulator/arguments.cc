// The parameters of a launch by position.
#include <cstring>
#include <utility>

#include "ptxgen/emulator.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

std::string parameter(const EntryInfo& entry, std::size_t index) {
  return str_cat("parameter ", index, " '", entry.params[index].name, "' of kernel '", entry.name, "'");
}

}  // namespace

Arguments::Arguments(EntryInfo entry)
    : entry_(std::move(entry)), bytes_(entry_.param_bytes), set_(entry_.params.size()) {}

absl::Status Arguments::set_bytes(std::size_t index, absl::Span<const std::byte> value) {
  if (index >= entry_.params.size()) {
    return absl::InvalidArgumentError(
        entry_.params.empty()
            ? str_cat("kernel '", entry_.name, "' has no parameters, so none numbered ", index)
            : str_cat("kernel '", entry_.name, "' has no parameter ", index, "; they are numbered 0 to ",
                      entry_.params.size() - 1));
  }
  if (set_[index])
    return absl::InvalidArgumentError(str_cat(parameter(entry_, index), " is given twice; give it once"));
  const ParamInfo& info = entry_.params[index];
  if (value.size() != info.size) {
    return absl::InvalidArgumentError(
        str_cat(parameter(entry_, index), " has ", info.size, " bytes, and is given ", value.size()));
  }
  std::memcpy(bytes_.data() + info.offset, value.data(), value.size());
  set_[index] = true;
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const std::byte>> Arguments::bytes() const {
  for (std::size_t i = 0; i < set_.size(); ++i) {
    if (!set_[i]) {
      return absl::InvalidArgumentError(
          str_cat(parameter(entry_, i), ", of ", entry_.params[i].size, " bytes, has no value; give it one"));
    }
  }
  return absl::MakeConstSpan(bytes_);
}

}  // namespace ptxgen::emulator
