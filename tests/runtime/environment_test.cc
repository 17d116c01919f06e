#include "ptxgen/environment.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/support/environment.h"

namespace ptxgen {
namespace {

using testing::ScopedVariable;

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

TEST_CASE("copies of weights have so many bytes, or the device's share", "[runtime]") {
  const auto read = [](const char* text) {
    const ScopedVariable variable(env::kCopiesMaxBytes.name, text);
    return env::copies_max_bytes();
  };
  CHECK_FALSE(read(nullptr).value());
  CHECK(read("0").value() == 0);
  CHECK(read("3G").value() == std::uint64_t{3} << 30);
  CHECK(contains(read("half").status().message(), "PTXGEN_COPIES_MAX_BYTES=half"));
}

TEST_CASE("the emulator's threads are a number from 1 to 1024", "[runtime]") {
  for (const char* bad : {"0", "-1", "1025", "18446744073709551616", "2x", "four"}) {
    ScopedVariable variable(env::kEmulatorThreads.name, bad);
    INFO(bad);
    REQUIRE_FALSE(env::emulator_threads().ok());
    CHECK(contains(env::emulator_threads().status().message(), "PTXGEN_EMULATOR_THREADS="));
    CHECK(contains(env::emulator_threads().status().message(), "1 to 1024"));
  }
  {
    ScopedVariable variable(env::kEmulatorThreads.name, "1024");
    CHECK(env::emulator_threads().value() == 1024);
  }
  ScopedVariable variable(env::kEmulatorThreads.name, "");
  CHECK(env::emulator_threads().value() >= 1);
}

TEST_CASE("the emulator's target is one of the targets", "[runtime]") {
  {
    ScopedVariable variable(env::kEmulatorTarget.name, "sm_42");
    REQUIRE_FALSE(env::emulator_target().ok());
    CHECK(contains(env::emulator_target().status().message(), "PTXGEN_EMULATOR_TARGET"));
  }
  {
    ScopedVariable variable(env::kEmulatorTarget.name, "sm_89");
    CHECK(env::emulator_target().value() == Target{89, false});
  }
  ScopedVariable variable(env::kEmulatorTarget.name, "");
  CHECK(env::emulator_target().value() == Target{90, true});
}

TEST_CASE("a switch is 0 or 1", "[runtime]") {
  for (const auto& [value, expected] : {std::pair("1", true), std::pair("0", false), std::pair("", false)}) {
    ScopedVariable variable(env::kCacheShared.name, value);
    CHECK(env::cache_shared().value() == expected);
  }
  ScopedVariable variable(env::kCacheShared.name, "yes");
  REQUIRE_FALSE(env::cache_shared().ok());
  CHECK(contains(env::cache_shared().status().message(), "PTXGEN_CACHE_SHARED=yes: allowed is 0, 1"));
}

TEST_CASE("libcuda is what is named, else the driver's own name", "[runtime]") {
  {
    ScopedVariable variable(env::kLibcuda.name, "/opt/other/libcuda.so");
    CHECK(env::libcuda() == "/opt/other/libcuda.so");
  }
  ScopedVariable variable(env::kLibcuda.name, "");
  CHECK(env::libcuda() == "libcuda.so.1");
}

}  // namespace ptxgen
