// What a schedule asks of the target.
#pragma once

#include <string_view>

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

// Whether the kernel's target is `lowest` or later; else that is recorded as the mistake. An instruction's
// own refusal would name what happens to come first.
inline bool requires_target(KernelBuilder& k, std::string_view schedule, Target lowest,
                            SourceLocation where = SourceLocation::current()) {
  if (k.target().supports(lowest)) return true;
  k.mistake(where, str_cat("schedule ", schedule, " needs ", lowest.to_string(), "; the kernel is built for ",
                           k.target().to_string(), ". Choose another schedule for this target"));
  return false;
}

}  // namespace ptxgen::parts
