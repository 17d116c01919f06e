// What somebody asks for in place of a policy's choice: the call, else the executor, else the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ptxgen/device_policy.h"
#include "ptxgen/strings.h"

namespace ptxgen::internal {

// Why a record of `ptxgen tune` decides.
template <class Record>
std::string measured_reason(const Record& record) {
  std::string reason = str_cat("ptxgen tune measured it on ", record.date, ": ");
  str_append(&reason, record.microseconds, " us");
  return reason;
}

template <class Variant>
struct Asked {
  std::string_view by;  // "the call"
  const Variant* variant;
};

// The first that says something; `variable` is the environment's.
template <class Variant>
std::optional<Asked<Variant>> asked_for(const std::optional<Variant>& call,
                                        const Overrides<Variant>& overrides, std::string_view variable) {
  if (call) return Asked<Variant>{"the call", &*call};
  if (overrides.executor) return Asked<Variant>{"the executor", &*overrides.executor};
  if (overrides.environment) return Asked<Variant>{variable, &*overrides.environment};
  return std::nullopt;
}

// That what is asked for cannot be had.
template <class Variant, class Shape>
absl::Status refused(const Asked<Variant>& asked, const Shape& shape, const absl::Status& why) {
  return absl::InvalidArgumentError(str_cat(asked.by, " asks for ", asked.variant->to_string(), ", which ",
                                            text_of_fields(shape), " cannot have: ", why.message()));
}

}  // namespace ptxgen::internal
