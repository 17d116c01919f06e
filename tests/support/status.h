// Statuses in tests: what must succeed, and what a message says.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {

template <class T>
T take(absl::StatusOr<T> result) {
  INFO(result.status());
  REQUIRE(result.ok());
  return *std::move(result);
}

inline void ok(const absl::Status& status) {
  INFO(status);
  REQUIRE(status.ok());
}

inline bool contains(absl::string_view text, const std::string& part) {
  return text.find(part) != absl::string_view::npos;
}

}  // namespace ptxgen::testing
