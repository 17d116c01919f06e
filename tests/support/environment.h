// Environment variables in tests.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace ptxgen::testing {

// A variable's value for the length of a scope; nullptr: unset.
class ScopedVariable {
 public:
  ScopedVariable(std::string_view name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_.has_value() ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) {
    value == nullptr ? unsetenv(name_.c_str()) : setenv(name_.c_str(), value, 1);
  }

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace ptxgen::testing
