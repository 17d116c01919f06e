// What a recording cannot do.
#pragma once

#include "absl/status/status.h"
#include "ptxgen/strings.h"

namespace ptxgen::internal {

// The refusal of a kernel that a recording would have to compile says what to do.
inline absl::Status unprepared(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return absl::FailedPreconditionError(str_cat(status.message(), ", with Executor::prepare()"));
}

}  // namespace ptxgen::internal
