#include "ptxgen/environment.h"

#include <cstdlib>
#include <set>

#include "tests/support/catch.h"

namespace ptxgen {
namespace {

// A variable's value for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const EnvironmentVariable& variable, const char* value)
      : name_(variable.name), before_(env::text(variable)) {
    setenv(name_.c_str(), value, 1);
  }
  ~ScopedVariable() { before_.empty() ? unsetenv(name_.c_str()) : setenv(name_.c_str(), before_.c_str(), 1); }

 private:
  std::string name_, before_;
};

bool contains(absl::string_view text, const char* part) {
  return text.find(part) != absl::string_view::npos;
}

}  // namespace

TEST_CASE("every variable stands once in the table and is explained", "[runtime]") {
  std::set<std::string_view> names;
  for (const EnvironmentVariable& variable : env::kAll) {
    INFO(variable.name);
    CHECK(variable.name.substr(0, 7) == "PTXGEN_");
    CHECK(names.insert(variable.name).second);
    CHECK_FALSE(variable.meaning.empty());
    CHECK_FALSE(variable.default_value.empty());
  }
}

TEST_CASE("the emulator's threads are a number from 1 to 1024", "[runtime]") {
  for (const char* bad : {"0", "-1", "1025", "18446744073709551616", "2x", "four"}) {
    ScopedVariable variable(env::kEmulatorThreads, bad);
    INFO(bad);
    REQUIRE_FALSE(env::emulator_threads().ok());
    CHECK(contains(env::emulator_threads().status().message(), "PTXGEN_EMULATOR_THREADS="));
    CHECK(contains(env::emulator_threads().status().message(), "1 to 1024"));
  }
  {
    ScopedVariable variable(env::kEmulatorThreads, "1024");
    CHECK(env::emulator_threads().value() == 1024);
  }
  ScopedVariable variable(env::kEmulatorThreads, "");
  CHECK(env::emulator_threads().value() >= 1);
}

TEST_CASE("the emulator's target is one of the targets", "[runtime]") {
  {
    ScopedVariable variable(env::kEmulatorTarget, "sm_42");
    REQUIRE_FALSE(env::emulator_target().ok());
    CHECK(contains(env::emulator_target().status().message(), "PTXGEN_EMULATOR_TARGET"));
  }
  {
    ScopedVariable variable(env::kEmulatorTarget, "sm_89");
    CHECK(env::emulator_target().value() == Target{89, false});
  }
  ScopedVariable variable(env::kEmulatorTarget, "");
  CHECK(env::emulator_target().value() == Target{90, true});
}

TEST_CASE("libcuda is what is named, else the driver's own name", "[runtime]") {
  {
    ScopedVariable variable(env::kLibcuda, "/opt/other/libcuda.so");
    CHECK(env::libcuda() == "/opt/other/libcuda.so");
  }
  ScopedVariable variable(env::kLibcuda, "");
  CHECK(env::libcuda() == "libcuda.so.1");
}

}  // namespace ptxgen
