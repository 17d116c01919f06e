#include "ptxgen/cache_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "ptxgen/environment.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::ScopedVariable;
using testing::take;

// Where a process without variables of its own would keep things: nowhere.
struct NoVariables {
  ScopedVariable directory{env::kCacheDir.name, nullptr}, shared{env::kCacheShared.name, nullptr},
      xdg{"XDG_CACHE_HOME", nullptr}, home{"HOME", nullptr};
};

unsigned mode_of(const fs::path& path) {
  struct stat info = {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

// The one reason, which names the folder and a way out.
std::string refusal(const fs::path& path, std::string_view room = {}) {
  const absl::StatusOr<std::string> result = cache_directory(room, {.path = path.string()});
  REQUIRE_FALSE(result.ok());
  const std::string message(result.status().message());
  INFO(message);
  CHECK(contains(message, path.string()));
  CHECK(contains(message, "PTXGEN_CACHE_DIR"));
  return message;
}

}  // namespace

TEST_CASE("the cache directory is found by the XDG rules", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  const NoVariables none;
  const std::string home = (scratch.path() / "home").string(), xdg = (scratch.path() / "xdg").string(),
                    named = (scratch.path() / "named" / "deep").string();
  {
    const absl::Status status = cache_directory().status();
    CHECK(absl::IsNotFound(status));
    CHECK(contains(status.message(), "neither XDG_CACHE_HOME nor HOME"));
  }
  const ScopedVariable with_home("HOME", home.c_str());
  CHECK(take(cache_directory()) == home + "/.cache/ptxgen");
  {
    const ScopedVariable relative("XDG_CACHE_HOME", "relative");
    CHECK(take(cache_directory()) == home + "/.cache/ptxgen");
  }
  const ScopedVariable with_xdg("XDG_CACHE_HOME", xdg.c_str());
  CHECK(take(cache_directory("cubins")) == xdg + "/ptxgen/cubins");
  const ScopedVariable with_name(env::kCacheDir.name, named.c_str());
  CHECK(take(cache_directory("cubins")) == named + "/cubins");
  CHECK(take(cache_directory("", {.path = home + "/own//"})) == home + "/own");
  for (const std::string& made : {home + "/.cache", home + "/.cache/ptxgen", xdg + "/ptxgen/cubins", named})
    CHECK(mode_of(made) == 0700);
}

TEST_CASE("a relative cache directory is below the working directory", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  const fs::path before = fs::current_path();
  fs::current_path(scratch.path());
  const absl::StatusOr<std::string> path = cache_directory("", {.path = "here"});
  const std::string expected = fs::current_path().string() + "/here";
  fs::current_path(before);
  CHECK(take(path) == expected);
}

TEST_CASE("a cache directory that is not private is refused with one reason", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  const NoVariables none;
  const fs::path good = scratch.path() / "good", link = scratch.path() / "link";
  fs::create_directory(good);
  fs::create_directory_symlink(good, link);
  CHECK(contains(refusal(link), "is a symbolic link"));
  CHECK(absl::IsPermissionDenied(cache_directory("", {.path = link.string() + "/"}).status()));

  for (const unsigned mode : {0777u, 0770u, 0702u, 01777u}) {
    REQUIRE(::chmod(good.c_str(), mode) == 0);
    CHECK(contains(refusal(good), "can be written by others"));
  }
  CHECK(contains(refusal(good), "mode 777"));
  REQUIRE(::chmod(good.c_str(), 0755) == 0);
  CHECK(take(cache_directory("", {.path = good.string()})) == good.string());

  fs::create_directory_symlink(scratch.path(), good / "cubins");
  CHECK(contains(refusal(good, "cubins"), "is a symbolic link"));

  // Opted in, by option or variable.
  REQUIRE(::chmod(good.c_str(), 0777) == 0);
  CHECK(take(cache_directory("", {.path = link.string(), .shared = true})) == link.string());
  const ScopedVariable shared(env::kCacheShared.name, "1");
  CHECK(take(cache_directory("cubins", {.path = good.string()})) == (good / "cubins").string());
  CHECK_FALSE(cache_directory("", {.path = good.string(), .shared = false}).ok());
}

TEST_CASE("a cache directory of another user is refused", "[runtime][store]") {
  const NoVariables none;
  const testing::ScratchFolder scratch;
  const fs::path folder = scratch.path() / "theirs";
  fs::create_directory(folder);
  if (::chown(folder.c_str(), 12345, 12345) != 0) return;  // root alone gives a folder away
  REQUIRE(::chmod(folder.c_str(), 0700) == 0);
  CHECK(contains(refusal(folder), "belongs to user 12345"));
}

TEST_CASE("what cannot be a cache directory says why", "[runtime][store]") {
  const NoVariables none;
  const testing::ScratchFolder scratch;
  REQUIRE(testing::write_file(scratch.path() / "file", "in the way"));
  CHECK(contains(refusal(scratch.path() / "file"), "is no folder"));
  CHECK(contains(refusal(scratch.path() / "file" / "below"), "cannot make"));
  fs::create_symlink(scratch.path() / "nowhere", scratch.path() / "dangling");
  CHECK(contains(refusal(scratch.path() / "dangling"), "is a symbolic link"));
  for (const char* room : {"..", "a/b", "A", "a.b", "/"})
    CHECK(absl::IsInvalidArgument(cache_directory(room, {.path = scratch.path().string()}).status()));
  const ScopedVariable shared(env::kCacheShared.name, "maybe");
  CHECK(contains(cache_directory("", {.path = scratch.path().string()}).status().message(),
                 "PTXGEN_CACHE_SHARED=maybe"));
}

}  // namespace ptxgen
